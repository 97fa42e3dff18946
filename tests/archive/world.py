"""A cluster and a place to archive to, in memory, that note what is done to them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import attrs

from archive.ended import plain
from skuld_py.client.archiving import Page
from skuld_py.model.ids import split
from skuld_py.model.task import Task

PARTITIONS = 3


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
    now_s: float = 0.0
    pauses: int = 0

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(partitions=range(PARTITIONS))

    def collectable(self, partition: int) -> Page:
        self._fail("collectable")
        found = self.tasks.get(partition, [])[: self.size]
        if partition in self.awaited or not found:
            return Page(partition, (), False, self.awaited.get(partition, ()))
        blob = b"".join(bytes(task.id) for task in found)
        return Page(partition, tuple(found), True, (), 1, blob, b"".join(self.digest(task) for task in found))

    def digest(self, task: Task) -> bytes:
        """Of all records of a task; eight bytes."""
        return (hash((bytes(task.id), task.seq)) & 0xFFFFFFFF).to_bytes(8, "big")

    def archived(self, page: Page) -> int:
        self._fail("archived")
        gone = split(page.ids)
        durable = {bytes(task.id) for task in self.rows}
        assert all(task_id in durable for task_id in gone), "what is not durable is confirmed"
        self.said.append(("archived", page.partition))
        left = [task for task in self.tasks[page.partition] if bytes(task.id) not in gone]
        count = len(self.tasks[page.partition]) - len(left)
        self.tasks[page.partition] = left
        self.deleted += gone
        return count

    def write(self, batch: str, tasks: Sequence[Task]) -> None:
        self._fail("write")
        self.rows += tasks
        self.batches.append(batch)
        self.said.append(("written", len(tasks)))

    def pause(self, seconds: float) -> None:
        self.pauses += 1
        self.now_s += seconds

    def _fail(self, verb: str) -> None:
        if self.failing.get(verb):
            raise self.failing[verb].pop(0)


def world(*counts: int, size: int = 2) -> World:
    return World({partition: [plain(100 * partition + number) for number in range(count)]
                  for partition, count in enumerate(counts)}, size)
