"""The seats of workflows as a decision: what is asked, what is answered, and when an answer cannot be right.

The question is of the replica's slots, its live workflows and how they share. Places are told by node and tags,
with how many slots each has, so ten thousand slots are some thousand short rows; workflows, steps and tags by
number in the lists that the question names. The answer has three numbers for each seat that a place takes:
workflow, step, how many.

Two members that hold the same slots and workflows ask the same question, whatever was before (``workflow``'s
``settling`` says why).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import attrs

from skuld_py.cluster.log.replica import Replica, Slot
from skuld_py.cluster.log.workflows import INPUT, Workflow, live
from skuld_py.cluster.scale.slots import abilities, units
from skuld_py.errors import Malformed
from skuld_py.model.seats import SEATED
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Demand, Sharing, Spreading, Step
from skuld_py.workflow.scheduling.places import Place, counted, seated

PLACES_MAX = 1 << 15
DEMANDS_MAX = 1_000
STEPS_MAX = 1 << 16
REASON_CHARS_MAX = 250
UNITS_OF_PLACE_MAX = 1 << 30
_BALANCED = Sharing.BALANCED.value
_Number = Callable[[Sequence[str]], int]
"""The number of a set of tags."""


@attrs.frozen
class PlaceRow:
    """Slots of one node: ``tags`` is a number in the question's list, ``site`` any number that tells sites
    apart."""

    node: str
    units: int
    tags: int = 0
    site: int = 0


@attrs.frozen
class DemandRow:
    """A live workflow, and of its steps that may run, in order: names, least, most, tags, percentages."""

    name: str
    steps: tuple[str, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]
    tags: tuple[int, ...]
    percentages: tuple[int, ...]
    spreading: str = Spreading.BALANCED.value
    percentage: int = 0

    def __attrs_post_init__(self) -> None:
        columns = (self.least, self.most, self.tags, self.percentages)
        if any(len(column) != len(self.steps) for column in columns):
            raise Malformed("DemandRow", "has columns of several lengths")
        if any(not 1 <= least <= most <= UNBOUNDED for least, most in zip(self.least, self.most, strict=True)):
            raise Malformed("DemandRow", "wants an impossible number of slots")
        if any(not 0 <= each <= 100 for each in (self.percentage, *self.percentages)):
            raise Malformed("DemandRow", "has a percentage that is not in 0..100")
        if self.spreading not in (each.value for each in Spreading):
            raise Malformed("DemandRow.spreading", "is unknown")


@attrs.frozen
class SeatsInput:
    """``tags``: the sets of tags that rows name by number; ``places`` by node and tags, each once."""

    sharing: str
    tags: tuple[tuple[str, ...], ...]
    places: tuple[PlaceRow, ...]
    demands: tuple[DemandRow, ...]

    def __attrs_post_init__(self) -> None:
        if self.sharing not in (each.value for each in Sharing):
            raise Malformed("SeatsInput.sharing", "is unknown")
        if len(self.places) > PLACES_MAX or len(self.demands) > DEMANDS_MAX or (
                sum(len(row.steps) for row in self.demands) > STEPS_MAX):
            raise Malformed("SeatsInput", "has too many places, workflows or steps")
        keys = [(row.node, row.tags) for row in self.places]
        if any(one >= next_one for one, next_one in pairwise(keys)):
            raise Malformed("SeatsInput.places", "are not sorted, or not distinct")
        if len({row.name for row in self.demands}) < len(self.demands):
            raise Malformed("SeatsInput.demands", "name a workflow twice")
        named = (*(row.tags for row in self.places), *(tags for row in self.demands for tags in row.tags))
        if any(not 0 <= tags < len(self.tags) for tags in named):
            raise Malformed("SeatsInput", "names tags that it does not list")
        if any(not 1 <= row.units <= UNITS_OF_PLACE_MAX for row in self.places):
            raise Malformed("SeatsInput.places", "have an impossible number of slots")


@attrs.frozen
class Starved:
    """A workflow, by number, that has no seats, and why."""

    workflow: int
    reason: str


@attrs.frozen
class SeatsResult:
    """``seats``: of each place, three numbers for each seat: workflow, step, how many slots take it."""

    seats: tuple[tuple[int, ...], ...]
    starved: tuple[Starved, ...] = ()

    def of(self, place: int) -> list[tuple[int, int, int]]:
        """Workflow, step and count of the seats of a place."""
        row = self.seats[place]
        return [*zip(row[::3], row[1::3], row[2::3], strict=True)]


# -- what is asked -------------------------------------------------------------------------------


def input_of(replica: Replica) -> SeatsInput:
    """The question's input as of a replica."""
    known: dict[tuple[str, ...], int] = {}

    def number(tags: Sequence[str]) -> int:
        return known.setdefault(tuple(sorted({*tags})), len(known))
    demands = tuple(_demand(name, each, number) for name, each in live(replica.workflows).items())
    places = _places(replica, number)
    return SeatsInput(replica.sharing or _BALANCED, tuple(known), places, demands)


