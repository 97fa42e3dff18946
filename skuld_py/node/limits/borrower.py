"""The leader's side of limits: before it grants of a limited queue, it borrows from the queue's home.

Grants that wait for loans of one queue share a question, and what is lent goes to them in their order. A loan is
for the partitions, in the epochs, that the question named: what else is led by now was not counted on.

A queue of which less was lent than wanted is *dry* for a while: its claims get nothing without a question, as if
it were empty, until the home says that claims have ended, or the time that it named is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.limiting import RATE_MAX
from skuld_py.model.setting import LIMITS, home_of
from skuld_py.model.state import State
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.vnode import Vnode


class Borrower(Protocol):
    """A grant of a limited queue: it wants to claim up to ``count`` tasks."""

    queue: str
    count: int

    def on_lent(self, now_ms: int, count: int, leads: Mapping[int, int]) -> int:
        """Claim up to ``count`` on partitions led in these epochs, now or never; gives how many were claimed."""


@attrs.define
class Purse:
    """What waits for loans of one queue, and the question that is out."""

    waiting: list[Borrower] = attrs.field(factory=list)
    loan: BorrowOperation | None = None


class Loans(Duty):
    """The questions of one node."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self._purses: dict[str, Purse] = {}
        self.dry: dict[str, int] = {}
        """Queue -> until when nothing is asked for."""
        self.wet: dict[str, None] = {}
        """Queues that ceased to be dry; emptied by the reader."""
        self.told: dict[str, None] = {}
        """Those that ceased by word of their home, which other nodes should hear at once."""
        self._watched: dict[str, str] = {}
        """Queue -> the home that wants to know when claims have ended."""

    # -- grants --------------------------------------------------------------------------------

    def borrow(self, now_ms: int, borrower: Borrower) -> None:
        """Ask for a loan; ``on_lent`` of the borrower is called once, now or later."""
        if self.is_dry(borrower.queue):
            borrower.on_lent(now_ms, 0, {})
            return
        purse = self._purses.setdefault(borrower.queue, Purse())
        purse.waiting.append(borrower)
        self._ask(now_ms, borrower.queue, purse)

    def _ask(self, now_ms: int, queue: str, purse: Purse) -> None:
        while purse.waiting and purse.loan is None:
            borrowers, purse.waiting = purse.waiting, []
            led = self._view.led()
            waiting = waiting_in(self._view.stocked(queue), queue)
            want = min(sum(borrower.count for borrower in borrowers), waiting, RATE_MAX)
            home = self._view.leader_of(home_of(queue, self._view.parameters.partitions))
            if want and home:
                purse.loan = BorrowOperation(self._operations, now_ms, self, queue, home, borrowers, want, led)
                purse.loan.start(now_ms)
                return
            if want:
                self.note_dry(queue, now_ms + self._view.timing.dry_ms)
            for borrower in borrowers:
                borrower.on_lent(now_ms, 0, {})
        if not purse.waiting and purse.loan is None:
            self._purses.pop(queue, None)

    def on_loan_over(self, now_ms: int, queue: str) -> None:
        """A question is answered: go on with the grants that came meanwhile."""
        purse = self._purses.get(queue)
        if purse is None:
            return
        purse.loan = None
        if self.is_dry(queue):
            borrowers, purse.waiting = purse.waiting, []
            for borrower in borrowers:
                borrower.on_lent(now_ms, 0, {})
        self._ask(now_ms, queue, purse)

    # -- dry queues ----------------------------------------------------------------------------

    def is_dry(self, queue: str) -> bool:
        """Whether its home has nothing to lend just now."""
        return queue in self.dry

    def note_dry(self, queue: str, until_ms: int) -> None:
        """Ask for nothing before then."""
        self.dry[queue] = until_ms
        self.hasten(until_ms)

    def moisten(self, queue: str) -> None:
        """The queue's home says that claims have ended: the queue is dry no more."""
        if self.dry.pop(queue, None) is not None:
            self.told[queue] = self.wet[queue] = None

    def look(self, now_ms: int) -> None:
        """Note the queues whose dry time is over. Other nodes see that when they next ask."""
        for queue in [queue for queue, until_ms in self.dry.items() if until_ms <= now_ms]:
            del self.dry[queue]
            self.wet[queue] = None
        self.due_ms = min(self.dry.values(), default=NEVER_MS)

    # -- the home's questions ------------------------------------------------------------------

    def on_reckon(self, peer: str, message: m.Reckon) -> m.Reckoned | None:
        """Count the claims held here. A node that knows other limits says nothing."""
        settings, queue = self._view.settings, message.queue
        if queue not in settings.lent or settings.version(LIMITS, queue) != message.version:
            return None
        self._watched[queue] = peer
        leading = [vnode for vnode in self._view.vnodes if vnode.is_leading]
        purse = self._purses.get(queue)
        return m.Reckoned(message.request, columns.pack_u64([vnode.partition for vnode in leading]),
                          columns.pack_u64([vnode.epoch for vnode in leading]),
                          columns.pack_u64([_count(vnode, queue, State.CLAIMED) for vnode in leading]),
                          purse.loan.request if purse is not None and purse.loan is not None else 0)

    def note_freed(self, queue: str) -> None:
        """Claims of the queue have ended here: tell the home that asked, once."""
        home = self._watched.pop(queue, None) if self._watched else None
        if home is not None:
            self._outbox.send(home, m.Freed(queue))


