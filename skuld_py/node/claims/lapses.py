"""What time does to tasks at one node: leases lapse, pauses end, tasks expire.

Every node's own clock moves tasks on when a lease or a pause is over. That a task has expired is its leader's
word: a mark that a majority records, like any end. A follower's clock makes no task dead. What the leader has
marked on its own copy it grants no more, also while the cohort has not answered; if it is deposed before a
majority knows, the next leader finds the tasks in ``expiry`` again, and the two marks are the same.

A partition is looked at when the first of its times is due, of many rows some at a time.
"""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.model.history import DIED, EXPIRED, decode_history
from skuld_py.node.operations.agenda import Agenda
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.vnode import Vnode


class Lapses(Duty):
    """Looks at each partition when a lease, a pause or a task of it comes to its end."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self.risen = operations.view.bulletin.subscribe()
        self._lapses = Agenda()
        """When the next claim of each partition lapses or pause ends, or earlier."""
        self._expiries = Agenda()
        """When the next task of each partition expires, or earlier; kept for those that are led."""
        self._next_burial_ms = 0
        self.due_ms = 0
        """When the first is due, or before."""
        for vnode in operations.view.vnodes:
            self._note(vnode)
        self._plan()

    def look(self, now_ms: int) -> None:
        """See to what is due."""
        if now_ms >= self._lapses.due_ms:
            self._sweep(now_ms)
        if now_ms >= self._expiries.due_ms:
            self._bury(now_ms)
        self._plan()

    def _plan(self) -> None:
        self.due_ms = min(self._lapses.due_ms, self._expiries.due_ms)

    def settle(self) -> None:
        """The turn ends: note new times, and those of what is led since."""
        timed = self._view.bulletin.timed
        for partition in timed:
            self._note(self._view.vnodes[partition])
        timed.clear()
        for partition in self.risen:
            vnode = self._view.vnodes[partition]
            if vnode.is_leading:
                self._note(vnode)
        self.risen.clear()
        self._plan()

    def _note(self, vnode: Vnode) -> None:
        lapse_ms, expiry_ms = vnode.replica.filing.dues()
        if lapse_ms is not None:
            self._lapses.note(vnode.partition, lapse_ms)
        if expiry_ms is not None:
            self._expiries.note(vnode.partition, max(expiry_ms, self._next_burial_ms))

    def _sweep(self, now_ms: int) -> None:
        for partition in self._lapses.take(now_ms, len(self._view.vnodes)):
            vnode = self._view.vnodes[partition]
            vnode.replica.filing.sweep(now_ms, self._view.timing.sweep_rows)
            self._note(vnode)

    def _bury(self, now_ms: int) -> None:
        """Bury what has expired in led partitions. For others their leaders do, and this node once it leads."""
        self._next_burial_ms = now_ms + self._view.timing.bury_ms
        for partition in self._expiries.take(now_ms, self._view.timing.look_due):
            vnode = self._view.vnodes[partition]
            if vnode.is_leading:
                if self._view.may_grant:
                    bury_expired(self._operations, vnode, now_ms, self._view.timing.sweep_rows)
                self._note(vnode)


def bury_expired(operations: Operations, vnode: Vnode, now_ms: int, limit: int) -> None:
    """Bury up to ``limit`` expired tasks of a partition led here."""
    change = deaths(vnode, now_ms, limit)
    if change.marks:
        operation = AmendOperation(operations, Origin(0), now_ms, {vnode: change}, m.Revived(0, b""))
        operation.has_answered = True
        operation.start(now_ms)


def deaths(vnode: Vnode, now_ms: int, limit: int) -> Change:
    """Deaths of the tasks that are not claimed and have expired."""
    task_ids = vnode.replica.filing.expired(now_ms, limit)
    known = vnode.replica.histories(task_ids)
    rounds = [decode_history(known.get(vnode.replica.prefix + task_id)).round for task_id in task_ids]
    return Change((), [Mark(task_id, DIED, number + 1, EXPIRED)
                       for task_id, number in zip(task_ids, rounds, strict=True)])
