"""The node's clock: wall time as of the start, carried on by a clock that nobody sets.

Leases, ids and deadlines of one node are numbers of this one clock, so a step of the wall clock (an
operator, NTP at boot, a leap) must not move it: a lease would end early or a minted id repeat. Its
rate still follows NTP. What a step would have corrected shows up as skew against the peers, which the
cluster's skew bound covers.

Rejected: reading ``time.time`` each time (it steps); ``time.monotonic`` on Linux (it stands still while
the machine sleeps, so a resumed laptop or virtual machine would lag behind its peers for ever).
"""

from __future__ import annotations

import time

_NS_PER_MS = 1_000_000
_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Milliseconds since 1970; never falls, never jumps."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.clock_gettime_ns(_STEADY)

    def now_ms(self) -> int:
        """Now."""
        return (self._offset_ns + time.clock_gettime_ns(_STEADY)) // _NS_PER_MS
