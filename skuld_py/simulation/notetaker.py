"""The observer inside a simulated run: it listens where messages leave nodes, and writes notes for the checkers.

It looks at a store only where a rule is about what its node knew at that very moment. It judges nothing;
what is wrong at the moment itself is the monitor's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skuld_py.model import messages as m
from skuld_py.model.body import Body
from skuld_py.model.columns import unpack_u64
from skuld_py.model.events import SwapDocument
from skuld_py.model.history import History
from skuld_py.model.ids import split
from skuld_py.model.setting import PAUSED, YES, decode_setting, setting_key
from skuld_py.simulation.notes import Note, What
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import Scheduler

_SUSPECT = b"suspect"


class NoteTaker:
    """Writes ``notes`` in the order of true time."""

    def __init__(self, scheduler: Scheduler, processes: Mapping[str, Process]) -> None:
        self.notes: list[Note] = []
        self.collected: dict[bytes, int] = {}
        """Task -> when the last copy went."""
        self._scheduler = scheduler
        self._processes = processes
        self._grants: dict[tuple[str, int, int], m.Grant] = {}
        self._amends: dict[tuple[str, int, int], int] = {}
        self._led: dict[tuple[str, int, int], None] = {}
        self._seating: dict[tuple[str, int, int], None] = {}

    def on_send(self, process: Process, peer: str, message: m.Message) -> None:
        """A message leaves a node."""
        if isinstance(message, m.Vote):
            if message.is_granted and not message.is_trial:
                self._note(process, What.VOTED, message.partition, epoch=message.epoch, whom=peer)
        elif isinstance(message, m.Granted):
            self._note_ack(process, peer, message)
        elif isinstance(message, m.Amended):
            epoch = self._amends.get((peer, message.partition, message.request))
            if epoch is not None and message.is_accepted:
                self._note(process, What.ACKED, message.partition, epoch=epoch, whom=peer)
        elif isinstance(message, m.Grant | m.Amend):
            self._note_leader(process, message)
        elif isinstance(message, m.Probed | m.Compared | m.Fetched | m.Repair):
            self._note(process, What.EXCHANGED, message.partition, whom=peer, amount=_carried(message))

    def on_swap(self, process: Process, effect: SwapDocument) -> None:
        """A candidate, or a leader, asks the registry."""
        where = (process.name, effect.partition, effect.document.epoch)
        if effect.document.leader == process.name and where not in self._seating:
            self._seating[where] = None
            records = process.store.rows("history", effect.partition.to_bytes(2, "big")).values()
            tokens = frozenset(token for record in records for token in History.decode(record).claims.entries)
            self._note(process, What.SEATING, effect.partition, epoch=effect.document.epoch, tokens=tokens)

    def before_commit(self, process: Process) -> None:
        """A batch of a node becomes durable."""
        for _, key, _, after in process.store.changes("meta"):
            if key.startswith(_SUSPECT):
                what = What.TRUSTED if after is None else What.DISTRUSTED
                self._note(process, what, int.from_bytes(key[-2:], "big"))
        for _, key, _, after in process.store.changes("body"):
            if after is None and not self._is_anywhere(process, key):
                self.collected.setdefault(key[2:], self._scheduler.now_ms)

    def note_trusted(self, name: str, partition: int) -> None:
        """A node is trusted from now on, as any new one is."""
        self._note(self._processes[name], What.TRUSTED, partition)

    def gone(self, going: Mapping[bytes, int]) -> dict[bytes, int]:
        """``collected``, with the tasks of ``going`` that are nowhere by now: of two last copies that go at once
        neither commit sees the other."""
        present = dict.fromkeys(key[2:] for process in self._processes.values()
                                for key in process.store.tables["body"])
        unseen = {task_id: self._scheduler.now_ms for task_id in going if task_id not in present}
        return {**unseen, **self.collected}

    def _is_anywhere(self, process: Process, key: bytes) -> bool:
        return any(other is not process and other.store.committed("body", key) is not None
                   for other in self._processes.values())

    def _note(self, process: Process, what: What, partition: int, *, epoch: int = 0, whom: str = "",
              request: int = 0, tokens: frozenset[int] = frozenset(), worst: bytes = b"", left: bytes = b"",
              amount: int = 0, is_paused: bool = False, queue: str = "") -> None:
        self.notes.append(Note(self._scheduler.now_ms, process.name, what, partition, epoch, whom, request, tokens,
                               worst, left, amount, is_paused, queue))

    def _note_ack(self, process: Process, leader: str, message: m.Granted) -> None:
        grant = self._grants.get((leader, message.partition, message.request))
        if grant is not None and message.is_accepted:
            vetoed = unpack_u64(message.vetoed)
            tokens = frozenset(grant.first_token + index for index in range(len(split(grant.ids)))
                               if index not in vetoed)
            self._note(process, What.ACKED, message.partition, epoch=grant.epoch, whom=leader, tokens=tokens)

    def _note_leader(self, process: Process, message: m.Grant | m.Amend) -> None:
        where = (process.name, message.partition, message.epoch)
        if where not in self._led:
            self._led[where] = None
            self._note(process, What.LED, message.partition, epoch=message.epoch)
        if isinstance(message, m.Amend):
            self._amends[process.name, message.partition, message.request] = message.epoch
        else:
            known = (process.name, message.partition, message.request)
            before = self._grants.get(known)
            if before is None or before.first_token != message.first_token:
                self._grants[known] = message
                self._note_picks(process, message)

    def _note_picks(self, process: Process, grant: m.Grant) -> None:
        base = grant.queue.encode() + b"\0"
        taken = (base + grant.priorities[4 * index : 4 * index + 4] + _asked(process, grant.partition, task_id)
                 + task_id for index, task_id in enumerate(split(grant.ids)))
        left = next(_waiting(process, grant.partition, base), b"")
        self._note(process, What.PICKED, grant.partition, epoch=grant.epoch, whom=str(process.boots),
                   request=grant.request, worst=max(taken), left=left, amount=len(split(grant.ids)),
                   is_paused=_is_paused(process, grant.queue), queue=grant.queue)


def _carried(message: m.Probed | m.Compared | m.Fetched | m.Repair) -> int:
    """Units named or sent by a message of an exchange; 0 while only trees are compared."""
    match message:
        case m.Probed():
            return 0
        case m.Compared():
            return len(message.units)
    return len(message.tasks)


def _is_paused(process: Process, queue: str) -> bool:
    """Whether a node has known since before this batch that a queue is paused."""
    key = setting_key(PAUSED, queue)
    record = process.store.held("meta", key) if key not in process.store.undo["meta"] else None
    return record is not None and decode_setting(key, record).value == YES


def _asked(process: Process, partition: int, task_id: bytes) -> bytes:
    """When a task with a unique name was asked for, which stands before its id where it waits."""
    record = process.store.held("body", partition.to_bytes(2, "big") + task_id)
    body = Body.decode(record) if record is not None else None
    return body.made_ms.to_bytes(8, "big") if body is not None and body.unique else b""


def _waiting(process: Process, partition: int, base: bytes) -> Iterator[bytes]:
    """What waited in a queue since before this batch, best first; but for what may expire, which only the leader
    knows to wait still, and for what the batch has changed: that may have been claimed, and given back since."""
    fresh, changed = process.store.undo["ready"], process.store.undo["history"]
    prefix = partition.to_bytes(2, "big")
    for key, mark in process.store.rows("ready", prefix + base).items():
        if (key not in fresh or fresh[key] is not None) and len(mark) < 9 and prefix + key[-20:] not in changed:
            yield key[2:]
