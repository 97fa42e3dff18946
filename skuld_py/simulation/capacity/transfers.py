"""How long a partition grants nothing when an operator has another node lead it, in the time of the model.

Clients claim one task after another at all nodes; an operator promotes each voter of a partition in turn. A gap is
the longest time between two grants of the partition, from the wish until it is fulfilled and some more claims were
granted. On one machine that all nodes share such a gap is mostly the time for which others have its processors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count, pairwise

from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.simulation.capacity.clients import HOLDER, LEASE_MS, QUEUE, Crew
from skuld_py.simulation.capacity.costs import Costs
from skuld_py.simulation.capacity.world import Unsettled, World

CLIENTS, MORE = 4, 5
STOCK_CLIENTS, STOCK = 8, 50
"""Tasks one by one, for the oldest are claimed first: of a batch, which is in one partition, all would be."""
WISH_MS, QUIET_MS = 10_000, 200


class Watch:
    """Clients that claim without a pause, and when grants of each partition came."""

    def __init__(self, world: World) -> None:
        self._world, self._requests = world, count(1)
        self._names = [*world.seats]
        self.grants: dict[int, list[float]] = {each: [] for each in range(world.parameters.partitions)}
        self.steered: list[m.Steered] = []
        world.hear = self._hear
        for number in range(CLIENTS):
            self._claim(b"claims-%d" % number, number)

    def steer(self, partition: int, target: str) -> None:
        """Have a node lead a partition."""
        self._world.ask(b"operator", self._names[0], m.Steer(
            next(self._requests), "lead", partition, 1, target, "operator", "", WISH_MS, 0))

    def _claim(self, client: bytes, turn: int) -> None:
        self._world.ask(client, self._names[turn % len(self._names)], m.Claim(
            next(self._requests), QUEUE, 1, LEASE_MS, 0, HOLDER, takes_proofs=True))

    def _hear(self, client: bytes, node: str, message: m.Message) -> None:
        if isinstance(message, m.Steered):
            self.steered.append(message)
            return
        if isinstance(message, m.Claimed):
            for each in [each for batch in message.batches for each in ids.split(batch.ids)]:
                self.grants[ids.route_of(each) % len(self.grants)].append(self._world.agenda.now)
        self._claim(client, next(self._requests))


def transfers(nodes: int, costs: Costs, partition: int = 0, seed: int = 1) -> list[tuple[str, float]]:
    """Each voter that was promoted, and the gap in milliseconds; first of all that of no promotion."""
    world = World(nodes, costs, seed)
    world.settle()
    Crew(world, 1, STOCK_CLIENTS, seed).play("enqueue", STOCK)
    watch = Watch(world)
    world.pass_ms(QUIET_MS)
    grants = watch.grants[partition]
    found = [("", _gap(grants, world.agenda.now - QUIET_MS / 2))]
    voters = world.documents[partition][1].cohort
    for voter in (*voters[1:], voters[0]):
        began = world.agenda.now
        watch.steer(partition, voter)
        _run(world, partial(_leads, world, partition, voter))
        _run(world, partial(_has, grants, len(grants) + MORE))
        found.append((voter, _gap(grants, began)))
    return found


def _leads(world: World, partition: int, voter: str) -> bool:
    return world.documents[partition][1].leader == voter


def _has(grants: list[float], count: int) -> bool:
    return len(grants) >= count


def _run(world: World, is_enough: Callable[[], bool]) -> None:
    end = world.agenda.now + WISH_MS
    world.run(lambda: is_enough() or world.agenda.now > end)
    if not is_enough():
        raise Unsettled(f"a promotion was not fulfilled, or nothing granted, within {WISH_MS} ms")


def _gap(times: list[float], since: float) -> float:
    before = max((at for at in times if at < since), default=since)
    return max(later - earlier for earlier, later in pairwise([before, *(at for at in times if at >= since)]))
