"""Batches of rows, written as Parquet by this process: for a directory of this machine, if pyarrow is installed.

A batch is one file for each queue and each day on which its tasks ended, ``files/DAY/QUEUE/BATCH-N.parquet``, and
one change of the manifest that names them. Columns go to Arrow as they are, without a JVM to start, to feed and to
wait for: a tenth of the time of a row, and of the memory.

Each task is in one live file. What was written and is not known to be deleted is offered again, to this writer or
to another; so the files of such tasks are *open*, and a writer knows the ids and digests of all tasks in open
files, and in those that others have put since it looked last. A row that is there is not written again; one that
has changed since goes out of its file with the change that brings the new one. Another writer's change in between
is refused by the manifest, and then all is looked at again. So it does not matter whether two write at once, or
whether one that was taken for dead wakes up.

An open file is closed when its tasks are off the nodes: as those who deleted them say, or, of one whose writer has
died, as the nodes do when they are asked. Not by its age: what was offered is held back if another task comes to
need it before it is deleted, or if nodes are to keep for longer what has ended, or their clocks were set back.
Of large files, which compaction makes of an earlier layout, a run asks for few, for that takes its time.

Rejected: Arrow on other stores, too. What Spark is told of them (``--conf``) Arrow does not understand, and object
stores have no link that fails.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import attrs
import pyarrow as pa

from skuld_py.archive.arrow_files import (
    FAILURES,
    Unread,
    digests_of,
    ids_by_groups,
    said,
    table_of,
    without,
    written,
)
from skuld_py.archive.drafts import FILES, Drafts
from skuld_py.archive.manifest import Change, File, Manifest, State
from skuld_py.archive.rows import COLUMNS, DAY_MS, Row, day_of
from skuld_py.errors import Refused
from skuld_py.model.ids import to_texts

TRIES = 50
LEARNED_ROWS_MAX = 100_000
"""Of a larger file, which compaction has made, only what is looked for is read, and nodes are asked for the tasks
of a row group at a time."""
ASKED_ROWS_MAX = 100_000
"""Once nodes were asked for so many tasks of large files, a run asks for no further file."""
KEPT_BATCHES, BATCH_ROWS = 3, 12_000
"""For so many batches, or runs, a deleted task is remembered: two pages that hold it may be on their way. A batch
has so many rows at most, and may be written in many parts."""
_ID, _QUEUE, _ENQUEUED, _ENDED, _DIGEST = map([*COLUMNS].index, (
    "id", "queue", "enqueued_ms", "ended_ms", "digest"))

T = TypeVar("T")
AreGone = Callable[[Sequence[str]], bool]
"""Whether the nodes have none of some tasks."""


@attrs.define
class _Drafted:
    """What a change is to bring: where each file goes, which rows it has, which of these are new, which files it
    replaces."""

    moves: dict[Path, str] = attrs.field(factory=dict)
    files: list[File] = attrs.field(factory=list)
    rows: list[tuple[str, Sequence[tuple[str, str]]]] = attrs.field(factory=list)
    new: dict[str, set[str]] = attrs.field(factory=dict)
    replaced: list[str] = attrs.field(factory=list)


class ArrowStore:
    """Where rows of an archiver go. ``tell``: what goes by the manifest catches up with it."""

    def __init__(self, root: Path, drafts: Drafts, manifest: Manifest, now_ms: Callable[[], int],
                 tell: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._tell = tell
        self._drafts = drafts
        self._manifest = manifest
        self._now_ms = now_ms
        self._seen = self._began = self._young = 0
        self._places: dict[str, tuple[str, str]] = {}
        """Of a task that may be offered again its digest and its file."""
        self._left: dict[str, int] = {}
        """How many tasks of an open file are not known to be deleted."""
        self._closing: list[str] = []
        self._aging: deque[list[str]] = deque([[]])
        self._gone: deque[bytes] = deque()
        self._before: list[str] = []
        self._asked: dict[str, int] = {}
        """Of how many row groups of a large file the nodes had nothing."""
        self._may_ask = 0
        self._untold: dict[str, set[str]] = {}
        """Which rows were to come to a file, until that is told: a put may be done, and fail behind that."""

    def begin(self) -> None:
        """A run begins."""
        with _refusing("this run"):
            self._again(self._look)
            self._began = self._began or self._seen
            self._age()
        self._before = [file.path for file in self._manifest.state.files.values() if file.is_open]
        self._asked = {path: self._asked.get(path, 0) for path in self._before}

    def write(self, batch: str, rows: Sequence[Row]) -> int:
        """Returns when the batch is durable: how many of its rows were not there as they are. ``Refused`` when it
        could not be written: then it is not there."""
        with _refusing(f"batch {batch}"):
            self._again(partial(self._write, batch, rows))
            self._tell()
        count = self._told({row[_ID] for row in rows})
        pa.default_memory_pool().release_unused()  # else Arrow keeps what a batch took beside the next's rows
        return count

    def _told(self, ids: set[str]) -> int:
        """How many of these rows came with files that are there; they are told."""
        came, files = set[str](), self._manifest.state.files
        for path, untold in self._untold.items():
            came |= untold & ids if path in files else set()
            untold -= ids
        self._untold = {path: untold for path, untold in self._untold.items() if untold}
        return len(came)

    def settled(self, ids: bytes) -> None:
        """These tasks are deleted."""
        self._gone.append(ids)

    def end(self, is_whole: bool, are_gone: AreGone = lambda ids: True) -> None:
        """A run is over. ``is_whole``: all that was on the nodes when it began is deleted, but for what other
        tasks need. Files of earlier writers of whose tasks the nodes have none are closed."""
        with _refusing("this run"):
            self._again(partial(self._end, is_whole, are_gone))
            self._tell()

    def _again(self, work: Callable[[], T]) -> T:
        """Do what may meet a file that has gone meanwhile, as the manifest has moved on: then it is done anew."""
        for _ in range(TRIES):
            try:
                return work()
            except Unread as unread:
                path = str(unread.path.relative_to(self._root))
                if not unread.is_gone or path in self._manifest.refresh().files:
                    raise
        return work()

    def _end(self, is_whole: bool, are_gone: AreGone) -> None:
        self._settle()
        if is_whole:
            self._may_ask = ASKED_ROWS_MAX
            self._closing += [path for path in self._turned() if path not in self._closing
                              and self._is_over(path, are_gone)]
        while self._closing:
            self._look()
            if self._put(_Drafted()):
                break

    def _turned(self) -> list[str]:
        """What was open as the run began, from any one on. Where each run is a process of its own, the same large
        file of which nodes still have a task would otherwise come first each time, and no other be asked for."""
        first = secrets.randbelow(max(1, len(self._before)))
        return self._before[first:] + self._before[:first]

    def _is_over(self, path: str, are_gone: AreGone) -> bool:
        """Asked is for those alone of which nobody has said here that they are deleted."""
        file = self._manifest.state.files.get(path)
        if file is None or not file.is_open:
            return False
        if file.rows > LEARNED_ROWS_MAX:
            return self._is_large_over(path, are_gone)
        ids = [task_id for task_id, _ in digests_of(self._root / path)]
        return are_gone([task_id for task_id in ids if self._places.get(task_id, ("", ""))[1] == path]
                        if path in self._left else ids)

    def _is_large_over(self, path: str, are_gone: AreGone) -> bool:
        """Asked is on from the row group of which the nodes still had some, and to the file's end: else one of
        very many rows would stay open where each run is a process of its own."""
        if self._may_ask <= 0:
            return False
        for ids in ids_by_groups(self._root / path, self._asked[path]):
            self._may_ask -= len(ids)
            if not are_gone(ids):
                return False
            self._asked[path] += 1
        return True

    def _write(self, batch: str, rows: Sequence[Row]) -> None:
        drafted, had = _Drafted(), -1
        self._drafts.drop(self._manifest.refresh())
        for _ in range(TRIES):
            self._look()
            self._settle()
            self._learn_large(rows)
            fresh, changed = self._sifted(rows)
            if not fresh:
                return
            if had != len(fresh) or changed:
                self._drafts.drop(self._manifest.state)
                drafted, had = self._drafted(batch, fresh, changed), len(fresh)
                self._drafts.move(drafted.moves)
            self._untold.update(drafted.new)
            if self._put(drafted):
                self._young += len(fresh)
                if self._young >= BATCH_ROWS:
                    self._age()
                return
        raise Refused("not_written", f"root: other archivers were faster {TRIES} times; run fewer on one root")

    def _age(self) -> None:
        self._young = 0
        self._aging.appendleft([])
        while len(self._aging) > KEPT_BATCHES:
            for task_id in self._aging.pop():
                if self._places.get(task_id, ("", ""))[1] not in self._left:
                    self._places.pop(task_id, None)

    def _look(self) -> None:
        """See what others have put."""
        state = self._manifest.refresh()
        if state.version == self._seen:
            return
        self._forget_over(state)
        for file in state.files.values():
            is_new = file.is_open and file.path not in self._left and file.path not in self._closing
            if file.rows > LEARNED_ROWS_MAX:
                continue
            if is_new or 0 < self._seen < file.born:
                self._learn(file, digests_of(self._root / file.path))
        self._seen = state.version

    def _forget_over(self, state: State) -> None:
        """A little later forget the tasks of files that went, or that another has closed."""
        over = {path for path in self._left if path not in state.files or not state.files[path].is_open}
        if over:
            self._left = {path: count for path, count in self._left.items() if path not in over}
            self._aging[0] += [task_id for task_id, (_, path) in self._places.items() if path in over]

    def _learn(self, file: File, rows: Sequence[tuple[str, str]]) -> None:
        for task_id, digest in rows:
            self._places[task_id] = digest, file.path
        if file.is_open:
            self._left[file.path] = len(rows)
        else:
            self._aging[0] += [task_id for task_id, _ in rows]

    def _settle(self) -> None:
        """Forget tasks that are deleted, a little later, and close their files."""
        places, went = self._places, Counter[str]()
        while self._gone:
            known = [task_id for task_id in to_texts(self._gone.popleft()) if task_id in places]
            self._aging[0] += known
            for task_id in known:
                digest, path = places[task_id]
                places[task_id] = digest, ""
                went[path] += 1
        for path, count in went.items():
            left = self._left.get(path, 0) - count
            if left > 0:
                self._left[path] = left
            elif self._left.pop(path, 0):
                self._closing.append(path)

    def _learn_large(self, rows: Sequence[Row]) -> None:
        """Of large files see which of these rows they have."""
        ids = sorted(row[_ID] for row in rows)
        for file in self._manifest.state.files.values():
            if file.rows > LEARNED_ROWS_MAX and (file.is_open or file.born > self._began) and (
                    among := ids[bisect_left(ids, file.first_id) : bisect_right(ids, file.last_id)]):
                for task_id, digest in digests_of(self._root / file.path, among):
                    self._places.setdefault(task_id, (digest, file.path))
                    self._aging[0].append(task_id)

    def _sifted(self, rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
        """Rows that are not there as they are; and the ids of those that are there otherwise."""
        fresh, changed = list[Row](), list[str]()
        for row in {row[_ID]: row for row in rows}.values():
            place = self._places.get(row[_ID])
            if place is None or place[0] != row[_DIGEST]:
                fresh.append(row)
                if place is not None:
                    changed.append(row[_ID])
        return fresh, changed

    def _drafted(self, batch: str, rows: Sequence[Row], changed: Sequence[str]) -> _Drafted:
        groups = defaultdict[tuple[int, str], list[Row]](list)
        for row in rows:
            ended_ms = row[_ENQUEUED] if row[_ENDED] is None else row[_ENDED]
            groups[ended_ms // DAY_MS, row[_QUEUE]].append(row)
        drafted = _Drafted()
        for number, ((day_number, queue), found) in enumerate(groups.items()):
            day = day_of(day_number * DAY_MS)
            path, draft = f"{FILES}/{day}/{queue}/{batch}-{number}.parquet", self._drafts.path(f"{batch}-{number}")
            found.sort(key=itemgetter(_ID))
            drafted.moves[draft] = path
            drafted.files.append(written(table_of(found, batch), draft, path, day))
            drafted.rows.append((path, [(row[_ID], row[_DIGEST]) for row in found]))
            drafted.new[path] = {row[_ID] for row in found}
        for number, old in enumerate(dict.fromkeys(self._homes(changed))):
            self._replace(drafted, self._manifest.state.files[old], changed, f"{batch}-without-{number}")
        return drafted

    def _homes(self, ids: Sequence[str]) -> Iterator[str]:
        """The live files that have these tasks: where they were seen, or what became of that."""
        files = self._manifest.state.files
        for task_id in ids:
            path = self._places[task_id][1]
            if path in files:
                yield path
            else:
                yield from (file.path for file in files.values() if file.first_id <= task_id <= file.last_id)

    def _replace(self, drafted: _Drafted, old: File, changed: Sequence[str], name: str) -> None:
        gone, source, draft = {*changed}, self._root / old.path, self._drafts.path(name)
        if not digests_of(source, gone):
            return
        drafted.replaced.append(old.path)
        if bounds := without(source, changed, draft):
            path = f"{FILES}/{old.day}/{old.queue}/{name}.parquet"
            drafted.moves[draft] = path
            drafted.files.append(attrs.evolve(old, path=path, size=draft.stat().st_size, **bounds))
            if old.is_open and bounds["rows"] <= LEARNED_ROWS_MAX:
                drafted.rows.append((path, digests_of(draft)))

    def _put(self, drafted: _Drafted) -> bool:
        change = Change(self._now_ms(), tuple(drafted.files), tuple(drafted.replaced), tuple(self._closing))
        if not self._manifest.put(change):
            return False
        if drafted.moves:  # else the note is of a batch that was refused, whose files are to be taken away yet
            self._drafts.forget()
        self._closing.clear()
        self._seen = self._manifest.state.version
        for path, rows in drafted.rows:
            self._learn(self._manifest.state.files[path], rows)
        self._forget_over(self._manifest.state)
        return True


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """What the disk or Arrow says becomes a refusal."""
    try:
        yield
    except FAILURES as error:
        raise Refused("not_written", f"root: {what} could not be written: {said(error)}; nothing of it is"
                      " deleted") from None
