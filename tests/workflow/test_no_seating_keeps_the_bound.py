"""That no function of what there is keeps Onyx's bound on moves: why seats without a history move more.

Any such function gives each set of nodes one seating. Where a node comes, one step has one seat more, so Onyx's
bound is one move: of the nodes that were there, one at most takes another step's seat. That is a constraint on the
seatings of two sets, and whether all of them can be kept is found by looking for such seatings: each set keeps
those that each of its neighbours still has one to go with, and then one set after the other chooses.

Of two steps ranks do it, and the search finds them; of three there is no such function for five nodes, hence none
for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations

import pytest

from skuld_py.workflow.scheduling.allocation import allocate
from skuld_py.workflow.scheduling.demand import Demand, Sharing, Slot, Step

Nodes = tuple[int, ...]
Seats = tuple[int, ...]
"""The step of each node, in the order of the nodes."""
Choices = Mapping[Nodes, list[Seats]]


def counts(nodes: int, steps: int) -> list[int]:
    """How many seats each step has, as slots are really shared."""
    demand = Demand("j", tuple(Step(str(number)) for number in range(steps)))
    made = allocate(Sharing.BALANCED, [Slot(str(number)) for number in range(nodes)], [demand], {})
    return [len(made.seats["j"][str(number)]) for number in range(steps)]


def choices(universe: int, steps: int) -> dict[Nodes, list[Seats]]:
    """Of each set of nodes that has something for every step all seatings."""
    found: dict[Nodes, list[Seats]] = {}
    for size in range(steps, universe + 1):
        seats = [step for step, count in enumerate(counts(size, steps)) for _ in range(count)]
        for nodes in combinations(range(universe), size):
            found[nodes] = sorted({*permutations(seats)})
    return found


def neighbours(all_sets: Choices) -> dict[Nodes, list[Nodes]]:
    """The sets with one node more or one less."""
    return {one: [other for other in all_sets if len({*one} ^ {*other}) == 1] for one in all_sets}


def fits(one: Nodes, seats: Seats, other: Nodes, others: Seats) -> bool:
    """Whether no more than one node that is in both has another step."""
    at, there = dict(zip(one, seats, strict=True)), dict(zip(other, others, strict=True))
    return sum(there[node] != step for node, step in at.items() if node in there) <= 1


def narrowed(left: dict[Nodes, list[Seats]], beside: Mapping[Nodes, list[Nodes]]) -> bool:
    """Drop what goes with nothing that a neighbour has; whether each set has something left."""
    waiting = [(one, other) for one in left for other in beside[one]]
    while waiting:
        one, other = waiting.pop()
        kept = [seats for seats in left[one] if any(fits(one, seats, other, others) for others in left[other])]
        if len(kept) < len(left[one]):
            left[one] = kept
            waiting += [(third, one) for third in beside[one] if third != other]
        if not kept:
            return False
    return True


def seatings(left: dict[Nodes, list[Seats]], beside: Mapping[Nodes, list[Nodes]]) -> Iterator[Choices]:
    """Functions that keep the bound."""
    if not narrowed(left, beside):
        return
    undecided = min((one for one in left if len(left[one]) > 1), key=lambda one: len(left[one]), default=None)
    if undecided is None:
        yield left
        return
    for seats in left[undecided]:
        yield from seatings({**left, undecided: [seats]}, beside)


@pytest.mark.parametrize(("universe", "steps", "can_be"), [(5, 2, True), (4, 3, True), (5, 3, False)])
def test_only_of_few_nodes_or_steps_there_is_a_function_that_keeps_the_bound(
        universe: int, steps: int, can_be: bool) -> None:
    left = choices(universe, steps)

    found = next(seatings(left, neighbours(left)), None)

    assert (found is not None) is can_be
    if found is not None:
        assert all(fits(one, found[one][0], other, found[other][0])
                   for one, others in neighbours(left).items() for other in others)
