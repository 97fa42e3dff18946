"""When the operations in flight want to be called again.

Invariants: an operation is named by its number, so one that has ended is free at once, however long it meant to
wait. It wakes its node no more; and what it had set is sorted out now and then from behind the timers of
operations that go on, so there are never many more timers than operations.

Rejected: to look for an operation's timers when it ends. Nearly all end long before, in the order in which they
began, and are met at the head.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Protocol

from skuld_py.node.operations.agenda import NEVER_MS

KEPT, EACH = 256, 4
"""With more timers than so many, and so many for each operation, those of ended ones are sorted out."""


class Timed(Protocol):
    """An operation, as far as its timers go."""

    request: int

    def on_timer(self, now_ms: int) -> None:
        """It is time."""


class Timers:
    """Moments and numbers of operations; ``operations`` are those in flight."""

    def __init__(self, operations: Mapping[int, Timed]) -> None:
        self._operations = operations
        self._heap: list[tuple[int, int]] = []
        self.due_ms = NEVER_MS
        """When the first is due. It rings at the end of each turn: as long as it is overdue, turns are behind."""

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at_ms: int, operation: Timed) -> None:
        """Call ``on_timer`` then, unless it has ended by then."""
        heapq.heappush(self._heap, (at_ms, operation.request))
        self.due_ms = self._heap[0][0]

    def ring(self, now_ms: int) -> None:
        """Call those that are due."""
        while self._heap and self._heap[0][0] <= now_ms:
            operation = self._operations.get(heapq.heappop(self._heap)[1])
            if operation is not None:
                operation.on_timer(now_ms)
        self.forget()

    def forget(self) -> None:
        """Some operations have ended."""
        heap, operations = self._heap, self._operations
        while heap and heap[0][1] not in operations:
            heapq.heappop(heap)
        if len(heap) > KEPT + EACH * len(operations):
            heap = self._heap = sorted({timer for timer in heap if timer[1] in operations})
        self.due_ms = heap[0][0] if heap else NEVER_MS
