"""Compaction: many small files of a day and a queue become few of 64 to 256 MB, and what is old is taken away.

    read the manifest -> write the new files -> one change: new ones in, old ones out -> after a grace: unlink

Whatever is interrupted, the manifest names files that are there, and each task once. If another compaction was
faster, its change stands and this one's files are dropped. Files whose tasks the nodes may still have are left
alone: an archiver may have to take a task out of them.

Rows are merged by ranges of ids, each of as many rows as fit memory: a range is read from the files that overlap
it, sorted, and written as one row group. Where ranges begin follows from what the rows of each file weigh, some at
a time: read for that alone, since a file does not say it. Its footer has the size of what is encoded, in which a
payload that all tasks of a queue share stands once; and a few large tasks may lie among many small ones. So a day
may be much larger than memory. What a release that knew fewer columns has written gets today's; a file with
columns that are unknown here, of a later release, is left to that.

Days that are too old are counted back from the newest end in the archive, which is a time of the cluster's, and
not from a clock here that is ahead of it: set forward, it would have all that was ever archived removed. So an
archive to which nothing comes any more keeps its last days.

A file that cannot be read is named, and keeps from compaction what is of its day and queue, and nothing else.

Files of an earlier layout, ``batch=B/queue=Q/day=D``, are taken over in the same way: of a task that stands there
twice the row of the newest batch, and none if the live files have it already. All rows of a task have one queue
and one day (that of its id), so a queue and a day are taken over by themselves. The new files are open, for the
nodes may still have what an earlier archiver wrote last.
"""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skuld_py.archive.arrow_files import (
    BOUNDED,
    FAILURES,
    SCHEMA,
    Unread,
    bounds_of,
    damaged,
    has_more,
    joined_bounds,
    lacks_ends,
    reading,
    said,
    sound,
    todays,
    writer_of,
)
from skuld_py.archive.drafts import FILES, Drafts, unlinked
from skuld_py.archive.live import old_paths
from skuld_py.archive.manifest import Change, File, Manifest
from skuld_py.archive.rows import DAY_MS, day_of
from skuld_py.errors import Refused

SMALL_BYTES, FULL_BYTES = 64 << 20, 160 << 20
"""A file below the first is merged with others; one that has the second gets no more rows."""
RANGE_BYTES = 12 << 20
"""Of rows in memory that are sorted at a time; with what Arrow copies of them on the way, three times as much."""
WEIGHTS = 100_000
"""So many are held to find ranges, unless there are more files."""
ROWS_AT_ONCE = 64
"""Of a row group are decoded: they may have a MiB each."""
ROW_BYTES = 500
"""What the columns take of a row that are not weighed."""
LIGHT_BYTES = 100
"""A column that takes no more of a row is not weighed."""
WEIGHED = ("payload", "result", "error", "headers", "claims", "logs", "deps", "checkpoint", "outputs",
           "arguments")
GRACE_MS = 3_600_000
PUTS = 50
OnPart = Callable[[str, str, float], None]
"""A day, a queue, and the share of it that is done."""


@attrs.define
class Compacted:
    """What was done: how many files became how many, of how many rows; how many were unlinked, and how many rows
    of days past were dropped. ``left``: how many small files were left alone, for the nodes may still have some of
    their tasks; ``unread``: those that cannot be read."""

    files: int = 0
    into: int = 0
    rows: int = 0
    unlinked: int = 0
    dropped: int = 0
    left: int = 0
    unread: list[Unread] = attrs.field(factory=list)


@attrs.frozen
class _Source:
    """A file to be merged. ``batch``, ``queue`` and ``day``: of one of an earlier layout, which its path tells."""

    path: str
    first_id: str
    last_id: str
    born: int
    rows: int
    batch: str = ""
    queue: str = ""
    day: str = ""


