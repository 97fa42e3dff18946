"""Which files an archive in a directory consists of: numbered changes, each of which is there whole or not at all.

    ROOT/_manifest/00000000000000000042.json            the 42nd change: files that came, and files that went
    ROOT/_manifest/00000000000000000042.snapshot.json   what all changes up to it come to
    ROOT/_manifest/copy.json                            the mark of a copy that took the place of what it is one of

A reader takes the newest snapshot and the changes behind it, and knows each live file with the rows it has and
between which ids and times they lie. Invariants: each task is in one live file; a change is put under the next
number, by a link that fails when that exists, so of two writers one is refused and looks again; a file is removed
from the disk only some time after the change that took it out, for the sake of those who read it.

A change below the newest snapshot but one may be wiped. So a writer that slept may put a number that was there
before: it looks after it has put one whether that counts, and if not, takes it back and is refused.

Rejected: one file that is replaced, which grows with the archive and is written with each batch; a lock, which
whoever sleeps too long believes to hold; Hive's directories instead of columns, in which a queue called 007 is a
number to most readers, and which know no number of rows.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.output.store import sync

DIRECTORY = "_manifest"
FORMAT = 1
SNAPSHOT_EVERY = 64
COPY = "copy.json"
_MARK = re.compile(r"[0-9a-f]{16}")
_CHANGE = re.compile(r"(\d{20})\.json")
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot\.json")
_TRIES = 20
_REMEDY = "; restore the file from a copy of the archive, or read the files below 'files' as they are"
_text, _whole = attrs.validators.instance_of(str), attrs.validators.instance_of(int)
_maybe, _truth = attrs.validators.optional(_whole), attrs.validators.instance_of(bool)


def _check_path(file: object, attribute: object, value: str) -> None:
    """What is removed is unlinked in the end: a damaged manifest must not reach what is not the archive's."""
    if type(value) is not str or not value or value.startswith("/") or ".." in value.split("/"):
        raise TypeError(f"path {str(value)[:80]!r} does not lie below the root")


def _check_part(file: object, attribute: object, value: str) -> None:
    """Of these the places of files are made that replace one."""
    if type(value) is not str or value in ("", ".", "..") or "/" in value:
        raise TypeError(f"{str(value)[:80]!r} is no name of a directory")


def _below_root(path: str) -> str:
    _check_path(None, None, path)
    return path


@attrs.frozen
class File:
    """A file, by its ``path`` below the root. ``day``: on which its tasks ended, in UTC. ``first_id``, ``last_id``
    and the times bound its rows, both ends included; times are milliseconds since 1970. ``born``: the change with
    which the newest of its rows came. ``is_open``: the nodes may still have some of its tasks."""

    path: str = attrs.field(validator=_check_path)
    queue: str = attrs.field(validator=_check_part)
    day: str = attrs.field(validator=_check_part)
    rows: int = attrs.field(validator=_whole)
    size: int = attrs.field(validator=_whole)
    first_id: str = attrs.field(validator=_text)
    last_id: str = attrs.field(validator=_text)
    first_enqueued_ms: int = attrs.field(validator=_whole)
    last_enqueued_ms: int = attrs.field(validator=_whole)
    first_ended_ms: int | None = attrs.field(validator=_maybe)
    last_ended_ms: int | None = attrs.field(validator=_maybe)
    born: int = attrs.field(default=0, validator=_whole)
    is_open: bool = attrs.field(default=False, validator=_truth)


_FIELDS = tuple(each.name for each in attrs.fields(File))


@attrs.frozen
class Change:
    """Files that come; paths that go from the manifest, at ``at_ms``; whose tasks are off the nodes; and which are
    gone from the disk."""

    at_ms: int
    add: tuple[File, ...] = ()
    remove: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()


