"""A6, and the rules of the tables that no client sees: indexes and counts are what the records make them.

They hold on every node at every time, so they look at no history.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from skuld_py.model.body import Body, header_of
from skuld_py.model.history import History
from skuld_py.model.prelude import DEPS
from skuld_py.simulation.checkers.evidence import Evidence, Finding, Records, judge
from skuld_py.simulation.checkers.keys import widths_of, wrong_lanes

_COUNTS = struct.Struct(">7q")
MET, SUB, TOLD = 1, 2, 3
IGNORE, INSTEAD = 3, 4
_STATES = ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")
_NOTHING = (0,) * len(_STATES)


def indexes_match(evidence: Evidence) -> Finding:
    """[X1] A task with a body and no completion is in one of ready, lease, time, dead, and dep or else the closed
    rows of lane, all else in none; each partition that waits for a task has one row of ``tell``, as its state and
    its notes make it; what a task names is known to be needed, and how long its window is; and of each lane the
    claims and the oldest tasks are what there is room for."""
    count, broken, widths = 0, [], widths_of(evidence)
    for name, store in evidence.stores.items():
        timed = Counter(key[:2] + key[10:] for table in ("lease", "time") for key in store.rows(table))
        ended, waits, notes = store.rows("dead"), waits_of(store), notes_of(store)
        blocked, histories, ready = blocked_in(store), store.rows("history"), store.rows("ready")
        for key, body in store.rows("body").items():
            count += 1
            record = histories.get(key)
            history = History.decode(record) if record else History()
            places = timed[key] + _is_ready(ready, key, body) + (key in ended) + (key in blocked)
            wanted = 0 if history.completion.value is not None else 1
            if places != wanted:
                broken.append(f"{name}: {key.hex()} is in {places} places, not {wanted}: {history}")
            missing = _missing(body, notes.get((key, MET), ())) if key in waits else {}
            if waits.get(key, {}) != missing:
                broken.append(f"{name}: {key.hex()} waits for {waits[key]}, its notes leave {missing}")
        broken += [*_strays(name, store), *_stray_waits(name, store, waits), *_wrong_needs(name, store),
                   *_untold(name, store, notes), *_unnoted(name, store), *wrong_lanes(name, store, waits, widths)]
    return judge("X1 indexes match the records", count, broken)


def _is_ready(ready: Collection[bytes], key: bytes, record: bytes) -> bool:
    """Whether a task is among those that are claimable, where it belongs by its priority and its age. A damaged
    row that was not read yet counts as there."""
    body = Body.decode(record)
    place = body.header.queue.encode() + b"\0" + ((1 << 31) - 1 - body.header.priority).to_bytes(4, "big")
    asked = body.made_ms.to_bytes(8, "big") if body.unique else b""
    return key[:2] + place + asked + key[2:] in ready


def _unnoted(name: str, store: Records) -> Iterator[str]:
    """Windows of names that a listing would not look into."""
    noted = {*store.rows("window")}
    for key, record in store.rows("body").items():
        window_ms = header_of(record).window_ms
        if window_ms and key[:2] + window_ms.to_bytes(4, "big") not in noted:
            yield f"{name}: nothing says that there are windows of {window_ms} ms, as of {key.hex()}"


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


def _wrong_needs(name: str, store: Records) -> Iterator[str]:
    """Each body has a row for each task that it names, and there are no others."""
    wanted = {key[:2] + dep + key[2:] for key, body in store.rows("body").items() if header_of(body).prelude & DEPS
              for dep in Body.decode(body).deps}
    for row in sorted(wanted ^ {*store.rows("need")}):
        yield f"{name}: need entry {row.hex()} is {'lacking' if row in wanted else 'of no task'}"


def waits_of(store: Records) -> dict[bytes, dict[bytes, int]]:
    """Blocked task -> the tasks it waits for, with their indexes; by its key."""
    waits: dict[bytes, dict[bytes, int]] = {}
    for key, value in store.rows("dep").items():
        if not key[2]:
            waits.setdefault(key[:2] + key[23:], {})[key[3:23]] = int.from_bytes(value, "big")
    return waits


def notes_of(store: Records) -> dict[tuple[bytes, int], list[int]]:
    """The notes of a task, by its key and their token."""
    notes: dict[tuple[bytes, int], list[int]] = {}
    for key in store.rows("log"):
        token, seq = int.from_bytes(key[22:30], "big"), int.from_bytes(key[30:34], "big")
        if token <= TOLD:
            notes.setdefault((key[:22], token), []).append(seq)
    return notes


def _missing(record: bytes, met: Sequence[int]) -> dict[bytes, int]:
    body = Body.decode(record)
    enough = {IGNORE: (1, 2, 3), INSTEAD: (2,)}.get(body.header.policy, (1,))
    known = {seq >> 2 for seq in met if seq & 3 in enough}
    return {dep: index for index, dep in enumerate(body.deps) if index not in known}


def _stray_waits(name: str, store: Records, waits: Mapping[bytes, Mapping[bytes, int]]) -> Iterator[str]:
    left = {key[:2] + key[3:]: int.from_bytes(value, "big") for key, value in store.rows("dep").items() if key[2]}
    bodies = store.rows("body")
    for key, deps in waits.items():
        if key not in bodies:
            yield f"{name}: dep entries of {key.hex()}, which is no task"
        elif left.pop(key, 1) != len(deps):
            yield f"{name}: {key.hex()} waits for {len(deps)}, another number is kept"
    for key in left:
        yield f"{name}: {key.hex()} waits for nothing, a number is kept"


def _untold(name: str, store: Records, notes: Mapping[tuple[bytes, int], Sequence[int]]) -> Iterator[str]:
    """Rows of ``tell`` that are not as the notes, and where tasks stand, make them."""
    ended = store.rows("dead")
    wanted: set[bytes] = set()
    for (key, token), partitions in notes.items():
        if token == SUB:
            history = History.decode(store.get("history", key) or bytes(24))
            end = 1 if history.completion.value is not None else 2 if key in ended else 0
            told = {(seq >> 2 & 0xFFF, seq & 3, seq >> 14) for seq in notes.get((key, TOLD), ())}
            for partition in partitions:
                number = history.revived.value >> 64 if end == 2 else 0
                if (partition, end, number) not in told:
                    row = key[:2] + bytes([end > 0]) + key[2:] + partition.to_bytes(2, "big")
                    wanted.add(row + bytes([end] if end else []))
    found = {*store.rows("tell")}
    for row in sorted(found ^ wanted):
        yield f"{name}: tell entry {row.hex()} is {'not made by' if row in found else 'lacking for'} the notes"


def blocked_in(store: Records) -> set[bytes]:
    """The tasks that wait for others, or behind others of their lane, by their keys."""
    return {*waits_of(store), *(key[:2] + key[-20:] for key, value in store.rows("lane").items()
                                if key[2:3] == b"w" and not value[0])}


def counts_match(evidence: Evidence) -> Finding:
    """[A6] The counts kept are those a scan would give, and of what has none there is no row."""
    count, broken = 0, []
    for name, store in evidence.stores.items():
        kept = {key: _COUNTS.unpack(value) for key, value in store.rows("counts").items()}
        found: dict[bytes, Counter[str]] = {key: Counter() for key in kept}
        for key, body in store.rows("body").items():
            queue = key[:2] + header_of(body).queue.encode()
            if any((store.get("history", key) or b"")[:8]):
                found.setdefault(queue, Counter())["completed"] += 1
        for key in store.rows("ready"):
            found.setdefault(key[:2] + key[2:].partition(b"\0")[0], Counter())["waiting"] += 1
        for key, held in store.rows("lease").items():
            found.setdefault(key[:2] + held[1:-5], Counter())["claimed"] += 1
        for key, place in store.rows("time").items():
            found.setdefault(key[:2] + place[:-5], Counter())["scheduled"] += 1
        for key in sorted(blocked_in(store)):
            blocked = key[:2] + header_of(store.get("body", key) or b"").queue.encode()
            found.setdefault(blocked, Counter())["blocked"] += 1
        for key, value in store.rows("dead").items():
            found.setdefault(key[:2] + value[1:-5], Counter())[_STATES[value[0]]] += 1
        for queue, numbers in found.items():
            count += 1
            scanned = tuple(numbers[state] for state in _STATES)
            if kept.get(queue, _NOTHING) != scanned:
                broken.append(f"{name}: {queue!r} counts {kept.get(queue)}, a scan gives {scanned}")
        broken += [f"{name}: {queue!r} has a row, and no task" for queue, row in kept.items() if row == _NOTHING]
    return judge("A6 counts match the records", count, broken)
