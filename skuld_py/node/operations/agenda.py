"""When each of a node's partitions wants to be looked at: a moment each, the nearest first.

What is known of the future costs nothing until it comes. A moment may turn out to be too early: then the duty that
looks notes the next one.
"""

from __future__ import annotations

import heapq

from skuld_py.node.operations.duty import NEVER_MS, Duty

KEPT, EACH = 64, 4
"""Entries that count no more are dropped once there are more than ``KEPT``, and more than ``EACH`` for each
partition."""


class Agenda:
    """Partitions by their moments; those of one moment by number. Its duty is due no later than the first."""

    def __init__(self, duty: Duty | None = None) -> None:
        self._duty = duty
        self.due_ms = NEVER_MS
        """When the first partition is due; looked at in every turn."""
        self._dues: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def note(self, partition: int, due_ms: int) -> None:
        """Have a partition looked at then, if not sooner."""
        if due_ms < self._dues.get(partition, NEVER_MS):
            self._dues[partition] = due_ms
            heapq.heappush(self._heap, (due_ms, partition))
            self.due_ms = min(self.due_ms, due_ms)
            if self._duty is not None:
                self._duty.hasten(due_ms)
            if len(self._heap) > KEPT + EACH * len(self._dues):
                self._heap = sorted((due_ms, partition) for partition, due_ms in self._dues.items())

    def take(self, now_ms: int, limit: int) -> list[int]:
        """Take off the partitions that are due, at most ``limit``, the longest due first."""
        taken: list[int] = []
        while len(taken) < limit and self.due_ms <= now_ms:
            _, partition = heapq.heappop(self._heap)
            del self._dues[partition]
            taken.append(partition)
            self._note_first()
        return taken

    def _note_first(self) -> None:
        heap, dues = self._heap, self._dues
        while heap and dues.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        self.due_ms = heap[0][0] if heap else NEVER_MS