def _demand(name: str, workflow: Workflow, number: _Number) -> DemandRow:
    steps = [step for step in workflow.steps if step.kind != INPUT or step.name not in workflow.exhausted]
    left = {step.name: workflow.open_strands(step.name) for step in steps
            if step.kind == INPUT and workflow.strands(step.name) > 1}
    return DemandRow(name, tuple(step.name for step in steps),
                     tuple(min(step.least, left.get(step.name, step.least)) for step in steps),
                     tuple(left.get(step.name, step.most) for step in steps),
                     tuple(number(step.tags) for step in steps), tuple(step.percentage for step in steps),
                     workflow.spreading, workflow.percentage)


def _places(replica: Replica, number: _Number) -> tuple[PlaceRow, ...]:
    """Of each node and its tags the newest slot: while a number changes, two are in the log."""
    found: dict[tuple[str, tuple[str, ...]], Slot] = {}
    for slot in replica.slots.values():
        member = replica.members.get(slot.member)
        if member is not None and SEATED in slot.tags:
            found[member.name, abilities(slot)] = slot
    sites: dict[str, int] = {}
    rows = [PlaceRow(node, count, number(tags), sites.setdefault(replica.members[slot.member].host, len(sites)))
            for (node, tags), slot in found.items() if (count := min(units(slot), UNITS_OF_PLACE_MAX))]
    return tuple(sorted(rows, key=lambda row: (row.node, row.tags))[:PLACES_MAX])


# -- what is answered ----------------------------------------------------------------------------


def decide(asked: SeatsInput) -> SeatsResult:
    """The seats. A step has its tags and bounds; a flux changes nothing here (``workflow``'s ``places``)."""
    tags = [frozenset(each) for each in asked.tags]
    places = [Place(" ".join((row.node, *asked.tags[row.tags])), row.units, tags[row.tags], str(row.site))
              for row in asked.places]
    demands = [Demand(row.name, tuple(
        Step(name, least, most, tags[needs], percentage) for name, least, most, needs, percentage
        in zip(row.steps, row.least, row.most, row.tags, row.percentages, strict=True)),
        Spreading(row.spreading), row.percentage) for row in asked.demands]
    taken, starved = seated(Sharing(asked.sharing), places, demands)
    number = {row.name: index for index, row in enumerate(asked.demands)}
    return SeatsResult(tuple(map(_flat, taken)), tuple(
        Starved(number[name], reason[:REASON_CHARS_MAX]) for name, reason in starved.items()))


def _flat(seats: Mapping[tuple[int, int], int]) -> tuple[int, ...]:
    return tuple(number for (workflow, step), count in sorted(seats.items()) for number in (workflow, step, count))


def flaw(asked: SeatsInput, result: SeatsResult) -> str:
    """Why an answer cannot be right, or ``""``."""
    if len(result.seats) != len(asked.places):
        return f"has {len(result.seats)} lists for {len(asked.places)} places"
    if any(len(row) % 3 for row in result.seats):
        return "has a list that is no row of threes"
    sizes = [len(row.steps) for row in asked.demands]
    tags = [frozenset(each) for each in asked.tags]
    total: Counter[tuple[int, int]] = Counter()
    room = counted([row.units for row in asked.places])
    for at, (place, most) in enumerate(zip(asked.places, room, strict=True)):
        rows = result.of(at)
        if any(not (0 <= workflow < len(sizes) and 0 <= step < sizes[workflow] and count > 0)
               for workflow, step, count in rows):
            return "names a seat that does not exist"
        if sum(count for *_, count in rows) > most or len({row[:2] for row in rows}) < len(rows):
            return f"seats more slots of {place.node} than there are"
        if any(not tags[asked.demands[workflow].tags[step]] <= tags[place.tags] for workflow, step, _ in rows):
            return f"seats slots of {place.node} where they lack tags"
        total.update({(workflow, step): count for workflow, step, count in rows})
    return _bounds_flaw(asked, total) or _starved_flaw(result, total, len(sizes))


def _bounds_flaw(asked: SeatsInput, total: Counter[tuple[int, int]]) -> str:
    for workflow, row in enumerate(asked.demands):
        counts = [total[workflow, step] for step in range(len(row.steps))]
        if any(counts) and any(not least <= count <= most for least, count, most
                               in zip(row.least, counts, row.most, strict=True)):
            return f"gives a step of {row.name} fewer slots than its least, or more than its most"
    return ""


def _starved_flaw(result: SeatsResult, total: Counter[tuple[int, int]], count: int) -> str:
    starved = [each.workflow for each in result.starved]
    if len({*starved}) < len(starved) or any(not 0 <= each < count for each in starved):
        return "names a starved workflow twice, or one that does not exist"
    if any(workflow in starved for workflow, _ in total):
        return "gives seats to a workflow that it says has none"
    return ""
