"""Which partitions' memory on this node is not to be trusted: durable marks, each with its reason.

A node that was wiped, turned back to an older state, or found a record it cannot read has forgotten promises
and claims without knowing which. Its replica neither votes nor takes part in grants until it has filled again
from the others and the mark is cleared. A *damaged* partition is suspect and must besides be scrubbed before
anything reads it again; that second mark goes when the scrub is through, the first stays for the refill.

Rejected: one mark for the node. A single bad record would cost it all its votes.
"""

from __future__ import annotations

from collections.abc import Iterable

from skuld_py.model.store import Store
from skuld_py.partition.data.tables import scrub_key, suspect_key


def mark_suspect(store: Store, partitions: Iterable[int], reason: str) -> None:
    """Stage marks; the newest reason stands."""
    store.put_many("meta", [(suspect_key(partition), reason.encode()) for partition in partitions])


def suspects(store: Store, partitions: int) -> dict[int, str]:
    """The partitions that are marked, each with its reason."""
    return _marked(store, {suspect_key(partition): partition for partition in range(partitions)})


def clear_suspect(store: Store, partition: int) -> None:
    """Stage the end of a mark: the replica has filled from enough others."""
    store.pop_many("meta", [suspect_key(partition)])


def mark_damaged(store: Store, partitions: Iterable[int], reason: str) -> None:
    """Stage marks of partitions that hold what cannot be read: suspect, and to be scrubbed."""
    partitions = list(partitions)
    mark_suspect(store, partitions, reason)
    store.put_many("meta", [(scrub_key(partition), reason.encode()) for partition in partitions])


def damaged(store: Store, partitions: int) -> dict[int, str]:
    """Which of ``partitions`` must be scrubbed, each with the reason."""
    return _marked(store, {scrub_key(partition): partition for partition in range(partitions)})


def clear_damaged(store: Store, partition: int) -> None:
    """Stage that the scrub is through; the partition stays suspect."""
    store.pop_many("meta", [scrub_key(partition)])


def _marked(store: Store, keys: dict[bytes, int]) -> dict[int, str]:
    found = store.get_many("meta", list(keys))
    return {partition: found[key].decode(errors="replace") for key, partition in keys.items() if key in found}
