"""A claim that must be woken at the end, when all is calm: it waits at one node, its task comes to another.

The task's queue is the last by name of more than one gossip may name. So the word of it arrives only where queues
that gained work are told of first, or in turns. Clients that poll, as all others do, would not notice: a question
finds the task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import pack
from skuld_py.model.ids import IdMint
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.zookeeper.registry import Registry

LAST = "zz"
"""The queue of the task that is waited for."""
LEASE_MS = 1_000
WAIT_MS = 20_000
"""Of the claim: longer than anything takes in a calm cluster."""
PARK_MS = 500
"""Until the claim waits."""
AGAIN_MS = 50


class Bell:
    """Rings once, where a gossip names few queues."""

    def __init__(self, client: Client, options: Options, registry: Registry) -> None:
        self._client = client
        self._options = options
        self._registry = registry
        self._worker = Worker(client, options, ("finish",))
        self._mint = IdMint(client.random.getrandbits(32))
        self._leader = ""
        self._task = b""
        is_needed = options.timing.gossip_queues < options.limits.batch_tasks and len(options.nodes) > 1
        self._others = tuple(f"z{number}" for number in range(options.timing.gossip_queues)) if is_needed else ()
        self._is_heard = not is_needed

    def lacks(self) -> list[str]:
        """Whether the claim waits in vain; at first it is asked for."""
        if self._others and not self._leader:
            self._leader = self._registry.documents[0][1].leader
            self._store(self._others, self._park)
        return [] if self._is_heard else [f"nobody was told of the task of {LAST} that {self._leader} has"]

    def _store(self, queues: Sequence[str], then: Callable[[], None]) -> None:
        """A task in each, in the first partition."""
        ids = self._mint.mint(self._client.wall_ms(), len(queues), 0)
        self._task = ids[-1]
        batches = tuple(m.TaskBatch(Header(queue).encode(), task_id, pack([b"rung"]))
                        for queue, task_id in zip(queues, ids, strict=True))
        self._send(batches, then)

    def _send(self, batches: tuple[m.TaskBatch, ...], then: Callable[[], None]) -> None:
        def on_answer(operation: Operation) -> None:
            if operation.is_ok:
                then()
            else:
                self._client.later(AGAIN_MS, self._send, batches, then)
        self._client.ask(lambda request: m.Enqueue(request, 0, batches), on_answer)

    def _park(self) -> None:
        """Wait at another node than that which will have the task; then enqueue it."""
        self._client.nodes = tuple(name for name in self._options.nodes if name != self._leader)[:1]
        self._worker.claim(LAST, 1, LEASE_MS, WAIT_MS, self._hear)
        self._client.later(PARK_MS, self._store, (LAST,), lambda: None)

    def _hear(self) -> None:
        self._is_heard = any(hold.task == self._task for hold in self._client.history.holds)
        self._client.nodes = self._options.nodes
        self._drain()

    def _drain(self) -> None:
        """Drain the queues, also of tasks that were not heard of."""
        for queue in (*self._others, LAST):
            self._worker.claim(queue, 1, LEASE_MS, 0)
        self._client.later(10 * AGAIN_MS, self._drain)
