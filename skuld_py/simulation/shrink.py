"""Makes a failing run small: the fewest faults, the simplest options, the earliest end, the fewest requests
that still break the same rule.

A smaller run may be another story with the same end; that is fine, as long as it breaks a rule that the
first one broke.

Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (ddmin), 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import attrs

from skuld_py.simulation.reduction import SIMPLIFICATIONS, WHOLE, Reduction, mute

Item = TypeVar("Item")

PLAYS_MAX = 400
"""Runs that a search may cost."""
_EARLIER = (0.25, 0.5, 0.75, 0.9)


@attrs.frozen
class Outcome:
    """What a search needs to know of a run: the rules broken, faults that struck, requests that were sent."""

    violated: frozenset[str]
    faults: tuple[int, ...] = ()
    requests: tuple[tuple[str, int], ...] = ()
    safety_ms: int = 0


Play = Callable[[Reduction], Outcome]


def minimise(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """A part of ``items`` that still fails and of which no single item can be spared (ddmin).

    ``fails`` of the whole is taken for granted. When it stops failing at will (a budget is spent), the
    smallest failing part found so far is given.
    """
    left, parts = list(items), 2
    if left and fails([]):
        return []
    while len(left) >= 2:
        size = -(-len(left) // parts)
        for start in range(0, len(left), size):
            rest = left[:start] + left[start + size :]
            if rest and fails(rest):
                left, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(left):
                break
            parts = min(2 * parts, len(left))
    return left


class Shrinker:
    """One search. ``plays`` counts the runs it took."""

    def __init__(self, play: Play, begin: Reduction = WHOLE, plays_max: int = PLAYS_MAX) -> None:
        self.best = begin
        self.plays = 0
        self._play = play
        self._plays_max = plays_max
        self._first = play(begin)
        self._outcome = self._first

    def shrink(self) -> Reduction:
        """The smallest reduction found that breaks one of the rules that the run breaks."""
        if not self._first.violated:
            return self.best
        self._drop_faults()
        self._simplify()
        self._end_early()
        self._drop_requests()
        self._drop_faults()
        return self.best

    def _tries(self, reduction: Reduction) -> bool:
        """Whether a smaller run still fails; it is the best one then."""
        if self.plays >= self._plays_max or reduction == self.best:
            return False
        self.plays += 1
        outcome = self._play(reduction)
        if outcome.violated.isdisjoint(self._first.violated):
            return False
        self.best, self._outcome = reduction, outcome
        return True

    def _drop_faults(self) -> None:
        def fails(faults: Collection[int]) -> bool:
            return self._tries(attrs.evolve(self.best, faults=tuple(sorted(faults))))
        minimise(self._outcome.faults, fails)

    def _simplify(self) -> None:
        for name in SIMPLIFICATIONS:
            if name not in self.best.simpler:
                self._tries(attrs.evolve(self.best, simpler=(*self.best.simpler, name)))

    def _end_early(self) -> None:
        is_better = True
        while is_better:
            end_ms = self.best.until_ms or self._first.safety_ms
            is_better = any(self._tries(attrs.evolve(self.best, until_ms=max(1, int(end_ms * part))))
                            for part in _EARLIER)

    def _drop_requests(self) -> None:
        muted, sent = self.best.muted, self._outcome.requests

        def fails(kept: Collection[tuple[str, int]]) -> bool:
            chosen = frozenset(kept)
            silent = [request for request in sent if request not in chosen]
            return self._tries(attrs.evolve(self.best, muted=muted + mute(silent)))
        minimise(sent, fails)