@attrs.define
class State:
    """What the changes up to ``version`` come to. ``archive``: a name that no other archive has; ``removed``: what
    went, and when, and may still be on the disk."""

    version: int = 0
    archive: str = ""
    files: dict[str, File] = attrs.field(factory=dict)
    removed: dict[str, int] = attrs.field(factory=dict)

    def take(self, change: Change) -> None:
        """The next change."""
        self.version += 1
        for path in change.remove:
            self.files.pop(path, None)
            self.removed[path] = change.at_ms
        for file in change.add:
            self.files[file.path] = file
        for path in change.close:
            if path in self.files:
                self.files[path] = attrs.evolve(self.files[path], is_open=False)
        for path in change.forget:
            self.removed.pop(path, None)


class Manifest:
    """The manifest below a root, as last read. ``state`` is empty where there is none. ``drafts``: where changes
    are written before they are put, on the same disk; a writer's own directory, which is swept when it dies."""

    def __init__(self, root: Path, drafts: Path | None = None) -> None:
        self._directory = root / DIRECTORY
        self._drafts = drafts or self._directory
        self.state = State()

    def exists(self) -> bool:
        """Whether there is one. ``Refused`` when that cannot be seen."""
        try:
            return self._directory.is_dir() and bool(any(self.numbers()))
        except OSError as error:
            raise unreadable(self._directory, error) from error

    def refresh(self) -> State:
        """Read what is new. ``Refused`` when a file of it is damaged, or of a later release."""
        for _ in range(_TRIES):
            try:
                return self._read()
            except FileNotFoundError:
                continue  # wiped meanwhile: a newer snapshot is there
            except OSError as error:
                raise unreadable(self._directory, error) from error
        raise Refused("damaged_manifest", f"root: {self._directory} lacks a change{_REMEDY}")

    def name(self) -> str:
        """The name by which a cluster knows the archive, empty where there is none: that of its changes, which
        each copy has, too; and behind it the mark of a copy with another name. ``Refused`` as by ``refresh``."""
        archive, path = self.refresh().archive, self._directory / COPY
        try:
            mark = _parsed(path)[0].get("mark")
        except FileNotFoundError:
            return archive
        except OSError as error:
            raise unreadable(path, error) from error
        if type(mark) is not str or not _MARK.fullmatch(mark):
            raise _damaged(path)
        return f"{archive}-{mark}" if archive else ""

    def rename(self) -> None:
        """Have a name that no other archive has, nor any that was copied from this one or to it."""
        path = self._directory / COPY
        self._written(path, {"format": FORMAT, "mark": secrets.token_hex(8)}).rename(path)
        sync(self._directory)

    def put(self, change: Change) -> bool:
        """Make a change durable, as the next; false when another writer was faster, and then nothing is done."""
        state = self.state
        number = state.version + 1
        archive = state.archive or secrets.token_hex(8)
        if not state.version:  # later on, one that is not there is on a mount that has vanished
            self._directory.mkdir(parents=True, exist_ok=True)
            sync(self._directory.parent)
        change = attrs.evolve(change, add=tuple(attrs.evolve(file, born=file.born or number)
                                                for file in change.add))
        if not self._create(self._change(number), {"format": FORMAT, "version": number, "archive": archive,
                                                   **attrs.asdict(change)}):
            return False
        changes, snapshots = self.numbers()
        if max(snapshots, default=0) >= number or number not in changes:
            self._change(number).unlink(missing_ok=True)
            self.state = State()
            return False
        state.archive = archive
        state.take(change)
        if number % SNAPSHOT_EVERY == 0:
            self._shorten(snapshots, changes)
        return True

    def change(self, number: int) -> Change:
        """One that is still there, by its number."""
        return _change_of(*_parsed(self._change(number)))

    def snapshot(self, number: int) -> State:
        """The same."""
        return _state_of(*_parsed(self._snapshot(number)))

    def numbers(self) -> tuple[set[int], set[int]]:
        """Of the changes and of the snapshots that are there."""
        changes, snapshots = set(), set()
        for name in os.listdir(self._directory):
            if found := _CHANGE.fullmatch(name):
                changes.add(int(found[1]))
            elif found := _SNAPSHOT.fullmatch(name):
                snapshots.add(int(found[1]))
        return changes, snapshots

    def _change(self, number: int) -> Path:
        return self._directory / f"{number:020}.json"

    def _snapshot(self, number: int) -> Path:
        return self._directory / f"{number:020}.snapshot.json"

    def _read(self) -> State:
        if not self._directory.is_dir():
            return self.state
        changes, snapshots = self.numbers()
        newest, state = max(snapshots, default=0), self.state
        if newest > state.version and state.version + 1 not in changes:
            state = State()
        if state.version == 0 and newest:
            state = _state_of(*_parsed(self._snapshot(newest)))
            self._check_same(state.archive)
        last = max(changes, default=0)
        if max(newest, last) < self.state.version:
            raise Refused("turned_back", f"root: {self._directory} was turned back: it had {self.state.version}"
                          f" changes, and has {max(newest, last)}; start again, so that what went is written anew")
        for number in range(state.version + 1, last + 1):
            document, path = _parsed(self._change(number))
            self._check_same(str(document.get("archive", "")))
            state.archive = state.archive or str(document.get("archive", ""))
            state.take(_change_of(document, path))
        self.state = state
        return state

    def _check_same(self, archive: str) -> None:
        """Another archive that was mounted here would be written on as if it were this one."""
        if self.state.archive and archive and archive != self.state.archive:
            raise Refused("turned_back", f"root: {self._directory} is of another archive now; mount the one that"
                          " was there, or start again")

    def _create(self, path: Path, document: Mapping[str, Any]) -> bool:
        draft = self._written(path, document)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        sync(self._directory)
        return True

    def _written(self, path: Path, document: Mapping[str, Any]) -> Path:
        draft = self._drafts / f".{path.name}.{secrets.token_hex(4)}"
        with draft.open("w") as stream:
            json.dump(document, stream)
            stream.flush()
            os.fsync(stream.fileno())
        return draft

    def _shorten(self, snapshots: set[int], changes: set[int]) -> None:
        """Write a snapshot, and wipe what the one before it made needless."""
        state = self.state
        document = {"format": FORMAT, "version": state.version, "archive": state.archive,
                    "files": [attrs.asdict(file) for file in state.files.values()], "removed": state.removed}
        self._written(self._snapshot(state.version), document).rename(self._snapshot(state.version))
        sync(self._directory)
        before = max(snapshots, default=0)
        for number in sorted(changes):
            if number <= before:
                self._change(number).unlink(missing_ok=True)
        for number in sorted(snapshots - {before}):
            self._snapshot(number).unlink(missing_ok=True)


