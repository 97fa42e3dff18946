"""The store port in memory: what is not committed is gone after a crash, and only that.

Writes go straight into the tables and leave what they replaced in an undo record, so reads see
them for free. A commit forgets the undo record; a crash plays it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from sortedcontainers import SortedDict

from skuld_py.model.store import TABLES, Row

Change = tuple[str, bytes, bytes | None, bytes | None]


class MemoryStore:
    """Seven sorted tables with an undo record."""

    def __init__(self) -> None:
        self.tables: dict[str, SortedDict] = {table: SortedDict() for table in TABLES}
        self.undo: dict[str, dict[bytes, bytes | None]] = {table: {} for table in TABLES}
        self.commits = 0

    # -- the port ------------------------------------------------------------------------------

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""
        value: bytes | None = self.tables[table].get(key)
        return value

    def get_many(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of the keys that exist."""
        data = self.tables[table]
        return {key: data[key] for key in keys if key in data}

    def put_many(self, table: str, rows: Iterable[Row]) -> None:
        """Stage writes."""
        data, undo = self.tables[table], self.undo[table]
        for key, value in rows:
            if key not in undo:
                undo[key] = data.get(key)
            data[key] = value

    def pop_many(self, table: str, keys: Iterable[bytes]) -> list[bytes | None]:
        """Stage deletes; gives what each key held."""
        data, undo = self.tables[table], self.undo[table]
        held: list[bytes | None] = []
        for key in keys:
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
        return [(key, data[key]) for key in keys]

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

    def committed(self, table: str, key: bytes) -> bytes | None:
        """What would be left of a record after a crash."""
        undo = self.undo[table]
        return undo[key] if key in undo else self.get(table, key)

    def changes(self, table: str) -> Iterator[Change]:
        """What the next commit changes: (table, key, before, after)."""
        data = self.tables[table]
        for key, value in self.undo[table].items():
            yield table, key, value, data.get(key)

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
