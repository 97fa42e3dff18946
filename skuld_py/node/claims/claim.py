"""The coordinator's side of claims: find a leader that has work, or wait for one.

A claim is served from the partitions this node leads, or passed to other nodes, one at a time, in the order that
the router gives. One that is given less than it wants is filled from the others, the best first; a silent one is
waited for only for a moment, since the leases that it holds by then run. What the first node fills costs no other
one a question. A claim that may wait parks here, while there is room, and does not poll (``parked`` says when it
is tried again).

While no partition has a leader that grants, as far as this node knows, a claim is refused, after its wait if it
may wait: "nothing" would mean that no task waits.

A claim of a paused queue parks too, or gets nothing when it may not wait, as if the queue were empty. So a worker
need not know of pauses, and one that waits gets its task as soon as the queue is resumed. Where something else
than a lack of tasks may be the cause, the answer says so (``withheld``), for people.

A claim is never sent twice, since it is not idempotent: a lost answer leaves a lease that lapses. An answer that
comes too late is released at once; one that comes twice is not, since its claims may be held. While a node that
was asked has not said that it claimed nothing, the claim is neither answered with nothing nor refused: a client
that gets no task is told that tasks may have been claimed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import attrs

from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.node.claims.ask_leaders import release
from skuld_py.node.claims.caps import CAPPED, most_of
from skuld_py.node.claims.grant import Gates, GrantOperation
from skuld_py.node.operations.duty import NEVER_MS
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.workflow.definition.names import QUEUES

LEAVER_MS = 400
"""How long a peer that is a member no more may answer: a little longer than one that left cleanly does."""


class Attempt(Protocol):
    """One try of a claim at one node."""

    peer: str
    began_ms: int


class Parking(Protocol):
    """Where claims wait."""

    def add(self, claim: ClaimOperation) -> None:
        """Note a claim that may come to wait."""

    def take_place(self, claim: ClaimOperation) -> bool:
        """Whether it may wait here, from now on until it ends."""


class GrantHere(GrantOperation):
    """A try at this node: its grant, without a message. What it is granted after its claim has gone on is
    released."""

    def __init__(self, claim: ClaimOperation, now_ms: int) -> None:
        wish, me = claim.wish, claim.view.me.name
        super().__init__(claim.operations, claim.gates, Origin(claim.request, peer=me), now_ms, wish.queue,
                         claim.left, wish.lease_ms, wish.holder)
        self.peer = me
        self.began_ms = now_ms
        self.fence = wish.fence if claim.is_of_workflow else None
        self._claim = claim
        self._said: m.Message | None = None

    def begin(self, now_ms: int) -> None:
        """Grant; a claim that was granted something elsewhere waits no longer than it fills."""
        if self._claim.fills_until_ms < NEVER_MS:
            self.operations.timers.set(self._claim.fills_until_ms, self)
        super().begin(now_ms)

    def answer(self, message: m.Message) -> None:
        """Keep the answer until ``decide``: the claim may try again as soon as it hears it."""
        if not self.has_answered:
            self.has_answered = True
            self._said = message

    def decide(self, now_ms: int) -> None:
        """Tell the claim."""
        super().decide(now_ms)
        said, self._said = self._said, None
        if isinstance(said, m.Claimed | m.Failed):
            self._claim.hear(now_ms, self, said)

    def on_timer(self, now_ms: int) -> None:
        """Let its claim go on without this node when it has filled for long enough."""
        super().on_timer(now_ms)
        if now_ms >= self._claim.fills_until_ms and self._claim.current is self:
            self._claim.go_on(now_ms)


class Delegation(Operation):
    """A try at another node.

    It outlives the patience of its claim, for an answer that comes too late: those claims are released.
    Each has a number of its own, so an answer that comes twice is known for what it is.
    """

    def __init__(self, claim: ClaimOperation, peer: str, now_ms: int) -> None:
        super().__init__(claim.operations, claim.origin, now_ms)
        self.peer = peer
        self.began_ms = now_ms
        self._claim = claim
        self._patience_ends_ms = min(claim.fills_until_ms,
                                     now_ms + claim.view.timing.grant_ms + claim.view.timing.resend_ms)

    def begin(self, now_ms: int) -> None:
        """Ask once; a claim is not idempotent."""
        wish = self._claim.wish
        self.outbox.send(self.peer, m.Delegate(self.request, wish.queue, self._claim.left, wish.lease_ms,
                                             wish.holder))
        self.operations.timers.set(self._patience_ends_ms, self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Hand the answer to the claim, or give it back when the claim has gone on. A node that says it failed may
        have claimed something."""
        if peer != self.peer or not isinstance(message, m.Claimed | m.Failed):
            return
        self.end()
        self._claim.hear(now_ms, self, message)

    def on_too_large(self, now_ms: int, peer: str, message: m.Failed) -> None:
        """A failure like others."""
        self.on_reply(now_ms, peer, message)

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """The peer is no member any more: it is waited for a moment only. One that left cleanly answers that long
        what it was asked before; else each claim that it served would be in doubt."""
        if self.peer in gone and self._claim.current is self:
            moment_ms = min(self._claim.view.timing.resend_ms, LEAVER_MS)
            until_ms = min(self._patience_ends_ms, now_ms + moment_ms)
            if until_ms > now_ms:
                self.operations.timers.set(until_ms, self)
            else:
                self._claim.go_on(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Let the claim go on without this peer; at the deadline, stop listening. Forget its hint; it may give it
        again."""
        if now_ms >= self.deadline_ms:
            self.end()
        else:
            self.operations.timers.set(self.deadline_ms, self)
        if self._claim.current is self:
            self.view.router.forget(self.peer, self._claim.wish.queue)
            self._claim.go_on(now_ms)


class ClaimOperation(Operation):
    """One client's claim."""

    def __init__(self, operations: Operations, gates: Gates, parked: Parking, origin: Origin, now_ms: int,
                 wish: m.Claim) -> None:
        super().__init__(operations, origin, now_ms)
        self.gates = gates
        self._parked = parked
        self.wish = wish
        self.is_of_workflow = wish.queue.startswith(QUEUES)
        self.current: Attempt | None = None
        self._began_ms = now_ms
        self._waits_until_ms = now_ms + wish.wait_ms
        self._untried: list[str] = []
        self._tried: dict[str, None] = {}
        self._granted = m.Claimed(origin.request, 0, ())
        caps = self.view.settings.capped.get(wish.queue)
        self.left = wish.count if caps is None else most_of(caps, wish.count)
        """How many it wants besides what it was granted."""
        self.fills_until_ms = NEVER_MS
        """Until when other nodes are asked for more, once it was granted something."""
        self.has_news = False
        """Whether the queue gained work here while the claim was being tried."""
        self.unheard = 0
        """How many of the nodes asked have yet to say that they claimed nothing."""
        self._withheld = ""
        """Why a node that has tasks grants none of them."""
        self.server = ""
        """The node that granted it something, the last one."""

    @property
    def is_parked(self) -> bool:
        """Whether it waits for news, and not for an answer."""
        return not self.is_closed and self.current is None

    @property
    def is_capped(self) -> bool:
        """Whether it was told that its holder has as many claims as the queue allows one."""
        return self._withheld == CAPPED

    def uncap(self) -> None:
        """Its holder may have more again, or that is to be found out."""
        if self.is_capped:
            self._withheld = ""

    def begin(self, now_ms: int) -> None:
        """Try everywhere once."""
        self._parked.add(self)
        self.try_again(now_ms, self.view.route(self.wish.queue))

    def wake(self, now_ms: int) -> None:
        """The queue gained work here. While a peer is being asked, that is kept for afterwards."""
        if self.is_parked:
            self.try_again(now_ms, [self.view.me.name])
        else:
            self.has_news = True

    def try_again(self, now_ms: int, nodes: Sequence[str]) -> None:
        """Try at these nodes, this one among them; nowhere while the queue is paused."""
        self.has_news = False
        self.uncap()
        self._untried, self._tried = [] if self.wish.queue in self.view.settings.paused else list(nodes), {}
        self.go_on(now_ms)

    def _try(self, now_ms: int, peer: str) -> None:
        self._tried[peer] = None
        self.unheard += 1
        attempt = GrantHere(self, now_ms) if peer == self.view.me.name else Delegation(self, peer, now_ms)
        self.current = attempt
        attempt.start(now_ms)

    def hear(self, now_ms: int, attempt: Attempt, message: m.Claimed | m.Failed) -> None:
        """Claims, or nothing: then the next peer. What comes too late is given back."""
        batches = message.batches if isinstance(message, m.Claimed) else ()
        if isinstance(message, m.Claimed) and not batches:
            self.unheard -= 1
            self._withheld = message.withheld or self._withheld
        if self.current is not attempt:
            if isinstance(message, m.Claimed) and batches:
                release(self.operations, now_ms, batches)
            return
        if batches:
            self.view.router.note_granted(attempt.peer, self.wish.queue, batches)
            self.server = attempt.peer
            self._note_granted(now_ms, attempt, batches)
        elif attempt.peer != self.view.me.name:
            self.view.router.forget(attempt.peer, self.wish.queue)
        self.go_on(now_ms)

    def _note_granted(self, now_ms: int, attempt: Attempt, batches: Sequence[m.ClaimBatch]) -> None:
        """Its holder counts all leases from before the first of them was granted."""
        if not self._granted.batches:
            self.fills_until_ms = now_ms + self.view.timing.resend_ms
            self._granted = attrs.evolve(self._granted, waited_ms=max(0, attempt.began_ms - self._began_ms))
        self._granted = attrs.evolve(self._granted, batches=(*self._granted.batches, *batches))
        limits = self.view.limits
        size = sum(len(batch.bodies.data) for batch in self._granted.batches)
        is_full = size > (limits.message_bytes - limits.batch_bytes) // 2
        self.left = 0 if is_full else self.left - sum(len(batch.ids) for batch in batches) // ids.ID_BYTES
        self._untried = self._others() if self.left > 0 else []

    def _others(self) -> list[str]:
        """Nodes that may have more: first those said to have some, then the rest of those to be asked."""
        router, me = self.view.router, self.view.me.name
        peers = dict.fromkeys([*router.hinted(self.wish.queue, self.view.live), *self._untried])
        order = router.order(self.wish.queue, [peer for peer in peers if peer != me])
        return [peer for peer in order if peer not in self._tried]

    def go_on(self, now_ms: int) -> None:
        """Ask the next node; without one, park, or end. Without a seat, which it may have had before, end."""
        self.current = None
        flaw = self.seat_flaw
        while self._untried and now_ms < self.fills_until_ms and flaw is None:
            peer = self._untried.pop(0)
            if peer in self.view.live or peer == self.view.me.name:
                self._try(now_ms, peer)
                return
        if self._granted.batches:
            self.answer(self._with_proofs(now_ms))
            self.end()
            return
        if flaw is not None:
            self._refuse_seat(flaw)
            return
        if self.has_news:
            self.try_again(now_ms, [self.view.me.name])
            return
        is_over = now_ms >= self._waits_until_ms or self.view.is_leaving
        if is_over or not self._parked.take_place(self):
            self._give_nothing(is_over)
            self.end()
        else:
            self.operations.timers.set(self._waits_until_ms, self)

    @property
    def seat_flaw(self) -> tuple[str, str] | None:
        """Why it may claim nothing of a workflow, by what this node knows now of its seats."""
        return self.view.seating.flaw(self.wish.queue, self.wish.fence) if self.is_of_workflow else None

    def _refuse_seat(self, flaw: tuple[str, str]) -> None:
        """End, and leave what it was woken for to the next claim."""
        self.has_news = True
        if self.unheard:
            self._give_nothing(is_over=True)
        else:
            self.refuse(*flaw)
        self.end()

    def _with_proofs(self, now_ms: int) -> m.Claimed:
        granted = self._granted
        return attrs.evolve(granted, batches=self.view.notary.certified(now_ms, granted.batches)
                            if self.wish.takes_proofs else granted.batches)

    def _give_nothing(self, is_over: bool) -> None:
        queue = self.wish.queue
        if self.unheard:
            self.give_up(f"{queue}: a leader did not answer in time, and may have claimed tasks that wait until"
                         " their leases are over; try again")
        elif self.view.is_leaving:
            self.refuse("not_ready", f"{queue}: this node is about to stop, and waits for nothing; ask another")
        elif not is_over:
            self.refuse("busy", f"{queue}: nothing to claim now, and too many claims wait at this node,"
                        " or over this connection; ask another node, without waiting, or with fewer claims for"
                        " more tasks each")
        elif self.view.has_leaders or queue in self.view.settings.paused:
            self.answer(m.Claimed(self.origin.request, 0, (), self._why_nothing()))
        else:
            self.refuse("no_leader", f"{queue}: no partition has a leader that grants, as far as this"
                        " node knows, so nobody can say what waits; elections take seconds, and need ZooKeeper"
                        " and a majority of each partition's voters: see 'skuld status'")

    def _why_nothing(self) -> str:
        """Why it gets nothing though tasks may wait; empty if none does as far as is known."""
        if self.wish.queue in self.view.settings.paused:
            return "paused"
        return self._withheld or ("" if self.view.is_led_throughout else "leaderless")

    def on_timer(self, now_ms: int) -> None:
        """The wait is over."""
        if self.is_parked and now_ms >= self._waits_until_ms:
            self.go_on(now_ms)


def lead_claim(gates: Gates, operations: Operations, now_ms: int, origin: Origin, request: m.Delegate) -> None:
    """The leader's side of a claim."""
    GrantOperation(operations, gates, origin, now_ms, request.queue, request.count,
                   request.lease_ms, request.holder).start(now_ms)