class Compaction:
    """Compacts what lies below a root. ``name``: gives names that no other file has; ``tell``: what goes by the
    manifest catches up with it, before files go that it knows; ``told_since``: which of these it was told only
    since a time that they went."""

    def __init__(self, root: Path, drafts: Drafts, manifest: Manifest, now_ms: Callable[[], int],
                 name: Callable[[], str], tell: Callable[[], None] = lambda: None,
                 told_since: Callable[[int], Set[str]] = lambda at_ms: frozenset()) -> None:
        self._root = root
        self._drafts = drafts
        self._manifest = manifest
        self._now_ms = now_ms
        self._name = name
        self._tell = tell
        self._told_since = told_since
        self._on_part: OnPart = _unseen
        self.done = Compacted()

    def run(self, *, least: int = 2, grace_ms: int = GRACE_MS, keep_days: int | None = None,
            takes_over: bool = True, on_part: OnPart | None = None) -> Compacted:
        """Compact days and queues with at least so many small files, take over those of an earlier layout, drop
        days that lie more than ``keep_days`` before the newest, unlink what went more than ``grace_ms`` ago.
        ``on_part`` is told which day and queue it is at, and which share of that is done."""
        self.done, self._on_part = Compacted(), on_part or _unseen
        try:
            self._drafts.drop(self._manifest.refresh())
            if keep_days is not None:
                ends = (file.last_ended_ms or 0 for file in self._manifest.state.files.values())
                self._drop(max(0, min(self._now_ms(), max(ends, default=0)) - keep_days * DAY_MS))
            self.done.left = sum(file.is_open and file.size < SMALL_BYTES
                                 for file in self._manifest.state.files.values())
            old = old_paths(self._root, self._manifest.state) if takes_over else iter(())
            for (queue, day), paths in _old_groups(old).items():
                with self._passing():
                    self._merge([_old_source(self._root, path) for path in paths], day, queue)
            for (day, queue), files in _small_groups(self._manifest.state.files.values()).items():
                worth = files if least <= 2 else _of_one_size(files)
                with self._passing():
                    if len(worth) >= least and len(worth := self._known(worth)) >= least:
                        self._merge([_source(file) for file in worth], day, queue)
            self._tell()
            self._unlink(grace_ms)
        except FAILURES as error:
            raise Refused("not_written", f"root: could not be compacted: {said(error)}; nothing is lost") from None
        return self.done

    @contextlib.contextmanager
    def _passing(self) -> Iterator[None]:
        """Note a file that cannot be read, and go on with others. Of one that another compaction has taken away
        there is nothing to say."""
        try:
            yield
        except Unread as unread:
            state = self._manifest.refresh()
            self._drafts.drop(state)
            if not unread.is_gone or str(unread.path.relative_to(self._root)) in state.files:
                self.done.unread.append(unread)

    def _known(self, files: Sequence[File]) -> list[File]:
        """Those of which no column would be lost."""
        return [file for file in files if not has_more(self._root / file.path)]

    def _drop(self, before_ms: int) -> None:
        """Whole days, files of an earlier layout not before they are taken over. Of some tasks nobody knows when
        they ended, but they had when they were written: their files stay until that is as long ago."""
        old = [file for file in [*self._manifest.state.files.values()]  # which changes where one cannot be read
               if file.day < day_of(before_ms) and not file.is_open and self._is_past(file, before_ms)]
        if old and self._put((), [file.path for file in old]):
            self.done.dropped += sum(file.rows for file in old)

    def _is_past(self, file: File, before_ms: int) -> bool:
        """Not if that cannot be read."""
        path, is_past = self._root / file.path, False
        with self._passing():
            is_past = not (_is_written_since(path, before_ms) and lacks_ends(path))
        return is_past

    def _merge(self, sources: Sequence[_Source], day: str, queue: str) -> None:
        is_old, seen = bool(sources[0].batch), self._manifest.state.version
        outputs = _Outputs(self._drafts, self._name, queue, max(each.born for each in sources), is_old)
        rows, all_rows = 0, max(1, sum(each.rows for each in sources))
        ranges, heavy = _ranges(self._root, sources)
        counts = Counter[str]()
        for first, behind in ranges:
            rows += outputs.take(self._range(sources, first, behind, heavy, counts))
            self._on_part(day, queue, min(1.0, rows / all_rows))
            gc.collect()  # files of Arrow are in cycles, each with its footer, and an archiver seldom seeks these
            pa.default_memory_pool().release_unused()
        self._check_whole(sources, counts)
        files, moves = outputs.finished()
        self._drafts.move(moves)
        if self._put(files, [each.path for each in sources], seen=seen if is_old else None):
            self.done.files += len(sources)
            self.done.into += len(files)
            self.done.rows += sum(file.rows for file in files)
        self._drafts.drop(self._manifest.refresh())

    def _check_whole(self, sources: Sequence[_Source], counts: Mapping[str, int]) -> None:
        """That all rows of each file were met: what it says itself of where they are may be damaged."""
        for each in sources:
            if counts[each.path] != each.rows:
                raise damaged(self._root / each.path, f"it has {each.rows} rows, and {counts[each.path]} of them"
                              " were found by its footer")

    def _range(self, sources: Sequence[_Source], first: str, behind: str | None, heavy: Set[str],
               counts: Counter[str]) -> pa.Table:
        """The rows of a range of ids, sorted, each task once. ``counts``: how many were met of each file."""
        tables = []
        for each in sources:
            if each.last_id >= first and (behind is None or each.first_id < behind):
                tables.append(_read(self._root, each, first, behind, each.path in heavy))
                ids = tables[-1].column("id")
                counts[each.path] += len(ids) if each.batch else pc.count_distinct(ids).as_py()
        table = pa.concat_tables(tables).sort_by([("id", "ascending"), ("batch", "descending")])
        ids = table.column("id").combine_chunks()
        if len(ids) > 1:
            is_first = pa.concat_arrays([pa.array([True]), pc.not_equal(ids[1:], ids[:-1])])
            table = table.filter(is_first)
        if any(each.batch for each in sources) and table.num_rows:
            table = self._without_live(table)
        return table

    def _without_live(self, table: pa.Table) -> pa.Table:
        """Of rows of an earlier layout those that no live file has."""
        bounds = bounds_of(table)
        known = [_ids(self._root / file.path)
                 for file in self._manifest.state.files.values()
                 if file.queue == table.column("queue")[0].as_py() and file.first_id <= bounds["last_id"]
                 and file.last_id >= bounds["first_id"]]
        for ids in known:
            table = table.filter(pc.invert(pc.is_in(table.column("id"), ids.combine_chunks())))
        return table

    def _put(self, files: Sequence[File], remove: Sequence[str], forget: Sequence[str] = (),
             seen: int | None = None) -> bool:
        """Whether it is done; not if another has taken one of the files out meanwhile, nor if files have come
        since the change ``seen`` that may have the same tasks."""
        for _ in range(PUTS):
            state = self._manifest.refresh()
            if any(path not in state.files if path.startswith(f"{FILES}/") else path in state.removed
                   for path in remove):
                return False
            if seen is not None and any(_may_share(file, files) for file in state.files.values()
                                        if file.born > seen):
                return False
            if self._manifest.put(Change(self._now_ms(), tuple(files), tuple(remove), forget=tuple(forget))):
                self._drafts.forget()
                return True
        raise Refused("not_written", f"root: other archivers were faster {PUTS} times; run fewer on one root")

    def _unlink(self, grace_ms: int) -> None:
        """What no reader can still want goes; its empty directories with it."""
        late_ms = self._now_ms() - grace_ms
        wanted = self._told_since(late_ms)
        gone = [path for path, at_ms in self._manifest.state.removed.items()
                if at_ms <= late_ms and path not in wanted]
        unlinked(self._root, gone)
        for path in gone:
            _clear(self._root, path)
        if gone:
            self._put((), (), gone)
            self.done.unlinked += len(gone)


