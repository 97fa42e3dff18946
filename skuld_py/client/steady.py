"""The clocks of a process in which tasks run: the system's, whatever a task makes of the module ``time``.

A worker's tasks run in its own process, and one may freeze ``time`` for a test of its own, or replace it: then
nothing that the worker or a client waits for would ever come due. So each function here holds the system's as a
default of its own. A name in a module is not enough: what freezes time replaces those in all modules that hold
them. And all are read by ``clock_gettime``, of which such tools leave at least the steady clocks alone.

``time.monotonic`` stands still on Linux while a laptop or a virtual machine is suspended. A holder counting by it
would wake up and believe in a lease that ended long ago for all others: so a lease is counted by ``steady_s``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Reader = Callable[[int], float]

_STEADY: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AWAKE: int = time.CLOCK_MONOTONIC
_WALL: int = time.CLOCK_REALTIME


def steady_s(read: Reader = time.clock_gettime) -> float:
    """Seconds since some moment, the same for all processes of this machine; they pass while it sleeps, too."""
    return read(_STEADY)


def monotonic_s(read: Reader = time.clock_gettime) -> float:
    """Seconds since some moment, in which the machine was awake."""
    return read(_AWAKE)


def wall_s(read: Reader = time.clock_gettime) -> float:
    """Seconds since 1970."""
    return read(_WALL)


def wall_ms(read: Callable[[int], int] = time.clock_gettime_ns) -> int:
    """Milliseconds since 1970."""
    return read(_WALL) // 1_000_000


def sleep(seconds: float, wait: Callable[[float], None] = time.sleep) -> None:
    """Let so many pass."""
    wait(seconds)
