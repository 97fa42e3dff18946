"""When a driver may start, and when it must end: the guardian's decisions, without its clock and its processes.

A driver is held by the claim under which its guardian was last told of a deadline, its *master*. A master is
gone when its connection is. Then the driver goes on, for the next claim of its task to take it over; but not for
ever.

Invariants:

* A driver starts once, by the word of its master, before the deadline of that master's lease.
* Of two masters the newer token stands; what the older one says from then on is not heard.
* Without a renewed deadline a driver is told to end so early that it has ended ``adopt_s`` after the last
  deadline, whether its master is there or not: so a claim that cannot see it need not wait for longer.
* The clock goes on while the machine sleeps. A driver that overslept is ended as the machine wakes; it may run
  for as long as the guardian takes to be scheduled, half a second.
* SIGTERM comes first, and SIGKILL ``TERM_S`` later.
* A driver that has ended stays to be told of until its master has heard, or its time is over.

Rejected: a driver that ends with its worker. One that has run for hours would begin again because a worker was
killed. And one that goes on for as long as it likes: a claim on another machine would run beside it.
"""

from __future__ import annotations

from enum import Enum

import attrs

TERM_S = 3.0
KILL_S = 1.0
"""What a process that cannot catch it may still need to be gone."""
ATTACH_S = 30.0


@attrs.frozen
class Attached:
    """A claim would be its master, until this deadline."""

    token: int
    deadline: float


@attrs.frozen
class Extended:
    """The claim's lease was renewed."""

    token: int
    deadline: float


@attrs.frozen
class Ordered:
    """The claim says ``go``, ``end`` or ``bye``: start it, end it, all is told."""

    token: int
    what: str


@attrs.frozen
class Left:
    """The claim's connection is gone."""

    token: int


@attrs.frozen
class Ended:
    """The driver has ended, and all that was in its group."""


Event = Attached | Extended | Ordered | Left | Ended | None


class Do(Enum):
    """What is to be done."""

    WELCOME = "welcome"
    REFUSE = "refuse"
    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"
    TELL = "tell"
    LEAVE = "leave"


class Guard:
    """Of one driver, whose guardian began ``now``."""

    def __init__(self, adopt_s: float, now: float) -> None:
        self._grace_s = adopt_s - TERM_S - KILL_S
        self._deadline = now + ATTACH_S - self._grace_s
        self._is_started = self._is_ended = False
        self._kill_at: float | None = None
        self._is_killed = False
        self.master: int | None = None
        self._newest = 0

    @property
    def wake_at(self) -> float:
        """When to look again, whatever comes before."""
        return self._limit if self._kill_at is None or self._is_killed else self._kill_at

    @property
    def _limit(self) -> float:
        return self._deadline + self._grace_s

    def step(self, now: float, event: Event = None) -> list[Do]:
        """What follows from this event, and from the time."""
        done: list[Do] = []
        match event:
            case Attached(token, deadline):
                if token <= self._newest or self._kill_at is not None:
                    return [Do.REFUSE]
                self.master = self._newest = token
                self._deadline = deadline
                done.append(Do.WELCOME)
                done += [Do.TELL] if self._is_ended else []
            case Extended(token, deadline) if token == self.master:
                self._deadline = max(self._deadline, deadline)
            case Ordered(token, what) if token == self.master:
                done += self._ordered(now, what)
            case Left(token) if token == self.master:
                self.master = None
                done += [] if self._is_started else [Do.LEAVE]
            case Ended():
                self._is_ended = True
                done += [Do.TELL] if self.master is not None else []
        return done + self._timed(now)

    def _ordered(self, now: float, what: str) -> list[Do]:
        if what == "go" and not self._is_started and now < self._deadline:
            self._is_started = True
            return [Do.START]
        if what == "end":
            return self._end(now)
        if what == "bye" and (self._is_ended or not self._is_started):
            return [Do.LEAVE]
        return []

    def _end(self, now: float) -> list[Do]:
        if not self._is_started:
            return [Do.LEAVE]
        if self._is_ended or self._kill_at is not None:
            return []
        self._kill_at = now + TERM_S
        return [Do.TERMINATE]

    def _timed(self, now: float) -> list[Do]:
        if self._kill_at is not None and not self._is_ended:
            if now >= self._kill_at and not self._is_killed:
                self._is_killed = True
                return [Do.KILL]
            return []
        if self._is_ended and self._kill_at is not None and self.master is None:
            return [Do.LEAVE]  # nobody waits for a driver that was made to end
        if now < self._limit:
            return []
        return [Do.LEAVE] if self._is_ended else self._end(now)
