"""The whole decision: slots and demands in, who sits where out.

    allocate(Sharing.BALANCED, slots, demands, former)

Workflows count in the order of submission. One whose least cannot be seated beside those before it, for want of
tags or of room at one site, is left out, and the slots are shared anew among the others. Nobody is left out for
who came later.

Invariants:

* A function of its arguments alone; where they are equal, slots that sit stay where they are.
* A workflow has the least of all its steps, or nothing, and then the reason is said.

Rejected: to drop always the last workflow when something does not fit, as Onyx does: it may be another one's tags
that are missing.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from skuld_py.workflow.scheduling.demand import Demand, Flux, Sharing, Slot, Spreading, Step
from skuld_py.workflow.scheduling.grouping import Sites
from skuld_py.workflow.scheduling.seating import Seating
from skuld_py.workflow.scheduling.sharing import Bounds, shared
from skuld_py.workflow.scheduling.spreading import Room, room_of, spread

ROUNDS_MAX = 16
"""How often slots are shared anew. What cannot be seated then is left out, and others have its slots if they can
use them."""

Seats = Mapping[str, Mapping[str, Sequence[str]]]
"""Of each workflow, and of each of its steps, the slots."""


@attrs.frozen
class Allocation:
    """``starved``: why a workflow has no slots, in words for people."""

    seats: dict[str, dict[str, tuple[str, ...]]]
    idle: tuple[str, ...]
    starved: dict[str, str]


def allocate(sharing: Sharing, slots: Sequence[Slot], demands: Sequence[Demand], former: Seats) -> Allocation:
    """Share the slots out, given who sat where before."""
    return _Round(sharing, slots, former).played(demands)


@attrs.define
class _Asking:
    """A workflow, what its steps have now that still exists, and the bounds that follow."""

    demand: Demand
    running: list[list[str]]
    rooms: list[Room]
    bounds: Bounds


class _Round:
    def __init__(self, sharing: Sharing, slots: Sequence[Slot], former: Seats) -> None:
        self._sharing = sharing
        self._slots = {slot.name: slot for slot in slots}
        self._former = former
        self._kinds = Counter(slot.tags for slot in slots)
        self._sites = Counter(slot.site for slot in slots)

    def played(self, demands: Sequence[Demand]) -> Allocation:
        asking = [self._asking(demand) for demand in demands if demand.steps]
        starved = {each.demand.name: reason for each in asking if (reason := self._lacking(each))}
        for turn in range(ROUNDS_MAX):
            fit = [each for each in asking if each.demand.name not in starved]
            counts = shared(self._sharing, len(self._slots), [each.bounds for each in fit])
            seating, failed = self._seated(fit, counts, is_last=turn == ROUNDS_MAX - 1)
            starved.update(failed)
            if not failed:
                break
        seats = {}
        for each, count in zip(fit, counts, strict=True):
            if each.demand.name in failed:
                continue
            if not count:
                starved[each.demand.name] = self._few(each, fit, counts)
                continue
            seats[each.demand.name] = {step.name: tuple(seating.sitting((each.demand.name, step.name)))
                                       for step in each.demand.steps}
        ordered = {each.demand.name: starved[each.demand.name] for each in asking if each.demand.name in starved}
        return Allocation(seats, tuple(seating.free()), ordered)

    # -- what is asked for ---------------------------------------------------------------------

    def _asking(self, demand: Demand) -> _Asking:
        before = self._former.get(demand.name, {})
        running = [[name for name in before.get(step.name, ())
                    if name in self._slots and step.tags <= self._slots[name].tags] for step in demand.steps]
        rooms = [room_of(step, len(names)) for step, names in zip(demand.steps, running, strict=True)]
        able = sum(count for tags, count in self._kinds.items() if any(step.tags <= tags for step in demand.steps))
        least, most = sum(room.least for room in rooms), min(able, sum(room.most for room in rooms))
        if demand.spreading is Spreading.COLOCATED:
            steps = len(rooms)
            groups = sum(count // steps for count in self._sites.values())
            least = steps * max(room.least for room in rooms)
            most = steps * min(groups, *(room.most for room in rooms))
        return _Asking(demand, running, rooms, Bounds(least, most, demand.percentage))

    def _lacking(self, each: _Asking) -> str:
        """Why it could not be seated were it alone, as far as each step's tags tell."""
        for step, room in zip(each.demand.steps, each.rooms, strict=True):
            if step.tags and self._able(step) < room.least:
                return self._too_few_able(step, room)
        return ""

    def _few(self, each: _Asking, fit: Sequence[_Asking], counts: Sequence[int]) -> str:
        """Why it got nothing though it could be seated."""
        least, most = each.bounds.least, each.bounds.most
        if least > len(self._slots):
            return f"needs {least} slots, and there are {len(self._slots)}"
        if least > most:
            return f"needs {least} slots, and {most} of {len(self._slots)} can do what its steps need"
        if self._sharing is Sharing.PERCENTAGE and not each.bounds.percentage:
            return f"needs {least} slots, and was promised none: it has no percentage"
        taken = sum(count for other, count in zip(fit, counts, strict=True) if other is not each)
        return f"needs {least} slots; of {len(self._slots)}, other workflows have {taken}"

    # -- who sits where ------------------------------------------------------------------------

    def _seated(self, fit: Sequence[_Asking], counts: Sequence[int], *, is_last: bool
                ) -> tuple[Seating, dict[str, str]]:
        """Seat what each was given; and why some could not be."""
        seating, failed = Seating(self._slots), dict[str, str]()
        plans = [(each, spread(each.demand, each.rooms, count)) for each, count in zip(fit, counts, strict=True)]
        near = [plan for plan in plans if plan[0].demand.spreading is Spreading.COLOCATED]
        apart = [plan for plan in plans if plan[0].demand.spreading is not Spreading.COLOCATED]
        self._keep(seating, apart)
        failed.update(self._grouped(seating, near))
        for is_least in (True, False):
            for each, planned in apart:
                if each.demand.name not in failed and (
                        reason := self._filled(seating, each, planned, is_least=is_least)):
                    failed[each.demand.name] = reason
                    seating.give_up([(each.demand.name, step.name) for step in each.demand.steps])
        if is_last or not failed:
            self._use(seating, [plan for plan in apart if plan[0].demand.name not in failed])
        return seating, failed

    def _keep(self, seating: Seating, plans: Sequence[tuple[_Asking, list[int]]]) -> None:
        for each, planned in plans:
            for step, names, count in zip(each.demand.steps, each.running, planned, strict=True):
                seating.keep((each.demand.name, step.name), step.tags, names[:count],
                             is_fixed=step.flux is not Flux.CONTINUE)

    def _filled(self, seating: Seating, each: _Asking, planned: Sequence[int], *, is_least: bool) -> str:
        """Fill a workflow's vacancies up to its least, or up to what was planned; why its least is not there."""
        for step, room, count in zip(each.demand.steps, each.rooms, planned, strict=True):
            seat = each.demand.name, step.name
            wanted = min(count, room.least) if is_least else count
            while len(seating.sitting(seat)) < wanted:
                if not seating.fill(seat, step.tags):
                    if not is_least:
                        break
                    return self._too_few_able(step, room)
        return ""

    def _use(self, seating: Seating, plans: Sequence[tuple[_Asking, list[int]]]) -> None:
        """Give what is free for want of tags where it was planned to whom can use it, the smallest first: to steps
        of the same workflow; to others as well, unless each has what it was promised."""
        def size(plan: tuple[_Asking, list[int]]) -> int:
            return sum(len(seating.sitting((plan[0].demand.name, step.name))) for step in plan[0].demand.steps)
        open_ = [(plan, sum(plan[1]) if self._sharing is Sharing.PERCENTAGE else plan[0].bounds.most)
                 for plan in plans if any(plan[1])]
        waiting = [(size(plan), index) for index, (plan, most) in enumerate(open_) if size(plan) < most]
        heapq.heapify(waiting)
        while waiting and not seating.is_full:
            count, index = heapq.heappop(waiting)
            if count < open_[index][1] and self._one_more(seating, open_[index][0][0]):
                heapq.heappush(waiting, (count + 1, index))

    def _one_more(self, seating: Seating, each: _Asking) -> bool:
        """Give one slot to the smallest step that can take one; to one that had it before, if that is so."""
        sizes = sorted((len(seating.sitting((each.demand.name, step.name))), index)
                       for index, step in enumerate(each.demand.steps))
        for count, index in sizes:
            step, seat = each.demand.steps[index], (each.demand.name, each.demand.steps[index].name)
            if count >= each.rooms[index].most:
                continue
            back = next((name for name in each.running[index] if seating.is_free(name)), None)
            if back is not None:
                seating.keep(seat, step.tags, [back])
                return True
            if seating.fill(seat, step.tags):
                return True
        return False

    def _too_few_able(self, step: Step, room: Room) -> str:
        able = self._able(step)
        others = ", and other steps have theirs of them" if able >= room.least else ""
        wanted = f"{room.least} slot{'s' * (room.least != 1)}"
        return (f"step {step.name} needs {wanted} with the tags {', '.join(sorted(step.tags))}; there are"
                f" {able}{others}")

    def _able(self, step: Step) -> int:
        return sum(count for tags, count in self._kinds.items() if step.tags <= tags)

    def _grouped(self, seating: Seating, plans: Sequence[tuple[_Asking, list[int]]]) -> dict[str, str]:
        """Seat groups: those that sit so already; then what each needs at least; then what was planned. Why some
        have not what they need."""
        failed: dict[str, str] = {}
        for each, planned in plans:
            kept = [names for names in zip(*each.running, strict=False)
                    if len({self._slots[name].site for name in names}) == 1]
            for names in kept[: planned[0]]:
                self._sit(seating, each, names)
        sites = Sites(self._slots[name] for name in seating.free())
        for is_least in (True, False):
            for each, planned in plans:
                name, least = each.demand.name, max(room.least for room in each.rooms)
                wanted = min(planned[0], least) if is_least else planned[0]
                if name not in failed and not self._has_groups(seating, sites, each, wanted) and is_least:
                    failed[name] = (f"needs {each.bounds.least} slots, {len(each.rooms)} each at one site, one for"
                                    " each step")
        for name, steps in ((each.demand.name, each.demand.steps) for each, _ in plans):
            if name in failed:
                seating.give_up([(name, step.name) for step in steps])
        return failed

    def _has_groups(self, seating: Seating, sites: Sites, each: _Asking, wanted: int) -> bool:
        """Take groups until there are so many; whether there are."""
        first, needs = (each.demand.name, each.demand.steps[0].name), [step.tags for step in each.demand.steps]
        while len(seating.sitting(first)) < wanted:
            found = sites.group(needs)
            if found is None:
                return False
            sites.take(found)
            self._sit(seating, each, [slot.name for slot in found])
        return True

    def _sit(self, seating: Seating, each: _Asking, names: Sequence[str]) -> None:
        for step, name in zip(each.demand.steps, names, strict=True):
            seating.keep((each.demand.name, step.name), step.tags, [name], is_fixed=True)
