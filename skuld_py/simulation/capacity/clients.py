"""Clients that keep a cluster busy: each has one request under way, and makes the next one when it is answered.

They enqueue a number of batches, claim as many tasks, and complete what they claimed, all of them the same verb at
the same time. As real clients do, each asks another node each time, and completes where it was granted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.ids import IdMint
from skuld_py.simulation.capacity.world import World
from skuld_py.simulation.world.scheduler import stream

QUEUE, HOLDER, LEASE_MS, PAYLOAD = "work", "client", 600_000, b"\x5a" * 100


class Failure(Exception):
    """A request that was refused, or a claim that found nothing."""


@attrs.frozen
class Held:
    """Claims of one answer, as they are completed."""

    node: str
    ids: bytes
    tokens: bytes
    proofs: bytes

    @property
    def size(self) -> int:
        """How many."""
        return len(self.ids) // ids.ID_BYTES


@attrs.define(eq=False)
class Client:
    """One of them."""

    name: bytes
    turn: int
    batches_left: int = 0
    held: list[Held] = attrs.field(factory=list)


class Crew:
    """All clients: ``each`` of them for each node, with batches of so many tasks."""

    def __init__(self, world: World, batch: int, each: int, seed: int = 1) -> None:
        self._world, self._batch = world, batch
        self._names = [*world.seats]
        self._clients = {client.name: client for number in range(each * len(self._names))
                         for client in [Client(b"client-%d" % number, number)]}
        self._mint, self._routes, self._requests = IdMint(seed), stream(seed, "routes"), count(1)
        self._verb: Callable[[Client], tuple[str, m.Message]] = self._enqueue
        self.answers: list[tuple[float, int]] = []
        """When answers came, and for how many tasks."""
        world.hear = self._hear

    def play(self, verb: str, batches: int) -> None:
        """Have each client do so many batches, and return when all are answered."""
        self._verb = {"enqueue": self._enqueue, "claim": self._claim, "complete": self._complete}[verb]
        self.answers = []
        for client in self._clients.values():
            client.batches_left = len(client.held) if verb == "complete" else batches
            self._go_on(client)
        self._world.run(lambda: not any(client.batches_left for client in self._clients.values()))

    def _go_on(self, client: Client) -> None:
        if client.batches_left:
            node, message = self._verb(client)
            self._world.ask(client.name, node, message)

    def _next_node(self, client: Client) -> str:
        client.turn += 1
        return self._names[client.turn % len(self._names)]

    def _enqueue(self, client: Client) -> tuple[str, m.Message]:
        made = self._mint.mint(self._world.now_ms, self._batch, self._routes.getrandbits(32))
        tasks = m.TaskBatch(Header(QUEUE).encode(), b"".join(made), columns.pack([PAYLOAD] * self._batch))
        return self._next_node(client), m.Enqueue(next(self._requests), 0, (tasks,))

    def _claim(self, client: Client) -> tuple[str, m.Message]:
        return self._next_node(client), m.Claim(next(self._requests), QUEUE, self._batch, LEASE_MS, 0, HOLDER,
                                                takes_proofs=True)

    def _complete(self, client: Client) -> tuple[str, m.Message]:
        held = client.held[-1]
        return held.node, m.Complete(next(self._requests), 0, 0, held.ids, held.tokens, proofs=held.proofs)

    def _hear(self, name: bytes, node: str, message: m.Message) -> None:
        client = self._clients[name]
        if isinstance(message, m.Claimed) and message.batches:
            tokens = [batch.first_token + at for batch in message.batches
                      for at in range(len(batch.ids) // ids.ID_BYTES)]
            client.held.append(Held(node, b"".join(batch.ids for batch in message.batches),
                                    columns.pack_u64(tokens),
                                    b"".join(batch.proofs for batch in message.batches)))
            done = len(tokens)
        elif isinstance(message, m.Acked):
            done = client.held.pop().size if self._verb == self._complete else self._batch
        else:
            raise Failure(f"{node} answered {message}")
        self.answers.append((self._world.agenda.now, done))
        client.batches_left -= 1
        self._go_on(client)
