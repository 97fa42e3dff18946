"""The order of archiving: a page is offered, written, durable, and only then confirmed.

    offered by the leader -> in a batch -> written (durable when ``write`` returns) -> confirmed, and so deleted

So nothing is deleted that was not written; what was written and not confirmed, since this process died or the
partition's leader changed, is offered again and may be written twice. Readers take one row for each id.

Of each partition several pages are on offer at a time. The pages of all partitions go into one batch, one after
another, until it is full (``BATCH_TASKS``, ``BATCH_BYTES``, ``PAGES_EACH``). While one batch is written the one
before is confirmed and the next is read, so two are held at a time. A task whose page could not be confirmed, or
was confirmed too late, comes again, often in another page; it is not written again while, by its digest, it is
what it was. What an earlier process wrote is not known here, and may be written again.

A batch that is refused is written in halves, and these in halves, down to the tasks in the way. They are named,
the others are written, and of their pages nothing is confirmed: only their partitions wait. Where nothing of a
batch is taken, or hardly anything, it is the place that is at fault, and the run ends.

**A run has a goal**: what had ended long enough ago when each partition was first asked; less, where its leader
heard meanwhile that another node keeps more. A partition is done when its leader says that all up to then is gone;
until then it is asked again, until ``wait_s`` have passed in which nothing could be deleted, nor did another
archiver have anything deleted. A leader of a release before protocol 3 does not say it: there a partition is done
when nothing is on offer and no slice is under way.

Where a cluster has other things to do, a run rests between its batches, and with a rate between the pages of one
(``pacing``). While it rests nodes are asked for nothing. Before a long rest all that was read is written and
confirmed, since by the end of it another archiver may have been given the pages.

Pure but for what it is given: a source, a sink, a clock, a pause, and how to do one thing beside another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from typing import Protocol

import attrs

from skuld_py.archive.pacing import REST_S_MAX, Full, Pace
from skuld_py.archive.rows import size_of_record
from skuld_py.client.archiving import Page, Record
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.config.timing import Retention
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns, ids

BATCH_TASKS = 10_000
BATCH_BYTES = 24 << 20
"""Two batches are held, one as it was read and one as rows and columns besides."""
PAGES_EACH = 4
"""Pages of one partition in a batch: half of those on offer, so that the rest is read while these are written."""
AT_ONCE = 8
"""Questions that are on their way at a time: an answer may have some MiB."""
PAGE_TASKS = Retention().page_tasks
"""A page has so many tasks at most, until a leader gives a larger one."""
PAUSE_S = 0.5
STUCK_S = 2.0
"""A leader does not say whether all pages of a partition are on offer, as long as one does not go. The next is
there as soon as all replicas were asked."""
IDLE_FILES = 16
"""So many small files of a day and a queue are compacted when there is nothing else to do."""
REFUSALS_MAX = 16
"""Refusals in a row, beyond those on the way from a batch to one task, after which the place is at fault."""
OTHER = ("another archiver",)
"""What a partition waits for whose pages another is given. It is heard of by its leader, so it lives, but it may
work in vain. When it falls silent, the pages are this one's."""
PASSING = ("no_leader", "not_leader", "unavailable")
"""Refusals that say only that a partition has no leader now."""
GONE = "no_such_task"
"""The refusal to read on in a long log of a task that was deleted meanwhile: another archiver has written it."""

Given = tuple[Record, int]
"""The records of a task, and their digest."""
_Row = tuple[Given, dict[bytes, int]]
"""A task to be written, and where it is noted that it is."""
Beside = Callable[[Callable[[], None]], Callable[[], None]]
"""Begins to do something; what it gives returns, or raises, when that is done."""


@attrs.frozen
class Question:
    """Which page of a partition is wanted; see ``Client.offered``."""

    partition: int
    epoch: int
    after: int
    wanted_ms: int