class BorrowOperation(Operation):
    """One question for a loan. It is not asked twice: a second loan could be lent for it."""

    def __init__(self, operations: Operations, now_ms: int, loans: Loans, queue: str, home: str,
                 borrowers: Sequence[Borrower], want: int, led: Sequence[Vnode]) -> None:
        super().__init__(operations, Origin(0), now_ms, operations.view.timing.grant_ms // 2)
        self._loans = loans
        self._queue = queue
        self._home = home
        self._borrowers = borrowers
        self._leads = {vnode.partition: vnode.epoch for vnode in led}
        self._want = want
        self._version = operations.view.settings.version(LIMITS, queue)

    def begin(self, now_ms: int) -> None:
        """Ask once."""
        self.outbox.send(self._home, m.Borrow(
            self.request, self._queue, self._version, self._want, columns.pack_u64(list(self._leads)),
            columns.pack_u64(list(self._leads.values()))))
        self.operations.timers.set(self.deadline_ms, self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Hand on what was lent, if it may still be used."""
        if peer != self._home or not isinstance(message, m.Lent):
            return
        if message.count < self._want:
            self._loans.note_dry(self._queue, now_ms + message.retry_ms)
        is_current = message.version == self.view.settings.version(LIMITS, self._queue)
        used = self._spend(now_ms, message.count if is_current and now_ms <= message.until_ms else 0)
        limits = self.view.settings.lent.get(self._queue)
        if message.count and limits is not None and limits.rate:
            self.outbox.send(self._home, m.Spent(self.request, self._queue, used))

    def on_timer(self, now_ms: int) -> None:
        """No answer came: nothing was lent."""
        if now_ms >= self.deadline_ms:
            self._loans.note_dry(self._queue, now_ms + self.view.timing.resend_ms)
            self._spend(now_ms, 0)

    def _spend(self, now_ms: int, count: int) -> int:
        self.end()
        used = 0
        for borrower in self._borrowers:
            used += borrower.on_lent(now_ms, count - used, self._leads)
        self._loans.on_loan_over(now_ms, self._queue)
        return used


def waiting_in(vnodes: Sequence[Vnode], queue: str) -> int:
    """How many tasks of a queue wait on these partitions."""
    return sum(_count(vnode, queue, State.WAITING) for vnode in vnodes)


def _count(vnode: Vnode, queue: str, state: State) -> int:
    return max(0, vnode.replica.filing.tally.row(queue.encode())[state])
