"""How many tasks of a queue are in each state: kept, never counted by a scan.

Changes of a batch gather in memory and are added to the stored numbers once, when the batch
settles, so that they cost one record per queue touched. They are a function of the indexes: a
task is counted where it is found, which makes the numbers converge with the data.

No task changes its place without a count, so the tally also says that its partition was ``touched``: a node of
many partitions then looks at those few that a batch was about. (News of dependencies says so itself.)
"""

from __future__ import annotations

import struct

from skuld_py.model.state import State
from skuld_py.model.store import Store

Touched = dict[int, None]
"""Partitions of which something was filed since their node last cleared this."""
_COUNTS = struct.Struct(f">{len(State)}q")


class Tally:
    """Pending changes of one partition's counts, by queue."""

    def __init__(self, store: Store, prefix: bytes, touched: Touched) -> None:
        self._store = store
        self._prefix = prefix
        self._touched = touched
        self._changes: dict[bytes, list[int]] = {}
        self.filled: dict[bytes, None] = {}
        """Queues that gained a waiting task since the owner last cleared this."""
        self.freed: dict[bytes, None] = {}
        """Queues that lost a claimed one."""

    def touch(self) -> None:
        """Let the partition be looked at when the batch ends."""
        self._touched[int.from_bytes(self._prefix, "big")] = None

    def add(self, queue: bytes, state: int, change: int) -> None:
        """Note a change."""
        row = self._changes.get(queue)
        if row is None:
            row = self._changes[queue] = [0] * len(State)
            self.touch()
        row[state] += change
        if state == State.WAITING and change > 0:
            self.filled[queue] = None
        elif state == State.CLAIMED and change < 0:
            self.freed[queue] = None

    def settle(self) -> None:
        """Stage the changed counts."""
        if not self._changes:
            return
        rows = []
        for queue, changes in self._changes.items():
            key = self._prefix + queue
            old = _COUNTS.unpack(self._store.get("counts", key) or bytes(_COUNTS.size))
            rows.append((key, _COUNTS.pack(*(a + b for a, b in zip(old, changes, strict=True)))))
        self._changes = {}
        self._store.put_many("counts", rows)

    def rows(self, queue: bytes | None, limit: int) -> list[tuple[str, tuple[int, ...]]]:
        """(queue, counts by state) of one queue, or of all."""
        self.settle()
        if queue is not None:
            found = self._store.get("counts", self._prefix + queue)
            pairs = [] if found is None else [(self._prefix + queue, found)]
        else:
            pairs = self._store.scan("counts", self._prefix, self._prefix + b"\xff", limit)
        return [(key[2:].decode(), _COUNTS.unpack(value)) for key, value in pairs]
