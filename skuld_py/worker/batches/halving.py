"""Which items of a batch run as a job next, when a job took its Python process along: halves, until the item is
found that does it.

Items are pure, so those beside it run again. With one such item in n there are about 2 log2(n) jobs more.

Invariant: every item is in one group that is still to run, or was in one that ran well or was a culprit.

Rejected: to run each item of such a job alone. A thousand jobs for one culprit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Halving(Generic[T]):
    """The groups that are still to run, in order."""

    def __init__(self, items: Sequence[T]) -> None:
        self._groups: list[list[T]] = [list(items)] if items else []

    @property
    def left(self) -> list[T]:
        """The items of all groups that are still to run."""
        return [item for group in reversed(self._groups) for item in group]

    def take(self) -> list[T]:
        """The next group; empty when none is left."""
        return self._groups.pop() if self._groups else []

    def crashed(self, group: list[T]) -> T | None:
        """A group's job took its process along: its halves are next. The culprit, if it was alone."""
        if len(group) == 1:
            return group[0]
        middle = len(group) // 2
        self._groups += [group[middle:], group[:middle]]
        return None
