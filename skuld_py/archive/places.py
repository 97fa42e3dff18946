"""Where an archive stands, and what makes a batch durable there.

On a local disk a batch is written below ``.writing``, a name that Spark's readers pass over; then every file and
directory of it is synced, and it is renamed into place, and that is synced. So after a power cut a batch is there
whole, or not at all; and what was confirmed to the cluster is there. One archiver writes at a time: a second is
refused, and what an earlier one left unfinished is wiped. Spark makes directories that are not there: so that no
batch comes to lie below a mount that has vanished, the lock that is held must be there, before each and behind it.

Elsewhere (``s3a://``, ``hdfs://``) Spark's own commit makes a batch visible, and the store keeps it. A batch has a
directory of its own, so several archivers do not disturb each other: in one common directory the first commit
would wipe what the others have under way.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from os.path import samestat
from pathlib import Path

from skuld_py.archive.manifest import Manifest, unreadable
from skuld_py.embedded import process
from skuld_py.errors import Refused
from skuld_py.output.store import sync, sync_tree

WRITING, LOCK = ".writing", "lock"
DELTA = "_delta_log"
"""Where the log of a Delta table stands."""
PATTERN_CHARACTERS = "* ? [ ] { } \\"
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_BELOW_ROOT = re.compile(r"/(//+)?([^/].*)?", re.DOTALL)
"""What may stand behind ``file:``: an absolute path, which no host stands before."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def local_path(root: str) -> Path | None:
    """The directory that a root without a scheme, or with ``file:``, names; None for any other."""
    if not root:
        raise Refused("bad_root", "root: '' is no place; name a directory, or a URI as s3a://bucket/archive")
    if _PATTERN.search(root):
        raise Refused("bad_root", f"root: {root!r} holds one of {PATTERN_CHARACTERS}, which Spark takes for a"
                      " pattern; name another place")
    found = _SCHEME.match(root)
    if found is None:
        return Path(root).absolute()
    if found[1].lower() != "file":
        return None
    path = root[found.end() :]
    if not _BELOW_ROOT.fullmatch(path):
        raise Refused("bad_root", f"root: {root!r} is no absolute path; say /srv/archive or file:///srv/archive")
    return Path("/" + path.lstrip("/"))


def uri_of(path: Path) -> str:
    """As Hadoop reads it, which takes a percent sign for what it is."""
    return f"file://{path}"


class LocalPlace:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = self._root = root
        self.name = str(root)
        self._writing = root / WRITING
        self._lock: os.stat_result | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the place against any other archiver; what was left unfinished is wiped."""
        with ExitStack() as stack:
            try:
                new = [path for path in (self._root, *self._root.parents) if not path.exists()]
                self._root.mkdir(parents=True, exist_ok=True)
                for path in new:
                    sync(path.parent)
                stack.enter_context(process.held(self._writing))
                self._lock = os.stat(self._writing / LOCK)
                for left in self._writing.glob("batch=*"):
                    shutil.rmtree(left)
            except OSError as error:
                raise Refused("bad_root", f"root: {self._root} cannot be written to: {error.strerror}; name"
                              " another one, or mend its permissions or its mount") from error
            yield

    def is_delta(self) -> bool:
        """Whether it is a Delta table, too, whose log Spark would not keep up."""
        return (self._root / DELTA).is_dir()

    def begin(self, batch: str) -> str:
        """Where Spark is to write it."""
        self._check_same()
        return uri_of(self._writing / f"batch={batch}")

    def finish(self, batch: str) -> None:
        """Make it durable, then visible, durably."""
        self._check_same()
        written = self._writing / f"batch={batch}"
        sync_tree(written)
        written.rename(self._root / written.name)
        sync(self._root)
        sync(self._writing)

    def _check_same(self) -> None:
        """``Refused`` where another directory is there now than the one that is held."""
        with suppress(OSError):
            if self._lock is not None and samestat(self._lock, os.stat(self._writing / LOCK)):
                return
        raise Refused("turned_back", f"root: {self._root} is not the directory any more in which this archiver"
                      " began; mount the one that was there, or start again")


class RemotePlace:
    """Anything else that Spark can write to."""

    def __init__(self, root: str) -> None:
        self.name = self._root = root.rstrip("/")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold nothing: several archivers may write."""
        yield

    def is_delta(self) -> bool:
        """Nothing keeps a Delta table up here."""
        return False

    def begin(self, batch: str) -> str:
        """Where Spark is to write it."""
        return f"{self._root}/batch={batch}"

    def finish(self, batch: str) -> None:
        """Nothing is left to do: Spark has committed."""


def place_of(root: str) -> LocalPlace | RemotePlace:
    """The place that a root names."""
    path = local_path(root)
    return RemotePlace(root) if path is None else LocalPlace(path)


def check_archive(root: str) -> str:
    """The URI to read; ``Refused`` when a local root is none, holds no batch, or may not be read."""
    path = local_path(root)
    if path is None:
        return root
    try:
        if not path.is_dir():
            raise Refused("not_an_archive", f"root: {path} is no directory; name the one that 'skuld archive'"
                          " writes to", root=root)
        if not any(name.startswith("batch=") for name in os.listdir(path)) and not Manifest(path).exists():
            raise Refused("not_an_archive", f"root: {path} holds no archive yet; 'skuld archive"
                          f" {shlex.quote(root)}' fills it", root=root)
    except OSError as error:
        raise unreadable(path, error) from error
    return uri_of(path)
