"""What an archive in a directory consists of at a moment: live files by its manifest, and what earlier releases
wrote, which no manifest names.

Earlier releases, and Spark, wrote ``batch=B/queue=Q/day=D/*.parquet``. Of these each task counts in the newest
batch that has it. They lie beside the others until compaction takes them over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import attrs

from skuld_py.archive.filters import Filters
from skuld_py.archive.manifest import File, Manifest, State, unreadable

BATCHES = ("batch=", "queue=", "day=", ".parquet")
"""How the names of its directories begin, and those of its files end."""


@attrs.frozen
class Live:
    """``files`` that may have what is wanted; ``old``: paths below the root of an earlier layout."""

    root: Path
    files: tuple[File, ...]
    old: tuple[str, ...]

    @property
    def paths(self) -> list[Path]:
        """Of the live files, in the order of their ids."""
        return [self.root / file.path for file in sorted(self.files, key=lambda file: file.first_id)]


def live(root: Path, filters: Filters | None = None) -> Live:
    """As the manifest has it now."""
    state = Manifest(root).refresh()
    wanted = filters or Filters()
    return Live(root, tuple(file for file in state.files.values() if may_have(file, wanted)),
                tuple(old_paths(root, state)))


def old_paths(root: Path, state: State) -> Iterator[str]:
    """What an earlier layout has and nothing has taken over, in order. ``Refused`` where a directory of it may not
    be read: without its rows nobody knows what an archive holds."""
    try:
        for path in _named(root, *BATCHES):
            if path not in state.removed:
                yield path
    except OSError as error:
        raise unreadable(root, error) from error


def _named(directory: Path, start: str, *starts: str) -> Iterator[str]:
    """Paths of files whose directories' names begin so, level by level; none of one that went meanwhile."""
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if starts:
            if name.startswith(start):
                yield from (f"{name}/{below}" for below in _named(directory / name, *starts))
        elif name.endswith(start):
            yield name


def may_have(file: File, filters: Filters) -> bool:
    """Whether some of its rows may be wanted."""
    since_ms, until_ms = _bounds(filters)
    return ((filters.queue is None or file.queue == filters.queue)
            and (filters.id is None or file.first_id <= str(filters.id) <= file.last_id)
            and file.last_enqueued_ms >= since_ms and file.first_enqueued_ms < until_ms)


def has_only(file: File, filters: Filters) -> bool:
    """Whether all its rows are wanted, given that some may be."""
    since_ms, until_ms = _bounds(filters)
    return (filters.id is None and not filters.states and filters.key is None
            and file.first_enqueued_ms >= since_ms and file.last_enqueued_ms < until_ms)


def _bounds(filters: Filters) -> tuple[int, int]:
    return (0 if filters.since is None else _ms(filters.since),
            1 << 63 if filters.until is None else _ms(filters.until))


def _ms(moment: datetime) -> int:
    return max(0, round(moment.astimezone(UTC).timestamp() * 1000))
