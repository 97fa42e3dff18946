"""Which tasks may be collected, and what all replicas must agree on before they are.

``has_ended`` is a function of a task's records and of one time, so every replica judges alike, whatever its clock
shows. A task that had ended by then, on a replica that is closed up to then, does not change any more: clients are
refused, its leader finds nothing open. So once all replicas hold it with one digest, it stays equal everywhere
until it goes, and it may go on one before it goes on the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import xor

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model.body import Body
from skuld_py.model.history import History, decode_history
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.state import has_ended
from skuld_py.model.store import Row, digests_of
from skuld_py.partition.data import merkle
from skuld_py.partition.data.records import TABLES
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import end_of


@attrs.frozen
class Remains:
    """All that a replica holds of a task: its records by table, and the digest of all of them."""

    id: bytes
    tables: tuple[Sequence[Row], ...]
    digest: int

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is held."""
        return not any(self.tables)

    @property
    def has_long_log(self) -> bool:
        """Whether a read of the task shows only the end of its log."""
        log = self.tables[TABLES.index("log")]
        size = sum(len(entry) for _, entry in log)
        return len(log) > DEFAULT_LIMITS.log_entries or size > DEFAULT_LIMITS.log_bytes

    @property
    def size(self) -> int:
        """Bytes of its values."""
        return sum(len(value) for rows in self.tables for _, value in rows)


def may_collect(replica: Replica, task_id: bytes, upto_ms: int) -> bool:
    """Whether a task may go, by this replica's records: it has ended, and all partitions that wait for it were
    told."""
    if replica.filing.waiting.has_news_of(task_id):
        return False
    key = replica.prefix + task_id
    history, body = replica.store.get("history", key), replica.store.get("body", key)
    return has_ended(decode_history(history), None if body is None else Body.decode(body), upto_ms)


def remains_of(replica: Replica, task_ids: Sequence[bytes]) -> Iterator[Remains]:
    """The remains of these tasks, in their order; write to the store only after the last was taken."""
    for task_id in task_ids:
        key = replica.prefix + task_id
        tables = tuple(list(replica.store.walk(table, key, end_of(key))) for table in TABLES)
        digests = (merkle.digest_of(*row) for rows in tables for row in rows)
        yield Remains(task_id, tables, reduce(xor, digests, 0))


def page_of(replica: Replica, after: bytes, upto_ms: int, limit: int) -> tuple[list[Remains], bytes]:
    """The tasks that may go, among the next ``limit`` behind ``after`` with ids up to a time; and the last id
    looked at, empty at the end."""
    found: list[Remains] = []
    size = count = 0
    last = after
    for task_id in _ids(replica, after, upto_ms):
        if count >= limit or size >= DEFAULT_LIMITS.page_bytes:
            return found, last
        count, last = count + 1, task_id
        if may_collect(replica, task_id, upto_ms):
            found += remains_of(replica, [task_id])
            size += found[-1].size
    return found, b""


def _ids(replica: Replica, after: bytes, upto_ms: int) -> Iterator[bytes]:
    """The ids of all tasks of which anything is held: a seek in each table for each task."""
    start = replica.prefix + (after + b"\xff" * ID_BYTES if after else b"")
    stop = replica.prefix + (upto_ms + 1).to_bytes(8, "big")
    while True:
        heads = [row[0] for table in TABLES for row in replica.store.scan(table, start, stop, 1)]
        if not heads:
            return
        task_id = min(heads)[2 : 2 + ID_BYTES]
        yield task_id
        start = replica.prefix + task_id + b"\xff" * ID_BYTES


def shut(replica: Replica, task_ids: Sequence[bytes]) -> dict[bytes, History | None]:
    """The tasks among these to which nothing is added any more: those that had ended when ids of their age were
    closed, and those without a history that were collected."""
    old = replica.watermark.closed_to(task_ids)
    if not old:
        return {}
    found: dict[bytes, History | None] = dict(replica.gone(old))
    known = replica.histories(old)
    for task_id, record in zip(old, replica.bodies(old), strict=True):
        history = decode_history(known.get(replica.prefix + task_id))
        if record is not None and has_ended(history, Body.decode(record), replica.watermark.closed_ms):
            found[task_id] = history
    return found


def collect(replica: Replica, task_ids: Sequence[bytes]) -> None:
    """Delete all that is held of these tasks, index entries included."""
    count = 0
    for remains in list(remains_of(replica, task_ids)):
        bodies, histories, _ = remains.tables
        history = decode_history(histories[0][1] if histories else None)
        replica.filing.remove(remains.id, history, bodies[0][1] if bodies else None)
        for rank, rows in enumerate(remains.tables):
            keys = [key for key, _ in rows]
            replica.tree.toggle(rank, keys, digests_of(keys, [value for _, value in rows]))
            replica.store.pop_many(TABLES[rank], keys)
        count += len(bodies)
    replica.watermark.count(count)
