"""How long something took, counted in classes: plain numbers that one thread adds to and any thread may read.

The metrics library's own histogram takes a lock for each observation, which costs more than a short batch can
spare; this one takes a search among fifteen numbers. A reader may see an observation in the sum and not yet in a
class, never a number that falls.
"""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Histogram:
    """Observations in seconds."""

    def __init__(self) -> None:
        self._classes = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._classes[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """(bound, how many were at most that), the last without a bound."""
        found, total = [], 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._classes, strict=True):
            total += count
            found.append((bound, float(total)))
        return found
