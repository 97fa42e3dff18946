"""What outputs need of a file system; and that of this machine.

A path is a text. A directory is listed with all that is below it, but for what Spark passes over. ``move`` is the
one operation on which the rule of ``protocol`` rests: it succeeds once, however many try.

Of this machine's files what is sealed is synced, directories too, before it is said to be: a completion names
files that a power cut leaves there.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from skuld_py.calls.outputs import OutputFile
from skuld_py.client.steady import wall_s
from skuld_py.errors import Refused
from skuld_py.output.places import is_hidden

FILES_MAX = 100_000
_REFUSALS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS)


class Store(Protocol):
    """A file system."""

    @property
    def can_rename(self) -> bool:
        """Whether a directory can be renamed as one step."""

    def files(self, place: str) -> list[OutputFile]:
        """All files below, by their paths from there, in order; none when there is no such place."""

    def children(self, place: str) -> list[str]:
        """Names of the directories in a place."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""

    def create(self, path: str) -> BinaryIO:
        """Open a new file, making its directories; an OSError when it is there."""

    def read(self, path: str, most: int) -> bytes | None:
        """What a file holds, None when there is none; ``Refused`` when it is more than ``most`` bytes."""

    def seal(self, place: str, name: str, content: bytes) -> None:
        """Write a file in a place, whole or not at all; then everything there is durable."""

    def move(self, source: str, target: str) -> bool:
        """Rename a directory, unless the target is there, the source is not, or it is not allowed."""

    def remove(self, place: str) -> bool:
        """Delete a directory, and the one around it if that is empty then; whether it was there."""

    def idle_s(self, place: str) -> float:
        """How long ago anything below was written."""


class LocalStore:
    """Files of this machine."""

    can_rename = True

    def files(self, place: str) -> list[OutputFile]:
        """All files below."""
        found = []
        for directory, names, files in os.walk(place):
            names[:] = sorted(name for name in names if not is_hidden(name))
            inner = os.path.relpath(directory, place)
            for name in sorted(files):
                if not is_hidden(name):
                    path = name if inner == "." else f"{inner}/{name}"
                    found.append(OutputFile(path, os.path.getsize(os.path.join(directory, name))))
            check_number(len(found))
        return found

    def children(self, place: str) -> list[str]:
        """Names of the directories in a place."""
        try:
            return sorted(entry.name for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: str) -> bool:
        """Whether it is there."""
        return os.path.exists(path)

    def create(self, path: str) -> BinaryIO:
        """Open a new file."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "xb")

    def read(self, path: str, most: int) -> bytes | None:
        """What a file holds."""
        try:
            with open(path, "rb") as file:
                content = file.read(most + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return check_size(path, content, most)

    def seal(self, place: str, name: str, content: bytes) -> None:
        """Sync all below, then a new file and the way to it."""
        os.makedirs(place, exist_ok=True)
        written = Path(place, f".{name}")
        written.write_bytes(content)
        sync_tree(Path(place))
        written.rename(Path(place, name))
        for directory in (Path(place), *Path(place).parents[:3]):
            sync(directory)
        with suppress(PermissionError):  # the one around the dataset's may be anybody's
            sync(Path(place).parents[3])

    def move(self, source: str, target: str) -> bool:
        """Rename; POSIX refuses a target that is not empty."""
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno in _REFUSALS:
                return False
            raise
        for directory in (os.path.dirname(target), os.path.dirname(source)):
            sync(Path(directory))
        _remove_if_empty(os.path.dirname(source))
        return True

    def remove(self, place: str) -> bool:
        """Delete a directory; others may do the same at once."""
        was_there = os.path.isdir(place)
        shutil.rmtree(place, ignore_errors=True)
        _remove_if_empty(os.path.dirname(place))
        return was_there

    def idle_s(self, place: str) -> float:
        """By the times of files and directories."""
        times = [os.stat(place).st_mtime]
        for directory, names, files in os.walk(place):
            times += [os.lstat(os.path.join(directory, name)).st_mtime for name in (*names, *files)]
        return wall_s() - max(times)


def check_number(count: int) -> None:
    """``Refused`` when an output has too many files."""
    if count > FILES_MAX:
        raise Refused("bad_output", f"files: an output has at most {FILES_MAX}; write fewer and larger ones, as"
                      " with coalesce")


def check_size(path: str, content: bytes, most: int) -> bytes:
    """``Refused`` when a file is larger than it may be."""
    if len(content) > most:
        raise Refused("bad_output", f"path: {path} has more than {most} bytes")
    return content


def sync_tree(top: Path) -> None:
    """Sync every file below a directory, and every directory, itself included."""
    for directory, _, names in os.walk(top, topdown=False):
        for name in names:
            sync(Path(directory, name))
        sync(Path(directory))


def sync(path: Path) -> None:
    """Sync what a file holds, or which names a directory has."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return
