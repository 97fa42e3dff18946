"""The claims that wait at this node, what wakes them, and how many of them at a time.

A claim is tried again here when a task enters its queue on a partition led here, when its queue is resumed or
other limits hold, when a leadership is new or grants are possible again, and when the queue ceases to be dry; and
wherever a peer's gossip names the queue. As many are woken as tasks came, those that wait longest first; of a
limited queue only as many as its limits could serve. A claim keeps its place while it is tried: if it gets
nothing, it is before all that came later.

No word of work is lost:

* A claim that is being tried is given the word when none is left that just waits, and tries here before it waits
  again. One that ends with a word unused passes it on.
* One that was served here wakes the next, while something is left. So what was missed in whatever way, say because
  a grant failed, is claimed at the latest behind the next task that comes.
* How much a peer has nobody knows. One claim follows the hint first; each that got something there brings one more
  along, so they double, and one that got nothing ends the hint.

Rejected: to wake all, and let them find out. Three thousand idle workers made each single task cost 40 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice

import attrs

from skuld_py.node.claims.claim import ClaimOperation
from skuld_py.node.knowledge.view import View
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.limits.borrower import Loans, waiting_in
from skuld_py.node.operations.places import Places


@attrs.define
class Party:
    """The claims of a queue that follow its hints: so many at a time."""

    width: int = 1
    claims: list[ClaimOperation] = attrs.field(factory=list)


class ParkedClaims:
    """Claims by queue, in the order in which they came."""

    def __init__(self, view: View, steward: Steward, borrowing: Loans) -> None:
        self._view = view
        self._steward = steward
        self._borrowing = borrowing
        self._claims: dict[str, dict[int, ClaimOperation]] = {}
        self._places = Places()
        """Of the claims that wait, or would again."""
        self._leftovers: dict[str, None] = {}
        """Queues in which there may be something to claim that nobody was woken for."""
        self._parties: dict[str, Party] = {}
        self._could_grant = False

    @property
    def is_stirred(self) -> bool:
        """Whether it wants to be asked to look."""
        return bool(self._leftovers)

    def add(self, claim: ClaimOperation) -> None:
        """It may come to wait."""
        self._claims.setdefault(claim.wish.queue, {})[claim.request] = claim
        claim.at_end.append(partial(self._remove, claim))

    def take_place(self, claim: ClaimOperation) -> bool:
        """Whether it may wait here, from now on until it ends."""
        limits = self._view.limits
        return self._places.take(claim, limits.parked_claims, limits.parked_claims_each)

    def _remove(self, claim: ClaimOperation) -> None:
        queue = claim.wish.queue
        waiting = self._claims.get(queue, {})
        waiting.pop(claim.request, None)
        if not waiting:
            self._claims.pop(queue, None)
        elif claim.has_news or claim.server == self._view.me.name:
            self._leftovers[queue] = None
        if claim.server not in ("", self._view.me.name) and queue in self._parties:
            self._parties[queue].width += 1

    def note_leftover(self, queue: str) -> None:
        """What could not be granted for a while may be by now."""
        if queue in self._claims:
            self._leftovers[queue] = None

    def look(self, now_ms: int) -> None:
        """Wake whom the last turn concerns."""
        steward, borrowing, settings = self._steward, self._borrowing, self._view.settings
        has_risen = bool(steward.risen) and steward.note_leaderships(now_ms)
        filled, freed = steward.take_moved(now_ms) if self._view.bulletin.touched else ({}, [])
        for queue in freed:
            borrowing.note_freed(queue)
        resumed = settings.take_resumed() if settings.resumed else []
        for queue in resumed:
            borrowing.moisten(queue)
        wet, is_news = borrowing.take_wet(now_ms) if borrowing.told or borrowing.dry else ([], False)
        if resumed or is_news:
            self._steward.note_resumed(now_ms)
        leftovers, self._leftovers = self._leftovers, {}
        may_grant, could_grant = self._view.may_grant, self._could_grant
        self._could_grant = may_grant
        if self._claims:
            self._wake_all(now_ms, filled)
            is_new = has_risen or (may_grant and not could_grant)
            if stirred := self._claims if is_new else [*resumed, *wet]:
                self._wake_all(now_ms, self._left(stirred))
            if leftovers:
                self._wake_all(now_ms, {queue: min(1, left) for queue, left in self._left(leftovers).items()})
            self._follow_hints(now_ms)
        elif self._parties:
            self._parties.clear()

    def _left(self, queues: Iterable[str]) -> dict[str, int]:
        """How many tasks of the queues for which claims wait could be granted here."""
        return {queue: waiting_in(self._view.stocked(queue), queue) for queue in queues if queue in self._claims}

    def _wake_all(self, now_ms: int, counts: Mapping[str, int]) -> None:
        for queue, count in counts.items():
            if count and queue in self._claims and not self._borrowing.is_dry(queue):
                self._wake(now_ms, queue, count)

    def _wake(self, now_ms: int, queue: str, count: int) -> None:
        limits = self._view.settings.lent(queue)
        if limits is not None:
            count = min(count, limits.concurrency or limits.burst)
        claims = self._claims[queue].values()
        parked = list(islice((claim for claim in claims if claim.is_parked), count))
        tried = islice((claim for claim in claims if not (claim.is_parked or claim.has_news)), count - len(parked))
        for claim in [*parked, *tried]:
            claim.wake(now_ms)

    def _follow_hints(self, now_ms: int) -> None:
        view, router = self._view, self._view.router
        hinted = {queue: peers for queue in self._claims
                  if (peers := router.hinted(queue, view.live)) and not view.settings.is_paused(queue)}
        for queue in [queue for queue in self._parties if queue not in hinted]:
            del self._parties[queue]
        for queue, peers in hinted.items():
            party = self._parties.setdefault(queue, Party())
            party.claims = [claim for claim in party.claims if not (claim.is_closed or claim.is_parked)]
            parked = (claim for claim in self._claims[queue].values() if claim.is_parked)
            for claim in list(islice(parked, max(0, party.width - len(party.claims)))):
                claim.try_again(now_ms, router.order(queue, peers))
                party.claims.append(claim)
