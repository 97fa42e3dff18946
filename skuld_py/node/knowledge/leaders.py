"""Which partitions a node leads, and which nodes lead the others as far as it knows; kept by what changes.

A claim asks for both, many times a second; to ask every partition would cost as much as there are partitions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.vnode import Vnode


class Leaderships:
    """Exact at every moment: what changed is looked at before an answer is given."""

    def __init__(self, vnodes: Sequence[Vnode], bulletin: Bulletin) -> None:
        self._vnodes = vnodes
        self._changed = bulletin.subscribe()
        self._sorted: list[Vnode] = []
        self._bits = 0
        self._leaders: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def here(self) -> list[Vnode]:
        """The partitions led by this node, by number; the same list until one changes."""
        if self._changed:
            self._follow()
        return self._sorted

    def bits(self) -> int:
        """The partitions led by this node as a number, a bit for each."""
        if self._changed:
            self._follow()
        return self._bits

    def leaders(self) -> list[str]:
        """The nodes that lead a partition, as far as is known."""
        if self._changed:
            self._follow()
        return sorted(self._counts)

    def _follow(self) -> None:
        here = self._sorted.copy()
        for partition in self._changed:
            vnode, bit = self._vnodes[partition], 1 << partition
            if vnode.is_leading and not self._bits & bit:
                insort(here, vnode, key=_number)
            elif self._bits & bit and not vnode.is_leading:
                del here[bisect_left(here, partition, key=_number)]
            self._bits = self._bits | bit if vnode.is_leading else self._bits & ~bit
            self._count(partition, vnode.leader)
        self._changed.clear()
        self._sorted = here

    def _count(self, partition: int, leader: str) -> None:
        known = self._leaders.pop(partition, "")
        if known:
            self._counts[known] -= 1
            if not self._counts[known]:
                del self._counts[known]
        if leader:
            self._leaders[partition] = leader
            self._counts[leader] = self._counts.get(leader, 0) + 1


def _number(vnode: Vnode) -> int:
    return vnode.partition