def _unseen(day: str, queue: str, share: float) -> None:
    """Nobody looks how far it is."""


def _is_written_since(path: Path, at_ms: int) -> bool:
    """Whether a file is so new, to go by the disk's clock."""
    with reading(path):
        return path.stat().st_mtime * 1000 >= at_ms


def _clear(root: Path, path: str) -> None:
    """Take away the directories above that are empty, but for what Spark notes beside its files."""
    with contextlib.suppress(OSError):
        for above in Path(path).parents[:-1]:
            if not path.startswith(f"{FILES}/"):
                for left in (root / above).glob("*"):
                    if left.name == "_SUCCESS" or (left.name.startswith(".") and left.name.endswith(".crc")):
                        left.unlink()
            (root / above).rmdir()


def _may_share(file: File, files: Sequence[File]) -> bool:
    return any(file.queue == each.queue and file.first_id <= each.last_id and each.first_id <= file.last_id
               for each in files)


class _Outputs:
    """The new files of a queue, one of each day on which its tasks ended open at a time."""

    def __init__(self, drafts: Drafts, name: Callable[[], str], queue: str, born: int,
                 is_open: bool) -> None:
        self._drafts = drafts
        self._name = name
        self._queue = queue
        self._born = born
        self._is_open = is_open
        self._open: dict[str, tuple[str, pq.ParquetWriter, dict[str, Any]]] = {}
        self._files: list[tuple[str, str, dict[str, Any]]] = []

    def take(self, table: pa.Table) -> int:
        """Rows that are sorted by id, and have greater ones than those before; how many they are."""
        days, names = _days(table)
        for number, name in names.items():
            self._write(name, table.filter(pc.equal(days, number)))
        return int(table.num_rows)

    def _write(self, day: str, table: pa.Table) -> None:
        bounds = bounds_of(table)
        if day in self._open:
            name, writer, before = self._open[day]
            bounds = joined_bounds(before, bounds)
        else:
            name = self._name()
            writer = writer_of(self._drafts.path(name))
        writer.write_table(table)
        self._open[day] = name, writer, bounds
        if self._drafts.path(name).stat().st_size >= FULL_BYTES:
            self._close(day)

    def _close(self, day: str) -> None:
        name, writer, bounds = self._open.pop(day)
        writer.close()
        self._files.append((day, name, bounds))

    def finished(self) -> tuple[list[File], dict[Path, str]]:
        """What the manifest is to say, and where the drafts go."""
        for day in [*self._open]:
            self._close(day)
        files, moves = [], {}
        for day, name, bounds in self._files:
            draft, path = self._drafts.path(name), f"{FILES}/{day}/{self._queue}/{name}.parquet"
            moves[draft] = path
            files.append(File(path=path, queue=self._queue, day=day, size=draft.stat().st_size, born=self._born,
                              is_open=self._is_open, **bounds))
        return files, moves


