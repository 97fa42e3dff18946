"""Runs of clusters of several sizes: tasks a second, what a task costs all nodes, and whether that is linear.

Tasks a second are those of the middle of a phase, from its first tenth to its last: at the beginning and the end
not all clients are at work. What nodes do unasked (gossip, clocks, comparisons) is counted apart, while nobody
asks for anything, and not taken off: it is part of what a task costs. Apart, too, and before the rest, is counted
what the first tasks of a queue cost: each node that gains work tells all others at once, which is a message for
each pair of nodes. Twice as many tasks are enqueued as are claimed, so that no claim looks for the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.simulation.capacity.clients import Crew
from skuld_py.simulation.capacity.costs import Costs, Counts, total
from skuld_py.simulation.capacity.world import World

VERBS = ("enqueue", "claim", "complete")
SIZES = (3, 6, 12, 25, 50, 100)
LINEAR_FROM = 12
"""From so many nodes on nearly every request comes to a node that keeps no copy of its tasks, so a task costs no
more where there are more nodes. Of three every one keeps a copy, which saves messages."""
LINEAR_MIN = 0.8
"""Each node must bring this much of what one does of ``LINEAR_FROM``."""
EDGE = 0.1
SETTLED_MS = 200
"""What is told of the first tasks has arrived by then."""


@attrs.frozen
class Phase:
    """One verb by one size of cluster. ``counts``: of each node."""

    nodes: int
    verb: str
    tasks: int
    rate: float
    """Tasks a second."""
    counts: tuple[Counts, ...]
    busy_ms: tuple[float, ...]
    """Processor time of each node."""
    span_ms: float = 0.0

    @property
    def messages(self) -> float:
        """For each task, over all nodes; without those that no task caused."""
        made = total(self.counts)
        return (made.messages - made.unasked) / self.tasks

    @property
    def task_ms(self) -> float:
        """Processor time of a task, over all nodes."""
        return sum(self.busy_ms) / self.tasks

    @property
    def share(self) -> float:
        """The busiest node's part of the work, times the nodes: 1 where all do the same."""
        return max(self.busy_ms) * self.nodes / (sum(self.busy_ms) or 1.0)


@attrs.frozen
class Result:
    """All phases of a size, and what each node does a second while nobody asks for anything. ``first_messages``:
    what each takes and sends for the first tasks of a queue."""

    nodes: int
    partitions: int
    phases: tuple[Phase, ...]
    idle_messages: float
    idle_ms: float
    first_messages: float = 0.0


def run(nodes: int, costs: Costs, *, batch: int = 50, clients: int = 3, batches: int = 4, seed: int = 1) -> Result:
    """``clients`` for each node do ``batches`` of ``batch`` tasks with each verb, and enqueue twice as many."""
    world = World(nodes, costs, seed)
    world.settle()
    before, busy = _counts(world), [seat.busy_ms for seat in world.seats.values()]
    world.pass_ms(1_000)
    idle = total(_since(world, before))
    idle_ms = sum(seat.busy_ms for seat in world.seats.values()) - sum(busy)
    crew = Crew(world, batch, clients, seed)
    before = _counts(world)
    crew.play("enqueue", 1)
    world.pass_ms(SETTLED_MS)
    first = total(_since(world, before)).messages / nodes
    phases = tuple(_phase(world, crew, verb, 2 * batches if verb == "enqueue" else batches) for verb in VERBS)
    return Result(nodes, world.parameters.partitions, phases, idle.messages / nodes, idle_ms / nodes, first)


def _phase(world: World, crew: Crew, verb: str, batches: int) -> Phase:
    before, busy, began = _counts(world), [seat.busy_ms for seat in world.seats.values()], world.agenda.now
    crew.play(verb, batches)
    spent = [seat.busy_ms - was for seat, was in zip(world.seats.values(), busy, strict=True)]
    return Phase(len(world.seats), verb, sum(done for _, done in crew.answers), rate_of(crew.answers),
                 tuple(_since(world, before)), tuple(spent), world.agenda.now - began)


def _counts(world: World) -> list[Counts]:
    return [attrs.evolve(seat.counts) for seat in world.seats.values()]


def _since(world: World, before: Sequence[Counts]) -> list[Counts]:
    return [seat.counts.since(was) for seat, was in zip(world.seats.values(), before, strict=True)]


def rate_of(answers: Sequence[tuple[float, int]]) -> float:
    """Tasks a second, without the edges of a phase."""
    first, last = int(EDGE * len(answers)), int((1 - EDGE) * len(answers)) - 1
    span_ms = answers[last][0] - answers[first][0]
    return 1_000 * sum(done for _, done in answers[first + 1 : last + 1]) / span_ms if span_ms else 0.0


def linear(results: Sequence[Result]) -> list[tuple[str, bool]]:
    """What a node brings, by verb and size, against one of a cluster of ``LINEAR_FROM``; and whether that will
    do."""
    large = [each for each in results if each.nodes >= LINEAR_FROM]
    found = []
    for result in large[1:]:
        for phase, first in zip(result.phases, large[0].phases, strict=True):
            part = (phase.rate / phase.nodes) / (first.rate / first.nodes)
            found.append((f"{phase.verb}: a node of {phase.nodes} does {part:.2f} of what one of {first.nodes}"
                          f" does; wanted: at least {LINEAR_MIN}", part >= LINEAR_MIN))
    return found
