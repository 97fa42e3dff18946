"""Counts of a queue's tasks by state: kept, never made by a scan.

Changes of a batch gather in memory and are added to the stored numbers once, when the batch
settles, so that they cost one record per queue touched. They are a function of the indexes: a
task is counted where it is found, which makes the numbers converge with the data.

No task changes its place without a count, so the tally also says in the node's bulletin that its partition was
touched, and where tasks wait. (News of dependencies says so itself.)

A queue of which nothing is left has no row: names that were used once do not stay for ever.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from operator import add

from skuld_py.model.state import State
from skuld_py.model.store import Row, Store
from skuld_py.partition.data.bulletin import Bulletin

_STATES = len(State)
_COUNTS = struct.Struct(f">{_STATES}q")
_NONE = bytes(_COUNTS.size)
_NOTHING = _COUNTS.unpack(_NONE)


class Tally:
    """Pending changes of one partition's counts, by queue."""

    def __init__(self, store: Store, prefix: bytes, bulletin: Bulletin) -> None:
        self._store = store
        self._prefix = prefix
        self._partition = int.from_bytes(prefix, "big")
        self._bulletin = bulletin
        self._changes: dict[bytes, list[int]] = {}

    def touch(self) -> None:
        """Let the partition be looked at when the batch ends."""
        self._bulletin.touched[self._partition] = None

    def add(self, queue: bytes, state: int, change: int) -> None:
        """Note a change."""
        row = self._changes.get(queue)
        if row is None:
            row = self._changes[queue] = [0] * _STATES
            self.touch()
        row[state] += change
        if state == State.WAITING and change > 0:
            bulletin, place = self._bulletin, (self._partition, queue)
            bulletin.filled[place] = bulletin.filled.get(place, 0) + change
            bulletin.stock.add(queue, self._partition)
        elif state == State.CLAIMED and change < 0:
            self._bulletin.freed[self._partition, queue] = None

    def move(self, queue: bytes, was: State | None, to: State | None, count: int) -> None:
        """Note that tasks went from one state to another; None for one that is counted elsewhere."""
        if to is not None:
            self.add(queue, to, count)
        if was is not None:
            self.add(queue, was, -count)

    def settle(self) -> None:
        """Stage the changed counts."""
        if not self._changes:
            return
        rows: list[Row] = []
        empty: list[bytes] = []
        for queue, changes in self._changes.items():
            key = self._prefix + queue
            old = _COUNTS.unpack(self._store.get("counts", key) or _NONE)
            counts = _COUNTS.pack(*map(add, old, changes))
            if counts == _NONE:
                empty.append(key)
            else:
                rows.append((key, counts))
        self._changes = {}
        self._store.put_many("counts", rows)
        if empty:
            self._store.pop_many("counts", empty)

    def row(self, queue: bytes) -> tuple[int, ...]:
        """Counts of a queue by state."""
        self.settle()
        return _COUNTS.unpack(self._store.get("counts", self._prefix + queue) or _NONE)

    @staticmethod
    def rows_of(tallies: Sequence[Tally], queue: bytes) -> list[tuple[int, ...]]:
        """Counts of a queue in each of these partitions of one store, read in one go."""
        for tally in tallies:
            if tally._changes:
                tally.settle()
        keys = [tally._prefix + queue for tally in tallies]
        found = tallies[0]._store.get_many("counts", keys) if tallies else {}
        return [_COUNTS.unpack(found[key]) if key in found else _NOTHING for key in keys]

    def beginning(self, prefix: str, after: str, limit: int) -> list[tuple[str, tuple[int, ...]]]:
        """(queue, counts by state) of the queues behind ``after`` whose names begin so, by name."""
        self.settle()
        start = self._prefix + prefix.encode()
        first = self._prefix + after.encode() + b"\0" if after else start
        rows = self._store.scan("counts", first, start + b"\xff", limit)
        return [(key[2:].decode(), _COUNTS.unpack(value)) for key, value in rows]

    def rows(self, after: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
        """(queue, counts by state) of every queue behind ``after``, by name."""
        self.settle()
        start = self._prefix + after.encode() + b"\0" * bool(after)
        for key, value in self._store.walk("counts", start, self._prefix + b"\xff"):
            yield key[2:].decode(), _COUNTS.unpack(value)
