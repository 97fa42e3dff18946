"""Clients that look at tasks, and clients that cancel and revive them under the hands of others."""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.simulation.client import Client, Make
from skuld_py.simulation.options import Options


class Reader:
    """Looks at tasks, counts and pages."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Look around."""
        self._client.repeat(self._options.workload.read_ms, self._look)

    def _look(self) -> None:
        random, queue = self._client.random, self._client.random.choice(("", *self._options.workload.queues))
        known = [hold.task for hold in self._client.history.holds[-50:]]
        makes: list[Make] = [lambda request: m.Count(request, queue), m.Describe,
                             lambda request: m.List(request, queue, b"", random.choice((1, 5, 100)))]
        if known:
            ids = b"".join(dict.fromkeys(random.choice(known) for _ in range(3)))
            makes.append(lambda request: m.Get(request, ids))
        self._client.ask(random.choice(makes), lambda operation: None)


class Meddler:
    """Cancels tasks, and revives what may be dead; both of tasks that somebody has held."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Meddle, as far as the run wants it."""
        workload = self._options.workload
        if workload.cancel_ms:
            self._client.repeat(workload.cancel_ms, self._cancel)
        if workload.revive_ms:
            self._client.repeat(workload.revive_ms, self._revive)

    def _some(self, count: int) -> bytes:
        known = [hold.task for hold in self._client.history.holds[-50:]]
        return b"".join(dict.fromkeys(self._client.random.choice(known) for _ in range(count))) if known else b""

    def _cancel(self) -> None:
        ids, w = self._some(1), self._client.random.choice((0, 0, self._options.w_min))
        if ids:
            self._client.ask(lambda request: m.Cancel(request, w, 0, ids), lambda operation: None)

    def _revive(self) -> None:
        ids = self._some(5)
        if ids:
            self._client.ask(lambda request: m.Revive(request, ids), lambda operation: None)
