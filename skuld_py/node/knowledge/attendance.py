"""The workers that report to this node: what each said last, for as long as it said.

A worker is known by the name of its key and its own name (its holder): so nobody speaks for a worker of another
key, nor has it disappear. Without keys anybody may be anybody, as with claims.

Bounds: ``workers_max`` workers, and ``BYTES_MAX`` of what they say of themselves; what a worker says is a few
hundred bytes. One more is refused, and none that is known is dropped for it: else those of one key could displace
the workers of all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.seats import SEATED

NEVER_MS = 1 << 62
KINDS_MAX = 16
"""Different slots of the workers of one node: each is an entry of the coordination log."""
WORKERS_MAX = 2_000
BYTES_MAX = 4 << 20
ROW_BYTES = 100
"""Of a row beside its texts."""
Name = tuple[str, str]
Tags = tuple[str, ...]


@attrs.define
class _Present:
    row: m.WorkerRow
    said_ms: int
    until_ms: int
    size: int


def name_of(row: m.WorkerRow) -> Name:
    """Who a worker is: its holder, and the name of its key."""
    return row.holder, row.key


def cursor_of(row: m.WorkerRow) -> str:
    """Its place in the order of all workers, as pages have it."""
    return " ".join(name_of(row))


def tags_of(row: m.WorkerRow) -> Tags:
    """What tells its slots from others in the coordination log: nothing, unless it takes seats of workflows."""
    return (SEATED, *sorted({*row.tags})) if row.takes_seats else ()


class Attendance:
    """What one node knows of workers."""

    def __init__(self, workers_max: int = WORKERS_MAX) -> None:
        self._workers_max = workers_max
        self._present: dict[Name, _Present] = {}
        self._bytes = 0
        self.slots = 0
        """Of all of them together."""
        self.units: Counter[Tags] = Counter()
        """Slots by what tells them apart."""
        self.news: dict[Tags, None] = {}
        """Those slots of which some came or went; the reader clears it."""
        self.due_ms = NEVER_MS
        """When the first of them is over, or before."""

    def __len__(self) -> int:
        return len(self._present)

    def __contains__(self, name: Name) -> bool:
        return name in self._present

    def note(self, now_ms: int, row: m.WorkerRow, lease_ms: int) -> None:
        """A worker is there for so long from now; not any more, with a lease of 0."""
        name = name_of(row)
        size = ROW_BYTES * (1 + len(row.batches)) + sum(map(len, (
            *name, row.host, row.release, row.spark, row.weights, *row.queues,
            *(batch.queue + batch.function for batch in row.batches))))
        old = self._present.get(name)
        if lease_ms and (self._bytes - (old.size if old else 0) + size > BYTES_MAX
                         or (old is None and len(self) >= self._workers_max)):
            raise Refused("busy", f"{len(self)} workers report to this node, and it has room for no more; let them"
                          " report to others")
        tags = tags_of(row)
        if lease_ms and tags not in self.units and len(self.units) >= KINDS_MAX:
            raise Refused("busy", f"workers with {KINDS_MAX} different sets of tags report to this node; use"
                          " fewer, or let others report to other nodes")
        if old is not None:
            self._drop(name)
        if lease_ms:
            self._present[name] = _Present(row, now_ms, now_ms + lease_ms, size)
            self._bytes += size
            self._count(row, row.slots)
            self.due_ms = min(self.due_ms, now_ms + lease_ms)

    def expire(self, now_ms: int) -> None:
        """Forget those that have said nothing for too long; and those that are ahead of a clock that fell back."""
        for name, present in [*self._present.items()]:
            if now_ms >= present.until_ms or now_ms < present.said_ms:
                self._drop(name)
        self.due_ms = min((present.until_ms for present in self._present.values()), default=NEVER_MS)

    def page(self, now_ms: int, behind: str) -> tuple[tuple[m.WorkerRow, ...], str]:
        """The next workers in order, behind a cursor; and the cursor of the last one, empty at the end."""
        rows = sorted((present for present in self._alive(now_ms) if cursor_of(present.row) > behind),
                      key=lambda present: cursor_of(present.row))
        page = tuple(attrs.evolve(each.row, age_ms=now_ms - each.said_ms) for each in rows[: m.WORKERS_IN_PAGE])
        return page, cursor_of(page[-1]) if len(rows) > len(page) else ""

    def _alive(self, now_ms: int) -> Iterator[_Present]:
        return (each for each in self._present.values() if each.said_ms <= now_ms < each.until_ms)

    def _drop(self, name: Name) -> None:
        gone = self._present.pop(name)
        self._bytes -= gone.size
        self._count(gone.row, -gone.row.slots)

    def _count(self, row: m.WorkerRow, slots: int) -> None:
        tags = tags_of(row)
        self.slots += slots
        self.units[tags] += slots
        if not self.units[tags]:
            del self.units[tags]
        self.news[tags] = None

    def with_slots(self, tags: Tags) -> list[tuple[Name, int]]:
        """The workers that have such slots, and how many, by name."""
        return sorted((name, present.row.slots) for name, present in self._present.items()
                      if tags_of(present.row) == tags)
