"""Writes that any owner takes: enqueue, log entries, completions.

A write goes to every live keeper of its partitions and is answered when each partition has ``w``
fsynced copies among its voters. It needs no leader and no registry, so it works with any ``w`` voters
alive.

``w`` 0 asks for a majority: of each cohort that counts, and of as many copies as the cluster keeps. The two
differ while the voters have not followed that number yet. Of a cohort with more voters a majority is wanted, since
the next leader asks a majority. In one with fewer than ``w``, a majority of which has stored, other keepers count,
too: owners that are about to get votes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from skuld_py.model import columns, ids
from skuld_py.model.body import stands_over
from skuld_py.model.messages import Acked, Append, Failed, Kept, Message
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import Make, QuorumOperation


@attrs.frozen
class Named:
    """What a request asks for under one unique name, by the numbers of those tasks in it. Single calls travel
    together, so there may be several."""

    bodies: Mapping[int, bytes]

    @property
    def behind(self) -> list[int]:
        """The tasks that give way to another one of the same name."""
        every = [*self.bodies.values()]
        return [number for number, body in self.bodies.items() if any(stands_over(each, body) for each in every)]

    def others(self, record: bytes) -> list[int]:
        """The tasks whose content is another than this."""
        return [number for number, body in self.bodies.items() if body != record]


class WriteOperation(QuorumOperation):
    """Writes the copies of one request. ``sizes``: how many of its ids are in each partition. ``named``: its tasks
    with unique names; an owner that refuses all tasks of a name has the name's task already. ``duplicates``: the
    numbers of the tasks that exist already; ``ended``: of those that it changes nothing of."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, w: int, sizes: Mapping[int, int],
                 make: Make, named: Mapping[bytes, Named] | None = None, duplicates: Iterable[int] = (),
                 ended: Sequence[int] = (), *, needs_majority: bool = False) -> None:
        super().__init__(operations, origin, now_ms, sizes, make)
        self._needs_majority = needs_majority or not w
        self._w = max(w, operations.view.majority) if self._needs_majority else w
        self._sizes = sizes
        self._refused: dict[bytes, None] = {}
        self._old: dict[bytes, None] = {}
        self._fenced: dict[bytes, None] = {}
        self._named = named or {}
        self._duplicates = dict.fromkeys(duplicates)
        self._duplicates |= {number: None for each in self._named.values() for number in each.behind}
        self._ended = columns.pack_u64(ended) if ended else b""
        self._is_kept_somewhere = False

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """Count a copy."""
        if not isinstance(message, Kept) or peer not in self.pending:
            return
        asked = self.pending.pop(peer)
        refused = ids.split(message.refused) if message.refused else []
        old = ids.split(message.old) if message.old else []
        if self._named:
            for task_id, count in Counter(refused).items():
                if task_id in self._named and count == len(self._named[task_id].bodies):
                    self._duplicates.update(dict.fromkeys(self._named[task_id].bodies))
            refused = [task_id for task_id in refused if task_id not in self._named]
        self._refused.update(dict.fromkeys(refused))
        self._old.update(dict.fromkeys(old))
        fenced = ids.split(message.fenced) if message.fenced else []
        self._fenced.update(dict.fromkeys(fenced))
        if len(refused) + len(old) + len(fenced) < sum([self._sizes[partition] for partition in self.asked[peer]]):
            self._is_kept_somewhere = True
        self.count(now_ms, peer, message.unkept, message.cohorts)
        if not (self.has_answered or self._refused) and (copies := self._copies()) >= self._w:
            duplicates = columns.pack_u64(sorted(self._duplicates)) if self._duplicates else b""
            self.answer(Acked(self.origin.request, copies, duplicates, self._ended))
        if not self.pending:
            self._round_up(isinstance(asked, Append))

    def _copies(self) -> int:
        return min([need.copies(self._w, self._needs_majority) for need in self.needs.values()])

    def _round_up(self, is_log: bool) -> None:
        if not self.has_answered:
            self._say_what_is_missing(is_log)
        self.end()

    def _say_what_is_missing(self, is_log: bool) -> None:
        is_definite = not self._is_kept_somewhere and all(name in self.view.live for name in self.asked)
        if self._refused:
            self.answer(Failed(self.origin.request, "conflict", _conflict(list(self._refused), is_log),
                               is_definite))
        elif self._old:
            self.answer(Failed(self.origin.request, "too_old", _too_old(list(self._old)), is_definite))
        elif self._fenced:
            self.answer(Failed(self.origin.request, "fenced", _fenced(list(self._fenced)), is_definite))
        else:
            self._fall_short()

    def _fall_short(self) -> None:
        self.give_up(f"w: {self._copies()} of {self._w} copies were acknowledged in time;"
                     " try again with the same ids")

    def on_deadline(self, now_ms: int) -> None:
        """Say what is missing; owe the rest."""
        for peer in self.pending:
            self.owe(peer)
        self._is_kept_somewhere = True
        self._round_up(any(isinstance(message, Append) for message in self.pending.values()))

    def owe(self, peer: str) -> None:
        """An exchange is to bring the peer the copies that it lacks."""
        self.view.debts.owe(peer, self.asked[peer])


def _too_old(old: list[bytes]) -> str:
    listed = ", ".join(ids.to_text(task_id) for task_id in old[:5])
    return (f"id: {len(old)} older than ended tasks are kept here: {listed}; they are collected or will be, and"
            " nothing is added to them any more; enqueue with fresh ids")


def _fenced(fenced: list[bytes]) -> str:
    listed = ", ".join(map(ids.to_text, fenced))
    return (f"checkpoint: the claim of {listed} is over: its task was claimed again, or completed, or it was given"
            " back; stop, and let the newer claim go on from the last checkpoint")


def _conflict(refused: list[bytes], is_log: bool) -> str:
    listed = ", ".join(ids.to_text(task_id) for task_id in refused[:5])
    if is_log:
        return (f"seq: the log of {listed} has other content under this number, or its checkpoint has; number"
                " entries, and checkpoints, on from the last")
    return f"id: {len(refused)} exist with other content: {listed}; use a fresh id for other content"
