"""The decision as a cluster makes it: places in, of each the seats that it takes, and why some workflows have
none.

    Places(Sharing.BALANCED, (Place("10.0.0.1:7070", 4),), (Demand(...),)).seated()

A place is slots that differ in nothing: those of one node with the same tags. How many of them each step has says
``allocation``; which places, ``settling``, whatever was there before. Groups at one site are taken as
``allocation`` forms them.

Fluxes say what becomes of seats that a step had before; here nothing is known of that, so they change nothing: no
step's state is in a slot, and what a slot runs it runs to its end.

Bound: ``UNITS_MAX`` slots count; where there are more, all places have fewer, down to one for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from skuld_py.workflow.scheduling.allocation import Allocation, allocate
from skuld_py.workflow.scheduling.demand import Demand, Sharing, Slot, Spreading
from skuld_py.workflow.scheduling.settling import settled

UNITS_MAX = 1 << 15
Seat = tuple[int, int]
"""A workflow and its step, by number."""
Taken = list[dict[Seat, int]]
"""Of each place: how many of its slots have which seats."""


@attrs.frozen
class Place:
    """``name`` differs from that of all others; it is what the choice of places rests on."""

    name: str
    units: int
    tags: frozenset[str] = frozenset()
    site: str = ""


def counted(units: Sequence[int]) -> list[int]:
    """How many slots of each place count."""
    if sum(units) <= UNITS_MAX:
        return [*units]
    low, high = 1, UNITS_MAX
    while low < high:  # the largest cap under which all fit
        cap = (low + high + 1) // 2
        low, high = (cap, high) if sum(min(cap, each) for each in units) <= UNITS_MAX else (low, cap - 1)
    return [min(low, each) for each in units]


def seated(sharing: Sharing, places: Sequence[Place], demands: Sequence[Demand]) -> tuple[Taken, dict[str, str]]:
    """Who sits where; and of each workflow that has nothing, why."""
    units = counted([place.units for place in places])
    names = {f"{at} {number}": at for at, count in enumerate(units) for number in range(count)}
    slots = [Slot(name, places[at].tags, places[at].site) for name, at in names.items()]
    made = allocate(sharing, slots, demands, {})
    return _Settlement(places, units, demands, names).taken(made), made.starved


class _Settlement:
    def __init__(self, places: Sequence[Place], units: list[int], demands: Sequence[Demand],
                 names: Mapping[str, int]) -> None:
        self._places = places
        self._units = units
        self._names = names
        self._grouped = {demand.name for demand in demands if demand.spreading is Spreading.COLOCATED}
        self._seats = {(demand.name, step.name): (index, number) for index, demand in enumerate(demands)
                       for number, step in enumerate(demand.steps)}

    def taken(self, made: Allocation) -> Taken:
        taken: Taken = [{} for _ in self._places]
        counts: dict[frozenset[str], Counter[tuple[str, str]]] = {}
        for workflow, steps in made.seats.items():
            for step, slots in steps.items():
                for at in map(self._names.__getitem__, slots):
                    if workflow in self._grouped:
                        seat = self._seats[workflow, step]
                        taken[at][seat] = taken[at].get(seat, 0) + 1
                    else:
                        counts.setdefault(self._places[at].tags, Counter())[workflow, step] += 1
        for tags, seats in counts.items():
            self._settle(taken, tags, seats)
        return taken

    def _settle(self, taken: Taken, tags: frozenset[str], seats: Counter[tuple[str, str]]) -> None:
        here = [at for at, place in enumerate(self._places) if place.tags == tags]
        room = [(self._places[at].name, self._units[at] - sum(taken[at].values())) for at in here]
        wanted = [(f"{workflow} {step}", count) for (workflow, step), count in seats.items()]
        of = [self._seats[seat] for seat in seats]
        for at, found in zip(here, settled(wanted, room), strict=True):
            for index, count in found.items():
                taken[at][of[index]] = taken[at].get(of[index], 0) + count
