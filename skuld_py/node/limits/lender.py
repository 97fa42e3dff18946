"""The home's side of limits: the leader of a queue's home partition lends claims and tokens to the other leaders.

A loan is for a grant that waits for it. It is used at once or not at all, so no leader hoards what others need.

**One home at a time.** The home asks its cohort before every round of loans whether it leads still, and a loan
ends ``loan_ms`` after that question. The next leader needs the promise of a node that answered, given later. It
lends nothing for ``loan_ms`` and the skew bound from the begin of its leadership. So no two homes lend at once,
whatever either hears. The new home then asks all leaders what is held, and does not lend before every partition
is known.

Questions are answered in rounds: a borrower that asks during one waits for the next. So any number of borrowers
cost one question to the cohort, and a report never speaks of a time before the question it answers for.

A borrower that got too little is told when claims of the queue have ended (``Freed``), so it need not poll a full
queue. That word may be lost, so it asks again now and then all the same.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, home_of
from skuld_py.node.limits.ledger import Ledger
from skuld_py.node.operations.cohort import CohortOperation
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.vnode import Vnode

PAUSE_MS = 10
"""Least pause between two questions of a borrower that got too little."""


@attrs.frozen
class Wish:
    """A question for a loan."""

    peer: str
    message: m.Borrow


@attrs.define
class Desk:
    """What the home keeps of one queue while it leads ``epoch``. ``hungry``: borrowers that got too little."""

    epoch: int
    ledger: Ledger
    waiting: dict[tuple[str, int], Wish] = attrs.field(factory=dict)
    hungry: dict[str, None] = attrs.field(factory=dict)
    round: LendOperation | None = None


class Lender:
    """Lends for the queues whose home partitions this node leads. ``led_since`` says since when it leads one."""

    def __init__(self, operations: Operations, led_since: Callable[[Vnode], int | None]) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self._led_since = led_since
        self._desks: dict[str, Desk] = {}

    def on_borrow(self, now_ms: int, peer: str, message: m.Borrow) -> m.Lent | None:
        """Keep the question for the next round; a queue that is not at home here is lent nothing."""
        desk = self._desk(now_ms, message.queue)
        if desk is None or desk.ledger.version != message.version:
            return m.Lent(message.request, 0, 0, 0, self._view.timing.dry_ms)
        desk.waiting[peer, message.request] = Wish(peer, message)
        self._begin_round(now_ms, message.queue, desk)
        return None

    def on_spent(self, now_ms: int, peer: str, message: m.Spent) -> None:
        """Take back what was not used."""
        desk = self._desks.get(message.queue)
        if desk is not None:
            desk.ledger.settle(now_ms, (peer, message.request), message.used)

    def on_freed(self, message: m.Freed) -> None:
        """Tell the borrowers that got too little."""
        desk = self._desks.get(message.queue)
        if desk is not None:
            hungry, desk.hungry = desk.hungry, {}
            for peer in hungry:
                self._outbox.send(peer, message)

    def _home(self, queue: str) -> Vnode | None:
        home = self._view.vnodes[home_of(queue, self._view.parameters.partitions)]
        return home if home.is_leading and self._view.may_grant else None

    def _desk(self, now_ms: int, queue: str) -> Desk | None:
        """The account of a queue that is limited and at home here. A new leadership begins a new one."""
        home, limits = self._home(queue), self._view.settings.lent.get(queue)
        since_ms = self._led_since(home) if home is not None else None
        if home is None or limits is None or since_ms is None:
            return None
        version = self._view.settings.version(LIMITS, queue)
        desk = self._desks.get(queue)
        if desk is None or desk.epoch != home.epoch:
            desk = self._desks[queue] = Desk(home.epoch, self._ledger(limits, version, since_ms))
        elif desk.ledger.version != version or desk.ledger.limits != limits:
            desk.ledger.change(limits, version, now_ms)
        return desk

    def _ledger(self, limits: QueueLimits, version: int, since_ms: int) -> Ledger:
        opens_ms = since_ms + self._view.timing.loan_ms + self._view.parameters.skew_ms
        return Ledger(limits, version, self._view.parameters.partitions, opens_ms)

    def _begin_round(self, now_ms: int, queue: str, desk: Desk) -> None:
        home = self._home(queue)
        if home is not None and desk.round is None and desk.waiting:
            wishes, desk.waiting = list(desk.waiting.values()), {}
            desk.round = LendOperation(self._operations, now_ms, home, queue, desk, wishes, self._end_round)
            desk.round.start(now_ms)

    def _end_round(self, now_ms: int, queue: str, desk: Desk) -> None:
        desk.round = None
        if self._desk(now_ms, queue) is desk:
            self._begin_round(now_ms, queue, desk)


class LendOperation(CohortOperation):
    """One round: is this still the home, how much is held, how much does each borrower get."""

    def __init__(self, operations: Operations, now_ms: int, home: Vnode, queue: str, desk: Desk,
                 wishes: list[Wish], then: Callable[[int, str, Desk], None]) -> None:
        super().__init__(operations, Origin(0), now_ms)
        self._home = home
        self._queue = queue
        self._desk = desk
        self._version = desk.ledger.version
        self._wishes = wishes
        self._then = then
        self._asked_ms = now_ms
        self._unheard: dict[str, None] = {}

    def begin(self, now_ms: int) -> None:
        """Ask the cohort, and the leaders too unless there is surely enough."""
        home = self._home
        if not self._is_enough():
            self._unheard = {name: None for name in self._leaders() if name}
        self.open_ballot(home, m.Amend(self.request, home.partition, home.epoch, b"", Column(), Column()))
        for name in self._unheard:
            self.outbox.send(name, m.Reckon(self.request, self._queue, self._version))
        self._wake(now_ms)
        self.decide_if_settled(now_ms)

    def _is_enough(self) -> bool:
        ledger = self._desk.ledger
        return not ledger.limits.concurrency or ledger.free >= sum(wish.message.want for wish in self._wishes)

    def _leaders(self) -> list[str]:
        partitions = range(self.view.parameters.partitions)
        return list(dict.fromkeys(self.view.leader_of(partition) for partition in partitions))

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A voter has kept its promise, or a leader has counted."""
        if isinstance(message, m.Reckoned):
            if self._unheard.pop(peer, peer) is None and self._desk.ledger.version == self._version:
                self._desk.ledger.note(peer, self._newest(message), message.open)
            self.decide_if_settled(now_ms)
        elif isinstance(message, m.Amended) and self.record(now_ms, peer, message) is not None:
            self.decide_if_settled(now_ms)

    def _newest(self, message: m.Reckoned) -> list[tuple[int, int, int]]:
        """The rows of a report, without those of leaderships that are known to be over."""
        rows = zip(*(columns.unpack_u64(column) for column in (message.partitions, message.epochs, message.used)),
                   strict=True)
        count = self.view.parameters.partitions
        return [row for row in rows if row[0] < count and row[1] >= self.view.vnodes[row[0]].leader_epoch]

    def decide_if_settled(self, now_ms: int) -> None:
        """Wait for silent leaders no longer than ``resend_ms``: what they do not tell is reckoned as held."""
        is_patient = now_ms < self._asked_ms + self.view.timing.resend_ms
        if not (self._unheard and is_patient):
            super().decide_if_settled(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Lend by what is known, or ask again."""
        self.decide_if_settled(now_ms)
        if not self.is_closed:
            super().on_timer(now_ms)

    def decide(self, now_ms: int) -> None:
        """Lend, in the order of the questions."""
        if self.is_closed:
            return
        self.end()
        until_ms = self._asked_ms + self.view.timing.loan_ms
        is_home = self.ballots[self._home.partition].has_majority() and self._desk.epoch == self._home.epoch
        is_home = is_home and self._desk.ledger.version == self._version and now_ms <= until_ms
        for wish in self._wishes:
            self._lend(now_ms, wish, until_ms, is_home)
        self._then(now_ms, self._queue, self._desk)

    def _lend(self, now_ms: int, wish: Wish, until_ms: int, is_home: bool) -> None:
        asked, ledger, count = wish.message, self._desk.ledger, 0
        if is_home:
            leads = dict(zip(columns.unpack_u64(asked.partitions), columns.unpack_u64(asked.epochs), strict=True))
            over_ms = until_ms + self.view.parameters.skew_ms
            count = ledger.lend(now_ms, (wish.peer, asked.request), asked.want, leads, over_ms)
        if count < asked.want:
            self._desk.hungry[wish.peer] = None
        retry_ms = max(PAUSE_MS, ledger.wait_ms(now_ms, self.view.timing.dry_ms))
        self.outbox.send(wish.peer, m.Lent(asked.request, self._version, count, until_ms, retry_ms))
