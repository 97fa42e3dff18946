"""Up to which time of ids a replica takes nothing new: two watermarks, durable, that only rise.

* *Closed*: no client adds a task at or below it, nor anything to one that had ended by then. Replicas still give
  each other what is older, so an acknowledged old task reaches all of them.
* *Sealed*, at most closed: besides, what is at or below it and not here is taken from no replica. A replica is
  sealed only when all of them were closed and then found equal below, so what it lacks from then on was collected.
  That is why it may tell others so (``Replica.gone``), and why a copy that comes back from an old disk finds no
  taker.

A replica whose memory is in doubt is sealed nowhere: it may lack what was never collected. One that drops its
records forgets its seal for the same reason, and its *life*: the number under which it agreed to be closed and
compared. A seal names that life, so one that comes late, to a replica that begins anew, seals nothing.

Rejected: one watermark (a replica that lacks an old task could never be repaired); a tombstone for each task (it
would have to be kept as long as the longest absence).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from skuld_py.errors import Corrupt
from skuld_py.model.store import Store
from skuld_py.partition.data.tables import watermark_key

_RECORD = struct.Struct(">QQQQ")


class Watermark:
    """The watermarks of one replica. ``collected``: how many tasks it has deleted as garbage so far."""

    def __init__(self, store: Store, partition: int) -> None:
        self._store = store
        self._key = watermark_key(partition)
        record = store.get("meta", self._key)
        if record is not None and len(record) != _RECORD.size:
            raise Corrupt("meta", self._key)
        self.closed_ms, self._sealed_ms, self.life, self.collected = _RECORD.unpack(record or bytes(_RECORD.size))
        self.is_trusted = True
        """Whether this replica's memory is good."""

    @property
    def sealed_ms(self) -> int:
        """Nothing at or below is taken any more; 0 while the memory is in doubt."""
        return self._sealed_ms if self.is_trusted else 0

    def closed_to(self, task_ids: Sequence[bytes]) -> list[bytes]:
        """The tasks at or below the closed watermark; one comparison for a batch above it."""
        return _upto(self.closed_ms, task_ids)

    def sealed_to(self, task_ids: Sequence[bytes]) -> list[bytes]:
        """The tasks at or below the seal."""
        return _upto(self.sealed_ms, task_ids)

    def close(self, upto_ms: int) -> None:
        """Take no new tasks up to a time."""
        if upto_ms > self.closed_ms:
            self.closed_ms = upto_ms
            self._save()

    def seal(self, upto_ms: int) -> None:
        """Take nothing at all up to a time. What is lacking below must have been collected."""
        if upto_ms > self._sealed_ms:
            self._sealed_ms = upto_ms
            self.closed_ms = max(self.closed_ms, upto_ms)
            self._save()

    def begin_life(self, life: int) -> None:
        """Take a number for as long as this replica keeps what it has."""
        self.life = life
        self._save()

    def count(self, tasks: int) -> None:
        """Count tasks that were deleted."""
        if tasks:
            self.collected += tasks
            self._save()

    def forget(self) -> None:
        """The records are dropped: what is lacking says nothing any more."""
        if self._sealed_ms or self.life:
            self._sealed_ms = self.life = 0
            self._save()

    def _save(self) -> None:
        record = _RECORD.pack(self.closed_ms, self._sealed_ms, self.life, self.collected)
        self._store.put_many("meta", [(self._key, record)])


def _upto(time_ms: int, task_ids: Sequence[bytes]) -> list[bytes]:
    if not time_ms or not task_ids:
        return []
    bound = time_ms.to_bytes(8, "big")
    if min(task_ids)[:8] > bound:
        return []
    return [task_id for task_id in task_ids if task_id[:8] <= bound]
