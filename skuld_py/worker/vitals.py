"""Whether a worker lives, by what the kernel says of its process: the renewer's rules, without its clock.

A worker says each second that it is well, but through the interpreter's lock: a task that holds the lock in C
silences a healthy worker, and all tasks beside it. So the renewer looks at the process itself.

* A process that is stopped (SIGSTOP, a debugger) gets nothing renewed, however short it has been: nobody in it
  can end what runs when its lease is over.
* A process whose CPU time rises is alive, though it says nothing. One that neither speaks nor works for
  ``stall_s`` is stuck.
* A claim that is lost must be acknowledged within ``ACKNOWLEDGED_S``. A worker that does not cannot cancel the
  claim's jobs either; so its engine is to be killed, once.

* A claim that has run for too long is ended by its worker. A worker that has not done so ``OVERRUN_S`` later
  cannot: then the claim fails, its neighbours are given back, and the worker is ended, with its engine.

The work of a worker whose engine hangs rises too: it notices by itself that the engine is silent, and replaces it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

ACKNOWLEDGED_S = 1.0
OVERRUN_S = 15.0
TIMEOUT = "timeout: it ran for longer than its timeout_s"
STOPPED = "Tt"
"""States of a process in /proc: stopped by a signal, or by a debugger."""

K = TypeVar("K")


def overran(timeout_s: float | None) -> str:
    """That an attempt took longer than it may, and how long that is."""
    return TIMEOUT if timeout_s is None else f"{TIMEOUT}, {timeout_s:g} s"


@attrs.frozen
class Look:
    """What the kernel says of a process: its state, its CPU time in ticks, and when it started, in ticks too."""

    state: str
    cpu: int
    start: int


def parse_stat(text: str) -> Look:
    """A line of /proc/PID/stat; its second field is a name, which may hold spaces and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    return Look(fields[0], int(fields[11]) + int(fields[12]), int(fields[19]))


class Vitals:
    """The life of one worker. Begins as if it had just spoken."""

    def __init__(self, stall_s: float, now: float) -> None:
        self._stall_s = stall_s
        self._alive_at = now
        self._cpu: int | None = None
        self._is_stopped = False

    def heard(self, at: float) -> None:
        """It said that it was well then."""
        self._alive_at = max(self._alive_at, at)

    def seen(self, now: float, look: Look) -> None:
        """What its process is like now."""
        self._is_stopped = look.state in STOPPED
        if self._cpu is not None and look.cpu > self._cpu:
            self._alive_at = max(self._alive_at, now)
        self._cpu = look.cpu

    def may_hold(self, now: float) -> bool:
        """Whether its claims may be renewed."""
        return not self._is_stopped and now - self._alive_at < self._stall_s


class Overruns(Generic[K]):
    """Claims that ran for too long, and whose worker has not ended them in ``OVERRUN_S`` more: it cannot."""

    def __init__(self) -> None:
        self._limits: dict[K, float] = {}

    def limit(self, key: K, at: float) -> None:
        """This claim may run until then."""
        self._limits[key] = at

    def drop(self, key: K) -> None:
        """The claim is over."""
        self._limits.pop(key, None)

    def take(self, now: float) -> tuple[K, ...]:
        """Those for which the worker must be ended; each is said once."""
        over = tuple(key for key, at in self._limits.items() if now >= at + OVERRUN_S)
        for key in over:
            del self._limits[key]
        return over


class Losses(Generic[K]):
    """Lost claims of which a worker was told, until it says that it heard."""

    def __init__(self) -> None:
        self._told: dict[K, float] = {}

    def told(self, key: K, now: float) -> None:
        """The worker was told now that this claim is lost."""
        self._told.setdefault(key, now)

    def acknowledged(self, key: K) -> None:
        """It heard."""
        self._told.pop(key, None)

    def overdue_at(self) -> float | None:
        """When the worker ought to have heard of all; None if it has."""
        return min(self._told.values()) + ACKNOWLEDGED_S if self._told else None

    def take_overdue(self, now: float) -> bool:
        """Whether the worker was told too long ago and said nothing; then this is said once."""
        at = self.overdue_at()
        if at is None or now < at:
            return False
        self._told.clear()
        return True
