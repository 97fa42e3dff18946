"""What is left of a run, and the form of a verdict on it.

``Evidence`` is plain data: operations as clients saw them, writes of the registry, the stores, the
faults and the notes of observers. The simulator has all of it, a run of real processes most of it; what
is missing makes the checkers that need it say "unknown", never "true".

All times are true times (of the simulation, or of the one harness that drives the clients), so
"before" means before in reality. ``wall_start_ms`` translates them to the nodes' clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import attrs

from skuld_py.model import messages as m
from skuld_py.model.body import Body, encode_body, header_of
from skuld_py.model.columns import unpack_u64
from skuld_py.model.document import Document
from skuld_py.model.history import RELEASED
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import partition_of, split
from skuld_py.model.outcomes import ERROR_SEQ, RESULT_SEQ
from skuld_py.model.prelude import DEPS
from skuld_py.simulation.history import History, Operation, Status
from skuld_py.simulation.notes import Note, What

EVIDENCE_MAX = 5
NOTES_MAX = 3
"""Entries under tokens up to this are notes. Written out, as all numbers here."""
LINE_CHARS_MAX = 700

DEATHS = frozenset({"crash", "crash before commit", "crash after commit", "blackout", "clock step", "clock ahead",
                    "disk full", "new leader crash", "kill", "power cut"})
"""Faults that end processes."""
POWER_CUTS = DEATHS - {"kill"}
"""Those after which nothing is left that was not fsynced; the simulator's crashes are all of this kind."""
AMNESIA = frozenset({"wipe", "roll back", "old copy"})
"""Faults that take from a node what it had fsynced."""
CORRUPTION = frozenset({"corrupt", "voter damaged"})
"""Faults that change stored bytes."""
LOSSES = AMNESIA | CORRUPTION


