"""Leaders in the dark: nobody hears such a leader, and it hears all of its voters but one.

The others take it for gone. Where the one that it does not hear stands, it is voted out behind its back, and goes
on as it did: it hears a majority, and no request for a vote. That it is over it reads in the document, and with
that, in the same look, what an operator wishes of its successor (``Hands``). That is how Manatee's old primaries
came to obey wishes that were none of theirs.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.world.network import one_way

LONG_MS = (1_000, 3_500)
"""Longer than it takes to miss a leader, and to elect another one."""
VOTERS_MIN = 3


class Eclipses:
    """``counts``: how many there were."""

    is_over = False

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._random = random

    def begin(self, every_ms: int) -> None:
        """Strike, again and again."""
        self._cluster.scheduler.after(1 + int(self._random.expovariate(1.0) * every_ms), self._strike, every_ms)

    def _strike(self, every_ms: int) -> None:
        if self.is_over:
            return
        led = [document for _, document in self._cluster.registry.documents.values()
               if document.leader in self._cluster.processes and len(document.cohort) >= VOTERS_MIN]
        if led:
            document = self._random.choice(led)
            leader, others = document.leader, [name for name in document.cohort if name != document.leader]
            heir = self._random.choice(others)
            links = [*one_way([leader], [*self._cluster.processes]), (heir, leader)]
            self._cluster.note("nemesis", "eclipse", leader, heir)
            self._cluster.network.cut(links)
            self._cluster.scheduler.after(self._random.randint(*LONG_MS), self._end, links)
            self.counts["leader in the dark"] += 1
        self.begin(every_ms)

    def _end(self, links: list[tuple[str, str]]) -> None:
        if not self.is_over:  # else all links are mended
            self._cluster.network.mend(links)
