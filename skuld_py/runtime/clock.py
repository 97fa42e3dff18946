"""The node's clock: wall time as of the start, carried on by a clock that cannot be set.

Leases, ids and deadlines of one node are numbers of this one clock, so a step of the wall clock (an
operator, NTP at boot, a leap) must not move it: a lease would end early or a minted id repeat. Its
rate still follows NTP. What a step would have corrected shows up as skew against the peers, which the
cluster's skew bound covers.

Rejected: reading ``time.time`` each time (it steps); ``time.monotonic`` on Linux (it stands still while
the machine sleeps, so a resumed laptop or virtual machine would lag behind its peers for ever).
"""

from __future__ import annotations

import time
from typing import Protocol

_NS_PER_MS = 1_000_000
_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class TimeSource(Protocol):
    """What a machine says about the time, in nanoseconds."""

    def wall_ns(self) -> int:
        """Since 1970; may be set at any moment."""
        ...

    def steady_ns(self) -> int:
        """Since some beginning; it cannot be set."""
        ...


class MachineTime:
    """This machine's clocks."""

    def wall_ns(self) -> int:
        """Since 1970."""
        return time.time_ns()

    def steady_ns(self) -> int:
        """Since the machine started, its sleep included."""
        return time.clock_gettime_ns(_STEADY)


class Clock:
    """Milliseconds since 1970; never falls, never jumps."""

    def __init__(self, source: TimeSource | None = None) -> None:
        source = source or MachineTime()
        self._steady_ns = source.steady_ns
        self._offset_ns = source.wall_ns() - source.steady_ns()

    def now_ms(self) -> int:
        """Now."""
        return (self._offset_ns + self._steady_ns()) // _NS_PER_MS
