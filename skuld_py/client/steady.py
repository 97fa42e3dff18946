"""The holder's clock: steady seconds that cannot be set and that pass while the machine sleeps.

``time.monotonic`` stands still on Linux while a laptop or a virtual machine is suspended. A holder counting by it
would wake up and believe in a lease that ended long ago for all others.
"""

from __future__ import annotations

import time

_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    """Seconds since some moment, the same for all processes of this machine."""
    return time.clock_gettime(_STEADY)
