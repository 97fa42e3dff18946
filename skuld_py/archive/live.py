"""What an archive in a directory consists of at a moment: live files by its manifest, and what earlier releases
wrote, which no manifest names.

Earlier releases, and Spark, wrote ``batch=B/queue=Q/day=D/*.parquet``. Of these each task counts in the newest
batch that has it. They lie beside the others until compaction takes them over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import attrs

from skuld_py.archive.filters import Filters
from skuld_py.archive.manifest import File, Manifest, State, unread

BATCHES = "batch=*/queue=*/day=*/*.parquet"


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
    be read: its tasks would be missing, and nobody would be told."""
    found = [""]
    for pattern in BATCHES.split("/"):
        found = [f"{above}{name}" for above in found for name in sorted(_names(root / above))
                 if fnmatchcase(name, pattern)]
        found = [f"{path}/" for path in found] if not pattern.endswith(".parquet") else found
    yield from (path for path in found if path not in state.removed)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []  # it is no batch, or was taken over meanwhile
    except OSError as error:
        raise unread(directory, error) from error


def may_have(file: File, filters: Filters) -> bool:
    """Whether some of its rows may be wanted."""
    since_ms, until_ms = _bounds(filters)
    return ((filters.queue is None or file.queue == filters.queue)
            and (filters.id is None or file.first_id <= str(filters.id) <= file.last_id)
            and file.last_enqueued_ms >= since_ms and file.first_enqueued_ms < until_ms)


def has_only(file: File, filters: Filters) -> bool:
    """Whether all its rows are wanted, given that some may be."""
    since_ms, until_ms = _bounds(filters)
    return (filters.id is None and not filters.states and file.first_enqueued_ms >= since_ms
            and file.last_enqueued_ms < until_ms)


def _bounds(filters: Filters) -> tuple[int, int]:
    return (0 if filters.since is None else _ms(filters.since),
            1 << 63 if filters.until is None else _ms(filters.until))


def _ms(moment: datetime) -> int:
    return max(0, round(moment.astimezone(UTC).timestamp() * 1000))