def _days(table: pa.Table) -> tuple[Any, dict[int, str]]:
    """On which day the task of each row ended, as a number; and how these days are written."""
    days = pc.divide(pc.coalesce(table.column("ended_ms"), table.column("enqueued_ms")), DAY_MS)
    return days, {number: day_of(number * DAY_MS) for number in sorted(pc.unique(days).to_pylist())}


def _small_groups(files: Any) -> dict[tuple[str, str], list[File]]:
    groups: dict[tuple[str, str], list[File]] = {}
    for file in files:
        if file.size < SMALL_BYTES and not file.is_open:
            groups.setdefault((file.day, file.queue), []).append(file)
    return {key: groups[key] for key in sorted(groups)}


def _of_one_size(files: Sequence[File]) -> list[File]:
    """Without those that are larger than all smaller ones together: they would be written anew too often."""
    found = sorted(files, key=lambda file: file.size)
    while len(found) > 1 and found[-1].size > sum(file.size for file in found[:-1]):
        found.pop()
    return found


def _old_groups(paths: Iterator[str]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        _, queue, day, _ = path.split("/")
        groups.setdefault((queue.removeprefix("queue="), day.removeprefix("day=")), []).append(path)
    return groups


def _source(file: File) -> _Source:
    return _Source(file.path, file.first_id, file.last_id, file.born, file.rows)


def _old_source(root: Path, path: str) -> _Source:
    """No manifest says how many rows it has, but its footer does in more than one place."""
    ids, counts = _ids(root / path), _counts(root / path)
    if counts != {len(ids)}:
        raise damaged(root / path, f"its footer says of its {len(ids)} rows that they are others")
    bounds = pc.min_max(ids)
    batch, queue, day, _ = path.split("/")
    return _Source(path, bounds["min"].as_py() or "", bounds["max"].as_py() or "", 0, len(ids),
                   batch.removeprefix("batch="),
                   queue.removeprefix("queue="), day.removeprefix("day="))


def _ids(path: Path) -> Any:
    with reading(path):
        return sound(pq.read_table(path, columns=["id"], partitioning=None), "id").column("id")


def _counts(path: Path) -> set[int]:
    """How many rows a file has, by each part of its footer."""
    with reading(path):
        found = pq.read_metadata(path)
        groups = [found.row_group(number) for number in range(found.num_row_groups)]
        return {found.num_rows, sum(group.num_rows for group in groups),
                sum(group.column(found.schema.names.index("id")).num_values for group in groups)}


def _ranges(root: Path, sources: Sequence[_Source]) -> tuple[list[tuple[str, str | None]], set[str]]:
    """Ranges of ids with about as many rows each as fit memory: the first id, and the first behind. And the files
    of which a row group does not."""
    firsts, size, most = [""], 0, max(2, WEIGHTS // len(sources))
    weighed = {each.path: _weights(root / each.path, RANGE_BYTES // len(sources), most) for each in sources}
    for first, weight in sorted(each for found, _ in weighed.values() for each in found):
        if size and size + weight > RANGE_BYTES:
            firsts, size = [*firsts, first], 0
        size += weight
    heavy = {path for path, (_, heaviest) in weighed.items() if heaviest > RANGE_BYTES}
    bounds: list[str | None] = [*dict.fromkeys(firsts), None]
    return [(first or "", behind) for first, behind in pairwise(bounds)] if size else [], heavy


def _weights(path: Path, share: int, most: int) -> tuple[list[tuple[str, int]], int]:
    """How many bytes of memory the rows of a file take, so many or more together: each time an id among them, and
    their size. Of a large file there are fewer, with more bytes each. And what its heaviest row group takes."""
    found, first, size, heaviest = list[tuple[str, int]](), "", 0, 0
    with reading(path), pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            columns, group = _columns(file.metadata.row_group(number)), 0
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[number], columns=columns, use_threads=False):
                for part, weight in _parted(sound(batch, "id"), share):
                    first, size, group = first or part.column("id")[0].as_py(), size + weight, group + weight
                    if size >= share:
                        found.append((first, size))
                        first, size = "", 0
                    if len(found) > most:
                        share *= 2
                        found = [(one, sum(weight for _, weight in found[at : at + 2]))
                                 for at, (one, _) in enumerate(found) if at % 2 == 0]
            heaviest = max(heaviest, group)
    return [*found, (first, size)] if size else found, heaviest


def _columns(group: Any) -> list[str]:
    """What is to be weighed of a row group: the ids, and columns that may take much. No value is larger than all
    that is encoded of its column."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    large = {chunk.path_in_schema.partition(".")[0] for chunk in chunks
             if chunk.num_values * chunk.total_uncompressed_size > LIGHT_BYTES * group.num_rows}
    return ["id", *(name for name in WEIGHED if name in large)]


def _parted(batch: pa.RecordBatch, share: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """In halves, and these in halves, until each weighs no more, or is a row; with their weights."""
    weight = int(batch.nbytes) + ROW_BYTES * int(batch.num_rows)
    if batch.num_rows > 1 and weight > share:
        half = batch.num_rows // 2
        yield from _parted(batch.slice(0, half), share)
        yield from _parted(batch.slice(half), share)
    elif batch.num_rows:
        yield batch, weight


def _part(path: Path, first: str, behind: str | None, is_heavy: bool) -> pa.Table:
    """The rows of a file in a range of ids, a row group at a time, or some rows of one, and in this thread: with
    others Arrow holds tens of MB more."""
    parts = list[pa.Table]()
    with reading(path), pq.ParquetFile(path) as file:
        at = file.schema.names.index("id")
        for number in range(file.num_row_groups):
            known = file.metadata.row_group(number).column(at).statistics
            if known is None or not isinstance(known.max, str) or (
                    known.max >= first and (behind is None or known.min < behind)):
                tables = map(pa.Table.from_batches, zip(file.iter_batches(
                    ROWS_AT_ONCE, row_groups=[number], use_threads=False))) if is_heavy else [
                    file.read_row_group(number, use_threads=False)]
                for table in tables:
                    ids = table.column("id")
                    wanted = pc.greater_equal(ids, first)
                    found = table.filter(wanted if behind is None else pc.and_(wanted, pc.less(ids, behind)))
                    parts += [found] if found.num_rows else []
        return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def _read(root: Path, source: _Source, first: str, behind: str | None, is_heavy: bool) -> pa.Table:
    """Rows of a file in today's columns; of an earlier layout some stand in its path."""
    told = {"batch": source.batch, "queue": source.queue, "day": source.day} if source.batch else {}
    with reading(path := root / source.path):
        found = todays(sound(_part(path, first, behind, is_heavy), *BOUNDED), SCHEMA.names, told)
        _days(found)
    return found
