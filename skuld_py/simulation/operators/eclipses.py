"""Leaders in the dark: nobody hears such a leader, and it hears all others, but no candidate that asks for votes.

The others take it for gone, and vote it out behind its back, and it goes on as it did: it hears a majority. That
it is over it reads in the document, and with that, in the same look, what an operator wishes of its successor
(``Hands``). That is how Manatee's old primaries came to obey wishes that were none of theirs.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import attrs

from skuld_py.model.messages import RequestVote
from skuld_py.simulation.operators.obedience import Attended
from skuld_py.simulation.world.lateness import Link
from skuld_py.simulation.world.network import one_way

SILENCES = (2.3, 3.5)
"""So many times as long as it takes to miss a leader: whose session is good is overdue after twice that."""
VOTERS_MIN = 3


@attrs.define
class _Eclipse:
    partition: int
    leader: str
    links: list[Link]


class Eclipses:
    """``counts``: how many there were."""

    is_over = False

    def __init__(self, cluster: Attended, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._random = random
        self._present: _Eclipse | None = None
        cluster.on_candidacy.append(self._hush)

    def begin(self, every_ms: int) -> None:
        """Strike, again and again, one leader at a time."""
        self._cluster.scheduler.after(1 + int(self._random.expovariate(1.0) * every_ms), self._strike, every_ms)

    def _strike(self, every_ms: int) -> None:
        if self.is_over:
            return
        documents = self._cluster.registry.documents
        led = [(partition, document.leader) for partition, (_, document) in documents.items()
               if document.leader in self._cluster.processes and len(document.cohort) >= VOTERS_MIN]
        if not led:
            self.begin(every_ms)
            return
        partition, leader = self._random.choice(led)
        self._present = _Eclipse(partition, leader, one_way([leader], [*self._cluster.processes]))
        self._cluster.note("nemesis", "eclipse", leader, partition)
        self._cluster.network.cut(self._present.links)
        for_ms = int(self._random.uniform(*SILENCES) * self._cluster.options.timing.silence_ms)
        self._cluster.scheduler.after(for_ms, self._end, every_ms)
        self.counts["leader in the dark"] += 1

    def _hush(self, candidate: str, request: RequestVote) -> None:
        """It is not heard from now on by whom it would replace."""
        present = None if self.is_over else self._present
        if present is not None and request.partition == present.partition and candidate != present.leader:
            link = candidate, present.leader
            if link not in present.links:
                self._cluster.network.cut([link])
                present.links.append(link)

    def _end(self, every_ms: int) -> None:
        present, self._present = self._present, None
        if present is not None and not self.is_over:  # else all links are mended
            self._cluster.network.mend(present.links)
            self.begin(every_ms)
