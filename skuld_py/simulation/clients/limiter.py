"""A client that limits queues now and then, changes their limits and removes them, as operators do.

Limits are small, so that the few workers of a run meet them; and most stay for a while, since they are kept for
sure only where every node has said that it knows them.
"""

from __future__ import annotations

from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, UNSET
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.pauser import set_setting
from skuld_py.simulation.options import Options

REMOVED = 0.15
"""Share of changes that remove the limits."""


class Limiter:
    """Changes the limits of some queue every now and then."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._workload = options.workload

    def begin(self) -> None:
        """Limit all, soon."""
        for queue in self._workload.queues:
            self._client.later(self._client.random.randint(0, 1_000), self._limit, queue)
        self._client.repeat(self._workload.limit_ms, self._change)

    def _change(self) -> None:
        self._limit(self._client.random.choice(self._workload.queues))

    def _limit(self, queue: str) -> None:
        value = UNSET if self._client.random.random() < REMOVED else self._draw().encode()
        set_setting(self._client, LIMITS, queue, value, lambda is_known: None)

    def _draw(self) -> QueueLimits:
        random = self._client.random
        concurrency = random.choice((0, 1, 2, 3))
        rate = random.choice((0, 2, 5, 20)) if concurrency else random.choice((2, 5, 20))
        burst = random.choice((1, 2, 5)) if rate else 0
        return QueueLimits(concurrency, rate, 1_000 if rate else 0, burst)
