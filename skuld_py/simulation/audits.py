"""What must hold of the stores once a run is healed, drained and quiet.

These are the convergence checks: equal records on all owners, every task completed, and indexes
and counts that are what the records make them. They look at no history.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from skuld_py.model.task import History, decode_body
from skuld_py.simulation.checkers import Evidence, Finding, judge
from skuld_py.simulation.store import MemoryStore

REPLICATED = ("body", "history", "log")
_COUNTS = struct.Struct(">qqq")


def _prefix(partition: int) -> bytes:
    return partition.to_bytes(2, "big")


def replicas_are_equal(evidence: Evidence) -> Finding:
    """[V2] Records of a partition are equal, byte for byte, on all its owners."""
    rows = 0

    def broken() -> Iterator[str]:
        nonlocal rows
        for partition, owners in sorted(evidence.owners.items()):
            for table in REPLICATED:
                first, *others = (evidence.stores[name].rows(table, _prefix(partition)) for name in owners)
                rows += len(first)
                for name, other in zip(owners[1:], others, strict=True):
                    keys = sorted(key for key in {**first, **other} if first.get(key) != other.get(key))
                    yield from (f"{table} {key.hex()}: {owners[0]} has {first.get(key)!r}, {name} has"
                                f" {other.get(key)!r}" for key in keys)
    lines = list(broken())
    return judge("replicas are equal after healing", rows, lines)


def everything_is_completed(evidence: Evidence) -> Finding:
    """[V, O3] Every task that any owner stores was claimed and completed in the end."""
    count, broken = 0, []
    for partition, owners in sorted(evidence.owners.items()):
        for name in owners:
            store = evidence.stores[name]
            for key in store.rows("body", _prefix(partition)):
                count += 1
                if not any((store.get("history", key) or b"")[:8]):
                    broken.append(f"{name} still has {key.hex()} uncompleted")
    return judge("every task is completed after healing", count, broken)


def indexes_match(evidence: Evidence) -> Finding:
    """A task with a body and no completion is in exactly one of ready and lease, all else in neither."""
    count, broken = 0, []
    for name, store in evidence.stores.items():
        leased = Counter(key[:2] + key[10:] for key in store.rows("lease"))
        for key, body in store.rows("body").items():
            count += 1
            record = store.get("history", key)
            history = History.decode(record) if record else History()
            places = leased[key] + _is_ready(store, key, body)
            wanted = 0 if history.completion.value is not None else 1
            if places != wanted:
                broken.append(f"{name}: {key.hex()} is in {places} places, not {wanted}: {history}")
        broken += _strays(name, store)
    return judge("indexes match the records", count, broken)


def _is_ready(store: MemoryStore, key: bytes, body: bytes) -> bool:
    header, _ = decode_body(body)
    place = header.queue.encode() + b"\0" + ((1 << 31) - 1 - header.priority).to_bytes(4, "big")
    return store.get("ready", key[:2] + place + key[2:]) is not None


def _strays(name: str, store: MemoryStore) -> Iterator[str]:
    bodies = store.rows("body")
    for key in store.rows("ready"):
        if key[:2] + key[-20:] not in bodies:
            yield f"{name}: ready entry {key.hex()} of no task"
    for key in store.rows("lease"):
        record = store.get("history", key[:2] + key[10:])
        if record is None or any(record[:8]):
            yield f"{name}: lease entry {key.hex()} of {record!r}"


def counts_match(evidence: Evidence) -> Finding:
    """[A6] The counts kept are those a scan would give."""
    count, broken = 0, []
    for name, store in evidence.stores.items():
        kept = {key: _COUNTS.unpack(value) for key, value in store.rows("counts").items()}
        found: dict[bytes, Counter[str]] = {key: Counter() for key in kept}
        for key, body in store.rows("body").items():
            queue = key[:2] + decode_body(body)[0].queue.encode()
            if any((store.get("history", key) or b"")[:8]):
                found.setdefault(queue, Counter())["completed"] += 1
        for key in store.rows("ready"):
            found.setdefault(key[:-25], Counter())["waiting"] += 1
        for key, held in store.rows("lease").items():
            found.setdefault(key[:2] + held[1:-5], Counter())["claimed"] += 1
        for queue, numbers in found.items():
            count += 1
            scanned = (numbers["waiting"], numbers["claimed"], numbers["completed"])
            if kept.get(queue, (0, 0, 0)) != scanned:
                broken.append(f"{name}: {queue!r} counts {kept.get(queue)}, a scan gives {scanned}")
    return judge("counts match the records", count, broken)