class Records(Protocol):
    """A store as far as checkers read it; an LMDB environment opened afterwards will do."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""

    def rows(self, table: str, prefix: bytes = b"") -> Mapping[bytes, bytes]:
        """All rows whose key starts with a prefix."""


class Written(Protocol):
    """A document that the registry took, in the order in which it did."""

    @property
    def time_ms(self) -> int:
        """When the registry took it."""

    @property
    def partition(self) -> int:
        """Its partition."""

    @property
    def document(self) -> Document:
        """The document itself."""


class Disturbance(Protocol):
    """One fault: its kind, its time, and its victims."""

    @property
    def kind(self) -> str:
        """One of the names above, or any other."""

    @property
    def start_ms(self) -> int:
        """When it began."""

    @property
    def stop_ms(self) -> int:
        """When it ended."""

    @property
    def targets(self) -> Sequence[str]:
        """The nodes that it strikes."""


@attrs.frozen
class Told:
    """A claim that a client was told of."""

    task: bytes
    token: int
    body: bytes
    end_ms: int
    operation: Operation


@attrs.frozen
class Entry:
    """A log entry, sent or found."""

    task: bytes
    token: int
    seq: int
    data: bytes


@attrs.frozen
class Need:
    """What a task needs: other tasks, what becomes of it when one fails, how long it waits for unknown ones."""

    deps: tuple[bytes, ...]
    policy: int
    wait_ms: int


@attrs.frozen
class Evidence:
    """What is left of a run.

    ``owners``: partition -> nodes that must hold it at last; empty unless the cluster was healed and agrees.
    ``skew_excess_ms``: by how much faults drove clocks and pauses beyond the bound that leases rest on.
    ``calm_ms``: when the last fault ended; ``equal_ms``: when all replicas were first seen equal after it;
    ``bound_ms``: how long that may take. ``end_ms``: when the run ended; ``patience_ms``: a client's longest wait.
    ``led_ms``: since when, after the last fault, all partitions were seen led.
    ``repeats``: whether links bring messages twice, as no real connection does.
    ``is_fixed``: whether the same nodes were registered all the time, as far as known.
    ``going``: task -> when the first node deleted it as garbage, all knowing that it was; ``collected``: task ->
    when the last one had. ``keep_ms``: how long what has ended is kept.
    ``resized``: how many copies were wanted besides ``replicas``.
    ``restored``: when all that ZooKeeper had was lost, and the cluster was put back from its directories.
    """

    history: History = attrs.field(factory=History)
    writes: Sequence[Written] = ()
    stores: Mapping[str, Records] = attrs.field(factory=dict)
    owners: Mapping[int, Sequence[str]] = attrs.field(factory=dict)
    replicas: int = 3
    partitions: int = 1
    faults: Sequence[Disturbance] = ()
    repeats: bool = False
    notes: Sequence[Note] = ()
    skew_ms: int = 0
    skew_excess_ms: int = 0
    wall_start_ms: int = 0
    calm_ms: int | None = None
    equal_ms: int | None = None
    led_ms: int | None = None
    bound_ms: int = 0
    end_ms: int = 0
    patience_ms: int = 0
    is_fixed: bool = False
    collected: Mapping[bytes, int] = attrs.field(factory=dict)
    going: Mapping[bytes, int] = attrs.field(factory=dict)
    keep_ms: int = 0
    resized: Sequence[int] = ()
    restored: Sequence[int] = ()

    def partition(self, task_id: bytes) -> int:
        """Where a task lives."""
        return partition_of(task_id, self.partitions)

    def may_expire(self, body: bytes) -> bool:
        """Whether a task's end lies within the run."""
        return 0 < Body.decode(body).expires_ms <= self.wall_start_ms + self.end_ms

    def key(self, task_id: bytes) -> bytes:
        """A task's key in the tables that go by id."""
        return self.partition(task_id).to_bytes(2, "big") + task_id

    def owners_of(self, task_id: bytes) -> list[tuple[str, Records]]:
        """The final owners of a task, with their stores."""
        return [(name, self.stores[name]) for name in self.owners.get(self.partition(task_id), ())]

    @property
    def majority(self) -> int:
        """Of a cohort. Written out, since a checker shares no arithmetic with what it checks."""
        return min((self.replicas, *self.resized)) // 2 + 1

    def struck(self, kinds: frozenset[str]) -> list[Disturbance]:
        """The faults of these kinds."""
        return [fault for fault in self.faults if fault.kind in kinds]

    def noted(self, *kinds: What) -> list[Note]:
        """Notes of these kinds, in order."""
        return [note for note in self.notes if note.what in kinds]

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """All claims that clients were told of, in the order in which they asked."""
        return tuple(claims_of(self.history))

    @cached_property
    def needs(self) -> dict[bytes, Need]:
        """Task -> what it needs, of all that were sent."""
        bodies = {task_id: Body.decode(record) for operation in self.history.of(m.Enqueue)
                  for task_id, record in bodies_of(operation) if header_of(record).prelude & DEPS}
        return {task_id: Need(body.deps, body.header.policy, body.header.dep_wait_ms)
                for task_id, body in bodies.items()}

    @cached_property
    def histories(self) -> dict[str, dict[bytes, TaskHistory]]:
        """Node -> task -> its history there."""
        return {name: {key[2:]: TaskHistory.decode(record) for key, record in store.rows("history").items()}
                for name, store in self.stores.items()}

    @cached_property
    def logged(self) -> dict[str, list[Entry]]:
        """Node -> the log entries it stores. Notes are none: nodes write them, not clients."""
        return {name: [entry for key, data in store.rows("log").items()
                       if (entry := Entry(key[2:22], int.from_bytes(key[22:30], "big"),
                                          int.from_bytes(key[30:34], "big"), data)).token > NOTES_MAX]
                for name, store in self.stores.items()}

    def copies(self, operation: Operation) -> int:
        """How many fsynced copies the answer to a write stands for."""
        asked: int = getattr(operation.message, "w", 0) or self.majority
        assert isinstance(operation.answer, m.Acked)
        return max(asked, operation.answer.copies)

    def is_binding(self, operation: Operation) -> bool:
        """Whether what was acknowledged must survive: always, but where faults destroyed copies, by a majority."""
        return self.copies(operation) >= self.majority or not self.struck(LOSSES)

    def is_seen_by_majorities(self, operation: Operation) -> bool:
        """Whether any majority meets a copy of what was acknowledged."""
        most = max((self.replicas, *self.resized))
        return self.copies(operation) + self.majority > most and self.is_binding(operation)


