"""The client: enqueue, claim, renew, update, complete, and read, over any nodes of a cluster.

    with Client("127.0.0.1:13000") as client:
        client.enqueue("reports", b"2026-11-20")
        for claim in client.claim("reports", n=10, lease_s=30, wait_s=5):
            client.complete(claim)

Every verb works on many tasks at once; the single form is the many form of one. Every call has a
deadline (``timeout_s``) and raises ``Refused`` (it did not happen) or ``Uncertain`` (it may have).
Only what is idempotent is tried again: enqueue carries its ids, renew, update and complete their
token. A claim is not: after ``Uncertain`` a lease may be out that nobody holds; it lapses.

A holder's deadline is counted from before the grant can have happened: see ``model.leases``.
"""

from __future__ import annotations

import math
import os
import random
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

import attrs

from skuld_py.client.connection import Connection
from skuld_py.client.steady import steady_s
from skuld_py.config import DEFAULT_LIMITS, LEASE_MS_MAX
from skuld_py.errors import Fenced, Refused, Uncertain
from skuld_py.model import columns, names
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.body import PRIORITY_MAX, PRIORITY_MIN, Header, decode_body
from skuld_py.model.history import decode_history
from skuld_py.model.ids import IdMint, TaskId
from skuld_py.model.leases import holder_deadline
from skuld_py.model.task import LogEntry, Task, view

TIMEOUT_S = 5.0
LEASE_S = 60.0
GET_TASKS = DEFAULT_LIMITS.batch_bytes // (DEFAULT_LIMITS.payload_bytes + DEFAULT_LIMITS.log_bytes)
"""Tasks read by one request: as many of the largest as one answer can carry."""
M = TypeVar("M", bound=m.Message)


class ClaimKey(Protocol):
    """What names a claim: a task's id and a fencing token."""

    @property
    def id(self) -> bytes:
        """The task."""

    @property
    def token(self) -> int:
        """The fencing token."""


@attrs.frozen
class ClaimName:
    """A claim known by id and token alone, from another process, say."""

    id: bytes
    token: int


@attrs.define
class Claim:
    """A task held under a lease. ``deadline`` (by ``steady_s``) is when the holder must stop."""

    id: TaskId
    token: int
    queue: str
    priority: int
    payload: bytes
    end_ms: int
    deadline: float
    next_seq: int = 0

    @property
    def remaining_s(self) -> float:
        """Seconds of lease left, by this machine's clock."""
        return self.deadline - steady_s()


@attrs.frozen
class Depth:
    """How many tasks of a queue wait, are claimed, and are completed."""

    waiting: int
    claimed: int
    completed: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.waiting + self.claimed + self.completed


