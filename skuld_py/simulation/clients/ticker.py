"""Clients that put and remove schedules; and the calm at the end, in which no tick may be missed.

Each schedule has a payload of its own, by which its tasks are known. A name always means the same task, so that a
tick that two definitions share is one task with one body.
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.model import messages as m
from skuld_py.model.body import Header, Retry
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import UNSET
from skuld_py.simulation.clients.client import REPEATS_MAX, Client
from skuld_py.simulation.faults import AHEAD
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options

NAMES = ("s0", "s1")
CALM = "calm"
STEADY = "steady"
"""Put again and again, by nodes whatever their clocks say, and not removed before all is over."""
CHANGE_MS = 3_000
SHORT = Retry(25, 50, 200, 400)
"""A tick that fails often is tried again before the run is over."""
AGAIN_MS = 1_000
RUN_MS = 6_000
"""How long the last schedule ticks."""
CATCH_UP = 20
"""Of the last schedule: a change of leaders must not cost a tick."""


def set_schedule(client: Client, name: str, value_of: Callable[[int], bytes],
                 then: Callable[[Operation | None], None]) -> None:
    """Change a schedule; ``value_of`` the version, which is a time, is its value. ``then`` gets the put, if
    any."""
    def on_got(operation: Operation) -> None:
        answer = operation.answer
        if isinstance(answer, m.GotSettings):
            value = value_of(answer.version)
            client.ask(lambda request: m.PutSetting(request, SCHEDULE, name, answer.version, client.name, value),
                       then)
        else:
            then(None)
    client.ask(lambda request: m.GetSettings(request, SCHEDULE, name, b""), on_got)


def value_of(options: Options, name: str, since_ms: int, catch_up: int) -> bytes:
    """What a schedule of this name says."""
    header = Header(options.workload.queues[0], retry=SHORT)
    return Schedule(header.encode(), f"tick of {name}".encode(), since_ms,
                    every_ms=options.workload.schedule_ms, catch_up=catch_up).encode()


class Ticker:
    """Puts schedules and removes them, whether or not it knows what became of it."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Put."""
        self._client.later(self._client.random.randint(1, CHANGE_MS), self._put, NAMES[0])
        self._client.repeat(CHANGE_MS, self._change)
        if AHEAD in self._options.apart:
            self._put_steady(None)

    def _change(self) -> None:
        random = self._client.random
        name = random.choice(NAMES)
        if random.random() < 0.7:
            self._put(name)
        else:
            set_schedule(self._client, name, lambda version: UNSET, lambda operation: None)

    def _put_steady(self, operation: Operation | None) -> None:
        """Each time as if it had just been made."""
        if not self._client.is_stopped:
            def value(version: int) -> bytes:
                return value_of(self._options, STEADY, version, CATCH_UP)
            self._client.later(AGAIN_MS, set_schedule, self._client, STEADY, value, self._put_steady)

    def _put(self, name: str) -> None:
        catch_up = self._client.random.choice((0, 0, 3))
        set_schedule(self._client, name, lambda version: value_of(self._options, name, version, catch_up),
                     lambda operation: None)


def remove_for_good(client: Client, name: str, times: int = REPEATS_MAX) -> None:
    """Remove a schedule, and again some times: a put that is still under way may come after the first one."""
    def then(operation: Operation | None) -> None:
        left = times - (operation is not None and operation.is_ok)
        if left:
            client.later(AGAIN_MS, remove_for_good, client, name, left)
    set_schedule(client, name, lambda version: UNSET, then)


class Calm:
    """One schedule that ticks for a while, when all is well; and an older one, if there is one."""

    def __init__(self, client: Client, options: Options) -> None:
        self.is_over = not options.workload.schedule_ms
        self._client = client
        self._options = options
        self._is_begun = False
        self._names = [CALM, STEADY] if AHEAD in options.apart else [CALM]

    def begin(self) -> None:
        """Put it, once."""
        if not self._is_begun and not self.is_over:
            self._is_begun = True
            self._put()

    def _put(self) -> None:
        set_schedule(self._client, CALM,
                     lambda version: value_of(self._options, CALM, version, CATCH_UP), self._on_put)

    def _on_put(self, operation: Operation | None) -> None:
        is_put = operation is not None and operation.is_ok
        self._client.later(RUN_MS if is_put else AGAIN_MS, self._remove if is_put else self._put)

    def _remove(self) -> None:
        set_schedule(self._client, self._names[0], lambda version: UNSET, self._on_removed)

    def _on_removed(self, operation: Operation | None) -> None:
        if operation is not None and operation.is_ok:
            del self._names[0]
        self.is_over = not self._names
        if not self.is_over:
            self._client.later(AGAIN_MS, self._remove)
