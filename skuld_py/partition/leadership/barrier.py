"""Until when nothing may be granted, as a partition's document last said, kept with the data.

Voters that are given up may have granted what nobody knows of who remains. All of it is over at the barrier, which
the document names. Should ZooKeeper be lost before, the document is made anew from data directories; were the
barrier forgotten then, a task would be granted beside a claim that goes on. So who reads a document keeps its
barrier, in the very commit in which it learns of that epoch's leader.

A store of a release that kept none says 0, and a release that knows of none passes the record over.
"""

from __future__ import annotations

from skuld_py.errors import Corrupt
from skuld_py.model.store import Store
from skuld_py.partition.data.tables import barrier_key

_BYTES = 8


def load_barrier(store: Store, partition: int) -> int:
    """What is stored, or 0 for none."""
    record = store.get("meta", barrier_key(partition))
    if record is None:
        return 0
    if len(record) != _BYTES:
        raise Corrupt("meta", barrier_key(partition))
    return int.from_bytes(record, "big")


def save_barrier(store: Store, partition: int, until_ms: int) -> None:
    """Stage it."""
    store.put_many("meta", [(barrier_key(partition), until_ms.to_bytes(_BYTES, "big"))])
