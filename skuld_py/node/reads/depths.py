"""How much work waits on the partitions that this node leads, for its metrics: by queue and state, and how old.

Counts are kept anyway (``tally``); what is oldest is the first row of each priority, since rows of one priority
are in the order of their age. A look reads at most some rows and goes on from there the next time, so that many
partitions and queues take many looks and not a long one. The sum over all nodes is the cluster's, give or take
what moved between two looks.

At most ``QUEUES_MAX`` queues are named; those behind them, by name, are one more row without a name. Pure, and it
stages nothing: called between two turns, when all counts are settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from skuld_py.model.state import State
from skuld_py.node.knowledge.view import View
from skuld_py.partition.data.tables import PRIORITY_BYTES, end_of
from skuld_py.partition.vnode import Vnode

QUEUES_MAX = 200
OTHERS = ""
"""The name under which the queues beyond are counted: no queue has it."""
PRIORITIES_MAX = 8
"""Priorities of one queue and partition that are looked into for the oldest task, the highest first."""
_TIME_BYTES = 8


@attrs.define
class Depth:
    """Tasks of one queue by state; ``oldest_ms``: since when the oldest has waited, None when none waits."""

    counts: list[int] = attrs.field(factory=lambda: [0] * len(State))
    oldest_ms: int | None = None

    def add(self, counts: tuple[int, ...], oldest_ms: int | None) -> None:
        """What one more partition holds."""
        self.counts = [max(0, one) + old for one, old in zip(counts, self.counts, strict=True)]
        if oldest_ms is not None:
            self.oldest_ms = oldest_ms if self.oldest_ms is None else min(self.oldest_ms, oldest_ms)


class Depths:
    """Goes round the led partitions."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._left: Iterator[int] = iter(())
        self._found: dict[str, Depth] = {}

    def look(self, rows: int) -> Mapping[str, Depth] | None:
        """Read about so many rows more; what was found when the round is through, and a new one begins."""
        for partition in self._left:
            vnode = self._view.vnodes[partition]
            if vnode.is_leading:
                rows -= self._add(vnode)
            if rows <= 0:
                return None
        found, self._found = self._found, {}
        self._left = iter(range(len(self._view.vnodes)))
        return found

    def _add(self, vnode: Vnode) -> int:
        read = 0
        for queue, counts in list(vnode.replica.filing.tally.rows()):
            name = queue if queue in self._found or len(self._found) < QUEUES_MAX else OTHERS
            oldest_ms = _oldest_ms(vnode, queue) if counts[State.WAITING] else None
            self._found.setdefault(name, Depth()).add(counts, oldest_ms)
            read += 1 + (oldest_ms is not None)
        return read


def _oldest_ms(vnode: Vnode, queue: str) -> int | None:
    """Since when the oldest waiting task of a queue has waited."""
    base = vnode.replica.prefix + queue.encode() + b"\0"
    start, times = base, list[int]()
    while len(times) < PRIORITIES_MAX:
        rows = vnode.store.scan("ready", start, end_of(base), 1)
        if not rows:
            break
        place = rows[0][0][:len(base) + PRIORITY_BYTES]
        times.append(int.from_bytes(rows[0][0][len(place):len(place) + _TIME_BYTES], "big"))
        start = end_of(place)
    return min(times, default=None)
