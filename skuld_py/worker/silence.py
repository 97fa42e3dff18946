"""How long an engine has been silent, without the time in which nobody could have heard it.

A process that is stopped (SIGSTOP, a laptop that is shut) finds on waking that much time has gone by since the
last answer; the engine may have been well all the while. So a look counts for ``GAP_S`` at most, whatever the
clock says, and the first look after a sleep condemns nobody: the engine is asked again before.
"""

from __future__ import annotations

GAP_S = 2.0


class Silence:
    """Counts from the last answer, on the caller's clock. One thread looks, another one may tell of answers."""

    def __init__(self, stall_s: float, now: float) -> None:
        self._stall_s = stall_s
        self._silent_s = 0.0
        self._looked_at = now
        self._breaks = self._breaks_seen = 0

    def broken(self) -> None:
        """The engine answered, or there is nothing to answer."""
        self._breaks += 1

    def is_too_long(self, now: float) -> bool:
        """Look: whether there were ``stall_s`` of silence in which this process was awake."""
        if self._breaks_seen != (breaks := self._breaks):
            self._breaks_seen, self._silent_s = breaks, 0.0
        gap_s, self._looked_at = now - self._looked_at, now
        has_slept = gap_s > GAP_S and self._silent_s < self._stall_s
        self._silent_s += min(gap_s, GAP_S)
        if has_slept:
            self._silent_s = min(self._silent_s, self._stall_s)
        return self._silent_s > self._stall_s