@attrs.frozen
class Finding:
    """A checker's verdict: true, false, or None, unknown: nothing in the run could have broken the rule."""

    invariant: str
    verdict: bool | None
    evidence: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The rule's short name, as ``C3``."""
        return self.invariant.split(" ", 1)[0]


Checker = Callable[[Evidence], Finding]


def judge(invariant: str, count: int, broken: Iterable[str]) -> Finding:
    """A verdict over ``count`` tests; False when something is broken, even if nothing was counted."""
    evidence = tuple(line[:LINE_CHARS_MAX] for line, _ in zip(broken, range(EVIDENCE_MAX), strict=False))
    return Finding(invariant, False if evidence else (True if count else None), evidence)


Where = Operation | str
"""An operation that showed something, or the node that stores it."""


# -- what operations carried ---------------------------------------------------------------------------


def bodies_of(operation: Operation) -> Iterator[tuple[bytes, bytes]]:
    """(id, body record) of what an enqueue sent."""
    assert isinstance(operation.message, m.Enqueue)
    for batch in operation.message.batches:
        for task_id, payload in zip(split(batch.ids), batch.payloads.unpack(), strict=True):
            yield task_id, encode_body(batch.header, payload)


def numbers_told(answer: m.Message | None) -> frozenset[int]:
    """Which tasks of an enqueue were there already, by what its answer says."""
    return frozenset(unpack_u64(answer.duplicates)) if isinstance(answer, m.Acked) else frozenset()


def gives_way(body: bytes, other: bytes) -> bool:
    """Whether a body of a unique name may have been replaced by another, which was asked for first."""
    try:
        ranks = [(made_ms, record) for record in (other, body) if (made_ms := Body.decode(record).made_ms)]
    except ValueError:
        return False
    return len(ranks) == 2 and ranks[0] <= ranks[1]


def completions_of(operation: Operation) -> Iterator[tuple[bytes, int]]:
    """(id, token) of what a completion sent."""
    assert isinstance(operation.message, m.Complete)
    return zip(split(operation.message.ids), unpack_u64(operation.message.tokens), strict=True)


def endings_of(operation: Operation) -> Iterator[tuple[bytes, int, int]]:
    """(id, token, kind) of the claims that it would end otherwise than by completion."""
    message = operation.message
    kind = message.kind if isinstance(message, m.Conclude) else RELEASED
    if isinstance(message, m.Conclude) or (isinstance(message, m.Renew) and not message.lease_ms):
        for task_id, token in zip(split(message.ids), unpack_u64(message.tokens), strict=True):
            yield task_id, token, kind


def entries_of(operation: Operation) -> Iterator[Entry]:
    """What an append sent."""
    message = operation.message
    assert isinstance(message, m.Append)
    for index, data in enumerate(message.entries.unpack()):
        yield Entry(message.id, message.token, message.seq + index, data)


def outcomes_of(operation: Operation) -> Iterator[Entry]:
    """The results of a completion, or the errors of failures, as entries of the logs they stand beside."""
    message = operation.message
    assert isinstance(message, m.Complete | m.Conclude)
    data = message.results if isinstance(message, m.Complete) else message.errors
    seq = RESULT_SEQ if isinstance(message, m.Complete) else ERROR_SEQ
    for task_id, token, each in zip(split(message.ids), unpack_u64(message.tokens), data.unpack(), strict=False):
        if each:
            yield Entry(task_id, token, seq, each)


