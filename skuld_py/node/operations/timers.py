"""When the operations in flight want to be called again.

Invariants: a timer names its operation by number, so an operation that has ended is freed at once, however long it
meant to wait, and wakes its node no more. Timers of ended operations are dropped now and then, so there are never
many more timers than operations.

Rejected: to look for an operation's timers when it ends. Nearly all operations end long before their deadlines, in
the order in which they began, so their timers are met at the head.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Protocol

from skuld_py.node.operations.duty import NEVER_MS, Duty

KEPT, EACH = 256, 4
"""Timers of ended operations are dropped once there are more than ``KEPT``, and more than ``EACH`` for each open
operation."""


class Timed(Protocol):
    """An operation, as far as its timers go."""

    request: int

    def on_timer(self, now_ms: int) -> None:
        """A moment that was set has come."""


class Timers(Duty):
    """Moments and numbers of operations; ``operations`` are those in flight."""

    def __init__(self, operations: Mapping[int, Timed]) -> None:
        self._operations = operations
        self.heap: list[tuple[int, int]] = []
        self.due_ms = NEVER_MS
        """When the first is due. Timers ring at the end of each turn: while one is overdue, turns are behind."""

    def __len__(self) -> int:
        return len(self.heap)

    def set(self, at_ms: int, operation: Timed) -> None:
        """Call ``on_timer`` then, unless it has ended by then."""
        heapq.heappush(self.heap, (at_ms, operation.request))
        self.due_ms = self.heap[0][0]

    def look(self, now_ms: int) -> None:
        """Call those that are due."""
        while self.heap and self.heap[0][0] <= now_ms:
            operation = self._operations.get(heapq.heappop(self.heap)[1])
            if operation is not None:
                operation.on_timer(now_ms)
        self.forget()

    def forget(self) -> None:
        """Some operations have ended."""
        heap, operations = self.heap, self._operations
        while heap and heap[0][1] not in operations:
            heapq.heappop(heap)
        if len(heap) > KEPT + EACH * len(operations):
            heap = self.heap = sorted({timer for timer in heap if timer[1] in operations})
        self.due_ms = heap[0][0] if heap else NEVER_MS
