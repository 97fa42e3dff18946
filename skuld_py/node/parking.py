"""The claims that wait at this node, and what wakes them.

A claim is tried again here when a task enters its queue on a partition led here, when its queue is resumed or
other limits hold, when a leadership is new, and when the queue ceases to be dry; and wherever a peer's gossip
names the queue. Of a limited queue only as many are woken as its limits could serve, the oldest first.
"""

from __future__ import annotations

from itertools import islice

from skuld_py.node.borrowing import Borrowing
from skuld_py.node.claiming import ClaimOperation
from skuld_py.node.operation import Host
from skuld_py.node.steward import Steward


class Parking:
    """Claims by queue, in the order in which they came."""

    def __init__(self, host: Host, steward: Steward, borrowing: Borrowing) -> None:
        self._host = host
        self._steward = steward
        self._borrowing = borrowing
        self._claims: dict[str, dict[int, ClaimOperation]] = {}

    def add(self, claim: ClaimOperation) -> None:
        """It may come to wait."""
        self._claims.setdefault(claim.wish.queue, {})[claim.request] = claim

    def remove(self, claim: ClaimOperation) -> None:
        """It has ended."""
        waiting = self._claims.get(claim.wish.queue, {})
        waiting.pop(claim.request, None)
        if not waiting:
            self._claims.pop(claim.wish.queue, None)

    def look(self, now_ms: int) -> None:
        """Wake whom the last turn concerns."""
        has_risen = self._steward.note_leaderships(now_ms)
        filled, freed = self._steward.take_moved(now_ms)
        for queue in freed:
            self._borrowing.note_freed(queue)
        resumed = self._host.settings.take_resumed()
        for queue in resumed:
            self._borrowing.moisten(queue)
        wet, is_news = self._borrowing.take_wet(now_ms)
        if resumed or is_news:
            self._steward.note_resumed(now_ms)
        for queue in list(self._claims) if has_risen else [*filled, *resumed, *wet]:
            if not self._borrowing.is_dry(queue):
                self._wake(now_ms, queue)
        if self._claims:
            self._follow_hints(now_ms)

    def _wake(self, now_ms: int, queue: str) -> None:
        limits = self._host.settings.lent(queue)
        most = (limits.concurrency or limits.burst) if limits is not None else None
        for claim in list(islice(self._claims.get(queue, {}).values(), most)):
            claim.wake(now_ms)

    def _follow_hints(self, now_ms: int) -> None:
        host, router = self._host, self._host.router
        for queue in [queue for queue in self._claims
                      if router.hinted(queue, host.live) and not host.settings.is_paused(queue)]:
            for claim in list(self._claims[queue].values()):
                if claim.is_parked:
                    claim.try_again(now_ms, router.order(queue, router.hinted(queue, host.live)))
