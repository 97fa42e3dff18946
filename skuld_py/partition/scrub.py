"""Going through the tables of a damaged partition: what cannot be read goes, the indexes are made anew.

Invariants: a chunk touches a bounded number of records and leaves a state from which the whole scrub may begin
again, so the caller commits after each and a crash costs only time. Nothing unreadable is left behind, and the
indexes are a function of what is (``Replica``): a task with a body waits in ``ready`` unless it is completed
or its newest claim has a horizon; then it is in ``lease``, lapsed or not, and the sweep of the next turn sees
to the rest. So no clock is needed here. A claim whose task's body is gone keeps its place in ``lease``, for a
voter hands over claims from there.

What was lost is missing until the replica has filled again from its peers; the partition is suspect meanwhile.

Rejected: repairing single records (a damaged page takes neighbours along, and an index that disagrees with its
data is found only by walking both); trusting indexes that can still be read, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skuld_py.errors import Corrupt
from skuld_py.model.body import header_of
from skuld_py.model.history import History, decode_history
from skuld_py.model.store import Row, Store
from skuld_py.partition import tables
from skuld_py.partition.suspicion import clear_damaged
from skuld_py.partition.tables import BODY_KNOWN, BODY_UNKNOWN
from skuld_py.partition.tally import CLAIMED, COMPLETED, WAITING, Tally

_TABLES = ("body", "history", "log", "ready", "lease", "counts")


class Scrub:
    """The scrub of one partition, in chunks of up to ``rows`` records."""

    def __init__(self, store: Store, partition: int, skew_ms: int, rows: int = 1_000) -> None:
        self.dropped: dict[str, int] = {}
        """How many records of each table could not be read; none of a table with none."""
        self._store = store
        self._partition = partition
        self._skew_ms = skew_ms
        self._rows = rows
        self._prefix = tables.prefix_of(partition)
        self._stop = tables.end_of(self._prefix)
        self._tally = Tally(store, self._prefix)
        self._passes: list[tuple[Callable[[str, bytes], bytes | None], str]] = [
            *((self._purge, table) for table in _TABLES), (self._check_histories, "history"),
            (self._clear, "ready"), (self._clear, "counts"), (self._review_leases, "lease"),
            (self._file_tasks, "body")]
        self._start = self._prefix

    def step(self) -> bool:
        """Stage the next chunk, to be committed; says whether there is more."""
        go_on, table = self._passes[0]
        start = go_on(table, self._start)
        self._tally.settle()
        if start is None:
            self._passes.pop(0)
            if not self._passes:
                clear_damaged(self._store, self._partition)
        self._start = self._prefix if start is None else start
        return bool(self._passes)

    def _purge(self, table: str, start: bytes) -> bytes | None:
        dropped, following = self._store.purge(table, start, self._stop, self._rows)
        self._note_dropped(table, len(dropped))
        return following

    def _note_dropped(self, table: str, count: int) -> None:
        if count:
            self.dropped[table] = self.dropped.get(table, 0) + count

    def _scan(self, table: str, start: bytes) -> tuple[list[Row], bytes | None]:
        rows = self._store.scan(table, start, self._stop, self._rows)
        return rows, rows[-1][0] + b"\0" if len(rows) == self._rows else None

    def _check_histories(self, table: str, start: bytes) -> bytes | None:
        """Drop what has its checksum and still is no history: an older fault, or a newer version."""
        rows, following = self._scan(table, start)
        bad = [key for key, record in rows if _history_of(record) is None]
        self._store.pop_many(table, bad)
        self._note_dropped(table, len(bad))
        return following

    def _clear(self, table: str, start: bytes) -> bytes | None:
        rows, following = self._scan(table, start)
        self._store.pop_many(table, [key for key, _ in rows])
        return following

    def _review_leases(self, table: str, start: bytes) -> bytes | None:
        """Keep the claims of tasks whose body is missing; all others are filed anew with their body."""
        rows, following = self._scan(table, start)
        self._store.pop_many(table, [key for key, _ in rows])
        keys = [self._prefix + key[10:] for key, _ in rows]
        bodies, histories = self._store.get_many("body", keys), self._store.get_many("history", keys)
        kept: list[Row] = []
        for key, (lease, held) in zip(keys, rows, strict=True):
            history = decode_history(histories.get(key))
            if key not in bodies and self._is_claimed(history) and lease == self._lease_key(key, history):
                kept.append((lease, BODY_UNKNOWN + held[1:]))
        self._store.put_many(table, kept)
        self._count([held[1:] for _, held in kept], CLAIMED)
        return following

    def _file_tasks(self, table: str, start: bytes) -> bytes | None:
        rows, following = self._scan(table, start)
        histories = self._store.get_many("history", [key for key, _ in rows])
        ready: list[Row] = []
        leases: list[Row] = []
        done: list[bytes] = []
        for key, body in rows:
            place, history = tables.place_of(header_of(body)), decode_history(histories.get(key))
            if history.completion.value is not None:
                done.append(place)
            elif self._is_claimed(history):
                leases.append((self._lease_key(key, history), BODY_KNOWN + place))
            else:
                ready.append((self._prefix + place + key[2:], b""))
        self._store.put_many("ready", ready)
        self._store.put_many("lease", leases)
        self._count([key[2:-20] for key, _ in ready], WAITING)
        self._count([held[1:] for _, held in leases], CLAIMED)
        self._count(done, COMPLETED)
        return following

    def _is_claimed(self, history: History) -> bool:
        return history.completion.value is None and history.horizon_ms > 0

    def _lease_key(self, key: bytes, history: History) -> bytes:
        return tables.lease_key(self._prefix, history.horizon_ms + self._skew_ms, key[2:])

    def _count(self, places: Iterable[bytes], state: int) -> None:
        for place in places:
            self._tally.add(tables.queue_of(place), state, 1)


def _history_of(record: bytes) -> History | None:
    try:
        return decode_history(record)
    except Corrupt:
        return None
