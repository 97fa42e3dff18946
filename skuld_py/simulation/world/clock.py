"""Clocks that disagree, and never by more than was promised.

Each clock stays within half the skew bound of true time for the whole run, offset and drift
together; so any two stay within the bound, which is what the leases rest on.
"""

from __future__ import annotations

from math import ceil, floor
from random import Random

import attrs

WALL_START_MS = 1_700_000_000_000
_DRIFT_MAX = 200e-6
_ROUNDING_MS = 1.0


@attrs.frozen
class Clock:
    """One machine's clock: true time, shifted and a little fast or slow."""

    offset_ms: float = 0.0
    drift: float = 0.0

    def read(self, true_ms: int) -> int:
        """What the clock shows."""
        return WALL_START_MS + floor(true_ms + self.offset_ms + self.drift * true_ms)

    def when(self, wall_ms: int) -> int:
        """The first true millisecond at which it shows this time or a later one."""
        true_ms = ceil((wall_ms - WALL_START_MS - self.offset_ms) / (1 + self.drift))
        while self.read(true_ms) < wall_ms:
            true_ms += 1
        while self.read(true_ms - 1) >= wall_ms:
            true_ms -= 1
        return true_ms


def draw_clock(random: Random, skew_ms: int, horizon_ms: int) -> Clock:
    """A clock within half the bound until the horizon; every third one as wrong as allowed."""
    half_ms = max(0.0, skew_ms / 2 - _ROUNDING_MS)
    drift = random.uniform(-1, 1) * min(_DRIFT_MAX, half_ms / horizon_ms)
    drifted_ms = abs(drift) * horizon_ms
    reach_ms = half_ms - drifted_ms
    offset_ms = random.uniform(-reach_ms, reach_ms)
    if random.random() < 1 / 3:
        offset_ms = random.choice((-reach_ms, reach_ms))
    return Clock(offset_ms, drift)
