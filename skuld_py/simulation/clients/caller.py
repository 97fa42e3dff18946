"""Clients that use the library: each verb that changes something, on tasks that others work on meanwhile.

Their links lose answers, so much is asked twice while leaders change. Their clocks are wrong now and then, for
moments, by a little or by much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.client.claims import ClaimName
from skuld_py.client.options import Retry
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.library import Library
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.history import Call, Hold
from skuld_py.simulation.options import Options

AHEAD_MS = (0, 0, 3_000, 60_000)
"""By how much the clock of a caller is ahead: mostly right, so little that nodes take its ids, or too much."""
CLOCK_MS = 700
KNOWN = 12
"""Some tasks of this many newest claims are cancelled and retried."""
WINDOW_S = 2.0
SELDOM_S = 86_400.0
"""A schedule that is put and removed ticks after the run, whatever a node's clock shows."""
SCHEDULE = "seldom"


class Caller:
    """Calls verbs at random times, and ends its claims by them."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._library = Library(client)
        self._made = 0
        self._worker = Worker(client, options, ("call",), {"call": self._end})
        self._verbs: tuple[Callable[[], object], ...] = (
            self._enqueue, self._enqueue, self._enqueue, self._name, self._retry, self._retry, self._cancel,
            self._put_schedule, self._remove_schedule)

    def begin(self) -> None:
        """Work, call, and have the clock set."""
        self._worker.begin()
        self._client.repeat(self._options.workload.verb_ms, self._call)
        self._client.repeat(CLOCK_MS, self._set_clock)

    def _call(self) -> None:
        self._random.choice(self._verbs)()

    def _set_clock(self) -> None:
        self._library.ahead_ms = self._random.choice(AHEAD_MS)

    # -- tasks ---------------------------------------------------------------------------------

    def _enqueue(self) -> Call:
        workload = self._options.workload
        unique = self._random.choice(workload.names) if workload.names and self._random.random() < 0.4 else None
        key = self._random.choice(workload.keys) if workload.keys and self._random.random() < 0.3 else None
        self._made += 1
        payload = f"{self._client.name} {self._made}".encode()
        retry = Retry(self._random.choice(workload.max_attempts), backoff_s=0.05, max_backoff_s=0.4)
        return self._library.call("enqueue", self._library.enqueue(
            workload.queues[0], payload, retry=retry, key=key, unique=unique, unique_window_s=WINDOW_S))

    def _name(self) -> Call:
        """Ids that are never used."""
        return self._library.call("new_ids", self._library.new_ids(1))

    def _known(self) -> bytes:
        holds = self._client.history.holds[-KNOWN:]
        return self._random.choice(holds).task if holds else b""

    def _retry(self) -> Call | None:
        known = self._known()
        return self._library.call("retry", self._library.retry(known)) if known else None

    def _cancel(self) -> Call | None:
        known = self._known() if self._random.random() < 0.5 else b""
        return self._library.call("cancel", self._library.cancel(known)) if known else None

    def _put_schedule(self) -> Call:
        self._made += 1
        return self._library.call("put_schedule", self._library.put_schedule(
            SCHEDULE, self._options.workload.queues[0], f"{self._client.name} {self._made}".encode(),
            every_s=SELDOM_S))

    def _remove_schedule(self) -> Call:
        return self._library.call("remove_schedule", self._library.remove_schedule(SCHEDULE))

    # -- claims --------------------------------------------------------------------------------

    def _end(self, holds: Sequence[Hold], lease_ms: int) -> None:
        for hold in holds:
            self._client.later(self._random.randint(0, lease_ms // 2), self._end_one, hold, lease_ms)

    def _end_one(self, hold: Hold, lease_ms: int) -> None:
        """By one verb; or renewed or written to, and then completed."""
        library, random = self._library, self._random
        claim, lease_s = ClaimName(hold.task, hold.token, hold.proof), lease_ms / 1000
        verb = random.choice(("fail", "fail", "snooze", "release", "complete", "renew", "update"))

        def complete(call: Call | None = None) -> None:
            hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            result = f"result {hold.token}".encode() if hold.token % 4 else b""
            library.call("complete", library.complete(claim, result))
        if verb == "renew":
            library.call(verb, library.renew(claim, lease_s=lease_s), complete)
        elif verb == "update":
            library.call(verb, library.update(claim, f"{hold.token}".encode(), seq=0), complete)
        elif verb == "complete":
            complete()
        else:
            hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            library.call(verb, {"fail": lambda: library.fail(claim, b"why", retry_in_s=random.choice((None, 0))),
                                "snooze": lambda: library.snooze(claim, 0.2),
                                "release": lambda: library.release(claim)}[verb]())
