"""Reads the histories of partition documents for whoever asks: any node does, from ZooKeeper.

Rejected: that a node keeps what it has seen (it sees what it keeps a copy of, and only while it is up).
"""

from __future__ import annotations

from functools import partial

import attrs

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.events import ReadRevisions, RevisionsRead
from skuld_py.model.messages.operating import REVISIONS_MAX, STEERED_MAX
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.requests import Asked, Served

OPEN_MAX = 4
UNANSWERED = "ZooKeeper has not answered; ask again"


class Recalling(Operation):
    """One request, about some partitions."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, partitions: range, following: int,
                 most: int) -> None:
        super().__init__(operations, origin, now_ms)
        self._following = following
        self._most = most
        self._open = dict.fromkeys(partitions)
        self._rows: list[m.RevisionRow] = []

    def begin(self, now_ms: int) -> None:
        """Read all."""
        self.operations.timers.set(self.deadline_ms, self)
        self.outbox.carry_out([ReadRevisions(partition, self._most) for partition in self._open])

    def on_timer(self, now_ms: int) -> None:
        """There is nothing to send again."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)

    def on_read(self, event: RevisionsRead) -> None:
        """A history came, for whomever: one that was asked for less of it is not the answer. The last one that is
        awaited is."""
        if event.partition not in self._open or event.most < self._most:
            return
        if event.revisions is None:
            self.refuse("unavailable", UNANSWERED)
            self.end()
            return
        del self._open[event.partition]
        self._rows += [m.RevisionRow(event.partition, **attrs.asdict(each))
                       for each in event.revisions[: self._most]]
        if not self._open:
            self.answer(m.Recalled(self.origin.request, self._following, tuple(self._rows)))
            self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Without an answer there is none to give."""
        self.refuse("unavailable", UNANSWERED)
        self.end()


class Recaller:
    """The requests for histories that one node answers."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._open: dict[int, Recalling] = {}
        self.asked: Asked = {m.Recall: self._recall}
        self.served: Served = {}

    def _recall(self, now_ms: int, origin: Origin, message: m.Recall) -> Operation:
        count = self._view.parameters.partitions
        if message.first >= count:
            raise Refused("unknown_partition", f"partition: this cluster has {count} partitions, 0 to {count - 1}")
        if not self._view.is_connected:
            raise Refused("unavailable", "this node has no session with ZooKeeper; ask another one, or again")
        if len(self._open) >= OPEN_MAX:
            raise Refused("busy", "this node reads too many histories at once; ask again")
        most = min(message.most or REVISIONS_MAX, REVISIONS_MAX)
        pages = max(1, REVISIONS_MAX // most)
        stop = min(count, message.first + min(message.count or STEERED_MAX, pages))
        is_through = stop >= (min(count, message.first + message.count) if message.count else count)
        made = Recalling(self._operations, origin, now_ms, range(message.first, stop), 0 if is_through else stop,
                         most)
        self._open[made.request] = made
        made.at_end.append(partial(self._open.__delitem__, made.request))
        return made

    def on_read(self, event: RevisionsRead) -> None:
        """A history came, for whomever."""
        for each in [*self._open.values()]:
            each.on_read(event)
