"""The order of archiving: a page is offered, written, durable, and only then confirmed.

    offered by the leader -> in a batch -> written (durable when ``write`` returns) -> confirmed, and so deleted

So nothing is deleted that was not written; what was written and not confirmed, since this process died or the
partition's leader changed, is offered again and may be written twice. Readers take one row for each id.

Of each partition one page is on offer at a time. The pages of all partitions go into one batch, one after another,
until it is full (``BATCH_TASKS``, ``BATCH_BYTES``), so that few files are written. A task whose page could not be
confirmed, or was confirmed too late, comes again, often in another page; it is not written again while, by its
digest, it is what it was. What an earlier process wrote is not known here, and may be written again.

A batch that is refused is written in halves, and these in halves, down to the tasks in the way. They are named,
the others are written, and of their pages nothing is confirmed: only their partitions wait. Where nothing of a
batch is taken, or hardly anything, it is the place that is at fault, and the run ends.

A partition that has nothing on offer now, but may have soon, is asked again until ``wait_s`` have passed in which
nothing could be deleted.

Pure but for what it is given: a source, a sink, a clock and a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from skuld_py.archive.rows import size_of
from skuld_py.client.archiving import Page
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns, ids
from skuld_py.model.task import Task

BATCH_TASKS = 10_000
BATCH_BYTES = 64 << 20
PAUSE_S = 0.5
REFUSALS_MAX = 16
"""Refusals in a row, beyond those on the way from a batch to one task, after which the place is at fault."""
PASSING = ("no_leader", "not_leader", "unavailable")
"""Refusals that say only that a partition has no leader now."""


class Source(Protocol):
    """A client of the cluster."""

    def collectable(self, partition: int) -> Page:
        """The page on offer."""

    def archived(self, page: Page) -> int:
        """Have a page deleted; how many tasks were deleted."""


class Sink(Protocol):
    """Where rows go."""

    def write(self, batch: str, tasks: Sequence[Task]) -> None:
        """Write rows; returns when they are durable."""


@attrs.define
class Report:
    """What a run has done so far. ``waiting``: partitions of which more may come, each with the reason or the
    nodes it waits for. ``refused``: tasks that cannot be written, each with why."""

    written: int = 0
    deleted: int = 0
    batches: int = 0
    refused: dict[bytes, str] = attrs.field(factory=dict)
    waiting: dict[int, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.define
class _Batch:
    pages: list[Page] = attrs.field(factory=list)
    tasks: int = 0
    size: int = 0

    def add(self, page: Page) -> None:
        self.pages.append(page)
        self.tasks += len(page.tasks)
        self.size += sum(map(size_of, page.tasks))

    @property
    def is_full(self) -> bool:
        return self.tasks >= BATCH_TASKS or self.size >= BATCH_BYTES


@attrs.frozen
class _Row:
    """A task to be written, and where it is noted that it is."""

    task: Task
    digest: int
    written: dict[bytes, int]


class Archiver:
    """Moves what is on offer from a source to a sink, run by run. ``on_batch`` is told after each batch."""

    def __init__(self, source: Source, sink: Sink, partitions: int, *, name_batch: Callable[[], str],
                 clock: Callable[[], float], pause: Callable[[float], None],
                 on_batch: Callable[[Report], None] = lambda report: None) -> None:
        self._source = source
        self._sink = sink
        self._partitions = partitions
        self._name_batch = name_batch
        self._clock = clock
        self._pause = pause
        self._on_batch = on_batch
        self._written: dict[int, dict[bytes, int]] = {}
        """Of each partition the tasks that are written and not known to be deleted, each with its digest."""
        self.report = Report()

    def run(self, wait_s: float) -> Report:
        """Until nothing is on offer, and nothing is to come for ``wait_s``."""
        self.report = report = Report()
        moved_s = self._clock()
        while True:
            if self._round():
                moved_s = self._clock()
            elif not report.waiting or self._clock() >= moved_s + wait_s:
                return report
            else:
                self._pause(PAUSE_S)

    def _round(self) -> int:
        """Ask each partition once; how many tasks were deleted."""
        deleted, batch = 0, _Batch()
        self.report.waiting = {}
        for partition in range(self._partitions):
            page = self._ask(partition)
            if page is None or not page.ids:
                continue
            batch.add(page)
            if batch.is_full:
                deleted += self._move(batch)
                batch = _Batch()
        return deleted + self._move(batch)

    def _ask(self, partition: int) -> Page | None:
        try:
            page = self._source.collectable(partition)
        except SkuldError as error:
            self._note(partition, error)
            return None
        if not page.ids and (page.is_under_way or page.awaited):
            self.report.waiting[partition] = page.awaited
        elif not page.ids:
            self._written.pop(partition, None)
        return page

    def _move(self, batch: _Batch) -> int:
        """Write what is not written yet; then, and not before, confirm all pages of which nothing was refused."""
        if not batch.pages:
            return 0
        self._write([each for page in batch.pages for each in self._unwritten(page)])
        refused = self.report.refused
        deleted = sum(self._confirm(page) for page in batch.pages
                      if not any(task.id in refused for task in page.tasks))
        self._on_batch(self.report)
        return deleted

    def _unwritten(self, page: Page) -> list[_Row]:
        written, digests = self._written.setdefault(page.partition, {}), _digests(page)
        return [_Row(task, digests[task.id], written) for task in page.tasks
                if written.get(task.id) != digests[task.id] and task.id not in self.report.refused]

    def _write(self, rows: list[_Row]) -> None:
        parts, refusals, most = [rows] if rows else [], 0, len(rows).bit_length() + REFUSALS_MAX
        before, why = self.report.written, None
        while parts:
            part = parts.pop()
            try:
                self._sink.write(self._name_batch(), [row.task for row in part])
            except Refused as refusal:
                refusals, why = refusals + 1, why or refusal
                if refusals > most:
                    raise
                half = len(part) // 2
                if half:
                    parts += [part[half:], part[:half]]
                else:
                    self.report.refused[part[0].task.id] = refusal.message
            else:
                refusals = 0
                self.report.written += len(part)
                self.report.batches += 1
                for row in part:
                    row.written[row.task.id] = row.digest
        if why is not None and self.report.written == before and len(rows) > 1:
            raise why

    def _forget(self, page: Page) -> None:
        written = self._written.get(page.partition, {})
        for task_id in ids.split(page.ids):
            written.pop(task_id, None)

    def _confirm(self, page: Page) -> int:
        try:
            deleted = self._source.archived(page)
        except SkuldError as error:
            self._note(page.partition, error)
            return 0
        if deleted:
            self._forget(page)
        else:
            self.report.waiting.setdefault(page.partition, ())
        self.report.deleted += deleted
        return deleted

    def _note(self, partition: int, error: SkuldError) -> None:
        """A partition whose leader cannot be had is asked again; anything else ends the run."""
        if not isinstance(error, Uncertain) and error.code not in PASSING:
            raise error
        self.report.waiting[partition] = ("its leader",)


def _digests(page: Page) -> dict[bytes, int]:
    return dict(zip(ids.split(page.ids), columns.unpack_u64(page.digests), strict=True))
