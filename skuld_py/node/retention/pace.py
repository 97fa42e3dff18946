"""How fast tasks are deleted: how many in a second, over the last few seconds.

Not the difference of two looks at how many were deleted: a node that comes to lead a partition counts what others
deleted of it, and would seem to have done so at once.
"""

from __future__ import annotations

SPAN_MS = 5_000


class Pace:
    """Of one node, in what it leads. ``count``: how many so far."""

    def __init__(self) -> None:
        self.count = 0
        self._rate = 0
        self._at_ms, self._before = 0, 0

    def look(self, now_ms: int) -> None:
        """It is so late."""
        span_ms = now_ms - self._at_ms
        if not 0 <= span_ms < SPAN_MS:
            is_known = SPAN_MS <= span_ms < 4 * SPAN_MS
            self._rate = (self.count - self._before) * 1_000 // span_ms if is_known else 0
            self._at_ms, self._before = now_ms, self.count

    def rate(self) -> int:
        """How many in a second."""
        return self._rate
