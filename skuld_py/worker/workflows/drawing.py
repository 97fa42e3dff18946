"""What an input draws from, as its feeder asks: some values from where it goes on, and some of them once more.

    source.draw(cursor, 500)          # a ``Haul``: values, where they begin, and the cursor for the next
    source.again(part, offset, 500)   # the same values, after the feeder was claimed anew

A source that gives other values for an offset than before is found out: their ids are taken by other content.

An input with several feeders is split into *strands*, and each feeder draws its own: of the ranges of a table
every so-manieth; of files those whose paths' digests say so; of partitions those whose names do. Which strand
draws something follows from its name alone, so two never draw one, whatever each of them has seen: a file or a
partition that appears meanwhile moves no other one. Of partitions that are numbered, as most are, consecutive ones
are of consecutive strands: by a digest of the whole name a third of the strands would have none, where there are
as many of both.

Invariants:

* A haul is of one part, and no larger than ``HAUL_BYTES``, but for a single value.
* Each value is of exactly one strand.

Rejected: partitions by their places in the adapter's list, which two feeders may see before and after another one
came. Parts that feeders claim one by one, or that are shared out anew when one comes or goes. Whoever takes
over a part takes over its roots under way, too, and these are in the former's checkpoint; so what is handed on is
the strand, as a whole, with its task.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.worker.workflows.children import packed
from skuld_py.worker.workflows.haul import Haul, Source
from skuld_py.worker.workflows.parts import parts_of
from skuld_py.worker.workflows.queued import Queued
from skuld_py.worker.workflows.returned import Returned, returned
from skuld_py.workflow.acking.checkpoint import CURSOR_BYTES_MAX, PARTS_MAX
from skuld_py.workflow.definition.entries import Entry
from skuld_py.workflow.definition.sources import (
    Files,
    Jdbc,
    Offsets,
    OffsetsAdapter,
    Outputs,
    Queue,
    Values,
)

HAUL_BYTES = 16 << 20
DIGEST_BYTES = 8
NOWHERE = -1
_NUMBER = re.compile(r"[0-9]{1,9}\Z")
"""With which the name of a partition ends."""
Found = Callable[[str], Callable[..., Any]]


@attrs.frozen
class Strand:
    """One of ``of`` strands of an input, by its number from 0 on."""

    number: int = 0
    of: int = 1

    def paths(self, paths: Iterable[str]) -> list[str]:
        """Of paths its own, sorted."""
        return sorted(path for path in {*paths} if self.of == 1 or self._of_path(path) == self.number)

    def _of_path(self, path: str) -> int:
        return _digest(os.fsencode(path)) % self.of

    def has(self, partition: str) -> bool:
        """Whether a partition is its own."""
        number = _NUMBER.search(partition)
        kind = partition[: number.start()] if number else partition
        return (_digest(kind.encode()) + int(number[0] if number else 0)) % self.of == self.number


def _digest(name: bytes) -> int:
    return int.from_bytes(blake2b(name, digest_size=DIGEST_BYTES).digest(), "big")


WHOLE = Strand()


class Sequential:
    """What yields its values in one order, from the beginning. It goes on without beginning anew while it is asked
    in order; to draw again what lies behind, it skips what is before."""

    def __init__(self, begin: Callable[[], Iterator[Any]]) -> None:
        self._begin = begin
        self._values: Iterator[Any] = iter(())
        self._at = NOWHERE
        self._spare: list[bytes] = []

    def draw(self, cursor: bytes, most: int) -> Haul:
        offset = int.from_bytes(cursor, "big")
        values, is_over = self._taken(offset, most)
        return Haul(values, 0, offset, (offset + len(values)).to_bytes(8, "big"), is_over)

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        return self._taken(offset, count, most_bytes=None)[0]

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        """Nobody needs to know."""

    def tend(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""

    def _taken(self, offset: int, most: int, most_bytes: int | None = HAUL_BYTES) -> tuple[list[bytes], bool]:
        if offset != self._at:
            self._values, self._spare, self._at = self._begin(), [], NOWHERE
            self._at = sum(1 for _ in islice(self._values, offset))
            if self._at < offset:
                return [], True
        try:
            return self._more(most, most_bytes)
        except BaseException:
            self._at = NOWHERE
            raise

    def _more(self, most: int, most_bytes: int | None) -> tuple[list[bytes], bool]:
        values, size = list[bytes](), 0
        while len(values) < most:
            value = self._spare.pop() if self._spare else self._next()
            if value is None:
                return values, True
            if values and most_bytes is not None and size + len(value) > most_bytes:
                self._spare.append(value)
                break
            values.append(value)
            size += len(value)
            self._at += 1
        return values, False

    def _next(self) -> bytes | None:
        for value in self._values:
            return packed(value)
        return None


class Awaited:
    """What another step returned. Until that is there nothing is drawn, and it is asked for again."""

    def __init__(self, look: Callable[[], Returned | None]) -> None:
        self._look = look
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
            self._source = Sequential(found.values)
        return self._source


class Adapted:
    """What an application's adapter reads, a part after the other in turn. The cursor is each part's offset, and
    which of them came to its end: ``[turn, [offset, is_end], ...]``, as JSON. Those of other strands count as
    ended, from offset 0 on; so all strands see when there are more or fewer parts than before, and most
    when they have another order."""

    def __init__(self, adapter: OffsetsAdapter, strand: Strand = WHOLE) -> None:
        self._adapter, self._strand = adapter, strand
        self._parts = list(adapter.partitions())
        if not 0 < len(self._parts) <= min(PARTS_MAX, CURSOR_BYTES_MAX // 32):
            raise Refused("bad_source", f"partitions: {len(self._parts)}; an input has 1 to"
                          f" {CURSOR_BYTES_MAX // 32} of them", field="partitions")

    def draw(self, cursor: bytes, most: int) -> Haul:
        turn, rows = self._read(cursor)
        order = [*range(turn, len(rows)), *range(turn)]
        for part in order:
            offset, is_end = rows[part]
            if is_end:
                continue
            page = self._adapter.read(self._parts[part], offset, most)
            rows[part] = [page.next_offset, page.is_end]
            if page.values:
                values = [packed(value) for value in page.values]
                return Haul(values, part, offset, self._written((part + 1) % len(rows), rows), self._is_over(rows))
        return Haul([], 0, 0, self._written(turn, rows), self._is_over(rows))

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        values = list[bytes]()
        while len(values) < count:
            page = self._adapter.read(self._parts[part], offset, count - len(values))
            values += map(packed, page.values)
            if not page.values or page.is_end:
                break
            offset = page.next_offset
        return values

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        if cursor:
            rows = self._read(cursor)[1]
            self._adapter.commit({name: min(rows[part][0], open_from.get(part, rows[part][0]))
                                  for part, name in enumerate(self._parts) if self._strand.has(name)})

    def tend(self) -> None:
        """What an adapter holds is its own business."""

    def close(self) -> None:
        """An adapter that has ``close`` is told."""
        close = getattr(self._adapter, "close", None)
        if close is not None:
            close()

    def _read(self, cursor: bytes) -> tuple[int, list[list[Any]]]:
        if not cursor:
            return 0, [[self._adapter.begin(name), False] if self._strand.has(name) else [0, True]
                       for name in self._parts]
        turn, *rows = json.loads(cursor)
        if len(rows) != len(self._parts):
            raise Refused("bad_source", f"partitions: there were {len(rows)}, and are {len(self._parts)} now; they"
                          " must stay the same while a workflow runs", field="partitions")
        if any(row != [0, True] and not self._strand.has(name)
               for name, row in zip(self._parts, rows, strict=True)):
            raise Refused("bad_source", "partitions: they were others, or had another order; they must stay the"
                          " same while a workflow runs", field="partitions")
        return turn, rows

    @staticmethod
    def _written(turn: int, rows: list[list[Any]]) -> bytes:
        return json.dumps([turn, *rows], separators=(",", ":")).encode()

    @staticmethod
    def _is_over(rows: list[list[Any]]) -> bool:
        return all(is_end for _, is_end in rows)


@attrs.frozen
class Place:
    """Whose source it is: the workflow, the input, and the strand of it. ``wall_ms``: a time at which nodes take
    ids."""

    flow: Any
    workflow: str
    step: str
    wall_ms: Callable[[], int]
    strand: Strand = WHOLE


def source_of(entry: Entry, found: Found, place: Place) -> Source:
    """What an input draws from; ``found`` gives functions by their names. ``Refused`` as ``bad_source`` for what
    never will be there."""
    match entry.source:
        case Values(function):
            return Sequential(lambda: iter(found(function)(**entry.parameters)))
        case Files(globs):
            return Sequential(lambda: iter(place.strand.paths(
                path for each in globs for path in glob.glob(each, recursive=True))))
        case Offsets(adapter):
            return Adapted(found(adapter)(**entry.parameters), place.strand)
        case Jdbc() as jdbc:
            return Sequential(lambda: islice(parts_of(jdbc), place.strand.number, None, place.strand.of))
        case Outputs() as outputs:
            return Awaited(lambda: returned(place.flow, place.workflow, outputs))
        case Queue(name):
            return Queued(place.flow.cluster.client, name, place.workflow, place.step, place.wall_ms)
    raise Refused("bad_source", f"source: {entry.name} draws from nothing", field="source")
