"""The scenarios: what happens to a cluster, until it is at rest again, and what that cost.

A run counts only if the cluster ends as it must (``Plane.verdict``); else it raises. A budget of entries bounds
what a run may take: plain protocols at ten thousand members would write hundreds of thousands, each of them played
on a replica of ten thousand. A run beyond the budget has a result that says so, and how far it came.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.simulation.coordination.scale.costs import Costs, Counts, Options
from skuld_py.simulation.coordination.scale.plane import Plane
from skuld_py.simulation.world.scheduler import stream

ENTRIES_PER_MEMBER_MAX = 200
FAILED_SHARE = 10
"""One in this many members dies in a mass failure; as many come in a growth."""


class Unsound(Exception):
    """A run that did not end as it must."""


@attrs.frozen
class Result:
    """``is_finished``: else the budget was used up after ``time_ms`` with ``inside`` processes in."""

    scenario: str
    members: int
    options: Options
    counts: Counts
    time_ms: float
    inside: int
    changed: int
    """Processes that started, or died."""
    longest_wait_ms: float
    is_finished: bool = True
    samples: int = 0
    actions: int = 0

    def per_change(self, count: float) -> float:
        """Of something, for each process that joined or left."""
        return count / max(1, self.changed)


def start(plane: Plane, members: int, seed: int) -> int:
    """All start at an empty log."""
    plane.start(plane.made(_shuffled(members, seed)))
    return members


def failure(plane: Plane, members: int, seed: int) -> int:
    """A tenth of a cluster at rest dies at once."""
    several = plane.build(_shuffled(members, seed))
    victims = stream(seed, "victims").sample(several, max(1, members // FAILED_SHARE))
    plane.kill(victims)
    return len(victims)


def restart(plane: Plane, members: int, seed: int) -> int:
    """All of a cluster at rest die at once and start again."""
    several = plane.build(_shuffled(members, seed))
    plane.kill(several)
    order = _shuffled(members, seed + 1)
    former = {process.index: process.id for process in several}
    plane.start(plane.made(order), [former[index] for index in order])
    return members


def growth(plane: Plane, members: int, seed: int) -> int:
    """Some join a cluster at rest whose log has been running for a while."""
    plane.build(_shuffled(members, seed))
    more = max(1, members // FAILED_SHARE)
    plane.start(plane.made(range(members, members + more)))
    return more


SCENARIOS: dict[str, Callable[[Plane, int, int], int]] = {
    "start": start, "failure": failure, "restart": restart, "growth": growth}


def _shuffled(members: int, seed: int) -> list[int]:
    order = [*range(members)]
    stream(seed, "order").shuffle(order)
    return order


def run(scenario: str, members: int, options: Options, seed: int, entries_max: int = 0,
        costs: Costs | None = None) -> Result:
    """Play a scenario to the end, or to the budget's; raises ``Unsound``. Where none is given there is one that
    only a run without end uses up."""
    budget = entries_max or members * ENTRIES_PER_MEMBER_MAX
    plane = Plane(options, seed, costs)
    changed = SCENARIOS[scenario](plane, members, seed)
    is_finished = plane.agenda.run(lambda: plane.counts.entries >= budget)
    inside = sum(process.is_in for process in plane.alive)
    problems = plane.verdict() if is_finished else plane.faults
    if problems:
        raise Unsound(f"{scenario} of {members}, {options.label}, seed {seed}: {'; '.join(problems)}")
    time = max(plane.came_in, plane.armed) if is_finished else plane.agenda.now
    return Result(scenario, members, options, plane.counts, time, inside, changed,
                  max(plane.ensemble.reads.longest, plane.ensemble.writes.longest), is_finished, plane.log.samples,
                  plane.agenda.actions)
