"""The store port in memory: what is not committed is gone after a crash, and only that.

Writes go straight into the tables and leave what they replaced in an undo record, so reads see
them for free. A commit forgets the undo record; a crash plays it back.

Users' unit tests and the simulator run nodes on it; no node of a cluster does.

Worse than a crash, and for the simulator's nemesis only: a store may be wiped, turned back to an earlier
snapshot, or hold a damaged record, which raises ``Corrupt`` when read as a real one does and whose bytes stay
known to checkers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from sortedcontainers import SortedDict

from skuld_py.errors import Corrupt
from skuld_py.model.store import TABLES, Row, Run, as_run, digests_of

COMPARED = ("body", "history", "log")
"""Tables whose records are compared with their copies: digests of others are not asked for."""
Change = tuple[str, bytes, bytes | None, bytes | None]
Snapshot = dict[str, dict[bytes, bytes]]


class Damaged(bytes):
    """What a record held before it was damaged."""


class MemoryStore:
    """Fifteen sorted tables with an undo record."""

    def __init__(self) -> None:
        self.tables: dict[str, SortedDict] = {table: SortedDict() for table in TABLES}
        self.undo: dict[str, dict[bytes, bytes | None]] = {table: {} for table in TABLES}
        self.commits = 0
        self._has_damage = False

    # -- the port ------------------------------------------------------------------------------

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""
        value: bytes | None = self.tables[table].get(key)
        if type(value) is Damaged:
            raise Corrupt(table, key)
        return value

    def get_many(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of the keys that exist."""
        data = self.tables[table]
        return self._checked(table, {key: data[key] for key in keys if key in data})

    def get_digested(self, table: str, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """As ``get_many``, with the digest of each record found, in the order of the keys."""
        found = self.get_many(table, keys)
        return found, digests_of(found.keys(), found.values())

    def get_run(self, table: str, keys: Sequence[bytes]) -> Run:
        """The value under each key, or None, and their digests."""
        return as_run(keys, *self.get_digested(table, keys))

    def sums_of_run(self, table: str, keys: Sequence[bytes]) -> list[bytes]:
        """Digests of records, unless others lie between them or one is not there."""
        data = self.tables[table]
        if not keys or list(data.irange(keys[0], keys[-1])) != list(keys):
            return []
        return digests_of(keys, [data[key] for key in keys])

    def keys(self, table: str, start: bytes, stop: bytes, limit: int) -> list[bytes]:
        """Up to ``limit`` keys with ``start <= key < stop``, in order."""
        return list(islice(self.tables[table].irange(start, stop, (True, False)), limit))

    def drop_run(self, table: str, keys: Sequence[bytes]) -> None:
        """Stage deletes."""
        self.pop_many(table, keys)

    def put_many(self, table: str, rows: Sequence[Row]) -> list[bytes]:
        """Stage writes; gives the digest of each."""
        data, undo = self.tables[table], self.undo[table]
        for key, value in rows:
            if key not in undo:
                undo[key] = data.get(key)
            data[key] = value
        if table not in COMPARED:
            return []
        return digests_of([key for key, _ in rows], [value for _, value in rows])

    def pop_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Stage deletes; gives what each key held."""
        data, undo = self.tables[table], self.undo[table]
        held: list[bytes | None] = []
        for key in keys:
            self._check(table, key, data.get(key))
            value = data.pop(key, None)
            if value is not None and key not in undo:
                undo[key] = value
            held.append(value)
        return held

    def is_any_between(self, table: str, low: bytes, high: bytes) -> bool:
        """Whether a key exists in ``low <= key <= high``."""
        data = self.tables[table]
        index = data.bisect_left(low)
        return index < len(data) and bool(data.peekitem(index)[0] <= high)

    def scan(self, table: str, start: bytes, stop: bytes, limit: int) -> list[Row]:
        """Up to ``limit`` rows with ``start <= key < stop``, in key order."""
        data = self.tables[table]
        keys = islice(data.irange(start, stop, (True, False)), limit)
        return list(self._checked(table, {key: data[key] for key in keys}).items())

    def walk(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """Rows as ``scan`` gives them, one at a time."""
        data = self.tables[table]
        for key in data.irange(start, stop, (True, False)):
            self._check(table, key, data[key])
            yield key, data[key]

    def walk_back(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """The same, the last one first."""
        data = self.tables[table]
        for key in data.irange(start, stop, (True, False), reverse=True):
            self._check(table, key, data[key])
            yield key, data[key]

    def purge(self, table: str, start: bytes, stop: bytes, limit: int) -> tuple[list[bytes], bytes | None]:
        """Stage the deletion of what is damaged."""
        data, undo = self.tables[table], self.undo[table]
        keys = list(islice(data.irange(start, stop, (True, False)), limit))
        dropped = [key for key in keys if type(data[key]) is Damaged]
        for key in dropped:
            undo.setdefault(key, data.pop(key))
        return dropped, keys[-1] + b"\0" if len(keys) == limit else None

    def _checked(self, table: str, found: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if self._has_damage:
            for key, value in found.items():
                self._check(table, key, value)
        return found

    def _check(self, table: str, key: bytes, value: bytes | None) -> None:
        if type(value) is Damaged:
            raise Corrupt(table, key)

    def commit(self) -> None:
        """Keep what was staged."""
        self.commits += 1
        for undo in self.undo.values():
            if undo:
                undo.clear()

    # -- the model -----------------------------------------------------------------------------

    @property
    def is_staged(self) -> bool:
        """Whether anything waits for a commit."""
        return any(self.undo.values())

    def crash(self) -> None:
        """Lose what was not committed."""
        for table, undo in self.undo.items():
            data = self.tables[table]
            for key, value in undo.items():
                if value is None:
                    data.pop(key, None)
                else:
                    data[key] = value
            undo.clear()

    def wipe(self) -> None:
        """Lose everything, as an exchanged disk does."""
        self.restore({})

    def snapshot(self) -> Snapshot:
        """A copy of what is committed."""
        copy = {table: dict(data) for table, data in self.tables.items()}
        for table, undo in self.undo.items():
            copy[table].update({key: value for key, value in undo.items() if value is not None})
            for key, value in undo.items():
                if value is None:
                    copy[table].pop(key, None)
        return copy

    def restore(self, snapshot: Snapshot) -> None:
        """Be what it was when the snapshot was taken."""
        for table in TABLES:
            self.undo[table].clear()
            self.tables[table] = SortedDict(snapshot.get(table, {}))

    def damage(self, table: str, key: bytes) -> bool:
        """Make a committed record unreadable, until it is written or purged; False when there is none."""
        undo, data = self.undo[table], self.tables[table]
        holder = undo if key in undo else data
        value = holder.get(key)
        if value is None:
            return False
        holder[key] = Damaged(value)
        self._has_damage = True
        return True

    def damaged(self) -> tuple[str, bytes] | None:
        """A committed record that cannot be read, as (table, key); None without one."""
        if self._has_damage:
            for tables in (self.tables, self.undo):
                for table, records in tables.items():
                    for key, value in records.items():
                        if type(value) is Damaged:
                            return table, key
            self._has_damage = False
        return None

    def records(self) -> list[tuple[str, bytes]]:
        """Every committed record as (table, key), in order."""
        return [(table, key) for table, data in self.snapshot().items() for key in sorted(data)]

    def committed(self, table: str, key: bytes) -> bytes | None:
        """What would be left of a record after a crash, or was until it was damaged."""
        undo = self.undo[table]
        value: bytes | None = undo[key] if key in undo else self.tables[table].get(key)
        return value

    def changes(self, table: str) -> Iterator[Change]:
        """What the next commit changes: (table, key, before, after). A damaged record was nothing before."""
        data = self.tables[table]
        for key, value in self.undo[table].items():
            yield table, key, None if type(value) is Damaged else value, data.get(key)

    def held(self, table: str, key: bytes) -> bytes | None:
        """The value, or what it was before it was damaged, for those that watch."""
        value: bytes | None = self.tables[table].get(key)
        return value

    def rows(self, table: str, prefix: bytes = b"") -> dict[bytes, bytes]:
        """All rows whose key starts with a prefix, for the checkers."""
        data = self.tables[table]
        if not prefix:
            return dict(data)
        return {key: data[key] for key in data.irange(prefix, prefix + b"\xff" * 64)}

    def digest(self, tables: Sequence[str] = TABLES) -> bytes:
        """A fingerprint of the contents."""
        digest = blake2b(digest_size=16)
        for table in tables:
            for key, value in self.tables[table].items():
                digest.update(len(key).to_bytes(4, "big") + key + len(value).to_bytes(4, "big") + value)
        return digest.digest()
