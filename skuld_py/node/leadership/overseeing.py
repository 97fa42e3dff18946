"""Carries out what operators ask of partitions: each document is read, changed, and swapped by its revision.

A swap that was lost begins anew with another read, and so does one in doubt: the document says by its ``write_id``
whether it was written. Everything comes to the same when it is done twice, but for wishes: one that was written
may have been obeyed, and been followed by another leader, before the document is read. So once a swap was in
doubt, a wish is not written into a later epoch. Nor are voters given up once more: those who remained are a
majority of themselves by then, and it would look as if nobody had been given up.

What is not done may be done (``is_uncertain``) where a swap is under way or in doubt: an operator who is told that
nothing happened goes by it.

All partitions are so many documents, changed one after the other: what froze some and was broken off has frozen
these, and says so. Rejected: one more document for all, whose revision each election and each upkeep would have to
read and bind its write to; a hundred partitions would then wait for one znode, as Manatee's one shard need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import attrs

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.document import LEAD, REBALANCE, REORDER, Document
from skuld_py.model.events import DocumentRead, DocumentSwapped, Outcome, ReadDocument, SwapDocument
from skuld_py.model.messages.operating import BY_CHARS, STEERED_MAX
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.partition.leadership.evaluator import is_frozen
from skuld_py.partition.leadership.wishes import (
    FORCE,
    KINDS,
    OF_NODES,
    QUARANTINE,
    Impossible,
    Request,
    steered,
)

OPEN_MAX = 16
Suspects = Callable[[int], Mapping[str, str]]
"""The nodes whose memory of a partition is in doubt, and why."""
UNANSWERED = "ZooKeeper has not answered; ask again"
OF_AN_EPOCH = (LEAD, REORDER, REBALANCE, FORCE)
"""What is obeyed by an election, and is over with it."""
MAYBE_OBEYED = ("whether it was written is not known, and epoch {} is over: it may have been obeyed; look, and ask"
                " again if it was not")


class Overseeing(Operation):
    """One request, about some partitions."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, request: Request,
                 partitions: range, following: int, suspects: Suspects) -> None:
        super().__init__(operations, origin, now_ms)
        self._suspects = suspects
        self._asked = request
        self._following = following
        self._open = dict.fromkeys(partitions, "")
        """Partitions that are not done, and the last write of each."""
        self._epochs: dict[int, int] = {}
        """Of the last write of each."""
        self._under_way: dict[int, None] = {}
        """Partitions whose write has no outcome yet: what is read meanwhile says nothing."""
        self._doubted: dict[int, int] = {}
        """The epochs of documents in which a wish may stand."""
        self._refused: list[m.RefusalRow] = []
        self._frozen: dict[int, m.FrozenRow] = {}
        """Partitions that a node in quarantine goes on leading."""
        self._changed = self._writes = 0

    def begin(self, now_ms: int) -> None:
        """Read all documents."""
        self.operations.timers.set(self.deadline_ms, self)
        self.outbox.carry_out([ReadDocument(partition) for partition in self._open])
        self._end_if_over()

    def on_timer(self, now_ms: int) -> None:
        """There is nothing to send again."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document came: swap it, unless it is as it should be."""
        if event.partition not in self._open or event.partition in self._under_way:
            return
        write_id = self._open[event.partition]
        if write_id and event.document.write_id == write_id:
            self._note_changed(event.partition)
            return
        if (epoch := self._doubted.get(event.partition, event.document.epoch)) < event.document.epoch:
            self._end_in_doubt(event.partition, epoch, event.document)
            return
        try:
            document = steered(self._asked, event.document, self.view.live, now_ms,
                               self._suspects(event.partition), tuple(self.view.vnodes[event.partition].owners))
        except Impossible as problem:
            self._refuse(event.partition, str(problem))
            return
        self._note_frozen(event.partition, document, now_ms)
        if document == event.document:
            del self._open[event.partition]
            self._end_if_over()
            return
        self._writes += 1
        self._under_way[event.partition] = None
        self._epochs[event.partition] = document.epoch
        write_id = self._open[event.partition] = f"{self._asked.id}-{event.partition}-{self._writes}"
        self.outbox.carry_out([SwapDocument(event.partition, event.version, attrs.evolve(
            document, write_id=write_id, cause=self._asked.cause[:1_000]))])

    def on_swapped(self, event: DocumentSwapped) -> None:
        """The outcome of a swap, of this operation or of another one."""
        if event.partition not in self._open or self._open[event.partition] != event.write_id:
            return
        del self._under_way[event.partition]
        if event.outcome is Outcome.UNCERTAIN and self._asked.kind in OF_AN_EPOCH:
            self._doubted.setdefault(event.partition, self._epochs[event.partition])
        if event.outcome is Outcome.WON:
            self._note_changed(event.partition)
        else:
            self.outbox.carry_out([ReadDocument(event.partition)])

    def _end_in_doubt(self, partition: int, epoch: int, document: Document) -> None:
        """A wish that may have been written was for an epoch that is over: who leads may show that it was obeyed.
        """
        if self._asked.kind == LEAD and document.leader == self._asked.target:
            self._note_changed(partition)
        else:
            self._refuse(partition, MAYBE_OBEYED.format(epoch), is_uncertain=True)

    def _note_frozen(self, partition: int, document: Document, now_ms: int) -> None:
        """A freeze forbids to move what it holds, so a node leads it on, in quarantine or not."""
        self._frozen.pop(partition, None)
        freeze, asked = document.freeze, self._asked
        leads_on = freeze is not None and is_frozen(document, now_ms) and document.leader == asked.target
        if freeze is not None and leads_on and asked.kind == QUARANTINE:
            self._frozen[partition] = m.FrozenRow(partition, freeze.by[:BY_CHARS], freeze.until_ms)

    def _note_changed(self, partition: int) -> None:
        self._changed += 1
        del self._open[partition]
        self._end_if_over()

    def _refuse(self, partition: int, reason: str, *, is_uncertain: bool = False) -> None:
        self._refused.append(m.RefusalRow(partition, reason, is_uncertain))
        self._frozen.pop(partition, None)
        del self._open[partition]
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self._open and not self.is_closed:
            self.answer(m.Steered(self.origin.request, self._changed, self._following,
                                  tuple(sorted(self._refused, key=lambda row: row.partition)),
                                  tuple(row for _, row in sorted(self._frozen.items()))))
            self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Say which are not done, as far as is known."""
        for partition, write_id in [*self._open.items()]:
            self._refuse(partition, UNANSWERED, is_uncertain=bool(write_id))


class Overseer:
    """The requests of operators that one node carries out."""

    def __init__(self, operations: Operations, suspects: Suspects) -> None:
        self._operations = operations
        self._suspects = suspects
        self._view = operations.view
        self._open: dict[int, Overseeing] = {}
        self.asked: Asked = {m.Steer: self._steer}
        self.served: Served = {}

    def _steer(self, now_ms: int, origin: Origin, message: m.Steer) -> Operation:
        count = self._view.parameters.partitions
        if message.kind not in KINDS:
            raise Refused("malformed", f"kind: {message.kind!r} is none of {', '.join(KINDS)}")
        if (message.kind in OF_NODES) != bool(message.target):
            raise Refused("malformed", f"target: name a node for {', '.join(OF_NODES)}, and for nothing else")
        if message.first >= count:
            raise Refused("unknown_partition", f"partition: this cluster has {count} partitions, 0 to {count - 1}")
        if not self._view.is_connected:
            raise Refused("unavailable", "this node has no session with ZooKeeper; ask another one, or again")
        if len(self._open) >= OPEN_MAX:
            raise Refused("busy", "operators ask this node for too much at once; ask again")
        stop = min(count, message.first + (message.count or STEERED_MAX))
        following = stop if not message.count and stop < count else 0
        request = Request(f"{self._view.me.boot}-op{next(self._operations.numbers)}", message.kind, message.target,
                          message.by, message.reason, message.for_ms, message.epoch)
        made = Overseeing(self._operations, origin, now_ms, request, range(message.first, stop), following,
                          self._suspects)
        self._open[made.request] = made
        made.at_end.append(partial(self._open.__delitem__, made.request))
        return made

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document came, for whomever."""
        for each in [*self._open.values()]:
            each.on_read(now_ms, event)

    def on_swapped(self, event: DocumentSwapped) -> None:
        """A swap ended, of whomever."""
        for each in [*self._open.values()]:
            each.on_swapped(event)
