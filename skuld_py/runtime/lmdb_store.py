"""The store port on LMDB: one environment, one named database per table, one transaction per batch.

Invariants:

* A record is the value followed by the 64-bit XXH3 of key and value, and nothing is returned unchecked.
  One call over the joined text takes a quarter of the time of a CRC-32 in two steps, which was an eighth
  of a node's work.
* One write transaction is open from a batch's first operation to its ``commit``, reads included. So
  reads see what was staged, and there is no second snapshot to keep in step.
* ``commit`` returns after the fsync, or raises. Whatever LMDB reports is ``StoreFailed``, and a store
  that failed once answers nothing more: after a failed fsync LMDB's *next* commit succeeds although
  pages of the failed one may be gone, so the only safe answer is to end the process and start over.
* One process per directory. LMDB would let two writers take turns; two nodes on one store would each
  miss the other's promises. The lock dies with its holder, however that ends.

LMDB checks no page. A damaged record is found here, a damaged key too when a scan comes by: the record's
checksum covers its key, and a scan verifies even the record it stops at. A damaged inner page can make a
record invisible or end the process, which peers repair, but never yields wrong bytes. That the file is there, and
as long as it was, ``store_file`` sees to.

Rejected: the writable memory map (a full disk becomes SIGBUS); read transactions for batches that only
read (they turn into writers at their first stage, under another snapshot); RocksDB (its Python iterator ends
early on damage, silently).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import cast

import lmdb
from xxhash import xxh3_64_digest

from skuld_py.errors import Corrupt, Refused, SkuldError
from skuld_py.model.store import TABLES, Row, Run, as_run, digests_of
from skuld_py.runtime.resident import MappedFile
from skuld_py.runtime.store_file import StoreFile, can_be_read

MAP_BYTES = 64 << 30
COMMITS_PER_RELEASE = 64
"""After this many commits the map is let go of (a few megabytes; mapping the hot pages again takes microseconds),
the file is checked, and so are the snapshots of other processes: one that was killed while it copied the store
would keep every page from being used again."""
PROBLEMS = (lmdb.Error, OSError, SystemError)
"""What LMDB's binding raises; the last one over a page that makes no sense."""
_OF_THE_SURROUNDINGS = (lmdb.MapFullError, lmdb.ReadersFullError, lmdb.DiskError, lmdb.MemoryError,
                        lmdb.ReadonlyError, OSError)
"""Problems that leave the data on the disk as it was; see also ``_is_damage``."""
_FULL_BYTES = 1 << 20
"""A disk with less room than this was full when a write failed."""
_SUM_BYTES = 8
_STEP = 4
_VALUE, _SUM = itemgetter(slice(None, -_SUM_BYTES)), itemgetter(slice(-_SUM_BYTES, None))


class StoreFailed(SkuldError):
    """The disk or the database beneath the store failed: end the process, retry nothing."""

    def __init__(self, directory: Path, problem: str, is_damaged: bool = False) -> None:
        if is_damaged:
            remedy = remedy_of(directory)
        elif _is_full(directory):
            remedy = ("its disk is full: make room there, then start the node again; nothing that was acknowledged"
                      " is lost")
        else:
            remedy = "check the disk's health, its free space and this user's quota, then start the node again"
        super().__init__("store_failed", f"the store in {directory} failed and this node must end: {problem};"
                         f" {remedy}", directory=str(directory))


def remedy_of(directory: Path) -> str:
    """What to do about a damaged store."""
    return (f"check the disk's health, move {directory} away and start the node again: it fills from the other"
            " nodes")


def _is_full(directory: Path) -> bool:
    try:
        return shutil.disk_usage(directory).free < _FULL_BYTES
    except OSError:
        return False


