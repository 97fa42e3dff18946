"""A run by name: the pair of scenario and focus, and the numbers of the deviations.

The ways to deviate are numbered through a run as they come up. So a number means the same in all runs that were
alike until then, and what is appended to a script changes nothing before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.simulation.shrink import minimise


@attrs.frozen
class Script:
    """``pair`` is written ``scenario:focus``."""

    pair: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.pair, *map(str, self.numbers)])

    def deviating(self, number: int) -> Script:
        """With one deviation more."""
        return Script(self.pair, (*self.numbers, number))

    @classmethod
    def parse(cls, line: str) -> Script:
        """Raises ``ValueError``."""
        pair, *numbers = line.split()
        return cls(pair, tuple(sorted(map(int, numbers))))


def shrunk(script: Script, fails: Callable[[Script], bool]) -> Script:
    """The same with as few numbers as fail. Those behind one that is left out may mean something else; that is
    fine."""
    def is_enough(numbers: Sequence[int]) -> bool:
        return fails(Script(script.pair, tuple(numbers)))
    return Script(script.pair, tuple(minimise(script.numbers, is_enough)))


class Choices:
    """The decision points of one run. ``count``: the ways there were so far; ``taken``: those that were gone."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.count = 0
        self.taken: list[str] = []
        self._numbers = numbers

    def at(self, ways: Sequence[str], *where: object) -> str:
        """A decision point: the way to go, nothing for the usual one."""
        first, self.count = self.count, self.count + len(ways)
        for number in self._numbers:
            if first <= number < self.count:
                self.taken.append(" ".join(map(str, [*where, ways[number - first]])))
                return ways[number - first]
        return ""
