"""The manifest once more, as the log of a Delta table, for programs that read such tables.

    ROOT/_delta_log/00000000000000000042.json                 the 42nd change of the manifest
    ROOT/_delta_log/00000000000000000064.checkpoint.parquet   its snapshot of all up to the 64th

A version of the table is the change of the same number: which files came, and which went. Version 0 is an empty
table. So the log is a function of the manifest. Whoever writes a version writes the same; what somebody who died
left out the next one writes; and a log that was deleted comes back.

Invariants: when a write to the archive returns, its rows are durably in the table, too; only then are tasks
deleted. A file leaves the disk only some time after a version has told that it went: whoever died between a change
and its version has readers of the table still want it. What the manifest has wiped is wiped here, but for what a
reader of the last checkpoint but one needs.

Versions of another program, which would rearrange or delete what the manifest knows, are refused and named.

Rejected: the package deltalake as the writer, whose transactions take no chosen files out, and so cannot tell of a
compaction; a log with numbers of its own beside the manifest, which is a second truth; Iceberg, whose newest
version is what a catalog says: a server, or a file that is replaced and not created, so that of two writers one is
lost.
Source: the Delta transaction log protocol, readers of version 1 and writers of version 2.
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from skuld_py.archive.arrow_files import SCHEMA
from skuld_py.archive.drafts import FILES
from skuld_py.archive.manifest import SNAPSHOT_EVERY, File, Manifest, State
from skuld_py.archive.places import DELTA
from skuld_py.errors import Refused
from skuld_py.output.store import sync

_TRIES = 20
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_PRIMITIVES = {pa.string(): "string", pa.int32(): "integer", pa.int64(): "long", pa.binary(): "binary",
               pa.bool_(): "boolean", pa.timestamp("ms", "UTC"): "timestamp"}
_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema({
    "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
    "metaData": pa.struct({
        "id": pa.string(), "name": pa.string(), "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
        "schemaString": pa.string(), "partitionColumns": pa.list_(pa.string()), "configuration": _TEXTS}),
    "add": pa.struct({"path": pa.string(), "partitionValues": _TEXTS, "size": pa.int64(),
                      "modificationTime": pa.int64(), "dataChange": pa.bool_(), "stats": pa.string()}),
    "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()})})


class DeltaLog:
    """The log below a root. ``drafts``: where versions are written before they are put."""

    def __init__(self, root: Path, manifest: Manifest, drafts: Path) -> None:
        self._directory = root / DELTA
        self._manifest = manifest
        self._drafts = drafts
        self._told = self._shortened = -1
        """The last version, and the last checkpoint, that are known to be there."""

    def begin(self) -> None:
        """From now on there is one."""
        self._directory.mkdir(exist_ok=True)
        sync(self._directory.parent)

    def check(self) -> None:
        """``Refused`` when another program has written to it, though the manifest has not come so far."""
        engine = _engine(self._manifest.refresh().archive)
        for path in sorted(self._directory.glob("*.json")):
            with suppress(FileNotFoundError):  # wiped meanwhile
                if _engine_of(path) != engine:
                    raise self._foreign(path)

    def follow(self) -> None:
        """Bring it up to the manifest, if there is a log. ``Refused`` when another program has written to it."""
        for _ in range(_TRIES):
            if self._told >= self._manifest.refresh().version or not self._directory.is_dir():
                return
            try:
                self._follow()
            except FileNotFoundError:
                continue  # a change was wiped meanwhile: a newer snapshot is there
        raise Refused("not_written", f"root: {self._directory} could not be brought up to the manifest; run fewer"
                      " archivers on one root")

    def removed_since(self, at_ms: int) -> frozenset[str]:
        """Paths of which versions have told only since then that they went; by the versions that are there."""
        if not self._directory.is_dir():
            return frozenset()
        found = set[str]()
        for path in self._directory.glob("*.json"):
            with suppress(FileNotFoundError):  # wiped meanwhile
                if path.stat().st_mtime_ns // 1_000_000 > at_ms:
                    found |= self._removed_by(path)
        return frozenset(found)

    def _removed_by(self, path: Path) -> set[str]:
        try:
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            return {unquote(action["remove"]["path"]) for action in actions if "remove" in action}
        except (ValueError, KeyError, TypeError):
            raise self._foreign(path) from None

    def _foreign(self, path: Path) -> Refused:
        return Refused("foreign_version", f"root: {path} is not the archive's: another program has changed the"
                       f" table. Have it only read; delete {self._directory} and say --format delta again")

    def _follow(self) -> None:
        """Versions in their order; before the first that is there, the checkpoint that it builds on."""
        state = self._manifest.state
        changes, snapshots = (sorted(number for number in found if number <= state.version)
                              for found in self._manifest.numbers())
        if not changes:
            return
        for number in snapshots:
            if number < changes[0]:
                self._checkpoint(number, state.archive)
        for number in [0, *changes] if changes[0] == 1 else changes:
            if number > self._told:
                self._put(number, state.archive)
        for number in snapshots:
            self._checkpoint(number, state.archive)
        sync(self._directory)
        self._told = max(changes)

    def _put(self, number: int, archive: str) -> None:
        path = self._directory / f"{number:020}.json"
        if not path.exists():
            text = "".join(f"{json.dumps(action)}\n" for action in self._version(number, archive))
            draft = self._draft(path, lambda draft: draft.write_text(text))
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        if _engine_of(path) != _engine(archive):
            raise self._foreign(path)

    def _checkpoint(self, number: int, archive: str) -> None:
        if number <= self._shortened:
            return
        rows = [*_checkpoint_rows(self._manifest.snapshot(number), archive)]
        path, last = self._directory / f"{number:020}.checkpoint.parquet", self._directory / "_last_checkpoint"
        table = pa.Table.from_pylist(rows, _CHECKPOINT)
        self._draft(path, lambda draft: pq.write_table(table, draft)).rename(path)
        text = json.dumps({"version": number, "size": len(rows)})
        self._draft(last, lambda draft: draft.write_text(text)).rename(last)
        self._wipe(self._shortened)
        self._shortened = number

    def _draft(self, path: Path, write: Callable[[Path], object]) -> Path:
        draft = self._drafts / f".{path.name}.{secrets.token_hex(4)}"
        write(draft)
        sync(draft)
        return draft

    def _wipe(self, first: int) -> None:
        """What lies before a version."""
        for name in os.listdir(self._directory):
            if name[:20].isdecimal() and int(name[:20]) < first:
                (self._directory / name).unlink(missing_ok=True)

    def _version(self, number: int, archive: str) -> Iterator[dict[str, Any]]:
        """Now and then it says what the columns are, for a later release may have more of them."""
        change = self._manifest.change(number) if number else None
        yield {"commitInfo": {"timestamp": change.at_ms if change else 0, "operation": "ARCHIVE",
                              "operationParameters": {}, "engineInfo": _engine(archive)}}
        if number % SNAPSHOT_EVERY == 0:
            yield {"protocol": _PROTOCOL}
            yield {"metaData": _meta_data(archive)}
        if change is None:
            return
        is_new = not change.add or any(file.born == number for file in change.add)
        for path in change.remove:
            if path.startswith(f"{FILES}/"):
                yield {"remove": _remove(path, change.at_ms, is_new)}
        for file in change.add:
            yield {"add": _add(file, change.at_ms, is_new)}


def _engine(archive: str) -> str:
    return f"skuld {archive}"


def _engine_of(path: Path) -> str:
    """Who wrote a version; empty if it does not say so where this program does."""
    try:
        with path.open() as stream:
            return str(json.loads(stream.readline())["commitInfo"]["engineInfo"])
    except (ValueError, KeyError, TypeError):
        return ""


def _meta_data(archive: str) -> dict[str, Any]:
    return {"id": str(uuid.uuid5(uuid.NAMESPACE_OID, archive)), "name": "tasks",
            "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
            "schemaString": json.dumps(_fields(SCHEMA))}


def _fields(fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": field.name, "type": _type(field.type), "nullable": True,
                                          "metadata": {}} for field in fields]}


def _type(of: Any) -> Any:
    if pa.types.is_list(of):
        return {"type": "array", "elementType": _type(of.value_type), "containsNull": True}
    if pa.types.is_map(of):
        return {"type": "map", "keyType": _type(of.key_type), "valueType": _type(of.item_type),
                "valueContainsNull": True}
    return _fields(of) if pa.types.is_struct(of) else _PRIMITIVES[of]


def _add(file: File, at_ms: int, is_new: bool) -> dict[str, Any]:
    return {"path": quote(file.path), "partitionValues": {}, "size": file.size, "modificationTime": at_ms,
            "dataChange": is_new, "stats": json.dumps(_statistics(file))}


def _remove(path: str, at_ms: int, is_new: bool) -> dict[str, Any]:
    return {"path": quote(path), "deletionTimestamp": at_ms, "dataChange": is_new}


def _statistics(file: File) -> dict[str, Any]:
    """By which readers pass over files."""
    lowest: dict[str, Any] = {"id": file.first_id, "queue": file.queue}
    highest: dict[str, Any] = {"id": file.last_id, "queue": file.queue}
    for name, first_ms, last_ms in (("enqueued", file.first_enqueued_ms, file.last_enqueued_ms),
                                    ("ended", file.first_ended_ms, file.last_ended_ms)):
        for bounds, at_ms in ((lowest, first_ms), (highest, last_ms)):
            if at_ms is not None:
                bounds[f"{name}_ms"], bounds[name] = at_ms, _moment(at_ms)
    return {"numRecords": file.rows, "minValues": lowest, "maxValues": highest,
            "nullCount": dict.fromkeys(("id", "queue", "enqueued_ms", "enqueued"), 0)}


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def _checkpoint_rows(state: State, archive: str) -> Iterator[dict[str, Any]]:
    yield {"protocol": _PROTOCOL}
    meta_data = _meta_data(archive)
    yield {"metaData": {**meta_data, "format": {**meta_data["format"], "options": []}, "configuration": []}}
    for file in state.files.values():
        yield {"add": {**_add(file, 0, False), "partitionValues": []}}
    for path, at_ms in state.removed.items():
        if path.startswith(f"{FILES}/"):
            yield {"remove": _remove(path, at_ms, False)}
