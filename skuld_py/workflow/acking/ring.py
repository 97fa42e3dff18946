"""When roots are looked after: a ring of buckets that turns, so that nobody scans those of which nothing is due.

What is heard of a root notes a time and moves nothing. When the bucket in which it stands comes round, it is given
out, and whoever takes it puts it back for a later time if it was heard of meanwhile. So an ack costs nothing here,
and a turn costs what stands in one bucket.

Rejected: a heap of deadlines (a logarithm for each ack, or dead entries without bound).
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

BUCKETS = 16


class Ring(Generic[T]):
    """Things to be given out after up to ``span_ms``. Each stands in it once, as whoever uses it sees to."""

    def __init__(self, now_ms: int, span_ms: int) -> None:
        self._turn_ms = max(1, -(-span_ms // BUCKETS))
        self._buckets: list[list[T]] = [[] for _ in range(BUCKETS + 1)]
        self._at = 0
        self.next_ms = now_ms + self._turn_ms
        """When it turns."""

    def put(self, thing: T, delay_ms: int) -> None:
        """Give it out when ``delay_ms`` have passed, or the whole span if that is shorter; at most one turn
        later."""
        steps = min(BUCKETS, max(1, -(-delay_ms // self._turn_ms)))
        self._buckets[(self._at + steps) % len(self._buckets)].append(thing)

    def turn(self, now_ms: int) -> list[T]:
        """What is due. A ring that stood still for long turns once round, and goes on from now."""
        due: list[T] = []
        for _ in range(BUCKETS):
            if now_ms < self.next_ms:
                return due
            self._at = (self._at + 1) % len(self._buckets)
            due += self._buckets[self._at]
            self._buckets[self._at] = []
            self.next_ms += self._turn_ms
        self.next_ms = max(self.next_ms, now_ms + self._turn_ms)
        return due