class Source(Protocol):
    """A cluster that is asked several things at a time."""

    def offered(self, questions: Sequence[Question]) -> Sequence[Page | SkuldError]:
        """The pages on offer, or why there is none."""

    def counted(self, partitions: Sequence[int]) -> Sequence[Page | SkuldError]:
        """Pages without tasks: how many have ended."""

    def archived(self, pages: Sequence[Page]) -> Sequence[int | SkuldError]:
        """Have pages deleted; how many tasks of each were."""

    def are_gone(self, ids: Sequence[str]) -> bool:
        """Whether the cluster has none of these tasks; not where it does not say so."""


class Sink(Protocol):
    """Where rows go."""

    def begin(self) -> None:
        """A run begins."""

    def write(self, batch: str, tasks: Sequence[Given]) -> int:
        """Write rows; returns when they are durable: how many were not there as they are, where that is known."""

    def settled(self, ids: bytes) -> None:
        """These tasks are deleted."""

    def end(self, is_whole: bool, are_gone: Callable[[Sequence[str]], bool]) -> None:
        """A run is over. ``is_whole``: all that had ended long enough ago when it began is deleted, but for what
        other tasks need; ``are_gone``: whether the cluster has none of some tasks."""


@attrs.define
class Report:
    """What a run has done so far. ``waiting``: partitions of which more may come, each with the reason or the
    nodes it waits for. ``refused``: tasks that cannot be written, each with why. ``ended``: how many tasks that
    have ended are on the nodes, young ones included, as last heard, but for what was deleted since; ``ends``: how
    many more end a second, None where nobody looks."""

    written: int = 0
    deleted: int = 0
    batches: int = 0
    refused: dict[bytes, str] = attrs.field(factory=dict)
    waiting: dict[int, tuple[str, ...]] = attrs.field(factory=dict)
    ended: int = 0
    ends: float | None = None

    @property
    def is_done(self) -> bool:
        """Whether all that was to be archived is."""
        return not self.waiting and not self.refused


@attrs.define
class _Partition:
    """``after``: the page that was read last; ``unconfirmed``: how many pages are on their way; ``is_heard``: it
    was asked how many have ended; ``is_stuck``: one has a task that cannot be written."""

    number: int
    epoch: int = 0
    after: int = 0
    goal_ms: int = 0
    upto_ms: int = 0
    ended: int = 0
    deleted: int = 0
    unconfirmed: int = 0
    is_heard: bool = False
    is_done: bool = False
    is_old: bool = False
    is_stuck: bool = False

    @property
    def question(self) -> Question:
        """What it is asked."""
        return Question(self.number, self.epoch, self.after, self.goal_ms)

    @property
    def may_be_asked(self) -> bool:
        """Whether another page may be on offer. One that offers a single page gives it again until it is gone."""
        return not self.is_done and not (self.is_old and self.unconfirmed)