def _parsed(path: Path) -> tuple[dict[str, Any], Path]:
    try:
        document = json.loads(path.read_bytes())
        of_format = document["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path) from None
    if of_format != FORMAT:
        raise Refused("newer_archive", f"root: {path} has format {str(of_format)[:20]}, and this release knows"
                      f" {FORMAT}; use the release that wrote it")
    return document, path


def _change_of(document: Mapping[str, Any], path: Path) -> Change:
    try:
        return Change(int(document["at_ms"]), tuple(map(_file_of, document["add"])), *(
            tuple(map(_below_root, document[name])) for name in ("remove", "close", "forget")))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _damaged(path) from None


def _state_of(document: Mapping[str, Any], path: Path) -> State:
    try:
        files = {file.path: file for file in map(_file_of, document["files"])}
        removed = {_below_root(each): int(at_ms) for each, at_ms in document["removed"].items()}
        return State(int(document["version"]), str(document["archive"]), files, removed)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise _damaged(path) from None


def _file_of(row: Mapping[str, Any]) -> File:
    return File(**{name: row[name] for name in _FIELDS})


def unreadable(path: Path, error: OSError) -> Refused:
    """What is said of a root, or of a part of it, that cannot be read; a file that is to blame is named."""
    return Refused("not_read", f"root: {error.filename or path} cannot be read: {error.strerror}; mend its"
                   " permissions or its mount")


def _damaged(path: Path) -> Refused:
    return Refused("damaged_manifest", f"root: {path} is damaged{_REMEDY}")
