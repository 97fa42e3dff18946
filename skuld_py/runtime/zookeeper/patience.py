"""How long to wait before something that failed is tried again: ever longer, until it succeeds once."""

from __future__ import annotations

import attrs

FIRST_S = 2.0
LONGEST_S = 60.0
_DOUBLINGS = 6


@attrs.define
class Patience:
    """``until_s``: not before then, by the monotonic clock."""

    until_s: float = 0.0
    _failures: int = 0

    def fail(self, now_s: float) -> float:
        """It failed (again); gives the seconds to wait."""
        pause_s = min(FIRST_S * (1 << min(self._failures, _DOUBLINGS)), LONGEST_S)
        self._failures += 1
        self.until_s = now_s + pause_s
        return pause_s

    def succeed(self) -> None:
        """It succeeded: the next failure waits for the shortest time again."""
        self._failures, self.until_s = 0, 0.0
