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

from skuld_py.model import messages as m
from skuld_py.node.granting import GrantOperation
from skuld_py.node.operation import Host, Operation, Origin


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


def lead_claim(host: Host, now_ms: int, origin: Origin, request: m.Delegate) -> None:
    """The leader's side of a claim."""
    host.start(GrantOperation(host, origin, now_ms, request.queue, request.count, request.lease_ms,
                              request.holder), now_ms)
