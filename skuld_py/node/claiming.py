"""The coordinator's side of claims: find a leader that has work, or wait for one.

A claim is served from the partitions this node leads, or passed to other nodes, one at a time, in the order that
the router gives. A claim that may wait parks here, without polling: it is tried again when a task enters the
queue on a partition led here, or when a peer's gossip names the queue.

A claim of a paused queue parks too, or gets nothing when it may not wait, as if the queue were empty. So a worker
need not know of pauses, and one that waits gets its task as soon as the queue is resumed.

A claim is never sent twice, since it is not idempotent: a lost answer leaves a lease that lapses. An
answer that comes too late is released at once; one that comes twice is not, since somebody may hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.granting import AmendOperation, GrantOperation, judge_renewals
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.partition.replica import Amendment
from skuld_py.partition.vnode import Vnode


class Attempt(Operation):
    """One try of a claim at one node, this one included.

    It outlives the patience of its claim, for an answer that comes too late: those claims are released.
    Each attempt has a number of its own, so an answer that comes twice is known for what it is.
    """

    def __init__(self, claim: ClaimOperation, peer: str, now_ms: int) -> None:
        super().__init__(claim.host, claim.origin, now_ms)
        self.peer = peer
        self.began_ms = now_ms
        self._claim = claim
        self._patience_ends_ms = now_ms + claim.host.timing.grant_ms + claim.host.timing.resend_ms

    def begin(self, now_ms: int) -> None:
        """Ask once; a claim is not idempotent."""
        wish = self._claim.wish
        self.host.send(self.peer, m.Delegate(self.request, wish.queue, wish.count, wish.lease_ms, wish.holder))
        self.host.schedule(self._patience_ends_ms, self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Hand the answer to the claim, or give it back when the claim has gone on."""
        if peer != self.peer or not isinstance(message, m.Claimed):
            return
        self.end()
        if self._claim.current is self:
            self._claim.on_claimed(now_ms, message)
        elif message.batches:
            self.host.release_unwanted(now_ms, message)

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """Nobody will answer."""
        if self.peer in gone and self._claim.current is self:
            self._claim.go_on(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Let the claim go on without this peer; at the deadline, stop listening."""
        if self.is_closed:
            return
        if now_ms >= self.deadline_ms:
            self.end()
        else:
            self.host.schedule(self.deadline_ms, self)
        if self._claim.current is self:
            self._claim.go_on(now_ms)


class ClaimOperation(Operation):
    """One client's claim."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, wish: m.Claim) -> None:
        super().__init__(host, origin, now_ms)
        self.wish = wish
        self.current: Attempt | None = None
        self._began_ms = now_ms
        self._waits_until_ms = now_ms + wish.wait_ms
        self._untried: list[str] = []
        self._has_news = False

    @property
    def is_parked(self) -> bool:
        """Whether it waits for news, and not for an answer."""
        return not self.is_closed and self.current is None

    def begin(self, now_ms: int) -> None:
        """Try everywhere once."""
        self.try_again(now_ms, self.host.route(self.wish.queue))

    def wake(self, now_ms: int) -> None:
        """The queue gained work here. While a peer is being asked, that is kept for afterwards."""
        if self.is_parked:
            self.try_again(now_ms, [self.host.me.name])
        else:
            self._has_news = True

    def try_again(self, now_ms: int, nodes: Sequence[str]) -> None:
        """Try at the nodes given, this one being one of them; nowhere while the queue is paused."""
        self._has_news = False
        self._untried = [] if self.host.settings.is_paused(self.wish.queue) else list(nodes)
        self.go_on(now_ms)

    def _try(self, now_ms: int, peer: str) -> None:
        self.current = Attempt(self, peer, now_ms)
        self.host.start(self.current, now_ms)

    def on_claimed(self, now_ms: int, message: m.Claimed) -> None:
        """Claims, or nothing: then the next peer."""
        assert self.current is not None, "an answer comes to the current attempt"
        if message.batches:
            self.host.router.note_granted(self.current.peer, self.wish.queue, message.batches)
            waited_ms = max(0, self.current.began_ms - self._began_ms)
            self.answer(m.Claimed(self.origin.request, waited_ms, message.batches))
            self.end()
            return
        if self.current.peer != self.host.me.name:
            self.host.router.forget(self.current.peer, self.wish.queue)
        self.go_on(now_ms)

    def go_on(self, now_ms: int) -> None:
        """Ask the next node; without one, park, or end."""
        self.current = None
        while self._untried:
            peer = self._untried.pop(0)
            if peer in self.host.live or peer == self.host.me.name:
                self._try(now_ms, peer)
                return
        if self._has_news:
            self.try_again(now_ms, [self.host.me.name])
            return
        if now_ms >= self._waits_until_ms:
            self.answer(m.Claimed(self.origin.request, 0, ()))
            self.end()
            return
        self.host.schedule(self._waits_until_ms, self)

    def on_timer(self, now_ms: int) -> None:
        """The wait is over."""
        if self.is_parked and now_ms >= self._waits_until_ms:
            self.go_on(now_ms)


ClaimRow = tuple[bytes, int]
"""A claim as task id and token."""


class LeaderQuestion(Operation):
    """Renewals in one partition, passed to its leader. The number is its own, so an answer is to these rows."""

    def __init__(self, renewal: RenewOperation, leader: str, rows: Sequence[ClaimRow], now_ms: int) -> None:
        super().__init__(renewal.host, renewal.origin, now_ms)
        self._renewal = renewal
        self._leader = leader
        self.rows = rows

    def begin(self, now_ms: int) -> None:
        """Ask until answered."""
        message = m.Renew(self.request, self._renewal.lease_ms, b"".join(row[0] for row in self.rows),
                          columns.pack_u64([row[1] for row in self.rows]))
        self.ask(now_ms, {self._leader: message})

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Ends, one per row; or it does not lead, or does not know."""
        if peer != self._leader or self._renewal.is_closed:
            return
        if isinstance(message, m.Renewed) and len(message.ends) == 8 * len(self.rows):
            self.end()
            self._renewal.on_ends(now_ms, self, columns.unpack_u64(message.ends))
        elif isinstance(message, m.Failed):
            self.end()
            self._renewal.on_failed(now_ms, self, message)

    def on_deadline(self, now_ms: int) -> None:
        """The renewal has the same deadline and says so."""
        self.end()


class RenewOperation(Operation):
    """A client's renewals or releases, passed to the leaders of their partitions, wherever those move.

    A leader that is silent must not cost the leases of the others' tasks: once anything is known, the rest
    is waited for as long as two questions take, or an eighth of a short lease. What is not known by then is
    called so, never lost. What is left of a release is gone on with, unheard.
    """

    def __init__(self, host: Host, origin: Origin, now_ms: int, request: m.Renew) -> None:
        super().__init__(host, origin, now_ms)
        self.lease_ms = request.lease_ms
        self._patience_ms, least_ms = 2 * host.timing.resend_ms, host.timing.resend_ms // 4
        if request.lease_ms:
            self._patience_ms = min(self._patience_ms, max(request.lease_ms // 8, least_ms))
        self._speak_ms = self.deadline_ms
        self._rows = list(zip(ids.split(request.ids), columns.unpack_u64(request.tokens), strict=True))
        self._ends: dict[ClaimRow, int] = {}
        self._unasked: list[ClaimRow] = list(dict.fromkeys(self._rows))
        self._asked: list[LeaderQuestion] = []
        self._failure: m.Failed | None = None

    def begin(self, now_ms: int) -> None:
        """Ask the leaders; keep what has none for later."""
        self.host.schedule(self.deadline_ms, self)
        self._ask_leaders(now_ms)

    def _ask_leaders(self, now_ms: int) -> None:
        by_partition: dict[int, list[ClaimRow]] = {}
        for row in self._unasked:
            by_partition.setdefault(ids.partition_of(row[0], self.host.parameters.partitions), []).append(row)
        self._unasked = []
        for partition, rows in by_partition.items():
            leader = self.host.leader_of(partition)
            if leader:
                question = LeaderQuestion(self, leader, rows, now_ms)
                self._asked.append(question)
                self.host.start(question, now_ms)
            else:
                self._unasked += rows
        if self._unasked:
            self.host.schedule(min(self.deadline_ms, now_ms + self.host.timing.resend_ms), self)

    def on_timer(self, now_ms: int) -> None:
        """Look for leaders again, say what is known, or end."""
        if self.is_closed:
            return
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)
            return
        if self._unasked:
            self._ask_leaders(now_ms)
        self._speak_if_due(now_ms)

    def on_ends(self, now_ms: int, question: LeaderQuestion, ends: Sequence[int]) -> None:
        """A leader's verdicts."""
        self._asked.remove(question)
        if not self._ends:
            self._speak_ms = min(self.deadline_ms, now_ms + self._patience_ms)
            self.host.schedule(self._speak_ms, self)
        self._ends.update(zip(question.rows, ends, strict=True))
        self._speak_if_due(now_ms)

    def on_failed(self, now_ms: int, question: LeaderQuestion, failure: m.Failed) -> None:
        """Not the leader any more: look for another one. Otherwise these rows stay unknown."""
        self._asked.remove(question)
        if failure.code == "not_leader":
            self._unasked += question.rows
            self.host.schedule(min(self.deadline_ms, now_ms + self.host.timing.resend_ms), self)
            return
        self._failure = failure
        self._speak_if_due(now_ms)

    def _speak_if_due(self, now_ms: int) -> None:
        is_over = not self._asked and not self._unasked
        if self._ends and (is_over or now_ms >= self._speak_ms):
            unknown = [index for index, row in enumerate(self._rows) if row not in self._ends]
            self.answer(m.Renewed(self.origin.request, columns.pack_u64([self._ends.get(row, 0)
                                                                         for row in self._rows]),
                                  columns.pack_u64(unknown)))
        elif is_over and self._failure is not None:
            self.answer(attrs.evolve(self._failure, request=self.origin.request))
        if is_over or (self.has_answered and self.lease_ms):
            self.end()

    def on_deadline(self, now_ms: int) -> None:
        """No leader, or no answer."""
        if self._ends:
            self._speak_if_due(now_ms)
        elif self._asked or self._failure is not None:
            self.give_up("a leader did not answer in time; the claim may or may not be renewed; try again")
        else:
            self.refuse("no_leader", "a partition has no leader now; try again in a few seconds")
        self.end()

    def end(self) -> None:
        """Stop asking too."""
        super().end()
        for question in self._asked:
            question.end()


def lead_renewal(host: Host, now_ms: int, origin: Origin, request: m.Renew) -> None:
    """The leader's side of ``Renew``."""
    rows = list(zip(ids.split(request.ids), columns.unpack_u64(request.tokens), strict=True))
    by_partition: dict[int, list[ClaimRow]] = {}
    for row in dict.fromkeys(rows):
        by_partition.setdefault(ids.partition_of(row[0], host.parameters.partitions), []).append(row)
    led = {partition: vnode for partition in by_partition if (vnode := host.renewing(partition)) is not None}
    if not all(partition in led for partition in by_partition):
        host.reply(origin, m.Failed(origin.request, "not_leader", "no longer the leader", True))
        return
    amendments: dict[Vnode, list[Amendment]] = {}
    ends: dict[ClaimRow, int] = {}
    for partition, part in by_partition.items():
        allowed = judge_renewals(led[partition], now_ms, [row[0] for row in part], [row[1] for row in part],
                                 request.lease_ms)
        ends.update({(row.id, row.token): row.end_ms for row in allowed})
        if allowed:
            amendments[led[partition]] = allowed
    host.start(AmendOperation(host, origin, now_ms, amendments, [ends.get(row, 0) for row in rows]), now_ms)


def lead_claim(host: Host, now_ms: int, origin: Origin, request: m.Delegate) -> None:
    """The leader's side of a claim."""
    host.start(GrantOperation(host, origin, now_ms, request.queue, request.count, request.lease_ms,
                              request.holder), now_ms)
