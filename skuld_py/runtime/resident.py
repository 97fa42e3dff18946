"""Keeps a node's resident memory flat although its store is mapped into it.

LMDB reads through a memory map of its file, and the kernel maps neighbours along with each page
touched, so after a while the whole file counts as the process's resident memory. None of it is needed:
the page cache keeps the pages, and the next read maps them again without touching the disk (about a
microsecond for sixteen pages). So the map is let go of now and then.

Nothing is lost: the map is shared and read-only, and what LMDB is about to write lies in memory of its
own. Only Linux is asked; elsewhere the numbers grow and mean as little as before.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from pathlib import Path

MADV_DONTNEED = 4

_log = logging.getLogger(__name__)


class MappedFile:
    """The place in this process's memory where a file is mapped."""

    def __init__(self, path: Path) -> None:
        self._ranges = _ranges_of(path) if sys.platform == "linux" else []
        self._libc = ctypes.CDLL(None, use_errno=True) if self._ranges else None

    def release(self) -> None:
        """Let its pages go; the next reads map them again."""
        if self._libc is None:
            return
        for start, length in self._ranges:
            if self._libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), MADV_DONTNEED):
                _log.warning("madvise failed with error %d; resident memory will grow", ctypes.get_errno())
                self._libc = None
                return


def _ranges_of(path: Path) -> list[tuple[int, int]]:
    """(start, length) of each mapping of the file."""
    name, found = str(path.resolve()), []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5] == name:
            start, end = (int(part, 16) for part in fields[0].split("-"))
            found.append((start, end - start))
    return found
