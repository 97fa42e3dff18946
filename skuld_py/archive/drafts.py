"""Files of an archive that no manifest names yet, and what becomes of them when their writer dies.

A file is written below ``_writing/WRITER`` under a name that ends with ``.draft``, which no reader of
``*.parquet`` takes for one of its own. Once it is synced it moves to its place, and only then does a change of the
manifest name it. What is about to move stands in a note first. So whoever finds the directory of a writer that has
died, which its lock tells, knows which files to take away: those of the note that the manifest does not name.

Invariant: a file in its place that the manifest does not know belongs to a writer that lives, or stands in the
note of one that does not.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from skuld_py.archive.manifest import State
from skuld_py.embedded import process
from skuld_py.errors import Refused
from skuld_py.output.store import sync

DIRECTORY, NOTE, LOCK = "_writing", "moving.json", "lock"
FILES = "files"
HOLDS, PAUSE_S = 100, 0.1
"""How often a writer tries to hold its directory, and how long it waits in between."""


class Drafts:
    """The drafts of one writer. ``writer`` is a name that no other has or will have."""

    def __init__(self, root: Path, writer: str) -> None:
        self._root = root
        self.own = root / DIRECTORY / writer

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory, so that others see that this writer lives."""
        with ExitStack() as stack:
            self._hold(stack)
            try:
                yield
            finally:
                with suppress(OSError):  # of a root that is gone or closed: why this ends has been said
                    if not (self.own / NOTE).exists():  # else the next one looks into what moved
                        _clear(self.own)

    def _hold(self, stack: ExitStack) -> None:
        """Whoever sweeps may come between the making of the directory and its lock, hold it while the manifest is
        read, and take it away; or when it was found there and not looked at yet, and then it is said to exist.
        Nobody else holds it, so it is waited for."""
        for left in reversed(range(HOLDS)):
            with ExitStack() as attempt:
                try:
                    _make(self.own)
                    attempt.enter_context(process.held(self.own))
                    os.stat(self.own / LOCK)
                except (OSError, Refused) as error:
                    if left and isinstance(error, FileNotFoundError | FileExistsError | Refused):
                        time.sleep(PAUSE_S)
                        continue
                    raise unwritable(self._root, error) if isinstance(error, OSError) else error from error
                stack.push(attempt.pop_all())
                return

    def path(self, name: str) -> Path:
        """Where to write a draft."""
        return self.own / f"{name}.draft"

    def move(self, drafts: Mapping[Path, str]) -> None:
        """Make drafts durable and bring them to their places, paths below the root, durably."""
        for draft in drafts:
            sync(draft)
        note = self.own / NOTE
        note.write_text(json.dumps([*drafts.values()]))
        sync(note)
        sync(self.own)
        for draft, path in drafts.items():
            place = self._root / path
            _make(place.parent)
            os.rename(draft, place)
        for directory in dict.fromkeys(above for path in drafts.values() for above in Path(path).parents):
            sync(self._root / directory)  # whoever made one may not have come to sync what it is in

    def forget(self) -> None:
        """The manifest names them now."""
        (self.own / NOTE).unlink(missing_ok=True)

    def drop(self, state: State) -> None:
        """Take away drafts, and what moved and is not named: the change that was to name it did not come about."""
        _take_back(self._root, self.own, state)
        for draft in self.own.glob("*.draft"):
            draft.unlink()


def sweep(root: Path, state: Callable[[], State]) -> None:
    """Take away what writers that have died left behind, but for those of other users, which only these may enter.
    ``state`` is asked after their locks are held."""
    if not (root / DIRECTORY).is_dir():
        return
    for left in sorted((root / DIRECTORY).iterdir()):
        with suppress(Refused, PermissionError):
            if not (left / LOCK).exists():  # of one that began just now, or died then
                with suppress(OSError):
                    left.rmdir()
                continue
            with process.held(left):
                _take_back(root, left, state())
                _clear(left)


def _clear(directory: Path) -> None:
    """Take it away, its lock last: whoever dies meanwhile leaves what the next one knows to be left."""
    for path in directory.iterdir():
        if path.name != LOCK:
            path.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def _take_back(root: Path, directory: Path, state: State) -> None:
    note = directory / NOTE
    unlinked(root, [path for path in _noted(note) if path not in state.files and path not in state.removed])
    note.unlink(missing_ok=True)


def unlinked(root: Path, paths: Sequence[str]) -> None:
    """Take files away durably, before what knows of them forgets them: one that came back would stand there for
    good."""
    for path in paths:
        (root / path).unlink(missing_ok=True)
    for directory in dict.fromkeys((root / path).parent for path in paths):
        with suppress(FileNotFoundError):
            sync(directory)


def _noted(note: Path) -> list[str]:
    """What the note says; nothing if it was not written to its end: then nothing has moved."""
    try:
        paths = json.loads(note.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [path for path in paths if isinstance(path, str) and path.startswith(f"{FILES}/")
            and ".." not in path.split("/")] if isinstance(paths, list) else []


def _make(directory: Path) -> None:
    """With those above it, durably."""
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in new:
        sync(path.parent)


def unwritable(root: Path, error: OSError) -> Refused:
    """What is said of a root that cannot be written to."""
    return Refused("bad_root", f"root: {root} cannot be written to: {error.strerror}; name another one, or mend"
                   " its permissions or its mount")
