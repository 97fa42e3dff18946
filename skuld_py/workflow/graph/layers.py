"""Where things stand in a drawing: steps in columns from left to right, and the ways of lines between them.

Every edge leads to a column farther right. One that passes columns has a place in each of them, so that it goes
round the boxes there; only where a graph has too many of those do long edges go straight. Places in a column are
put in the order of what they are linked to, again and again, and the order with the fewest crossings is kept; then
each is moved towards what it is linked to, as far as its neighbours let it.

Source: Sugiyama, Tagawa and Toda, 1981. Rejected: a library. Those in Python that are small are no longer kept,
the others are bindings of a program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import attrs

from skuld_py.workflow.definition.definition import Edge, neighbours

PASSED_MAX = 3_000
"""Places of edges in columns that they pass; with more, long edges go straight."""
SWEEPS = 12

class Graph(Protocol):
    """What can be put in columns: ``order`` has each step behind its parents."""

    @property
    def order(self) -> Sequence[str]: ...
    @property
    def edges(self) -> Sequence[Edge]: ...
    @property
    def inputs(self) -> Sequence[str]: ...
    @property
    def parents(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def children(self) -> Mapping[str, Sequence[str]]: ...


Place = tuple[str, ...]
"""A step; or an edge and a number, where it passes a column."""


@attrs.frozen
class Layout:
    """``columns``: the places in each, from top to bottom. ``rows``: how far down each is, 1 being the room that a
    box needs. ``ways``: the places that an edge goes through, its ends among them."""

    columns: tuple[tuple[Place, ...], ...]
    rows: Mapping[Place, float]
    ways: Mapping[Edge, tuple[Place, ...]]


def depths(definition: Graph) -> dict[str, int]:
    """The column of each step: one behind the last of its parents; an input stands before the first of its
    children."""
    found: dict[str, int] = {}
    for step in definition.order:
        found[step] = 1 + max((found[parent] for parent in definition.parents[step]), default=-1)
    for step in definition.inputs:
        found[step] = min((found[child] for child in definition.children[step]), default=1) - 1
    return found


def layout(definition: Graph) -> Layout:
    """Where everything stands."""
    depth = depths(definition)
    ways = _ways(definition.edges, depth)
    columns: list[list[Place]] = [[] for _ in range(1 + max(depth.values()))]
    at: dict[Place, int] = {(step,): column for step, column in depth.items()}
    for (source, _), way in ways.items():
        at |= {place: depth[source] + number for number, place in enumerate(way) if len(place) > 1}
    links = [(one, other) for way in ways.values() for one, other in pairwise(way)]
    for place in at:
        columns[at[place]].append(place)
    columns = _untangled(columns, links)
    return Layout(tuple(map(tuple, columns)), _rows(columns, links), ways)


def _ways(edges: Sequence[Edge], depth: Mapping[str, int]) -> dict[Edge, tuple[Place, ...]]:
    passed = sum(depth[to] - depth[source] - 1 for source, to in edges)
    made = {}
    for source, to in edges:
        between = range(1, depth[to] - depth[source]) if passed <= PASSED_MAX else ()
        made[source, to] = ((source,), *((source, to, str(number)) for number in between), (to,))
    return made


def _untangled(columns: list[list[Place]], links: Sequence[tuple[Place, Place]]) -> list[list[Place]]:
    """The columns in an order with few crossings."""
    places = [place for column in columns for place in column]
    after = neighbours(places, links)
    before = neighbours(places, ((other, one) for one, other in links))
    best, fewest = [list(column) for column in columns], _crossings(columns, after)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        is_forth = sweep % 2 == 0
        near = before if is_forth else after
        for number in range(1, len(columns)):
            here = number if is_forth else len(columns) - 1 - number
            beside = {place: row for row, place in enumerate(columns[here - 1 if is_forth else here + 1])}
            _reorder(columns[here], near, beside)
        crossings = _crossings(columns, after)
        if crossings < fewest:
            best, fewest = [list(column) for column in columns], crossings
    return best


def _reorder(column: list[Place], near: Mapping[Place, Sequence[Place]], beside: Mapping[Place, int]) -> None:
    wanted = {}
    for row, place in enumerate(column):
        rows = [beside[other] for other in near[place] if other in beside]
        wanted[place] = sum(rows) / len(rows) if rows else float(row)
    column.sort(key=wanted.__getitem__)


def _crossings(columns: Sequence[Sequence[Place]], after: Mapping[Place, Sequence[Place]]) -> int:
    """How many pairs of lines between neighbouring columns cross."""
    count = 0
    for column, following in pairwise(columns):
        row = {place: number for number, place in enumerate(following)}
        seen: list[int] = []
        for place in column:
            ends = [row[other] for other in after[place] if other in row]
            count += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _rows(columns: Sequence[Sequence[Place]], links: Sequence[tuple[Place, Place]]) -> dict[Place, float]:
    places = [place for column in columns for place in column]
    after = neighbours(places, links)
    before = neighbours(places, ((other, one) for one, other in links))
    rows = {place: float(row) for column in columns for row, place in enumerate(column)}
    for sweep in range(SWEEPS):
        is_forth = sweep % 2 == 0
        near = before if is_forth else after
        for column in columns if is_forth else reversed(columns):
            wanted = [sum(rows[other] for other in near[place]) / len(near[place]) if near[place] else rows[place]
                      for place in column]
            rows |= zip(column, _apart(wanted, [_room(place) for place in column]), strict=True)
    top = min(rows.values())
    return {place: row - top for place, row in rows.items()}


def _room(place: Place) -> float:
    """A line needs less than a box."""
    return 1.0 if len(place) == 1 else 0.4


def _apart(wanted: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """As near as can be to where each wants to be, in order and with room for each: neighbours that push each
    other move as one block, to the mean of what they want."""
    offsets, total = [], 0.0
    for number, room in enumerate(rooms):
        total += (rooms[number - 1] + room) / 2 if number else 0.0
        offsets.append(total)
    blocks: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        at, count = want - offset, 1
        while blocks and blocks[-1][0] >= at:
            last, size = blocks.pop()
            at, count = (at * count + last * size) / (count + size), count + size
        blocks.append((at, count))
    base = [at for at, count in blocks for _ in range(count)]
    return [at + offset for at, offset in zip(base, offsets, strict=True)]


