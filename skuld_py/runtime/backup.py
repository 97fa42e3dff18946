"""Backups: copies of a node's store, taken while the node serves, each with a manifest, each read through.

A backup is a directory that has the form of a data directory: ``data.mdb``, ``roster.json`` in a cluster with keys
(public keys only), and ``manifest.json``. The node's secret key is not in it: a node without one makes another.

Invariants:

* The node is not asked and not held up. A process of its own reads one snapshot of LMDB; the node goes on writing.
  What it frees meanwhile it cannot use again before the copy is done, so its file grows by what it changes in that
  time. Should the copying process be killed, the node gives its snapshot up by itself (``LmdbStore``).
* A backup is there whole, or not at all: it is made under another name, synced, read through record by record, and
  renamed last. Whatever was broken off is taken away by the next run.
* A backup is no disk that a node has run on, and says so inside ``data.mdb`` (``node.life.backup``).

Rejected: to have the node copy itself (a request that writes where a client says, and a thread beside the turn
that shares its memory); to copy the file (torn pages); to send the store over the network (every tool does that).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import lmdb
from xxhash import xxh3_64_digest

from skuld_py import __version__
from skuld_py.errors import Corrupt, Refused
from skuld_py.model.store import TABLES
from skuld_py.node.life.backup import mark_copy
from skuld_py.node.life.rebuilding import Remains, read_remains
from skuld_py.runtime.agreement import STORE_FORMAT, check_format
from skuld_py.runtime.lmdb_store import MAP_BYTES, PROBLEMS, LmdbStore
from skuld_py.runtime.node_keys import ROSTER_FILE

MANIFEST_FILE, DATA_FILE = "manifest.json", "data.mdb"
_FORM = 1
_BLOCK = 1 << 20
_SUM_BYTES = 8


@attrs.frozen
class Manifest:
    """What a backup is of. ``cluster_id``: of the cluster itself, which a name is not; ``position``: of the
    coordination log, -1 if none was kept; ``epoch``: the newest promised in any partition; ``taken_ms``: since
    1970, by the clock of the machine; ``records``: by table; ``sums``: SHA-256 by file."""

    cluster: str
    cluster_id: str
    node: str
    partitions: int
    position: int
    epoch: int
    taken_ms: int
    release: str
    store_format: int
    records: Mapping[str, int]
    sums: Mapping[str, str]
    form: int = _FORM

    @property
    def text(self) -> str:
        """The file."""
        return json.dumps(attrs.asdict(self), indent=1, sort_keys=True) + "\n"


def take_backup(data: Path, to: Path) -> tuple[Path, Manifest]:
    """Copy the store of a data directory into a new directory below ``to``, named for its node. ``Refused`` naming
    what hinders it; nothing is left of it then."""
    _check_source(data)
    aside = to / f".{secrets.token_hex(8)}.part"
    try:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(to)
        aside.mkdir(mode=0o700)
    except OSError as problem:
        raise Refused("backup_failed", f"{to} cannot be written: {problem.strerror}; name a directory that this"
                      " user may write", to=str(to)) from problem
    try:
        with _held(aside):
            return _taken(data, aside)
    except OSError as problem:
        raise Refused("backup_failed", f"the backup into {to} failed: {problem}; check its disk's free space and"
                      " health", to=str(to)) from problem
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _taken(data: Path, aside: Path) -> tuple[Path, Manifest]:
    taken_ms = time.time_ns() // 1_000_000
    _copy(data, aside)
    manifest = _sealed(data, aside, taken_ms)
    place = aside.parent / manifest.node.replace(":", "-")
    if place.exists():
        raise Refused("backup_exists", f"{place} exists; name another directory, one for each time, or move it"
                      " away", to=str(place))
    aside.rename(place)
    _sync(aside.parent)
    return place, manifest


def check_backup(place: Path) -> Manifest:
    """What a backup is of, once all its bytes and records are found to be what was written; ``Refused`` if not."""
    manifest = read_manifest(place)
    for name, wanted in manifest.sums.items():
        try:
            found = _sum(place / name)
        except OSError as problem:
            raise Refused("bad_backup", f"{place / name} cannot be read: {problem.strerror}; use another backup",
                          backup=str(place)) from problem
        if found != wanted:
            raise Refused("bad_backup", f"{place / name} is not what was written: its SHA-256 is {found}, not"
                          f" {wanted}; a node has run on it, or it is damaged: use another backup",
                          backup=str(place))
    records = count_records(place)
    if records != manifest.records:
        raise Refused("bad_backup", f"{place} has other records than its manifest says; use another backup",
                      backup=str(place))
    return manifest


def read_manifest(place: Path) -> Manifest:
    """What a backup says of itself; ``Refused`` where there is none."""
    path = place / MANIFEST_FILE
    try:
        fields: dict[str, Any] = json.loads(path.read_bytes())
        manifest = Manifest(**{field.name: fields[field.name] for field in attrs.fields(Manifest)})
        records, sums = dict(manifest.records), dict(manifest.sums)
    except FileNotFoundError as problem:
        raise Refused("no_backup", f"{place} is no backup: it has no {MANIFEST_FILE}",
                      backup=str(place)) from problem
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise Refused("bad_backup", f"{path} cannot be read: {problem!r}; use another backup",
                      backup=str(place)) from problem
    if manifest.form != _FORM or type(manifest.store_format) is not int or manifest.store_format > STORE_FORMAT:
        raise Refused("newer_data", f"{place} was written by a newer release; use that one", backup=str(place))
    if DATA_FILE not in sums or any("/" in name or name.startswith(".") for name in sums):
        raise Refused("bad_backup", f"{path}: sums does not name the files of a backup; use another backup",
                      backup=str(place))
    return attrs.evolve(manifest, records=records, sums=sums)


def count_records(place: Path) -> dict[str, int]:
    """How many records each table has; ``Refused`` at the first whose checksum is not that of its bytes."""
    counts: dict[str, int] = {}
    try:
        with closing(lmdb.Environment(str(place), map_size=MAP_BYTES, max_dbs=len(TABLES), readonly=True,
                                      lock=False)) as environment:
            for table in TABLES:
                database = environment.open_db(table.encode(), create=False)
                with environment.begin(db=database) as transaction:
                    counts[table] = _checked_rows(table, transaction.cursor())
    except Corrupt as problem:
        raise Refused("bad_backup", f"{place}: {problem.message}; the disk that it was copied from, or this one,"
                      " is damaged", backup=str(place)) from problem
    except PROBLEMS as problem:
        raise Refused("bad_backup", f"{place} cannot be read: {problem}; use another backup",
                      backup=str(place)) from problem
    return counts


def _checked_rows(table: str, cursor: Any) -> int:
    count = 0
    for key, record in cursor:
        if not record.endswith(xxh3_64_digest(key + record[:-_SUM_BYTES])):
            raise Corrupt(table, key)
        count += 1
    return count


def _check_source(data: Path) -> None:
    if not (data / DATA_FILE).is_file():
        raise Refused("no_data", f"from: {data} is no data directory: it has no {DATA_FILE}", data=str(data))


def _copy(data: Path, aside: Path) -> None:
    """One snapshot, without its free pages. The directory stays its node's: only the readers' table is shared."""
    try:
        with closing(lmdb.Environment(str(data), map_size=MAP_BYTES, max_dbs=len(TABLES), readonly=True,
                                      create=False)) as environment:
            environment.copy(str(aside), compact=True)
    except PROBLEMS as problem:
        raise Refused("backup_failed", f"{data} cannot be copied to {aside.parent}: {problem}; run this as the"
                      " node's user, and check both disks' health and free space", data=str(data)) from problem
    if (data / ROSTER_FILE).is_file():
        shutil.copyfile(data / ROSTER_FILE, aside / ROSTER_FILE)


def _sealed(data: Path, aside: Path, taken_ms: int) -> Manifest:
    """Mark the copy, read all of it, and write down what it is."""
    with closing(LmdbStore(aside)) as store:
        try:
            check_format(store, data)
            taken_ms = mark_copy(store, secrets.token_hex(16), taken_ms).taken_ms
            remains = read_remains(store, str(data))
        except Corrupt as problem:
            raise Refused("bad_backup", f"{data}: {problem.message}; its node mends that when it is started again",
                          data=str(data)) from problem
        store.commit()
    for name in ("lock", "lock.mdb"):
        with suppress(FileNotFoundError):
            (aside / name).unlink()
    records = count_records(aside)
    sums = {path.name: _sum(path) for path in sorted(aside.iterdir())}
    manifest = _manifest_of(remains, taken_ms, records, sums)
    (aside / MANIFEST_FILE).write_text(manifest.text, encoding="utf-8")
    for path in aside.iterdir():
        path.chmod(0o600)
        _sync(path)
    _sync(aside)
    return manifest


def _manifest_of(remains: Remains, taken_ms: int, records: Mapping[str, int], sums: Mapping[str, str]) -> Manifest:
    replica = remains.replica
    return Manifest(str(remains.fixed.get("cluster", "")), remains.cluster_id, remains.node, len(remains.memories),
                    -1 if replica is None else replica.version,
                    max((memory.promised for memory in remains.memories), default=0), taken_ms, __version__,
                    STORE_FORMAT, records, sums)


def _sweep(to: Path) -> None:
    """Take away what runs before have left that were killed: nobody holds it."""
    for path in to.glob(".*.part"):
        with suppress(OSError), _held(path):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _held(aside: Path) -> Iterator[None]:
    """Hold a directory while it is made; raises ``OSError`` when another process does."""
    handle = os.open(aside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
