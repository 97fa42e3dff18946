"""The records of a partition in one order: body and history of a task, then its log, then the next task."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from skuld_py.model.store import Store

TABLES = ("body", "history", "log")
"""Those that replicas share, by rank: the order of records under one id."""

Record = tuple[bytes, int, bytes]
"""Key without its partition, rank of its table, value."""


def records(store: Store, prefix: bytes, start: bytes, stop: bytes) -> Iterator[Record]:
    """Records with ``start <= key < stop`` (keys without ``prefix``). Read them before the next write."""
    return heapq.merge(*(_rows(store, rank, prefix, start, stop) for rank in range(len(TABLES))))


def _rows(store: Store, rank: int, prefix: bytes, start: bytes, stop: bytes) -> Iterator[Record]:
    for key, value in store.walk(TABLES[rank], prefix + start, prefix + stop):
        yield key[2:], rank, value
