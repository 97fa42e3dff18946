"""What an input draws from, as its feeder asks: some values from where it goes on, and some of them once more.

    source.draw(cursor, 500)          # a ``Haul``: values, where they begin, and the cursor for the next
    source.again(part, offset, 500)   # the same values, after the feeder was claimed anew

A source that gives other values for an offset than before is found out: their ids are taken by other content, or
its cursor says what was there (``sequences``).

An input with several feeders is split into *strands* (``strands``), and each feeder draws its own: of the ranges
of a table every so-manieth; of files those whose paths' digests say so; of partitions those whose names do.

Invariants:

* A haul is of one part, and no larger than ``HAUL_BYTES``, but for a single value.
* Each value is of exactly one strand.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.worker.workflows.haul import Haul, Source
from skuld_py.worker.workflows.partitions import Adapted
from skuld_py.worker.workflows.parts import parts_of
from skuld_py.worker.workflows.queued import Queued
from skuld_py.worker.workflows.returned import Returned, returned
from skuld_py.worker.workflows.sequences import Listed, Sequential
from skuld_py.worker.workflows.strands import WHOLE, Strand
from skuld_py.workflow.definition.entries import Entry
from skuld_py.workflow.definition.sources import Files, Jdbc, Offsets, Outputs, Queue, Values

Found = Callable[[str], Callable[..., Any]]


class Awaited:
    """What another step returned. Until that is there nothing is drawn, and it is asked for again."""

    def __init__(self, look: Callable[[], Returned | None], cursor: bytes = b"") -> None:
        self._look, self._cursor = look, cursor
        self._source: Sequential | None = None

    def draw(self, cursor: bytes, most: int) -> Haul:
        source = self._begun()
        return Haul([], 0, 0, cursor, False) if source is None else source.draw(cursor, most)

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        source = self._begun()
        return [] if source is None else source.again(part, offset, count)

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        """Nobody needs to know."""

    def tend(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""

    def _begun(self) -> Sequential | None:
        if self._source is None and (found := self._look()) is not None:
            self._source = Sequential(found.values, self._cursor)
        return self._source


@attrs.frozen
class Place:
    """Whose source it is: the workflow, the input, and the strand of it. ``wall_ms``: a time at which nodes take
    ids. ``cursor``: where the feeder's former life was."""

    flow: Any
    workflow: str
    step: str
    wall_ms: Callable[[], int]
    strand: Strand = WHOLE
    cursor: bytes = b""


def source_of(entry: Entry, found: Found, place: Place) -> Source:
    """What an input draws from; ``found`` gives functions by their names. ``Refused`` as ``bad_source`` for what
    never will be there."""
    strand, cursor = place.strand, place.cursor
    match entry.source:
        case Values(function):
            return Sequential(lambda: iter(found(function)(**entry.parameters)), cursor)
        case Files(globs):
            return Listed(lambda: strand.paths(path for each in globs
                                               for path in glob.glob(each, recursive=True)), cursor)
        case Offsets(adapter):
            return Adapted(found(adapter)(**entry.parameters), strand, cursor)
        case Jdbc() as jdbc:
            return Sequential(lambda: islice(parts_of(jdbc), strand.number, None, strand.of), cursor)
        case Outputs() as outputs:
            return Awaited(lambda: returned(place.flow, place.workflow, outputs), cursor)
        case Queue(name):
            return Queued(place.flow.cluster.client, name, place.workflow, place.step, place.wall_ms)
    raise Refused("bad_source", f"source: {entry.name} draws from nothing", field="source")
