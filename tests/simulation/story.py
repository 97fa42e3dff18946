"""Evidence in the making, for the checkers' tests: three nodes, one partition, one word per happening.

Every operation has its own client and number unless a test names them; times are true milliseconds. What
``kept`` adds is a whole clean life of a task, which every checker must find sound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.document import Document, seats_of
from skuld_py.model.history import FAILED, HISTORY_HEAD, encode_claim, token_of
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.setting import PAUSED, YES
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import Evidence
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.history import Call, History, Hold, Status
from skuld_py.simulation.notes import Note, What
from skuld_py.simulation.world.zookeeper.documents import Write

HEADER = Header("q").encode()
BODY = encode_body(HEADER, b"payload")
TASK, OTHER, THIRD = IdMint(1).mint(1_000, 3, 0)
KEY = tables.prefix_of(0) + TASK
TOKEN, NEWER = token_of(1, 1), token_of(1, 2)
NODES = ("n1", "n2", "n3")
ACKED = m.Acked(0, 2)
REFUSED = m.Failed(0, "conflict", "no", True)
UNSURE = m.Failed(0, "uncertain", "maybe", False)


class Story:
    """A run as it is told."""

    def __init__(self) -> None:
        self.history = History()
        self.stores = {name: MemoryStore() for name in NODES}
        self.writes: list[Write] = []
        self.faults: list[Fault] = []
        self.notes: list[Note] = []
        self.facts: dict[str, Any] = {"owners": {0: NODES}, "end_ms": 1_000}
        self._requests = 0

    # -- operations ----------------------------------------------------------------------------

    def tell(self, make: Callable[[int], m.Message], answer: m.Message | None, at_ms: int = 10,
             until_ms: int | None = None, client: str = "") -> Story:
        """An operation and its answer; None: none came."""
        self._requests += 1
        number = self._requests
        operation = self.history.invoke(at_ms, client or f"c{number}", "n1", number, make(number))
        self.history.finish(at_ms + 1 if until_ms is None else until_ms, operation, answer)
        return self

    def ask(self, at_ms: int, client: str = "c", request: int = 99) -> Story:
        """An operation that stays open."""
        self.history.invoke(at_ms, client, "n1", request, m.Count(request, ""))
        return self

    def enqueue(self, answer: m.Message | None = ACKED, payload: bytes = b"payload", *, task: bytes = TASK,
                at_ms: int = 1, w: int = 0, client: str = "", header: bytes = HEADER) -> Story:
        payloads = pack([payload] * (len(task) // 20))
        return self.tell(lambda request: m.Enqueue(request, w, (m.TaskBatch(header, task, payloads),)),
                         answer, at_ms, client=client)

    def claim(self, token: int = TOKEN, at_ms: int = 10, until_ms: int | None = None, task: bytes = TASK,
              body: bytes = BODY, queue: str = "q", count: int = 1, end_ms: int = 99, client: str = "w") -> Story:
        batch = m.ClaimBatch(task, token, end_ms, pack([body] * (len(task) // 20)))
        return self.tell(lambda request: m.Claim(request, queue, count, 50, 0, "w"),
                         m.Claimed(0, 0, (batch,)), at_ms, until_ms, client)

    def claim_nothing(self, answer: m.Message | None = None, at_ms: int = 10) -> Story:
        return self.tell(lambda request: m.Claim(request, "q", 1, 50, 0, "w"), answer, at_ms)

    def renew(self, token: int, end_ms: int, at_ms: int, client: str = "w", lease_ms: int = 50) -> Story:
        return self.tell(lambda request: m.Renew(request, lease_ms, TASK, pack_u64([token])),
                         m.Renewed(0, pack_u64([end_ms])), at_ms, client=client)

    def conclude(self, token: int, until_ms: int, at_ms: int, client: str = "w", kind: int = FAILED) -> Story:
        return self.tell(lambda request: m.Conclude(request, kind, -1, TASK, pack_u64([token])),
                         m.Renewed(0, pack_u64([until_ms])), at_ms, client=client)

    def complete(self, at_ms: int = 10, w: int = 0, answer: m.Message | None = ACKED, *, token: int = TOKEN,
                 task: bytes = TASK, client: str = "") -> Story:
        if w and answer is ACKED:
            answer = m.Acked(0, w)
        return self.tell(lambda request: m.Complete(request, w, 0, task, pack_u64([token])), answer, at_ms,
                         client=client)

    def cancel(self, at_ms: int = 10, w: int = 0, answer: m.Message | None = ACKED, *,
               task: bytes = TASK) -> Story:
        if w and answer is ACKED:
            answer = m.Acked(0, w)
        return self.tell(lambda request: m.Cancel(request, w, 0, task), answer, at_ms)

    def append(self, answer: m.Message | None = ACKED, data: bytes = b"entry", *, token: int = TOKEN,
               seq: int = 3, at_ms: int = 10, w: int = 0, client: str = "") -> Story:
        return self.tell(lambda request: m.Append(request, w, TASK, token, seq, pack([data])), answer, at_ms,
                         client=client)

    def mark(self, number: int, data: bytes = b"mark", answer: m.Message | None = ACKED, *, token: int = TOKEN,
             at_ms: int = 10, client: str = "") -> Story:
        """A checkpoint set, without an entry beside it."""
        return self.tell(lambda request: m.Append(request, 0, TASK, token, 0, pack([]), number=number, at_ms=1,
                                                  checkpoint=pack([data])), answer, at_ms, client=client)

    def read(self, at_ms: int, *, task: bytes = TASK, body: bytes = b"", history: bytes = b"",
             entries: tuple[tuple[int, int, bytes], ...] = (), is_there: bool = True, least: int = 0,
             is_bare: bool = False) -> Story:
        row = m.TaskRow(task, pack([body] if body else []), history,
                        pack_u64([token for token, _, _ in entries]), pack_u64([seq for _, seq, _ in entries]),
                        pack([data for _, _, data in entries]))
        return self.tell(lambda request: m.Get(request, task, least=pack_u64([least] if least else []),
                                               is_bare=is_bare), m.Got(0, (row,) if is_there else ()), at_ms)

    def await_end(self, end: int, at_ms: int, task: bytes = TASK) -> Story:
        return self.tell(lambda request: m.Await(request, task, 0),
                         m.Awaited(0, bytes([end]), pack([b""]), pack([b""])), at_ms)

    def read_log(self, after: int, count: int, at_ms: int) -> Story:
        return self.tell(lambda request: m.ReadLog(request, TASK, TOKEN, after, 9, 0),
                         m.Logged(0, pack([b"entry"] * count), 0, False), at_ms)

    def put(self, version: int, value: bytes = YES, at_ms: int = 2, copies: int = 3, *, queue: str = "q",
            answer: m.Message | None = None, kind: str = PAUSED, until_ms: int | None = None) -> Story:
        """A setting changed, by default paused on all nodes; no answer for 0 copies."""
        told = answer or (m.SettingPut(0, copies, NODES[copies:]) if copies else None)
        return self.tell(lambda request: m.PutSetting(request, kind, queue, version, "ops", value), told, at_ms,
                         until_ms)

    def read_setting(self, at_ms: int, shown: int, value: bytes = YES, *, version: int | None = None,
                     queue: str = "q") -> Story:
        """A register read, of version ``shown`` (0: none)."""
        rows = (m.SettingRow(PAUSED, queue, shown, "ops", value),) if shown else ()
        return self.tell(lambda request: m.GetSettings(request, PAUSED, queue, b""),
                         m.GotSettings(0, rows, b"", shown + 1 if version is None else version), at_ms)

    def call(self, status: Status, verb: str = "enqueue", *, last: int = 1, clock_ms: int = 0) -> Story:
        """The last operations were one call of the library, which ended so."""
        operations = self.history.operations[-last:]
        call = Call(operations[0].client, verb, operations[0].invoked_ms, clock_ms, status, operations[-1].done_ms,
                    operations=operations)
        for operation in operations:
            operation.call = call
        self.history.calls.append(call)
        return self

    def hold(self, token: int, start_ms: int, stop_ms: int, task: bytes = TASK) -> Story:
        self.history.holds.append(Hold(task, token, f"w{token}", start_ms - 1, start_ms, stop_ms))
        return self

    # -- the world -----------------------------------------------------------------------------

    def write(self, epoch: int, at_ms: int, leader: str = "n1", cohort: tuple[str, ...] = NODES,
              **fields: Any) -> Story:
        document = Document(epoch, leader, "boot", seats_of(cohort), f"w{at_ms}{leader}")
        self.writes.append(Write(at_ms, 0, len(self.writes), attrs.evolve(document, **fields)))
        return self

    def store(self, table: str, key: bytes, value: bytes, names: tuple[str, ...] = NODES) -> Story:
        for name in names:
            self.stores[name].put_many(table, [(key, value)])
            self.stores[name].commit()
        return self

    def drop(self, table: str, key: bytes, name: str) -> Story:
        self.stores[name].pop_many(table, [key])
        self.stores[name].commit()
        return self

    def strike(self, kind: str, at_ms: int, node: str = "n1") -> Story:
        self.faults.append(Fault(len(self.faults), kind, at_ms, at_ms + 5, (node,)))
        return self

    def note(self, at_ms: int, node: str, what: What, epoch: int = 1, **fields: Any) -> Story:
        self.notes.append(Note(at_ms, node, what, 0, epoch, **fields))
        return self

    def know(self, **facts: Any) -> Story:
        """Set other fields of the evidence."""
        self.facts.update(facts)
        return self

    def evidence(self) -> Evidence:
        return Evidence(self.history, self.writes, self.stores, faults=self.faults, notes=self.notes, **self.facts)


def record(*tokens: int, done: int = 0, holder: bytes = b"w", end_ms: int = 99, flags: int = 0) -> bytes:
    """A history record with claims, completed by token ``done``."""
    head = HISTORY_HEAD.pack(50 if done else 0, done, 0 if flags or not tokens else end_ms)
    return head + b"".join(encode_claim(token, 10, end_ms, holder, flags) for token in tokens)


def log_key(seq: int, token: int = TOKEN, task: bytes = TASK) -> bytes:
    return tables.log_key(tables.prefix_of(0), task, token, seq)


def slot() -> bytes:
    """The key of the checkpoint."""
    return tables.log_key(tables.prefix_of(0), TASK, 0, 0)


def record_of(token: int, number: int, data: bytes = b"mark") -> bytes:
    """The record of a checkpoint."""
    return token.to_bytes(8, "big") + number.to_bytes(4, "big") + bytes(8) + data


def stored(names: tuple[str, ...] = NODES) -> Story:
    """A task that waits."""
    return Story().store("body", KEY, BODY, names)


def completed(names: tuple[str, ...] = NODES) -> Story:
    """A task that is done."""
    return stored(names).store("history", KEY, record(TOKEN, done=TOKEN), names)


def lived() -> Story:
    """A task enqueued, claimed, logged and completed without a flaw, on all nodes."""
    return (completed().store("log", log_key(3), b"entry").enqueue().claim(at_ms=10).append(at_ms=12, client="w")
            .complete(at_ms=14, client="w"))
