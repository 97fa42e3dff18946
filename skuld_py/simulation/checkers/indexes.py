"""A6, and the rules of the tables that no client sees: indexes and counts are what the records make them.

They hold on every node at every time, so they look at no history.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from skuld_py.model.body import header_of
from skuld_py.model.history import History
from skuld_py.simulation.checkers.evidence import Evidence, Finding, Records, judge

_COUNTS = struct.Struct(">7q")
_STATES = ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")


def indexes_match(evidence: Evidence) -> Finding:
    """[X1] A task with a body and no completion is in one of ready, lease, time and dead, all else in none."""
    count, broken = 0, []
    for name, store in evidence.stores.items():
        timed = Counter(key[:2] + key[10:] for table in ("lease", "time") for key in store.rows(table))
        ended = store.rows("dead")
        for key, body in store.rows("body").items():
            count += 1
            record = store.get("history", key)
            history = History.decode(record) if record else History()
            places = timed[key] + _is_ready(store, key, body) + (key in ended)
            wanted = 0 if history.completion.value is not None else 1
            if places != wanted:
                broken.append(f"{name}: {key.hex()} is in {places} places, not {wanted}: {history}")
        broken += _strays(name, store)
    return judge("X1 indexes match the records", count, broken)


def _is_ready(store: Records, key: bytes, body: bytes) -> bool:
    header = header_of(body)
    place = header.queue.encode() + b"\0" + ((1 << 31) - 1 - header.priority).to_bytes(4, "big")
    return store.get("ready", key[:2] + place + key[2:]) is not None


def _strays(name: str, store: Records) -> Iterator[str]:
    bodies = store.rows("body")
    for key in store.rows("ready"):
        if key[:2] + key[-20:] not in bodies:
            yield f"{name}: ready entry {key.hex()} of no task"
    for table in ("time", "expiry"):
        for key in store.rows(table):
            if key[:2] + key[10:] not in bodies:
                yield f"{name}: {table} entry {key.hex()} of no task"
    for key, value in store.rows("dead").items():
        history = History.decode(store.get("history", key) or bytes(24))
        if key not in bodies or history.completion.value is not None:
            yield f"{name}: dead entry {key.hex()} of no task that ended so: {history}"
        elif (value[0] == _STATES.index("cancelled")) != (history.cancelled.value is not None):
            yield f"{name}: dead entry {key.hex()} tells {value!r} of {history}"
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
            queue = key[:2] + header_of(body).queue.encode()
            if any((store.get("history", key) or b"")[:8]):
                found.setdefault(queue, Counter())["completed"] += 1
        for key in store.rows("ready"):
            found.setdefault(key[:-25], Counter())["waiting"] += 1
        for key, held in store.rows("lease").items():
            found.setdefault(key[:2] + held[1:-5], Counter())["claimed"] += 1
        for key, place in store.rows("time").items():
            found.setdefault(key[:2] + place[:-5], Counter())["scheduled"] += 1
        for key, value in store.rows("dead").items():
            found.setdefault(key[:2] + value[1:-5], Counter())[_STATES[value[0]]] += 1
        for queue, numbers in found.items():
            count += 1
            scanned = tuple(numbers[state] for state in _STATES)
            if kept.get(queue, (0,) * len(_STATES)) != scanned:
                broken.append(f"{name}: {queue!r} counts {kept.get(queue)}, a scan gives {scanned}")
    return judge("A6 counts match the records", count, broken)
