"""A cluster and a place to archive to, in memory, that note what is done to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from archive.ended import plain
from skuld_py.archive.archiver import Given, Question
from skuld_py.client.archiving import Page, Record
from skuld_py.errors import SkuldError
from skuld_py.model.ids import split, to_text
from skuld_py.model.task import Task

PARTITIONS = 3
T = TypeVar("T")


class Stop(Exception):
    """The process dies here."""


@attrs.define(slots=False)
class World:
    """A cluster that offers ``size`` tasks a page, and deletes what it is told to; a place; and what happened."""

    tasks: dict[int, list[Task]]
    size: int = 2
    said: list[tuple[str, object]] = attrs.field(factory=list)
    rows: list[Task] = attrs.field(factory=list)
    batches: list[str] = attrs.field(factory=list)
    deleted: list[bytes] = attrs.field(factory=list)
    awaited: dict[int, tuple[str, ...]] = attrs.field(factory=dict)
    failing: dict[str, list[BaseException]] = attrs.field(factory=dict)
    """What the next calls of a verb raise."""
    ahead: int = 0
    """How many pages are on offer at a time; 0 of a release that knows one page, and no numbers."""
    first: dict[int, int] = attrs.field(factory=dict)
    now_s: float = 0.0
    settled_ids: list[bytes] = attrs.field(factory=list)
    ends: list[bool] = attrs.field(factory=list)
    pauses: int = 0
    asked: list[int] = attrs.field(factory=list)
    """Partitions that were to tell how many have ended, without a page."""

    @property
    def known(self) -> dict[bytes, Task]:
        """The tasks that are still there."""
        return {bytes(task.id): task for tasks in self.tasks.values() for task in tasks}

    def offered(self, questions: Sequence[Question]) -> list[Page | SkuldError]:
        """What each partition offers."""
        return [_tried(lambda question=question: self.collectable(question)) for question in questions]

    def collectable(self, question: Question) -> Page:
        """A node of this release numbers its pages and offers ``ahead`` of them; one of the release before gives
        the first page again."""
        self._fail("collectable")
        partition, is_new = question.partition, self.ahead > 0
        first = max(question.after, self.first.get(partition, 0)) if is_new else 0
        at = first - self.first.get(partition, 0) if is_new else 0
        tasks = self.tasks.get(partition, []) if at < (self.ahead or 1) else []
        found = tasks[at * self.size : (at + 1) * self.size]
        due = {"due_ms": 100, "upto_ms": 0 if self.tasks.get(partition) else 100} if is_new else {}
        if partition in self.awaited or not found:
            return Page(partition, (), False, self.awaited.get(partition, ()), **due)
        blob = b"".join(bytes(task.id) for task in found)
        return Page(partition, (), True, (), 1, blob, b"".join(self.digest(task) for task in found),
                    first + 1 if is_new else 0, records=[record_of(task) for task in found], **due)

    def counted(self, partitions: Sequence[int]) -> list[Page | SkuldError]:
        """How many have ended, as a page of each would tell."""
        self.asked += partitions
        failing, self.failing = self.failing, {}
        told = [_tried(lambda partition=partition: self.collectable(Question(partition, 0, 0, 0)))
                for partition in partitions]
        self.failing = failing
        return told

    def digest(self, task: Task) -> bytes:
        """Of all records of a task; eight bytes."""
        return (hash((bytes(task.id), task.seq)) & 0xFFFFFFFF).to_bytes(8, "big")

    def archived(self, pages: Sequence[Page]) -> list[int | SkuldError]:
        """Delete them; how many tasks of each."""
        return [_tried(lambda page=page: self.discard(page)) for page in pages]

    def discard(self, page: Page) -> int:
        self._fail("archived")
        gone = split(page.ids)
        durable = {bytes(task.id) for task in self.rows}
        assert all(task_id in durable for task_id in gone), "what is not durable is confirmed"
        self.said.append(("archived", page.partition))
        left = [task for task in self.tasks[page.partition] if bytes(task.id) not in gone]
        count = len(self.tasks[page.partition]) - len(left)
        self.tasks[page.partition] = left
        self.deleted += gone
        self.first[page.partition] = self.first.get(page.partition, 0) + 1
        return count

    def write(self, batch: str, given: Sequence[Given]) -> int:
        self._fail("write")
        tasks = [self.known[record[0]] for record, _ in given]
        self.rows += tasks
        self.batches.append(batch)
        self.said.append(("written", len(tasks)))
        return len(tasks)

    def begin(self) -> None:
        """A run begins."""

    def settled(self, ids: bytes) -> None:
        self.settled_ids += split(ids)

    def end(self, is_whole: bool, are_gone: Callable[[Sequence[str]], bool]) -> None:
        self.ends.append(is_whole)

    def interrupt(self) -> None:
        """Nothing is under way."""

    def are_gone(self, ids: Sequence[str]) -> bool:
        return not any(to_text(task_id) in ids for task_id in self.known)

    def pause(self, seconds: float) -> None:
        self.pauses += 1
        self.now_s += seconds

    def _fail(self, verb: str) -> None:
        if self.failing.get(verb):
            raise self.failing[verb].pop(0)


def record_of(task: Task) -> Record:
    """Enough of its records for who looks at none."""
    return bytes(task.id), task.payload, b"", ()


def _tried(call: Callable[[], T]) -> T | SkuldError:
    try:
        return call()
    except SkuldError as error:
        return error


def world(*counts: int, size: int = 2, ahead: int = 0) -> World:
    return World({partition: [plain(100 * partition + number) for number in range(count)]
                  for partition, count in enumerate(counts)}, size, ahead=ahead)
