"""Temporary directories of Spark's, which whoever comes next takes away when their owner was killed.

An owner holds a lock in its directory for as long as it lives. One without a lock is of an earlier release, which
held none, and is left alone. What is given is a directory in it: Spark holds its own by the same kind of lock.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skuld_py.embedded import process
from skuld_py.errors import Refused


@contextmanager
def scratch_directory(prefix: str) -> Iterator[Path]:
    """A directory for as long as the block lasts."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if (left / "lock").is_file():
            with suppress(Refused, OSError), process.held(left):
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as made, process.held(Path(made)):
        given = Path(made) / "spark"
        given.mkdir()
        yield given
