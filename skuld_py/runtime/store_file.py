"""The file beneath the store: whether it is there, is the one that was opened, and is whole.

LMDB reads through a map of its file. A page that the file is too short for ends the process with SIGBUS, without a
word and at every start again; and a file that was deleted or replaced under a running process is written on, where
it will never be found. So the file is checked before its pages are read, and now and then while it is in use.

A file may be somewhat shorter than its last page number says: pages that were freed in the batch that took them
are never written. So a short file is read through in a process of its own first, which may die of it.

Rejected: to refuse every short file (healthy ones are); to read through every file (a start would last as long as
its data); to catch SIGBUS (Python cannot go on behind it).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROBE = """
import sys, lmdb
environment = lmdb.Environment(sys.argv[1], map_size=int(sys.argv[2]), readonly=True, lock=False, max_dbs=64)
names = []
with environment.begin() as transaction:
    names = list(transaction.cursor().iternext(keys=True, values=False))
for name in names:
    database = environment.open_db(name, create=False)
    with environment.begin(db=database) as transaction:
        for key, value in transaction.cursor():
            pass
"""


class StoreFile:
    """The file at ``path``, as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        found = path.stat()
        self._identity = (found.st_dev, found.st_ino)
        self.size = found.st_size

    def problem(self) -> str:
        """Why the file cannot be trusted, or an empty text: it is gone, another, or shorter. A store's file never
        shrinks."""
        try:
            found = self._path.stat()
        except OSError as problem:
            return f"{self._path} is not there any more ({problem.strerror})"
        if (found.st_dev, found.st_ino) != self._identity:
            return f"{self._path} is another file than the one that this process writes to"
        if found.st_size < self.size:
            return f"{self._path} was cut from {self.size} to {found.st_size} bytes"
        self.size = found.st_size
        return ""


def can_be_read(directory: Path, map_bytes: int) -> bool:
    """Whether all that the store in a directory holds is in its file."""
    done = subprocess.run([sys.executable, "-c", _PROBE, str(directory), str(map_bytes)], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return not done.returncode
