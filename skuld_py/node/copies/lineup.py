"""Which exchange is next: partitions and peers that wait, by rank, then in the order in which they came.

Peers that are away keep their places and hold up no other: each has lines of its own, and only heads are looked
at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

Key = tuple[int, str]
"""Partition and peer."""
RANKS = 3


class Lineup:
    """Lines of keys. ``rank_of`` says where a key belongs, 0 before 1 before 2; ``sort`` must be called when that
    changes."""

    def __init__(self, rank_of: Callable[[Key], int]) -> None:
        self._rank_of = rank_of
        self._lines: dict[str, tuple[OrderedDict[Key, int], ...]] = {}
        self._ranks: dict[Key, int] = {}
        self._came = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._ranks

    def add(self, key: Key) -> None:
        """Let a key wait, as the last of its rank."""
        if key not in self._ranks:
            lines = self._lines.setdefault(key[1], tuple(OrderedDict[Key, int]() for _ in range(RANKS)))
            rank = self._ranks[key] = self._rank_of(key)
            self._came += 1
            lines[rank][key] = self._came

    def remove(self, key: Key) -> None:
        """Take out a key that waits."""
        del self._lines[key[1]][self._ranks.pop(key)][key]

    def sort(self, partition: int) -> None:
        """The ranks of a partition's keys may have changed: keys that did change come last in their new rank."""
        for peer in self._lines:
            key = partition, peer
            if key in self._ranks and self._ranks[key] != self._rank_of(key):
                self.remove(key)
                self.add(key)

    def first(self, peers: Iterable[str]) -> Key | None:
        """The first key in line whose peer is one of these."""
        lines = [self._lines[peer] for peer in peers if peer in self._lines]
        for rank in range(RANKS):
            heads = [(came, key) for line in lines for key, came in _head(line[rank])]
            if heads:
                return min(heads)[1]
        return None


def _head(line: OrderedDict[Key, int]) -> list[tuple[Key, int]]:
    return [next(iter(line.items()))] if line else []