def _is_damage(problem: Exception) -> bool:
    """Whether a problem says that data on the disk is not as it was written. LMDB has a class for each such
    problem, and the plain one for what the system says: above all EIO, its word for a write of which a disk that
    filled up took a part only. A commit that fails so leaves the one before in force."""
    return type(problem) is not lmdb.Error and not isinstance(problem, _OF_THE_SURROUNDINGS)


class LmdbStore:
    """Fifteen checksummed tables in ``directory``, which it holds alone until ``close``.

    ``map_bytes`` is address space set aside, the most the data may grow to; it costs nothing until used.
    """

    def __init__(self, directory: Path, map_bytes: int = MAP_BYTES) -> None:
        self._directory = directory
        self._lock = _lock(directory)
        if not (directory / "lock.mdb").exists() and _is_full(directory):  # LMDB maps it, and would end by SIGBUS
            os.close(self._lock)
            raise StoreFailed(directory, "there is no room to make it")
        try:
            self._environment = lmdb.Environment(str(directory), map_size=map_bytes, max_dbs=len(TABLES),
                                                 mode=0o600)
            self._file = StoreFile(directory / "data.mdb")
            if self._is_short() and not can_be_read(directory, map_bytes):
                raise lmdb.CorruptedError(f"data.mdb was cut to {self._file.size} bytes")
            self._databases = {table: self._environment.open_db(table.encode()) for table in TABLES}
            _sync_directory(directory)
        except PROBLEMS as problem:
            os.close(self._lock)
            remedy = (remedy_of(directory) if _is_damage(problem) else
                      "check that it is this user's directory, on a local disk with free space")
            raise Refused("data_unusable", f"cannot open the store in {directory}: {problem}; {remedy}",
                          directory=str(directory)) from problem
        self._transaction: lmdb.Transaction[bytes] | None = None
        self._cursors: dict[str, lmdb.Cursor[bytes]] = {}
        self._failure: StoreFailed | None = None
        self._mapped = MappedFile(directory / "data.mdb")
        self._commits_left = COMMITS_PER_RELEASE

    def close(self) -> None:
        """Drop what was not committed and let go of the directory; closing twice does nothing."""
        if self._lock < 0:
            return
        self.abort()
        self._environment.close()
        os.close(self._lock)
        self._lock = -1

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""
        try:
            record = self._cursor(table).get(key)
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        return None if record is None else _checked(table, [key], [record])[0][0]

    def get_many(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of the keys that exist."""
        return self.get_digested(table, keys)[0]

    def get_digested(self, table: str, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """As ``get_many``, with the digest of each record found, in the order of the keys."""
        if not keys:
            return {}, []
        try:
            records = list(map(self._cursor(table).get, keys))
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        if None in records:
            keys = [key for key, record in zip(keys, records, strict=True) if record is not None]
            records = [record for record in records if record is not None]
        values, digests = _checked(table, keys, cast("list[bytes]", records))
        return dict(zip(keys, values, strict=True)), digests

    def get_run(self, table: str, keys: Sequence[bytes]) -> Run:
        """What is under each key, by one seek where the keys are all there is between the first and the last."""
        records = self._run(table, keys)
        return _checked(table, keys, records) if records else as_run(keys, *self.get_digested(table, keys))

    def sums_of_run(self, table: str, keys: Sequence[bytes]) -> list[bytes]:
        """What stands behind records that lie one behind the other; nothing if they do not."""
        return list(map(_SUM, self._run(table, keys)))

    def _run(self, table: str, keys: Sequence[bytes]) -> list[bytes]:
        """Records as they are stored, if their keys are all there is between the first and the last."""
        try:
            cursor = self._cursor(table)
            is_run = bool(keys) and cursor.set_key(keys[0]) and list(islice(
                cursor.iternext(values=False), len(keys))) == keys
            if not is_run:
                return []
            cursor.set_key(keys[0])
            return list(islice(cursor.iternext(keys=False), len(keys)))
        except PROBLEMS as problem:
            raise self._failed(problem) from problem

    def keys(self, table: str, start: bytes, stop: bytes, limit: int) -> list[bytes]:
        """Up to ``limit`` keys with ``start <= key < stop``, in order; their records are not looked at. Read in
        steps that grow: behind ``stop`` there may be millions."""
        keys: list[bytes] = []
        try:
            cursor = self._cursor(table)
            ahead, step = cursor.iternext(values=False) if cursor.set_range(start) else iter(()), _STEP
            while len(keys) < limit and (found := list(islice(ahead, min(step, limit - len(keys))))):
                keys, step = keys + found, 2 * step
                if found[-1] >= stop:
                    break
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        return keys if not keys or keys[-1] < stop else [key for key in keys if start <= key < stop]

    def put_many(self, table: str, rows: Sequence[Row]) -> list[bytes]:
        """Stage writes; gives the digest of each."""
        if not rows:
            return []
        digests: list[bytes] = []
        records: list[Row] = []
        for key, value in rows:
            digest = xxh3_64_digest(key + value)
            digests.append(digest)
            records.append((key, value + digest))
        try:
            self._cursor(table).putmulti(records)
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        return digests

    def pop_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Stage deletes; gives what each key held."""
        try:
            records = list(map(self._cursor(table).pop, keys))
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        if None in records:
            return [None if record is None else _checked(table, [key], [record])[0][0]
                    for key, record in zip(keys, records, strict=True)]
        return [*_checked(table, keys, cast("list[bytes]", records))[0]]

    def drop_run(self, table: str, keys: Sequence[bytes]) -> None:
        """Stage deletes of keys that are there; one seek for those that lie one behind the other."""
        try:
            cursor = self._cursor(table)
            for key in keys:
                if cursor.key() == key or cursor.set_key(key):
                    cursor.delete()
        except PROBLEMS as problem:
            raise self._failed(problem) from problem

    def is_any_between(self, table: str, low: bytes, high: bytes) -> bool:
        """Whether a key exists in ``low <= key <= high``, by one seek."""
        try:
            cursor = self._cursor(table)
            return cursor.set_range(low) and cursor.key() <= high
        except PROBLEMS as problem:
            raise self._failed(problem) from problem

    def scan(self, table: str, start: bytes, stop: bytes, limit: int) -> list[Row]:
        """Up to ``limit`` rows with ``start <= key < stop``, in key order."""
        rows: list[Row] = []
        try:
            cursor = self._cursor(table)
            if not cursor.set_range(start):
                return rows
            for key, record in islice(cursor.iternext(), limit):
                value = record[:-_SUM_BYTES]
                if not record.endswith(xxh3_64_digest(key + value)):
                    raise Corrupt(table, key if start <= key < stop else start)
                if key >= stop:
                    break
                rows.append((key, value))
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        return rows

    def walk(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """Rows as ``scan`` gives them, one at a time, so that large ones need not be in memory together."""
        try:
            transaction = self._begun()
            with transaction.cursor(self._databases[table]) as cursor:
                if not cursor.set_range(start):
                    return
                for key, record in cursor.iternext():
                    value = record[:-_SUM_BYTES]
                    if not record.endswith(xxh3_64_digest(key + value)):
                        raise Corrupt(table, key if start <= key < stop else start)
                    if key >= stop:
                        return
                    yield key, value
        except PROBLEMS as problem:
            raise self._failed(problem) from problem

    def walk_back(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """As ``walk``, the last row first."""
        try:
            transaction = self._begun()
            with transaction.cursor(self._databases[table]) as cursor:
                is_there = cursor.prev() if cursor.set_range(stop) else cursor.last()
                while is_there:
                    key, record = cursor.item()
                    value = record[:-_SUM_BYTES]
                    if not record.endswith(xxh3_64_digest(key + value)):
                        raise Corrupt(table, key if start <= key < stop else start)
                    if key < start:
                        return
                    yield key, value
                    is_there = cursor.prev()
        except PROBLEMS as problem:
            raise self._failed(problem) from problem

    def purge(self, table: str, start: bytes, stop: bytes, limit: int) -> tuple[list[bytes], bytes | None]:
        """Stage the deletion of unreadable records, as they lie there: a damaged key may be out of order."""
        dropped: list[bytes] = []
        following = start
        try:
            cursor = self._cursor(table)
            is_on = cursor.set_range(start)
            for _ in range(limit):
                key, record = cursor.item()
                if not is_on or not key:
                    return dropped, None
                if not record.endswith(xxh3_64_digest(key + record[:-_SUM_BYTES])):
                    dropped.append(key)
                    cursor.delete()
                    continue
                if key >= stop:
                    return dropped, None
                following = max(following, key + b"\0")
                is_on = cursor.next()
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        return dropped, following

    def abort(self) -> None:
        """Drop every staged write, because the batch met a record that cannot be read."""
        self._cursors.clear()
        if self._transaction is not None:
            self._transaction.abort()
            self._transaction = None

    def commit(self) -> None:
        """Make every staged write durable; raises ``StoreFailed`` when that is not certain."""
        if self._failure is not None:
            raise self._failure
        if self._transaction is None:
            return
        self._cursors.clear()
        try:
            self._transaction.commit()  # without an fsync when nothing was written
        except PROBLEMS as problem:
            raise self._failed(problem) from problem
        self._transaction = None
        self._commits_left -= 1
        if not self._commits_left:
            self._commits_left = COMMITS_PER_RELEASE
            self._mapped.release()
            with suppress(*PROBLEMS):
                self._environment.reader_check()
            if lost := self._file.problem():
                self._failure = StoreFailed(self._directory, lost, is_damaged=True)
                raise self._failure

    def _is_short(self) -> bool:
        """Whether the file is shorter than the pages that were ever in use."""
        pages = self._environment.info()["last_pgno"] + 1
        return self._file.size < pages * self._environment.stat()["psize"]

    def _cursor(self, table: str) -> lmdb.Cursor[bytes]:
        """The batch's cursor of a table; opens the batch's transaction at its first use."""
        cursor = self._cursors.get(table)
        if cursor is None:
            cursor = self._cursors[table] = self._begun().cursor(self._databases[table])
        return cursor

    def _begun(self) -> lmdb.Transaction[bytes]:
        """The batch's transaction."""
        if self._failure is not None:
            raise self._failure
        if self._transaction is None:
            self._transaction = self._environment.begin(write=True)
        return self._transaction

    def _failed(self, problem: Exception) -> StoreFailed:
        """Remember the first failure, so that nothing goes on after it, and return it to be raised."""
        if self._failure is None:
            self._failure = StoreFailed(self._directory, str(problem),
                                        is_damaged=_is_damage(problem))
        self._cursors.clear()
        return self._failure


def _checked(table: str, keys: Sequence[bytes], records: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The values and the digests that are in records, each checked."""
    values, stored = list(map(_VALUE, records)), list(map(_SUM, records))
    digests = digests_of(keys, values)
    if digests != stored:
        raise Corrupt(table, next(key for key, one, other in zip(keys, digests, stored, strict=True)
                                  if one != other))
    return values, digests


def _lock(directory: Path) -> int:
    """An exclusive lock on the directory, as an open file; ``Refused`` when another process has it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise Refused("data_unusable", f"cannot use {directory} as a data directory: {problem.strerror};"
                      " name a directory that this user may write", directory=str(directory)) from problem
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        os.close(lock)
        raise Refused("data_in_use", f"{directory} is in use by a node that runs; stop that one first, or"
                      " name another directory, for each node has its own", directory=str(directory)) from problem
    return lock


def _sync_directory(directory: Path) -> None:
    """LMDB syncs its file but not the file's name; without it a power cut may lose a whole new store."""
    for place in (directory, directory.parent):
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
