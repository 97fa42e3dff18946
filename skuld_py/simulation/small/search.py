"""Which scripts to play: every single deviation, or what may lead to something new.

All of two deviations would be half a million runs, and those drawn evenly from them find next to nothing: which
deviations come together decides, not how many. So the guided search keeps scripts that met a new pair (``pairs``)
and adds a deviation to one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import attrs

from skuld_py.simulation.small.script import Script
from skuld_py.simulation.small.verdict import Verdict

GOLDEN = 0.6180339887498949
DEVIATIONS_MAX = 6
FRESH = 0.2
"""Share of single deviations, which rest on nothing that was kept."""
NEWEST = 0.5
"""Share of the others that begin from one of the newest ``FEW`` kept."""
FEW = 20


def singles(pair: str, ways: int) -> list[Script]:
    """Every single deviation, neighbours in the run far from each other: a bug is mostly met by many deviations of
    one moment, and so every moment has its turn soon."""
    return [Script(pair, (number,)) for number in sorted(range(ways), key=lambda number: number * GOLDEN % 1)]


@attrs.define
class Guided:
    """A search; ``seen`` are the pairs met."""

    pairs: Sequence[str]
    random: Random
    seen: Counter[str] = attrs.field(factory=Counter)
    kept: list[tuple[Script, int]] = attrs.field(factory=list)
    """Scripts that met a new pair, with the number of ways in their runs."""
    ways: dict[str, int] = attrs.field(factory=dict)
    """Of each pair without a deviation."""

    def draw(self) -> Script:
        """What to play next."""
        random, pair = self.random, self.random.choice(self.pairs)
        if pair not in self.ways:
            self.ways[pair] = 0
            return Script(pair)
        script, ways = Script(pair), self.ways[pair]
        if self.kept and random.random() >= FRESH:
            script, ways = random.choice(self.kept[-FEW:] if random.random() < NEWEST else self.kept)
        first = max(script.numbers, default=-1) + 1
        if first >= ways or len(script.numbers) >= DEVIATIONS_MAX:
            return Script(pair, (random.randrange(self.ways[pair] or 1),))
        return script.deviating(random.randrange(first, ways))

    def note(self, verdict: Verdict) -> int:
        """A run is over; gives how many pairs it was the first to meet."""
        if not verdict.script.numbers:
            self.ways[verdict.script.pair] = verdict.ways
        new = self.learn(verdict.pairs)
        if new:
            self.kept.append((verdict.script, verdict.ways))
        return new

    def learn(self, pairs: Iterable[str]) -> int:
        """Pairs were met; gives how many were new."""
        before = len(self.seen)
        self.seen.update(pairs)
        return len(self.seen) - before
