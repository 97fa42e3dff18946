"""How many of its workflow's slots each step gets: balanced, by percentage, or in groups at one site.

Invariant: the numbers sum up to no more than the workflow has. Either all are 0, or each is at least its step's
least and at most its most.

Source: Onyx's task schedulers. A step whose part comes to less than its least gets its least here, from the
largest; there such a workflow ran with no step at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import attrs

from skuld_py.workflow.scheduling.demand import Demand, Flux, Spreading, Step


@attrs.frozen
class Room:
    """A step's bounds now: one that must be left as it is has those that it has."""

    least: int
    most: int
    weight: int


def room_of(step: Step, running: int) -> Room:
    """The bounds of a step that runs on so many slots."""
    if running and step.flux is Flux.KILL:
        return Room(running, running, step.percentage)
    if running and step.flux is Flux.RECOVER:
        most = max(running, step.least)
        return Room(most, most, step.percentage)
    return Room(step.least, step.most, step.percentage)


def spread(demand: Demand, rooms: Sequence[Room], slots: int) -> list[int]:
    """How many slots each step gets of so many."""
    if slots < sum(room.least for room in rooms):
        return [0] * len(rooms)
    if demand.spreading is Spreading.COLOCATED:
        return [min(slots // len(rooms), *(room.most for room in rooms))] * len(rooms)
    if demand.spreading is Spreading.PERCENTAGE:
        return _weighted(rooms, slots)
    return _balanced(rooms, slots)


def _balanced(rooms: Sequence[Room], slots: int) -> list[int]:
    counts = [room.least for room in rooms]
    waiting = [(count, index) for index, count in enumerate(counts) if count < rooms[index].most]
    heapq.heapify(waiting)
    for _ in range(slots - sum(counts)):
        if not waiting:
            break
        count, index = heapq.heappop(waiting)
        counts[index] = count + 1
        if counts[index] < rooms[index].most:
            heapq.heappush(waiting, (counts[index], index))
    return counts


def _weighted(rooms: Sequence[Room], slots: int) -> list[int]:
    """By weight; who cannot use its part leaves it to the others."""
    counts = [0] * len(rooms)
    open_ = [*range(len(rooms))]
    while open_:
        parts = _parts([rooms[index] for index in open_], slots)
        full = [index for index, part in zip(open_, parts, strict=True) if part > rooms[index].most]
        if not full:
            for index, part in zip(open_, parts, strict=True):
                counts[index] = part
            break
        for index in full:
            counts[index] = rooms[index].most
            slots -= counts[index]
            open_.remove(index)
    return counts


def _parts(rooms: Sequence[Room], slots: int) -> list[int]:
    """The largest remainders get what rounding down leaves, the earlier step first; each has its least, and what
    that is too much the largest give."""
    total = sum(room.weight for room in rooms)
    weights = [room.weight for room in rooms] if total else [1] * len(rooms)
    total = total or len(rooms)
    parts = [slots * weight // total for weight in weights]
    left = [slots * weight % total for weight in weights]
    for index in sorted(range(len(rooms)), key=lambda index: (-left[index], index))[: slots - sum(parts)]:
        parts[index] += 1
    parts = [max(part, room.least) for part, room in zip(parts, rooms, strict=True)]
    while sum(parts) > slots:
        largest = max((index for index in range(len(rooms)) if parts[index] > rooms[index].least),
                      key=lambda index: (parts[index], -index))
        parts[largest] -= 1
    return parts
