"""What an archive and its cluster hold, and what of that is a violation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow.parquet as pq

from skuld_py.archive.live import live

READS = 20
"""So often at most a reader asks again: a file may go between the manifest and it, for archivers' clocks jump."""


def judged(told: Collection[str], rows: Collection[str], left: Collection[str]) -> list[str]:
    """Of tasks that ended, rows of an archive, and what the nodes had before these were read."""
    lost, strange = {*told} - {*rows} - {*left}, {*rows, *left} - {*told}
    twice = len(rows) - len({*rows})
    return [f"{count} {what}" for count, what in (
        (len(lost), "lost"), (len(strange), "that nobody ended"), (twice, "twice in the archive")) if count]


def rows_of(root: Path) -> list[str]:
    """The ids in live files, as any reader of the manifest sees them."""
    return _read_again(lambda: _ids(live(root).paths))


def tasks_of_batches(root: Path) -> list[str]:
    """Those in the directories that Spark writes. A task may stand in several; for readers one of them counts."""
    return sorted({*_read_again(lambda: _ids([*root.glob("batch=*/queue=*/day=*/*.parquet")]))})


def _ids(paths: Collection[Path]) -> list[str]:
    return [task_id for path in paths
            for task_id in pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()]


def _read_again(read: Callable[[], list[str]]) -> list[str]:
    for _ in range(READS):
        try:
            return read()
        except FileNotFoundError:
            continue
    raise AssertionError(f"files of the archive are not there, {READS} times in a row")