@attrs.define
class _Batch:
    pages: list[Page] = attrs.field(factory=list)
    tasks: int = 0
    size: int = 0

    def add(self, page: Page) -> None:
        self.pages.append(page)
        self.tasks += len(page.records)
        self.size += sum(size_of_record(record) for record in page.records if record is not None)

    @property
    def page_tasks(self) -> int:
        """How many tasks its pages have, one like the other; 0 of none."""
        return self.tasks // max(1, len(self.pages))

    def room(self) -> int:
        """How many pages there is room for, however large they are; at least one."""
        return max(1, (BATCH_BYTES - self.size) // DEFAULT_LIMITS.page_bytes)

    def is_full(self, most: float) -> bool:
        """Of so many tasks at most."""
        return self.tasks >= most or self.size >= BATCH_BYTES

    def lacks(self, most: float, page_tasks: int) -> int:
        """How many whole pages make it full; of smaller ones more are asked for when these are there."""
        return max(1, ceil((most - self.tasks) / page_tasks))


def _later(work: Callable[[], None]) -> Callable[[], None]:
    """Nothing is done beside anything: it is done when it is waited for."""
    return work


class Archiver:
    """Moves what is on offer from a source to a sink, run by run, at a ``pace``. ``on_batch`` is told after each
    batch."""

    def __init__(self, source: Source, sink: Sink, partitions: int, *, name_batch: Callable[[], str],
                 clock: Callable[[], float], pause: Callable[[float], None], beside: Beside = _later,
                 on_batch: Callable[[Report], None] = lambda report: None, pace: Pace | None = None) -> None:
        self._source = source
        self._sink = sink
        self._partitions = [_Partition(number) for number in range(partitions)]
        self._name_batch = name_batch
        self._clock = clock
        self._pause = pause
        self._beside = beside
        self._on_batch = on_batch
        self._written: dict[int, dict[bytes, int]] = {}
        """Of each partition the tasks that are written and not known to be deleted, each with its digest."""
        self._wait: Callable[[], None] = _nothing
        self._first = 0
        self._is_another_moving = False
        self._page_tasks = PAGE_TASKS
        self._pace = pace or Full()
        self.report = Report()

    def run(self, wait_s: float) -> Report:
        """Until all that had ended when it began is gone, or nothing is to come for ``wait_s``."""
        self._sink.begin()
        try:
            report = self._moved(wait_s)
        except SkuldError:
            with suppress(SkuldError):  # why the run ended is told already
                self._await()
            raise
        self._sink.end(report.is_done, self._source.are_gone)
        return report

    def _moved(self, wait_s: float) -> Report:
        self.report = report = Report()
        self._partitions = [_Partition(partition.number) for partition in self._partitions]
        moved_s = begun_s = self._clock()
        writing, batch = _Batch(), _Batch()
        while True:
            until_s, deleted = self._pace.rests_until(begun_s, self._clock(), batch.tasks), 0
            if until_s > self._clock() + REST_S_MAX:
                self._await()
                deleted, writing = self._confirm(writing), _Batch()
            self._rest(until_s)
            begun_s = self._clock()
            batch = self._read()
            self._await()
            done, writing = writing, batch
            self._wait = self._begun(batch)
            has_moved = self._confirm(done) + deleted > 0 or self._wait is not _nothing
            if has_moved or self._is_another_moving:
                moved_s = self._clock()
            if has_moved or (batch.pages and (not done.pages or self._clock() < moved_s + wait_s)):
                continue  # it is confirmed next, but not for ever where nothing of the one before could be
            if batch.pages or self._clock() >= moved_s + (wait_s if report.waiting else self._stuck_s()):
                return report
            self._pause(PAUSE_S)

    def _await(self) -> None:
        """Wait for what is being written; of a write that failed it is told once."""
        wait, self._wait = self._wait, _nothing
        wait()

    def _stuck_s(self) -> float:
        """For how long other pages may come of a partition that has one with a task in the way."""
        return STUCK_S if any(partition.is_stuck for partition in self._partitions) else 0.0

    def _begun(self, batch: _Batch) -> Callable[[], None]:
        """Begin to write what of a batch is not written; give what waits for it. Nothing else holds records."""
        rows = [row for page in batch.pages for row in self._unwritten(page)]
        batch.pages = [attrs.evolve(page, records=()) for page in batch.pages]
        return self._beside(partial(self._write, rows)) if rows else _nothing

    def _at_once(self, pages: int) -> int:
        """How many of so many pages the pace allows to read, or delete, at once."""
        return max(1, int(self._pace.at_once(pages * self._page_tasks)) // self._page_tasks)

    def _due(self, begun_s: float, tasks: int, pages: int, page_tasks: int) -> int:
        """Rest until it is time for more than so many tasks of a batch; how many pages are due then. More than one
        where it is late: one after another they may be slower than what ends, since each has few tasks, large
        ones, or since nodes take their time to answer. ``begun_s`` is earlier by the time of an answer, for all is
        to be there in time."""
        self._rest(begun_s + self._pace.spread_s(tasks))
        count, gone_s = self._at_once(pages), self._clock() - begun_s
        while count < min(pages, AT_ONCE) and 0 < self._pace.spread_s(tasks + count * page_tasks) <= gone_s:
            count += 1
        return count

    def _rest(self, until_s: float) -> None:
        if (early_s := until_s - self._clock()) > 0:
            self._pause(early_s)

    def _read(self) -> _Batch:
        """The next batch: of each partition a page, and another, until it is full or there are no more. The next
        one begins with a partition for which there was no room."""
        self._count()
        self._is_another_moving = False
        batch, self.report.waiting, most = _Batch(), {}, self._pace.most(BATCH_TASKS)
        line = deque((partition, 0) for partition in (*self._partitions[self._first :],
                                                      *self._partitions[: self._first]) if partition.may_be_asked)
        begun_s, took_s = self._clock(), 0.0
        while line and not batch.is_full(most):
            page_tasks = batch.page_tasks or self._page_tasks
            count = min(self._due(begun_s - took_s, batch.tasks, AT_ONCE, page_tasks), len(line), batch.room(),
                        batch.lacks(most, page_tasks))
            asked, asked_s = [line.popleft() for _ in range(count)], self._clock()
            answers = self._source.offered([each.question for each, _ in asked])
            took_s = self._clock() - asked_s
            line += [(partition, pages + 1) for (partition, pages), answer in zip(asked, answers, strict=True)
                     if self._take(partition, answer, batch) and pages + 1 < PAGES_EACH]
        self._first = line[0][0].number if line else 0
        self.report.ends = self._pace.ends
        return batch

    def _count(self) -> None:
        """Have partitions tell how many have ended. One that cannot is heard of when it is asked for a page."""
        for number, answer in self._counted(self._pace.asks(self._clock())):
            self._hear(number, answer)

    def _counted(self, numbers: Sequence[int]) -> list[tuple[int, Page | SkuldError]]:
        """How many have ended, as partitions tell. One whose leader does not answer stays as it was."""
        told = list(zip(numbers, self._source.counted(numbers) if numbers else (), strict=True))
        for number, answer in told:
            partition = self._partitions[number]
            partition.is_heard = True
            if not isinstance(answer, SkuldError):
                partition.ended = answer.ended
        return told

    def _hear(self, number: int, answer: Page | SkuldError) -> None:
        if isinstance(answer, SkuldError) or not answer.due_ms:
            self._pace.over(number)
        else:
            self._pace.told(self._clock(), number, answer.ended)

    def _take(self, partition: _Partition, answer: Page | SkuldError, batch: _Batch) -> bool:
        """Whether to ask for another page."""
        if isinstance(answer, SkuldError):
            self._note(partition.number, answer)
            self._pace.over(partition.number)
            return False
        partition.goal_ms = min(partition.goal_ms or answer.due_ms, answer.due_ms)
        if answer.is_others and (answer.ended < partition.ended or answer.upto_ms > partition.upto_ms
                                 or answer.deleted != partition.deleted):
            self._is_another_moving = True
        partition.upto_ms, partition.deleted = answer.upto_ms, answer.deleted
        partition.ended, partition.epoch, partition.is_heard = answer.ended, answer.epoch, True
        if answer.is_others:
            self._pace.over(partition.number)
        else:
            self._hear(partition.number, answer)
        partition.is_old = not answer.due_ms
        if answer.ids:
            partition.after, partition.unconfirmed = answer.number, partition.unconfirmed + 1
            self._page_tasks = max(self._page_tasks, len(answer.records))
            batch.add(answer)
            return partition.may_be_asked
        is_over = answer.upto_ms >= partition.goal_ms if answer.due_ms else not (
            answer.is_under_way or answer.awaited)
        if is_over and not partition.unconfirmed:
            partition.is_done = not partition.is_old
            self._written.pop(partition.number, None)
        elif not partition.unconfirmed and not partition.is_stuck:
            self.report.waiting[partition.number] = answer.awaited or (OTHER if answer.is_others else ())
        return False

    def _unwritten(self, page: Page) -> list[_Row]:
        written, refused = self._written.setdefault(page.partition, {}), self.report.refused
        return [((record, digest), written)
                for record, digest in zip(page.records, columns.unpack_u64(page.digests), strict=True)
                if record is not None and written.get(record[0]) != digest and record[0] not in refused]

    def _write(self, rows: list[_Row]) -> None:
        parts, refusals, most = [rows] if rows else [], 0, len(rows).bit_length() + REFUSALS_MAX
        is_taken, why = False, None
        while parts:
            part = parts.pop()
            try:
                new = self._sink.write(self._name_batch(), [given for given, _ in part])
            except Refused as refusal:
                refusals, why = refusals + 1, why or refusal
                if refusals > most:
                    raise
                half = len(part) // 2
                if half:
                    parts += [part[half:], part[:half]]
                else:
                    ((task_id, *_), _), _ = part[0]
                    self.report.refused[task_id] = refusal.message
            else:
                refusals, is_taken = 0, True
                self.report.written += new
                self.report.batches += new > 0
                for (record, digest), written in part:
                    written[record[0]] = digest
        if why is not None and not is_taken and len(rows) > 1:
            raise why

    def _confirm(self, batch: _Batch) -> int:
        """Of a batch that is written confirm all pages of which nothing was refused; how many tasks went."""
        refused = self.report.refused
        pages = [page for page in batch.pages if not refused or not any(
            task_id in refused for task_id in ids.split(page.ids))]
        confirmed = {id(page) for page in pages}
        for page in batch.pages:
            partition = self._partitions[page.partition]
            partition.unconfirmed -= 1
            partition.is_stuck = partition.is_stuck or id(page) not in confirmed
        answers = self._delete(pages)
        deleted = sum(self._settle(page, answer) for page, answer in zip(pages, answers, strict=True))
        if batch.pages:  # a partition that gave no page yet would count as having none
            self._counted([each.number for each in self._partitions if not each.is_heard])
        self.report.ended = sum(each.ended for each in self._partitions)
        if batch.pages:
            self._on_batch(self.report)
        return deleted

    def _delete(self, pages: Sequence[Page]) -> Sequence[int | SkuldError]:
        begun_s, took_s, answers = self._clock(), 0.0, list[int | SkuldError]()
        page_tasks = sum(len(page.ids) for page in pages) // ids.ID_BYTES // max(1, len(pages))
        while len(answers) < len(pages):
            count = self._due(begun_s - took_s, len(answers) * page_tasks, len(pages), page_tasks)
            asked_s = self._clock()
            answers += self._source.archived(pages[len(answers) : len(answers) + count])
            took_s = self._clock() - asked_s
        return answers

    def _settle(self, page: Page, answer: int | SkuldError) -> int:
        """One that did not go is read again, from the first that is on offer on; it may be gone. Of one that went
        in part nobody says which tasks others came to need meanwhile: none counts as deleted, for those that are
        there are offered once more, some day."""
        partition = self._partitions[page.partition]
        if isinstance(answer, SkuldError) or not answer:
            self._pace.forget(page.partition)
            partition.after = 0
            if isinstance(answer, SkuldError):
                self._note(page.partition, answer)
            else:
                self.report.waiting.setdefault(page.partition, ())
            return 0
        self.report.deleted += answer
        partition.ended = max(0, partition.ended - answer)
        self._pace.went(page.partition, answer)
        if answer * ids.ID_BYTES == len(page.ids):
            written = self._written.get(page.partition, {})
            for task_id in ids.split(page.ids) if written else ():
                written.pop(task_id, None)
            self._sink.settled(page.ids)
        return answer

    def _note(self, partition: int, error: SkuldError) -> None:
        """A partition whose leader cannot be had, or of whose page another has deleted a task, is asked again;
        anything else ends the run."""
        if not isinstance(error, Uncertain) and error.code not in (*PASSING, GONE):
            raise error
        self._is_another_moving = self._is_another_moving or error.code == GONE
        self.report.waiting[partition] = OTHER if error.code == GONE else ("its leader",)


def _nothing() -> None:
    """There is nothing to wait for."""
