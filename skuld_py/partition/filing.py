"""Where the tasks of a partition wait: the indexes over its records.

Invariants: the indexes are a function of the replicated data and of which leases this node has seen lapse. A task
with a body and without a completion is in exactly one of ``ready`` and ``lease``; a completed one is in neither.
So a claim never scans, memory does not grow with the backlog, and a new leader serves at once.

Batches take the common case (fresh ids, one claim, one completion) as columns; whatever is odd goes through
``refile``, which works from decoded values and is correct for every case. The laws tests hold the two against
each other.

A claim can arrive before its task's body (the copies travel apart). Then the lease entry says so, and the task
enters ``ready`` only once the body is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from operator import add

from skuld_py.model.body import header_of
from skuld_py.model.history import History
from skuld_py.model.store import Store
from skuld_py.partition import tables
from skuld_py.partition.tables import BODY_KNOWN, BODY_UNKNOWN
from skuld_py.partition.tally import CLAIMED, COMPLETED, WAITING, Tally


class Body(Enum):
    """Whether a task's body is here: not, since before, or since this very change."""

    ABSENT = 0
    KNOWN = 1
    NEW = 2


class Filing:
    """The indexes of one partition, and its tally."""

    def __init__(self, store: Store, prefix: bytes, skew_ms: int) -> None:
        self._store = store
        self._prefix = prefix
        self._skew_ms = skew_ms
        self.tally = Tally(store, prefix)
        self.next_lapse_ms: int | None = None
        self.find_next_lapse()

    def await_claim(self, place: bytes, ids: Sequence[bytes]) -> None:
        """New tasks without a history wait at their place."""
        at = self._prefix + place
        self._store.put_many("ready", [(at + task_id, b"") for task_id in ids])
        self.tally.add(tables.queue_of(place), WAITING, len(ids))

    def heads(self, queue: str, after: bytes | None, limit: int) -> list[bytes]:
        """Waiting tasks of a queue as (place + id), best first, behind ``after``."""
        base = self._prefix + queue.encode() + b"\0"
        start = base if after is None else self._prefix + after + b"\0"
        return [key[2:] for key, _ in self._store.scan("ready", start, tables.end_of(base), limit)]

    def move_to_lease(self, deadline_ms: int, ids: Sequence[bytes], places: Sequence[bytes]) -> None:
        """Take tasks out of ``ready``; those not in it have no body here yet."""
        if not ids:
            return
        found = self._store.pop_many("ready", [self._prefix + head for head in map(add, places, ids)])
        held = [(BODY_UNKNOWN if was is None else BODY_KNOWN) + place
                for place, was in zip(places, found, strict=True)]
        at = self._prefix + deadline_ms.to_bytes(8, "big")
        self._store.put_many("lease", [(at + task_id, place) for task_id, place in zip(ids, held, strict=True)])
        for place, count in Counter(held).items():
            self.tally.add(tables.queue_of(place[1:]), CLAIMED, count)
            self.tally.add(tables.queue_of(place[1:]), WAITING, -count * (place[:1] == BODY_KNOWN))
        self._note_lapse(deadline_ms)

    def close_leases(self, keys: Sequence[bytes]) -> None:
        found = self._store.pop_many("lease", keys)
        for held, count in Counter(found).items():
            if held is not None:
                self.tally.add(tables.queue_of(held[1:]), CLAIMED, -count)
                self.tally.add(tables.queue_of(held[1:]), COMPLETED, count * (held[:1] == BODY_KNOWN))
        if None not in found:
            return
        lapsed = [self._prefix + key[10:] for key, held in zip(keys, found, strict=True) if held is None]
        for key, body in self._store.get_many("body", lapsed).items():
            place = tables.place_of(header_of(body))
            self._leave_ready(place, key[2:])
            self.tally.add(tables.queue_of(place), COMPLETED, 1)

    def _leave_ready(self, place: bytes, task_id: bytes) -> None:
        if self._store.pop_many("ready", [self._prefix + place + task_id])[0] is not None:
            self.tally.add(tables.queue_of(place), WAITING, -1)

    def refile(self, now_ms: int, task_id: bytes, old: History, new: History, place: bytes | None,
                body: Body) -> None:
        """Put a task where its new history says, out of wherever its old one had put it."""
        if old.horizon_ms:
            lease = tables.lease_key(self._prefix, old.horizon_ms + self._skew_ms, task_id)
            held = self._store.pop_many("lease", [lease])[0]
            if held is not None:
                self.tally.add(tables.queue_of(held[1:]), CLAIMED, -1)
                place = place or held[1:]
        if place is None:
            return
        if body is Body.KNOWN:
            self._leave_ready(place, task_id)
        was_counted = body is Body.KNOWN and old.completion.value is not None
        self._file(now_ms, task_id, new, place, body is not Body.ABSENT, was_counted)

    def _file(self, now_ms: int, task_id: bytes, history: History, place: bytes, has_body: bool,
              was_counted: bool) -> None:
        queue = tables.queue_of(place)
        deadline_ms = history.horizon_ms + self._skew_ms
        if history.completion.value is not None:
            if has_body and not was_counted:
                self.tally.add(queue, COMPLETED, 1)
        elif history.horizon_ms and deadline_ms > now_ms:
            lease = tables.lease_key(self._prefix, deadline_ms, task_id)
            self._store.put_many("lease", [(lease, (BODY_KNOWN if has_body else BODY_UNKNOWN) + place)])
            self.tally.add(queue, CLAIMED, 1)
            self._note_lapse(deadline_ms)
        elif has_body:
            self._store.put_many("ready", [(self._prefix + place + task_id, b"")])
            self.tally.add(queue, WAITING, 1)

    def sweep(self, now_ms: int, limit: int) -> bool:
        """Return lapsed claims to ``ready``; says whether any came back."""
        if self.next_lapse_ms is None or self.next_lapse_ms > now_ms:
            return False
        stop = self._prefix + (now_ms + 1).to_bytes(8, "big")
        rows = self._store.scan("lease", self._prefix, stop, limit)
        self._store.pop_many("lease", [key for key, _ in rows])
        back = [(self._prefix + held[1:] + key[10:], b"") for key, held in rows if held[:1] == BODY_KNOWN]
        self._store.put_many("ready", back)
        for _, held in rows:
            self.tally.add(tables.queue_of(held[1:]), CLAIMED, -1)
            if held[:1] == BODY_KNOWN:
                self.tally.add(tables.queue_of(held[1:]), WAITING, 1)
        self.find_next_lapse()
        return bool(back)

    def _note_lapse(self, deadline_ms: int) -> None:
        if self.next_lapse_ms is None or deadline_ms < self.next_lapse_ms:
            self.next_lapse_ms = deadline_ms

    def find_next_lapse(self) -> None:
        rows = self._store.scan("lease", self._prefix, self._prefix + b"\xff" * 8, 1)
        self.next_lapse_ms = int.from_bytes(rows[0][0][2:10], "big") if rows else None

    def leases(self, after: bytes, limit: int) -> list[tuple[bytes, bytes, bytes]]:
        """Live claims as (cursor, id, place), in the order of lapsing, behind a cursor."""
        start = self._prefix + after + b"\0" if after else self._prefix
        rows = self._store.scan("lease", start, tables.end_of(self._prefix), limit)
        return [(key[2:], key[10:], held[1:]) for key, held in rows]
