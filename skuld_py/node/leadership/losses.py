"""What is known to be lost where voters were given up: tasks that those who remain have heard of and do not have.

A claim, an end or a cancellation of a task reaches every voter, and so does its body; a voter that was away when
the body came has the one without the other, until it is compared with those who have both. If they are gone, the
task is lost for good, and its id is all that is left. What nobody who remains has heard of cannot be named.

The leader counts, in small steps, once it has been compared with all others who remain; it writes what it found
into the document (``Loss``), for status and for the leaders after it.

Rejected: to count at the election (a partition of millions would have no leader meanwhile).
"""

from __future__ import annotations

import attrs

from skuld_py.model.document import Loss
from skuld_py.model.ids import to_text
from skuld_py.model.remarks import Kind
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.data.tables import end_of
from skuld_py.partition.vnode import Vnode

STEP_TASKS, STEP_MS = 500, 20
NAMED = 8
"""Lost tasks that are named one by one."""


@attrs.define
class _Count:
    """How far it is for one leadership. ``first`` numbers the first exchange that counts."""

    epoch: int
    first: int
    through: dict[str, None] = attrs.field(factory=dict)
    after: bytes = b""
    missing: int = 0
    named: list[str] = attrs.field(factory=list)
    is_done: bool = False


class Losses(Duty):
    """The counts of one node."""

    def __init__(self, operations: Operations, exchanges: Exchanges) -> None:
        self._view = operations.view
        self._exchanges = exchanges
        exchanges.on_pass.append(self._on_pass)
        self._counts: dict[int, _Count] = {}
        self._changed = operations.view.bulletin.subscribe()
        self.due_ms = NEVER_MS
        self.news = (self._changed,)

    def of(self, partition: int) -> tuple[int, tuple[str, ...]] | None:
        """How many tasks are known and lost, and the first of them; None if that was not counted here."""
        count = self._counts.get(partition)
        return (count.missing, tuple(count.named)) if count is not None and count.is_done else None

    def look(self, now_ms: int) -> None:
        """Go on counting where it is due."""
        for partition in self._changed:
            self._note(self._view.vnodes[partition])
        self._changed.clear()
        self.due_ms = NEVER_MS
        self.rests_until_ms = now_ms + STEP_MS if self._counts else 0
        for partition, count in self._counts.items():
            if not count.is_done:
                self._go_on(self._view.vnodes[partition], count)
                self.due_ms = now_ms + STEP_MS

    def _note(self, vnode: Vnode) -> None:
        loss, known = vnode.election.document.loss, self._counts.get(vnode.partition)
        if not vnode.is_leading or loss is None or loss.counted_ms:
            self._counts.pop(vnode.partition, None)
        elif known is None or known.epoch != vnode.epoch:
            self._counts[vnode.partition] = _Count(vnode.epoch, self._exchanges.begun + 1)

    def _go_on(self, vnode: Vnode, count: _Count) -> None:
        loss = vnode.election.document.loss
        if loss is None:
            return
        apart = self._apart(loss, count)
        for name in apart:
            self._exchanges.pursue(vnode.partition, name)
        if apart:
            return
        prefix = vnode.replica.prefix
        start = count.after + b"\0" if count.after else prefix
        keys = vnode.store.keys("history", start, end_of(prefix), STEP_TASKS)
        lacking = vnode.replica.lacking([key[len(prefix):] for key in keys])
        count.missing += len(lacking)
        count.named += [to_text(task_id) for task_id in lacking[: NAMED - len(count.named)]]
        if len(keys) == STEP_TASKS:
            count.after = keys[-1]
            return
        count.is_done = True
        self._view.bulletin.change(vnode.partition)
        vnode.remark(Kind.LOSS, "some" if count.missing else "none", vnode.epoch)

    def _apart(self, loss: Loss, count: _Count) -> list[str]:
        """Those who remain, are there, and were not compared with yet."""
        return [name for name in loss.remaining
                if name != self._view.me.name and name in self._view.live and name not in count.through]

    def _on_pass(self, now_ms: int, ended: Pass) -> None:
        count = self._counts.get(ended.partition)
        if count is not None and ended.serial >= count.first:
            count.through[ended.peer] = None
