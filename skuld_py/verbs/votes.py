"""Partitions that have no majority of live voters: which nodes each needs, in words.

Such a partition elects no leader, however long it is waited for, until enough of its voters that are down are
started, each on its own data. Forgetting them does not help: it takes a majority to change who votes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

SHOWN = 8
"""Partitions that are named one by one."""


@attrs.frozen
class Shortage:
    """What a partition lacks: ``missing`` more voters, ``of`` those that are not alive."""

    missing: int
    of: tuple[str, ...]

    def said(self) -> str:
        """The nodes that are needed: ``a or b``, ``2 of a, b, c``, ``a and b``."""
        if self.missing == 1:
            return " or ".join(self.of)
        return " and ".join(self.of) if self.missing == len(self.of) else f"{self.missing} of {', '.join(self.of)}"


def shortage(cohort: Sequence[str], live: Collection[str]) -> Shortage | None:
    """What a cohort lacks of a majority of live voters; nothing, if it has one."""
    dead = tuple(sorted(name for name in cohort if name not in live))
    missing = len(cohort) // 2 + 1 - (len(cohort) - len(dead)) if cohort else 0
    return Shortage(missing, dead) if missing > 0 else None


def shortages(cohorts: Mapping[int, Sequence[str]], live: Collection[str],
              filling: Collection[tuple[int, str]] = ()) -> dict[Shortage, list[int]]:
    """The partitions that lack voters, by what they lack. ``filling``: nodes that live and have lost their memory
    of a partition, so that they do not vote there."""
    found: dict[Shortage, list[int]] = {}
    for partition, cohort in sorted(cohorts.items()):
        able = [name for name in cohort if name in live and (partition, name) not in filling]
        if (lacking := shortage(cohort, able)) is not None:
            found.setdefault(lacking, []).append(partition)
    return found


def partitions_said(partitions: Iterable[int]) -> str:
    """``partition 2``, ``partitions 2, 5, 6``; of many the first."""
    numbers = [*partitions]
    listed = ", ".join(map(str, numbers[:SHOWN])) + ", …" * (len(numbers) > SHOWN)
    return f"partition {listed}" if len(numbers) == 1 else f"{len(numbers)} partitions ({listed})"
