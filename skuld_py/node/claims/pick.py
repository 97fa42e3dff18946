"""Which waiting tasks a claim is given: the best over all the partitions that a node leads, in exact order.

The partitions' queues are merged by their heads, in runs: as long as a partition's next tasks come before the
heads of all the others, they are taken together. Each queue is read in chunks that grow, so that a long one is
read only as far as it is needed. Tasks that have expired are left out, though their leader may not have buried
them yet (``lapses``); and those that expire within the next millisecond: nobody could begin them in time, and who
wants a task that is never claimed has it expire one behind that in which it becomes due.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Mapping

from skuld_py.partition.data import tables
from skuld_py.partition.data.filing import Filing
from skuld_py.partition.vnode import Vnode

FIRST_CHUNK = 64
LEAST_MS = 1
"""A task that expires so soon is granted to nobody."""


def pick(now_ms: int, vnodes: Mapping[int, Vnode], queue: str, count: int) -> dict[int, list[bytes]]:
    """The best ``count`` waiting tasks, as their ready rows begin, by partition."""
    if count < 1:
        return {}
    lines = {partition: _Line(now_ms, vnode.replica.filing, queue) for partition, vnode in vnodes.items()}
    heap = [(head, partition) for partition, line in lines.items() if (head := line.head(count)) is not None]
    heapq.heapify(heap)
    picked: dict[int, list[bytes]] = {}
    left = count
    while heap and left:
        _, partition = heap[0]
        limit = min(heap[1:3])[0] if len(heap) > 1 else None
        run = lines[partition].take(limit, left)
        picked.setdefault(partition, []).extend(run)
        left -= len(run)
        head = lines[partition].head(left) if left else None
        if head is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (head, partition))
    return picked


class _Line:
    """What waits in a queue of one partition, as far as it was read."""

    def __init__(self, now_ms: int, filing: Filing, queue: str) -> None:
        self._now_ms = now_ms
        self._filing = filing
        self._queue = queue
        self._heads: list[bytes] = []
        self._at = 0
        self._after: bytes | None = None
        self._chunk = FIRST_CHUNK
        self._is_read = False

    def head(self, wanted: int) -> bytes | None:
        """The next task; not many more than are ``wanted`` are read. Expired ones are passed over ever faster."""
        while self._at == len(self._heads):
            if self._is_read:
                return None
            self._read(min(self._chunk, wanted))
            wanted *= 2
        return self._heads[self._at]

    def take(self, limit: bytes | None, most: int) -> list[bytes]:
        """The next tasks up to ``limit`` that are read."""
        start = self._at
        end = len(self._heads) if limit is None else bisect_right(self._heads, limit, start)
        self._at = min(end, start + most)
        return self._heads[start : self._at]

    def _read(self, size: int) -> None:
        heads, marks = self._filing.ready(self._queue, self._after, size)
        self._is_read = len(heads) < size
        self._after = heads[-1] if heads else self._after
        self._chunk *= 2
        if any(marks):
            heads = [head for head, mark in zip(heads, marks, strict=True)
                     if not 0 < tables.expiry_of(mark) <= self._now_ms + LEAST_MS]
        self._heads, self._at = heads, 0
