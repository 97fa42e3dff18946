"""Clients that look at tasks, and clients that cancel and revive them under the hands of others."""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.model.columns import pack_u64
from skuld_py.model.ids import split
from skuld_py.model.outcomes import facts_of
from skuld_py.simulation.clients.client import REPEATS_MAX, Client, Make
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.options import Options

AGAIN_MS = 200
"""A client that does not know what became of a revival asks again after this."""
UNKNOWN_EVERY = 6
"""One in this many cancellings names a task that was never made."""
AHEAD_EVERY = 5
"""One in this many tasks read is asked to show more than was seen of it; mostly no copy can."""


class Reader:
    """Looks at tasks, counts and pages; of tasks it wants to see no less than before."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._seen: dict[bytes, int] = {}
        self._asked = 0

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
            least = pack_u64([self._least(task_id) for task_id in split(ids)])
            makes.append(lambda request: m.Get(request, ids, least=least))
        self._client.ask(random.choice(makes), self._note)

    def _least(self, task_id: bytes) -> int:
        """What was seen of it, and now and then more than that."""
        self._asked += 1
        return self._seen.get(task_id, 0) + (self._asked % AHEAD_EVERY == 0)

    def _note(self, operation: Operation) -> None:
        if isinstance(operation.answer, m.Got):
            self._seen.update({row.id: facts_of(row) for row in operation.answer.tasks})


class Meddler:
    """Cancels tasks, and revives what may be dead; both of tasks that were held. Now and then it cancels one that
    was never made."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._cancelled = 0

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
        self._cancelled += 1
        if self._cancelled % UNKNOWN_EVERY == 0:
            ids += (self._client.wall_ms().to_bytes(8, "big") + self._cancelled.to_bytes(12, "big"))
        if ids:
            self._client.ask(lambda request: m.Cancel(request, w, 0, ids), lambda operation: None)

    def _revive(self) -> None:
        ids = self._some(5)
        if ids:
            self._ask_to_revive(ids, REPEATS_MAX)

    def _ask_to_revive(self, ids: bytes, repeats: int) -> None:
        def then(operation: Operation) -> None:
            if operation.status is Status.INFO and repeats:
                self._client.later(AGAIN_MS, self._ask_to_revive, ids, repeats - 1)
        self._client.ask(lambda request: m.Revive(request, ids), then)
