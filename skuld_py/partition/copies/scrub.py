"""Going through the tables of a damaged partition: what cannot be read goes, the indexes are made anew.

Invariants: a chunk touches a bounded number of records and leaves a state from which the whole scrub may begin
again, so the caller commits after each and a crash costs only time. Nothing unreadable is left behind, and the
indexes are a function of what is (``Filing``): each task with a body is filed as of the time 0, when every claim
is held and every pause lasts, and the sweep of the next turn sees to the rest. So no clock is needed here. A
claim whose task's body is gone keeps its place in ``lease``, for a voter hands over claims from there.

What was lost is missing until the replica has filled again from its peers; the partition is suspect meanwhile.

Rejected: repairing single records (a damaged page takes neighbours along, and an index that disagrees with its
data is found only by walking both); trusting indexes that can still be read, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.errors import Corrupt
from skuld_py.model.body import Body
from skuld_py.model.history import History, decode_history
from skuld_py.model.ids import is_laned
from skuld_py.model.notes import SUB
from skuld_py.model.state import State
from skuld_py.model.store import Row, Store
from skuld_py.partition.data import tables
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.filing import Filing
from skuld_py.partition.data.tables import BODY_UNKNOWN
from skuld_py.partition.data.windows import note_windows
from skuld_py.partition.leadership.suspicion import clear_damaged

_INDEXES = ("ready", "time", "expiry", "dead", "dep", "tell", "need", "lane", "window", "counts")
_TABLES = ("body", "history", "log", "lease", *_INDEXES)


class Scrub:
    """The scrub of one partition, in chunks of up to ``rows`` records."""

    def __init__(self, store: Store, partition: int, skew_ms: int, rows: int = 1_000) -> None:
        self.dropped: dict[str, int] = {}
        """How many records of each table could not be read; a table without such records is left out."""
        self._store = store
        self._partition = partition
        self._skew_ms = skew_ms
        self._rows = rows
        self._prefix = tables.prefix_of(partition)
        self._stop = tables.end_of(self._prefix)
        self._filed: Filing | None = None
        self._passes: list[tuple[Callable[[str, bytes], bytes | None], str]] = [
            *((self._purge, table) for table in _TABLES), (self._check_histories, "history"),
            *((self._clear, table) for table in _INDEXES), (self._review_leases, "lease"),
            (self._file_tasks, "body"), (self._file_subscriptions, "log")]
        self._start = self._prefix

    def step(self) -> bool:
        """Stage the next chunk, to be committed; says whether there is more."""
        go_on, table = self._passes[0]
        start = go_on(table, self._start)
        if self._filed is not None:
            self._filed.tally.settle()
        if start is None:
            self._passes.pop(0)
            if not self._passes:
                clear_damaged(self._store, self._partition)
        self._start = self._prefix if start is None else start
        return bool(self._passes)

    @property
    def _filing(self) -> Filing:
        """Reads the indexes when it is made, so not before they are readable."""
        if self._filed is None:
            self._filed = Filing(self._store, self._prefix, self._skew_ms, Bulletin(), {})
        return self._filed

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
        for lease, held in kept:
            self._filing.tally.add(tables.queue_of(held[1:]), State.CLAIMED, 1)
            if is_laned(lease[10:]):
                self._filing.lanes.hold(lease[10:], held[1:])
        return following

    def _file_tasks(self, table: str, start: bytes) -> bytes | None:
        rows, following = self._scan(table, start)
        histories = self._store.get_many("history", [key for key, _ in rows])
        for key, body in rows:
            self._filing.file(0, key[2:], decode_history(histories.get(key)), Body.decode(body))
        self._filing.needs.add_each(rows)
        note_windows(self._store, self._prefix, rows)
        return following

    def _file_subscriptions(self, table: str, start: bytes) -> bytes | None:
        """Enter the partitions that wait for each task, now that it shows whether the task has ended."""
        rows, following = self._scan(table, start)
        by_partition: dict[int, list[bytes]] = {}
        for task_id, token, seq in [tables.split_log_key(key) for key, _ in rows]:
            if token == SUB:
                by_partition.setdefault(seq, []).append(task_id)
        for partition, ids in by_partition.items():
            histories = self._store.get_many("history", [self._prefix + task_id for task_id in ids])
            self._filing.note(0, SUB, partition, ids, histories)
        return following

    def _is_claimed(self, history: History) -> bool:
        return history.completion.value is None and history.horizon_ms > 0

    def _lease_key(self, key: bytes, history: History) -> bytes:
        return tables.lease_key(self._prefix, history.horizon_ms + self._skew_ms, key[2:])


def _history_of(record: bytes) -> History | None:
    try:
        return decode_history(record)
    except Corrupt:
        return None
