"""The claims that wait at this node, what wakes them, and how many of them at a time.

A claim is tried again here when a task enters its queue on a partition led here, when its queue is resumed or
other limits hold, when a leadership is new or grants are possible again, when the queue ceases to be dry, and when
claims have ended of a queue that caps them for each holder; and wherever a peer's gossip names the queue. As many
are woken as tasks came, or as claims have ended, those that wait longest first; of a limited queue only as many as
its limits could serve.
A claim keeps its place while it is tried: if it gets nothing, it is before all that came later.

No word of work is lost:

* When all claims are being tried, one of them is given the word, and tries here before it waits again. One that
  ends with a word unused passes it on.
* One that was served here wakes the next, while something is left. So a task that was missed, say because a grant
  failed, is claimed behind the next task that comes at the latest.
* One that got nothing because its holder is at its cap passes its word on, and from then on those that were not
  told so are woken before it; until its holder, by what is counted here, may have more again.
* How much a peer has is unknown here. One claim follows its hint first; each that got something there lets one
  more follow, so they double, and one that got nothing ends the hint.

Rejected: to wake all, and let them find out. Three thousand idle workers made each single task cost 40 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

import attrs

from skuld_py.node.claims.caps import has_room
from skuld_py.node.claims.claim import ClaimOperation
from skuld_py.node.knowledge.view import View
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.limits.borrower import Loans, waiting_in
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.places import Places


@attrs.define
class Party:
    """The claims of a queue that follow its hints, at most ``width`` at a time."""

    width: int = 1
    claims: list[ClaimOperation] = attrs.field(factory=list)


class ParkedClaims(Duty):
    """Claims by queue, in the order in which they came."""

    due_ms = NEVER_MS

    def __init__(self, view: View, steward: Steward, loans: Loans) -> None:
        self._view = view
        self._steward = steward
        self._loans = loans
        self._claims: dict[str, dict[int, ClaimOperation]] = {}
        self._places = Places()
        """Places of the claims that wait, or will again."""
        self._leftovers: dict[str, None] = {}
        """Queues in which there may be tasks that no claim was woken for."""
        self._parties: dict[str, Party] = {}
        self._restless: dict[str, None] = {}
        """Queues in which a claim may have come to follow a hint."""
        self._rights = view.bulletin.subscribe_to_rights()
        self._could_grant = False
        bulletin = view.bulletin
        self.news = (bulletin.filled, bulletin.freed, bulletin.resumed, loans.wet, self._leftovers,
                     self._restless, view.router.changed, steward.risen, self._rights)

    def add(self, claim: ClaimOperation) -> None:
        """Note a claim that may come to wait."""
        self._claims.setdefault(claim.wish.queue, {})[claim.request] = claim
        claim.at_end.append(partial(self._remove, claim))

    def take_place(self, claim: ClaimOperation) -> bool:
        """Whether it may wait here, from now on until it ends."""
        limits = self._view.limits
        self._restless[claim.wish.queue] = None
        if claim.is_capped and any(not other.is_capped for other in self._parked(claim.wish.queue)):
            self._leftovers[claim.wish.queue] = None
        return self._places.take(claim, limits.parked_claims, limits.parked_claims_each)

    def _remove(self, claim: ClaimOperation) -> None:
        queue = claim.wish.queue
        waiting = self._claims.get(queue, {})
        waiting.pop(claim.request, None)
        if queue in self._parties:
            self._restless[queue] = None
        if not waiting:
            self._claims.pop(queue, None)
        elif claim.has_news or claim.server == self._view.me.name:
            self._leftovers[queue] = None
        if claim.server not in ("", self._view.me.name) and queue in self._parties:
            self._parties[queue].width += 1

    def dismiss(self, now_ms: int) -> None:
        """The node is about to stop: claims that wait here are to be made elsewhere."""
        for claim in [claim for claims in self._claims.values() for claim in claims.values() if claim.is_parked]:
            claim.go_on(now_ms)

    def note_leftover(self, queue: str) -> None:
        """Tasks of the queue that could not be granted for a while may be by now."""
        if queue in self._claims:
            self._leftovers[queue] = None

    def look(self, now_ms: int) -> None:
        """Wake the claims that the last turn concerns."""
        steward, loans = self._steward, self._loans
        bulletin = self._view.bulletin
        has_risen = bool(steward.risen) and steward.note_leaderships(now_ms)
        capped = self._take_capped() if bulletin.freed and self._view.settings.capped else {}
        filled, freed = steward.take_moved(now_ms) if bulletin.filled or bulletin.freed else ({}, [])
        for queue in freed:
            loans.note_freed(queue)
        resumed = self._take_resumed() if bulletin.resumed else []
        for queue in resumed:
            loans.moisten(queue)
        for queue in [*resumed, *capped]:
            self._uncap(queue)
        if resumed or loans.told or capped:
            self._steward.note_resumed(now_ms)
        wet, leftovers = [*loans.wet], [*self._leftovers]
        for news in (loans.wet, loans.told, self._leftovers, self._rights):
            news.clear()
        may_grant, could_grant = self._view.may_grant, self._could_grant
        self._could_grant = may_grant
        if self._claims:
            self._wake_all(now_ms, filled)
            is_new = has_risen or (may_grant and not could_grant)
            if stirred := self._claims if is_new else [*resumed, *wet]:
                self._wake_all(now_ms, self._left(stirred))
            if capped:
                left = self._left(capped)
                self._wake_all(now_ms, {queue: min(capped[queue], count) for queue, count in left.items()})
            if leftovers:
                self._wake_all(now_ms, {queue: min(1, left) for queue, left in self._left(leftovers).items()})
        if self._restless or self._view.router.changed:
            restless = self._restless | self._view.router.changed
            self._restless.clear()
            self._view.router.changed.clear()
            for queue in restless:
                self._follow_hint(now_ms, queue)

    def _take_capped(self) -> dict[str, int]:
        """The queues of which claims have ended anywhere, so that their holders may have others; and how many have
        ended, 0 where that is not counted."""
        bulletin, capped = self._view.bulletin, self._view.settings.capped
        ended = {queue: bulletin.holders.take_ended(queue) for queue in dict.fromkeys(
            queue for _, queue in bulletin.freed) if queue.decode() in capped}
        return {queue.decode(): count or 0 for queue, count in ended.items() if count != 0}

    def _uncap(self, queue: str) -> None:
        """Let the claims of holders that may have more again wait in their turn."""
        for claim in self._claims.get(queue, {}).values():
            if claim.is_capped and has_room(self._view, queue, claim.wish.holder):
                claim.uncap()

    def _take_resumed(self) -> list[str]:
        """The queues that were resumed, or whose limits have changed."""
        resumed = self._view.bulletin.resumed
        self._restless.update(resumed)
        queues = [queue for queue in resumed if queue not in self._view.settings.paused]
        resumed.clear()
        return queues

    def note_members(self) -> None:
        """Other nodes are members now: their hints may count, or count no more."""
        self._restless.update(dict.fromkeys(self._claims))

    def _left(self, queues: Iterable[str]) -> dict[str, int]:
        """How many tasks of the queues for which claims wait could be granted here."""
        return {queue: waiting_in(self._view.stocked(queue), queue) for queue in queues if queue in self._claims}

    def _wake_all(self, now_ms: int, counts: Mapping[str, int]) -> None:
        for queue, count in counts.items():
            if count and queue in self._claims and not self._loans.is_dry(queue):
                self._wake(now_ms, queue, count)

    def _wake(self, now_ms: int, queue: str, count: int) -> None:
        limits = self._view.settings.lent.get(queue)
        if limits is not None:
            count = min(count, limits.concurrency or limits.burst)
        claims = self._claims[queue].values()
        parked = list(islice(self._parked(queue), count))
        tried = islice((claim for claim in claims if not (claim.is_parked or claim.has_news)), count - len(parked))
        for claim in [*parked, *tried]:
            claim.wake(now_ms)

    def _parked(self, queue: str) -> Iterator[ClaimOperation]:
        """The claims that wait, in their order; behind all others those whose holders were at their cap."""
        claims = self._claims.get(queue, {}).values()
        for is_capped in (False, True):
            yield from (claim for claim in claims if claim.is_parked and claim.is_capped is is_capped)

    def _follow_hint(self, now_ms: int, queue: str) -> None:
        view = self._view
        peers = view.router.hinted(queue, view.live) if queue in self._claims else []
        if not peers or queue in view.settings.paused:
            self._parties.pop(queue, None)
            return
        party = self._parties.setdefault(queue, Party())
        party.claims = [claim for claim in party.claims if not (claim.is_closed or claim.is_parked)]
        for claim in list(islice(self._parked(queue), max(0, party.width - len(party.claims)))):
            claim.try_again(now_ms, view.router.order(queue, peers))
            party.claims.append(claim)
