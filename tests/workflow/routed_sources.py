"""What the inputs of a played workflow draw from, and their slots: see ``routed_world``."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skuld_py.worker.workflows.children import packed
from skuld_py.worker.workflows.haul import Source
from skuld_py.worker.workflows.partitions import Adapted
from skuld_py.worker.workflows.sequences import Sequential
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.definition.sources import Page
from workflow.acking_queue import Violation
from workflow.acking_world import BEGUN_MS

if TYPE_CHECKING:
    from workflow.routed_world import Stream


class Away(Exception):
    """What a source reads from does not answer just now."""


class Gone(Violation):
    """What was called processed is asked for."""


class Shelf:
    """What an input draws from: files, or parts that grow, of which what is committed goes. Its strands, and how
    many slots these have."""

    def __init__(self, chance: random.Random, step: str, strands: int) -> None:
        self.step = step
        self.streams: list[Stream] = []
        self.slots = chance.randint(1, strands)
        self.turn_ms = chance.choice([400, 1_500])
        self.is_list = chance.random() < 0.3
        self.parts: list[list[Any]] = [[] for _ in range(1 if self.is_list else chance.randint(1, 4))]
        for index in range(chance.randint(0, 30)):
            chance.choice(self.parts).append({"n": index, "r": chance.randrange(9)})
        self.since = [chance.choice([0, 7]) for _ in self.parts]
        self.kept = [*self.since]
        self.pace_ms = chance.choice([0, 0, 40])
        self.shown_ms = [chance.choice([0, 0, 700, 2_500]) for _ in self.parts]
        """When each part comes to be there, where they grow."""
        self.grows = not self.is_list and chance.random() < 0.3

    @property
    def has_room(self) -> bool:
        """Whether another feeder may be claimed."""
        return sum(each.has_seat and not each.is_finished for each in self.streams) < self.slots

    @property
    def waiting(self) -> int:
        """How many feeders wait for a slot."""
        return sum(each.is_waiting and not each.has_seat for each in self.streams)

    def check_fed(self) -> None:
        """Each value is a root of one strand."""
        fed = Counter(root.body for stream in self.streams for root in stream.queue.roots.values())
        if fed != Counter(packed(value) for part in self.parts for value in part):
            raise Violation(f"{self.step} has values that none of its strands fed, or two")


class Store:
    """What one strand draws from."""

    def __init__(self, stream: Stream, shelf: Shelf) -> None:
        self._stream, self._shelf, self._strand = stream, shelf, stream.strand
        self.parts, self.since, self.kept = shelf.parts, shelf.since, shelf.kept

    def all(self) -> Iterator[bytes]:
        """Each value that is its own, once."""
        if self._shelf.is_list:
            return map(packed, self._files())
        return (packed(value) for number, part in enumerate(self.parts)
                if self._strand.has(str(number)) for value in part)

    def _files(self) -> Iterator[Any]:
        paths = {f"/data/{value['n']}": value for value in self.parts[0]}
        return iter([paths[path] for path in self._strand.paths(paths)])

    def source(self) -> Source:
        """As a new life of the feeder opens it. Growing ones are listed again after 30 ms."""
        cursor = Book.decode(self._stream.checkpoint).cursor
        if self._shelf.is_list:
            return Sequential(self._files, cursor)
        adapter = Growing(self._stream, self._shelf) if self._shelf.grows else self
        return Adapted(adapter, self._strand, cursor, lambda: float(self._stream.now_ms))

    def _own(self, partition: str) -> int:
        part = int(partition)
        if not self._strand.has(partition):
            raise Violation(f"part {part} is touched by strand {self._strand}")
        return part

    def partitions(self) -> Sequence[str]:
        return [str(part) for part in range(len(self.parts))]

    def begin(self, partition: str) -> int:
        self._answer()
        return self.since[self._own(partition)]

    def read(self, partition: str, offset: int, most: int) -> Page:
        self._answer()
        part = self._own(partition)
        if offset < self.kept[part]:
            raise Gone(f"offset {offset} of part {part} is asked for, and everything before {self.kept[part]}"
                       " was called processed")
        values, start = self.parts[part], offset - self.since[part]
        there = len(values)
        if self._shelf.pace_ms and not self._stream.queue.is_healed:
            there = min(there, (self._stream.now_ms - BEGUN_MS) // self._shelf.pace_ms)
        found = values[start : min(start + self._stream.chance.randint(1, most), there)]
        return Page(found, offset + len(found), start + len(found) == len(values))

    def commit(self, offsets: Mapping[str, int]) -> None:
        self._answer()
        stream = self._stream
        for name, offset in offsets.items():
            part = self._own(name)
            done = {stream.queue.roots[each].body for each in stream.done}
            before = self.parts[part][: offset - self.since[part]]
            if not all(packed(value) in done for value in before):
                raise Violation(f"part {part} is called processed up to {offset}, which is not all done")
            stream.met["what is processed is committed, and gone"] += offset > self.kept[part]
            self.kept[part] = max(self.kept[part], offset)

    def _answer(self) -> None:
        if self._stream.happens(10):
            self._stream.met["a source does not answer"] += 1
            raise Away


class Growing(Store):
    """One whose parts come one after the other, those of greater numbers standing first."""

    @property
    def grows(self) -> bool:
        """Whether more will come."""
        return self._stream.now_ms < BEGUN_MS + max(self._shelf.shown_ms)

    def partitions(self) -> Sequence[str]:
        shown = [str(part) for part, at_ms in enumerate(self._shelf.shown_ms)
                 if self._stream.now_ms >= BEGUN_MS + at_ms]
        self._stream.met["a part comes while others are drawn"] += 0 < len(shown) < len(self.parts)
        return shown[::-1]
