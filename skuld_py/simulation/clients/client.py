"""A logical client's line to the cluster: it asks, waits up to its own deadline, and writes down all of it.

A client asks any node; an answer after its deadline is not heard. What the clients do with it is in
``producer``, ``worker``, ``pauser``, ``meddler``, ``forger`` and others here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from skuld_py.model import messages as m
from skuld_py.simulation.history import History, Operation, Status
from skuld_py.simulation.world.clock import Clock
from skuld_py.simulation.world.lateness import Envelope
from skuld_py.simulation.world.network import Network
from skuld_py.simulation.world.scheduler import Scheduler

Then = Callable[[Operation], None]
Make = Callable[[int], m.Message]
REPEATS_MAX = 3


class Client:
    """One client's line to the cluster."""

    def __init__(self, name: str, scheduler: Scheduler, network: Network, history: History, clock: Clock,
                 random: Random, nodes: Sequence[str], patience_ms: int,
                 is_muted: Callable[[str, int], bool] = lambda name, request: False) -> None:
        self.name = name
        self.scheduler = scheduler
        self.clock = clock
        self.random = random
        self.is_stopped = False
        self.patience_ms = patience_ms
        self._network = network
        self.history = history
        self.nodes = nodes
        self._is_muted = is_muted
        self._requests = 0
        self._then: dict[int, Then] = {}
        network.attach(name, self._receive, is_client=True)

    def ask(self, make: Make, then: Then) -> Operation:
        """Send what ``make`` makes of a request number to some node."""
        return self.ask_at(self.random.choice(self.nodes), make, then, self.patience_ms)

    def ask_at(self, node: str, make: Make, then: Then, patience_ms: int) -> Operation:
        """Send it to this node, and wait ``patience_ms`` for the answer."""
        self._requests += 1
        request = self._requests
        message = make(request)
        if self._is_muted(self.name, request):
            return Operation(self.name, request, node, message, self.scheduler.now_ms)
        operation = self.history.invoke(self.scheduler.now_ms, self.name, node, request, message)
        self._then[request] = then
        self._network.send(self.name, node, (message,))
        wait_ms = getattr(message, "wait_ms", 0)
        self.scheduler.after(patience_ms + wait_ms, self._give_up, operation)
        return operation

    def _receive(self, sender: str, messages: Envelope) -> None:
        for message in messages:
            operation = self.history.find(self.name, getattr(message, "request", -1))
            if operation is not None and operation.node == sender:
                self._finish(operation, message)

    def _give_up(self, operation: Operation) -> None:
        if operation.status is Status.OPEN:
            self._finish(operation, None)

    def _finish(self, operation: Operation, answer: m.Message | None) -> None:
        self.history.finish(self.scheduler.now_ms, operation, answer)
        self._then.pop(operation.request)(operation)

    def wall_ms(self) -> int:
        """What this client's clock shows."""
        return self.clock.read(self.scheduler.now_ms)

    def repeat(self, mean_ms: int, action: Callable[[], None]) -> None:
        """Do something again and again, at random times, until stopped."""
        def once() -> None:
            if not self.is_stopped:
                action()
                self.repeat(mean_ms, action)
        self.scheduler.after(1 + int(self.random.expovariate(1.0) * mean_ms), once)

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: object) -> None:
        """Do something once."""
        self.scheduler.after(delay_ms, action, *arguments)