def claims_of(history: History) -> Iterator[Told]:
    """Every claim that a client was told of."""
    for operation in history.of(m.Claim, Status.OK):
        assert isinstance(operation.answer, m.Claimed)
        for batch in operation.answer.batches:
            rows = zip(split(batch.ids), batch.bodies.unpack(), strict=True)
            for index, (task_id, body) in enumerate(rows):
                yield Told(task_id, batch.first_token + index, body, batch.end_ms, operation)


def tokens_told(evidence: Evidence) -> list[tuple[bytes, int]]:
    """(id, token) of every claim that a client was told of, each once."""
    return list(dict.fromkeys((told.task, told.token) for told in evidence.told if told.body))


def cancelled_in(operation: Operation) -> list[bytes]:
    """Tasks that a cancelling named."""
    assert isinstance(operation.message, m.Cancel)
    return split(operation.message.ids)


def holder_of(operation: Operation) -> str:
    """The holder that a claim asked for."""
    assert isinstance(operation.message, m.Claim)
    return operation.message.holder


def renewals_of(operation: Operation) -> Iterator[tuple[bytes, int, int]]:
    """(id, token, new end or 0) of a renewal that was answered."""
    message, answer = operation.message, operation.answer
    assert isinstance(message, m.Renew) and isinstance(answer, m.Renewed)
    return zip(split(message.ids), unpack_u64(message.tokens), unpack_u64(answer.ends), strict=True)


def conclusions_of(operation: Operation) -> Iterator[tuple[bytes, int, int]]:
    """(id, token, when its task may be claimed again, or 0) of claims ended otherwise than by completion, as was
    answered; unknown ones are left out."""
    message, answer = operation.message, operation.answer
    assert isinstance(message, m.Conclude) and isinstance(answer, m.Renewed)
    unknown = unpack_u64(answer.unknown)
    rows = zip(split(message.ids), unpack_u64(message.tokens), unpack_u64(answer.ends), strict=True)
    return (row for index, row in enumerate(rows) if index not in unknown)


def rows_of(operation: Operation) -> Iterator[m.TaskRow]:
    """Tasks that a read showed."""
    assert isinstance(operation.answer, m.Got)
    yield from operation.answer.tasks


def entries_in(row: m.TaskRow) -> Iterator[Entry]:
    """The log of a task as a read showed it, without notes."""
    for token, seq, data in zip(unpack_u64(row.tokens), unpack_u64(row.seqs), row.entries.unpack(), strict=True):
        if token > NOTES_MAX:
            yield Entry(row.id, token, seq, data)


def bodies_seen(evidence: Evidence) -> Iterator[tuple[Where, bytes, bytes]]:
    """(where, id, body) of every body that a claim or a read showed or a store holds."""
    for told in evidence.told:
        yield told.operation, told.task, told.body
    for operation in evidence.history.of(m.Get, Status.OK):
        for row in rows_of(operation):
            for body in row.body.unpack():
                yield operation, row.id, body
    for name, store in evidence.stores.items():
        for key, body in store.rows("body").items():
            yield name, key[2:], body


def entries_seen(evidence: Evidence) -> Iterator[tuple[Where, Entry]]:
    """(where, entry) of every log entry that a read showed or a store holds."""
    for operation in evidence.history.of(m.Get, Status.OK):
        for row in rows_of(operation):
            for entry in entries_in(row):
                yield operation, entry
    for name, entries in evidence.logged.items():
        for entry in entries:
            yield name, entry


def histories_seen(evidence: Evidence) -> Iterator[tuple[Where, bytes, TaskHistory]]:
    """(where, id, history) of every history that a read showed or a store holds."""
    for operation in evidence.history.of(m.Get, Status.OK):
        for row in rows_of(operation):
            if row.history:
                yield operation, row.id, TaskHistory.decode(row.history)
    for name, histories in evidence.histories.items():
        for task_id, history in histories.items():
            yield name, task_id, history