class Client:
    """A connection to a cluster, for one thread at a time (calls are serialised by a lock)."""

    def __init__(self, nodes: str | Sequence[str] = "127.0.0.1:13000", *, holder: str | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        addresses = nodes.split(",") if isinstance(nodes, str) else list(nodes)
        self.holder = names.check_name(
            "holder", holder or f"{socket.gethostname()[:150]}:{os.getpid()}", names.WIDE_NAME)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._random = random.SystemRandom()
        self._mint = IdMint(self._random.getrandbits(32))
        self._connection = Connection([address.strip() for address in addresses if address.strip()])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Claims stay until their leases end."""
        with self._lock:
            self._connection.close()

    def _call(self, kind: type[M], message: m.Message, *, is_idempotent: bool = True, wait_s: float = 0) -> M:
        answer = self._connection.call(message, self._timeout_s, is_idempotent=is_idempotent, wait_s=wait_s)
        if not isinstance(answer, kind):
            raise Refused("bad_answer", f"the node answered {type(answer).__name__}; are versions equal?")
        return answer

    def _next(self) -> int:
        return self._connection.next_request()

    # -- enqueue -------------------------------------------------------------------------------

    def new_ids(self, count: int = 1) -> list[TaskId]:
        """Ids for tasks yet to be enqueued, all of one partition."""
        with self._lock:
            return self._mint_ids(count)

    def _mint_ids(self, count: int) -> list[TaskId]:
        greeted = self._connection.greet(self._timeout_s)
        self._mint.raise_floor(greeted.floor_ms)
        minted = self._mint.mint(time.time_ns() // 1_000_000, count, self._random.getrandbits(32))
        return [TaskId(task_id) for task_id in minted]

    def enqueue(self, queue: str, payload: bytes, *, priority: int = 0, id: bytes | str | None = None,
                w: int | None = None) -> TaskId:
        """Store one task on ``w`` owners (a majority by default), fsynced, and give its id.

        With ``id`` given the call is idempotent over processes: the same id and content again is
        the same task, the same id with other content is refused.
        """
        ids = None if id is None else [id]
        return self.enqueue_many(queue, [payload], priority=priority, ids=ids, w=w)[0]

    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, priority: int = 0,
                     ids: Sequence[bytes | str] | None = None, w: int | None = None) -> list[TaskId]:
        """Store many tasks, in requests of at most 1,000; gives their ids in order.

        After an error some may be stored: enqueue again with the same ``ids`` (see ``new_ids``).
        """
        header = self._header(queue, priority)
        every = list(payloads)
        if set(map(type, every)) != {bytes} or max(map(len, every)) > DEFAULT_LIMITS.payload_bytes:
            for payload in every:
                _check_payload(payload)
        given = None if ids is None else [_as_id(task_id) for task_id in ids]
        if given is not None and len(given) != len(every):
            raise Refused("bad_ids", f"ids: {len(given)} for {len(every)} payloads")
        made: list[TaskId] = []
        with self._lock:
            for part in _chunks(every):
                chunk = (self._mint_ids(len(part)) if given is None
                         else given[len(made) : len(made) + len(part)])
                batch = m.TaskBatch(header, b"".join(chunk), columns.pack(part))
                self._call(m.Acked, m.Enqueue(self._next(), w or 0, (batch,)))
                made += chunk
        return made

    def _header(self, queue: str, priority: int) -> bytes:
        names.check_name("queue", queue)
        if type(priority) is not int or not PRIORITY_MIN <= priority <= PRIORITY_MAX:
            raise Refused("bad_priority", f"priority: {priority!r} is not an int of 32 bits, signed")
        return Header(queue, priority).encode()

    # -- claims --------------------------------------------------------------------------------

    def claim(self, queue: str, *, n: int = 1, lease_s: float = LEASE_S, wait_s: float = 0) -> list[Claim]:
        """Hold up to ``n`` waiting tasks for ``lease_s``, best first; wait up to ``wait_s`` for one.

        Empty when nothing waits. Order is exact within a partition, approximate across.
        """
        names.check_name("queue", queue)
        lease_ms = _as_ms("lease_s", lease_s, least=1)
        wait_ms = _as_ms("wait_s", wait_s, least=0)
        if not 1 <= n <= DEFAULT_LIMITS.batch_tasks:
            raise Refused("bad_count", f"n: {n} is not in 1..{DEFAULT_LIMITS.batch_tasks}")
        with self._lock:
            sent = steady_s()
            message = m.Claim(self._next(), queue, n, lease_ms, wait_ms, self.holder)
            answer = self._call(m.Claimed, message, is_idempotent=False, wait_s=wait_s)
        deadline = holder_deadline(sent, lease_s, answer.waited_ms)
        return [claim for batch in answer.batches for claim in _claims_of(batch, deadline)]

    def claim_one(self, queue: str, *, lease_s: float = LEASE_S, wait_s: float = 0) -> Claim | None:
        """Hold the best waiting task, or None."""
        claims = self.claim(queue, n=1, lease_s=lease_s, wait_s=wait_s)
        return claims[0] if claims else None

    def renew(self, claim: ClaimKey, *, lease_s: float = LEASE_S) -> None:
        """Extend a claim by ``lease_s`` from now; raises ``Fenced`` when it is lost."""
        is_held = self.renew_many([claim], lease_s=lease_s)[0]
        if is_held is None:
            raise Uncertain("uncertain", "the partition's leader did not answer in time; try again")
        if not is_held:
            raise Fenced(f"claim {claim.token} of {task_ids.to_text(claim.id)} is lost: its lease ended, it was"
                         " released, or the task is completed", id=claim.id, token=claim.token)

    def renew_many(self, claims: Sequence[ClaimKey], *, lease_s: float = LEASE_S) -> list[bool | None]:
        """Extend many claims; says of each whether it is still held.

        None: nobody knows, its leader did not answer in time. Its old deadline holds; try again.
        """
        sent = steady_s()
        ends = self._renew(claims, _as_ms("lease_s", lease_s, least=1))
        for claim, end_ms in zip(claims, ends, strict=True):
            if end_ms and isinstance(claim, Claim):
                claim.end_ms = end_ms
                claim.deadline = max(claim.deadline, holder_deadline(sent, lease_s))
        return [None if end_ms is None else bool(end_ms) for end_ms in ends]

    def release(self, *claims: ClaimKey) -> None:
        """Give claims back: their tasks wait again at once. A lost claim is no error."""
        if None in self._renew(claims, 0):
            raise Uncertain("uncertain", "a leader did not answer in time; what was not released will lapse")

    def _renew(self, claims: Sequence[ClaimKey], lease_ms: int) -> list[int | None]:
        """Ends, 0 for what is lost, None for what nobody knows."""
        ends: list[int | None] = []
        with self._lock:
            for start in range(0, len(claims), DEFAULT_LIMITS.batch_tasks):
                part = claims[start : start + DEFAULT_LIMITS.batch_tasks]
                answer = self._call(m.Renewed, m.Renew(
                    self._next(), lease_ms, b"".join(claim.id for claim in part),
                    columns.pack_u64([claim.token for claim in part])))
                unknown = columns.unpack_u64(answer.unknown)
                ends += [None if index in unknown else end_ms
                         for index, end_ms in enumerate(columns.unpack_u64(answer.ends))]
        return ends

    def update(self, claim: ClaimKey, data: bytes | Sequence[bytes], *, seq: int | None = None,
               w: int | None = None) -> int:
        """Add entries to the claim's log; gives the next seq.

        Entries are numbered from 0 by the claim's holder. Readers see the contiguous prefix. The same
        seq again with the same data is harmless, with other data refused.
        """
        entries = [data] if isinstance(data, bytes) else list(data)
        if seq is None:
            if not isinstance(claim, Claim):
                raise Refused("bad_seq", "seq: give the number of the first entry, from 0")
            seq = claim.next_seq
        with self._lock:
            self._call(m.Acked, m.Append(self._next(), w or 0, claim.id, claim.token, seq,
                                         columns.pack(entries)))
        if isinstance(claim, Claim):
            claim.next_seq = max(claim.next_seq, seq + len(entries))
        return seq + len(entries)

    def complete(self, claim: ClaimKey, *, w: int | None = None) -> None:
        """Record that the task is done; from any claim, however late; it dominates every other fact."""
        self.complete_many([claim], w=w)

    def complete_many(self, claims: Sequence[ClaimKey], *, w: int | None = None) -> None:
        """Complete many claims."""
        with self._lock:
            for start in range(0, len(claims), DEFAULT_LIMITS.batch_tasks):
                part = claims[start : start + DEFAULT_LIMITS.batch_tasks]
                self._call(m.Acked, m.Complete(
                    self._next(), w or 0, 0, b"".join(claim.id for claim in part),
                    columns.pack_u64([claim.token for claim in part])))

    # -- reading -------------------------------------------------------------------------------

    def get(self, id: bytes | str) -> Task:
        """A task with all its claims and their logs, joined over a majority of its owners."""
        found = self.get_many([id])
        if not found:
            raise Refused("no_such_task", f"id: no task {id if isinstance(id, str) else task_ids.to_text(id)}")
        return found[0]

    def get_many(self, ids: Sequence[bytes | str]) -> list[Task]:
        """The tasks that exist, in id order."""
        wanted = [_as_id(task_id) for task_id in ids]
        with self._lock:
            answers = [self._call(m.Got, m.Get(self._next(), b"".join(wanted[start : start + GET_TASKS])))
                       for start in range(0, len(wanted), GET_TASKS)]
        return [_task_of(row) for answer in answers for row in answer.tasks if len(row.body)]

    def list(self, queue: str | None = None, *, page: int = 500) -> Iterator[Task]:
        """All tasks, or a queue's, in id order; one page in memory. Logs are left out (see ``get``)."""
        after = b""
        while True:
            with self._lock:
                answer = self._call(m.Listed, m.List(self._next(), queue or "", after, page))
            rows = zip(task_ids.split(answer.ids), answer.bodies.unpack(), answer.histories.unpack(), strict=True)
            for task_id, body, history in rows:
                yield view(TaskId(task_id), body, decode_history(history or None), [])
            if not answer.upto:
                return
            after = answer.upto

    def depths(self) -> dict[str, Depth]:
        """Counts of every queue."""
        with self._lock:
            answer = self._call(m.Counted, m.Count(self._next(), ""))
        return {row.queue: Depth(row.waiting, row.claimed, row.completed) for row in answer.rows}

    def count(self, queue: str | None = None) -> int:
        """How many tasks exist, completed ones included; of one queue or of all."""
        with self._lock:
            answer = self._call(m.Counted, m.Count(self._next(), queue or ""))
        return sum(row.waiting + row.claimed + row.completed for row in answer.rows)

    def status(self) -> m.Described:
        """The cluster as one of its nodes sees it."""
        with self._lock:
            return self._call(m.Described, m.Describe(self._next()))


def _chunks(payloads: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Cut into requests within the limits of tasks and bytes."""
    if len(payloads) <= DEFAULT_LIMITS.batch_tasks and sum(map(len, payloads)) <= DEFAULT_LIMITS.batch_bytes:
        yield from [list(payloads)] if payloads else []
        return
    part: list[bytes] = []
    size = 0
    for payload in payloads:
        if part and (len(part) == DEFAULT_LIMITS.batch_tasks
                     or size + len(payload) > DEFAULT_LIMITS.batch_bytes):
            yield part
            part, size = [], 0
        part.append(payload)
        size += len(payload)
    if part:
        yield part


def _check_payload(payload: object) -> None:
    if type(payload) is not bytes:
        raise Refused("bad_payload", f"payload: bytes wanted, not {type(payload).__name__}; encode it first")
    if len(payload) > DEFAULT_LIMITS.payload_bytes:
        raise Refused("payload_too_large", f"payload: {len(payload)} bytes, the limit is"
                      f" {DEFAULT_LIMITS.payload_bytes}; store the data elsewhere and send its path")


def _as_id(task_id: bytes | str) -> TaskId:
    if isinstance(task_id, str):
        return task_ids.from_text(task_id)
    if len(task_id) != task_ids.ID_BYTES:
        raise Refused("bad_id", f"id: {len(task_id)} bytes; a task id has {task_ids.ID_BYTES}")
    return TaskId(task_id)


def _as_ms(field: str, seconds: float, *, least: int) -> int:
    milliseconds = round(seconds * 1000) if math.isfinite(seconds) else -1
    if not least <= milliseconds <= LEASE_MS_MAX:
        raise Refused("bad_duration", f"{field}: {seconds!r} s is not between {least / 1000} s and 24 h")
    return milliseconds


def _claims_of(batch: m.ClaimBatch, deadline: float) -> Iterator[Claim]:
    bodies = batch.bodies.unpack()
    headers: dict[bytes, Header] = {}
    for index, (task_id, body) in enumerate(zip(task_ids.split(batch.ids), bodies, strict=True)):
        size = 2 + int.from_bytes(body[:2], "big")
        header = headers.get(body[:size])
        if header is None:
            header = headers[body[:size]] = decode_body(body)[0]
        yield Claim(TaskId(task_id), batch.first_token + index, header.queue, header.priority, body[size:],
                    batch.end_ms, deadline)


def _task_of(row: m.TaskRow) -> Task:
    keys = zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), row.entries.unpack(), strict=True)
    entries = [LogEntry(token, seq, data) for token, seq, data in keys]
    return view(TaskId(row.id), row.body.unpack()[0], decode_history(row.history or None), entries)
