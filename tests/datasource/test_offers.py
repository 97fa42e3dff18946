"""A stream of ended tasks gives each once: over restarts, lost confirmations, leaders that offer other pages."""

from __future__ import annotations

import json
import random

import pytest

from skuld_py.client.archiving import Page
from skuld_py.datasource.offers import Offset, Stream
from skuld_py.errors import Refused, Uncertain
from skuld_py.model import ids
from skuld_py.model.task import Task

PAGE = 3


class Cluster:
    """Offers ended tasks as a cluster does. ``chance`` decides what is lost, and which page a new leader makes."""

    def __init__(self, partitions: int, count: int, chance: random.Random | None = None) -> None:
        mint = ids.IdMint(1)
        self.left = {partition: mint.mint(1_000 + partition, count, partition) for partition in range(partitions)}
        self._page = {partition: self.left[partition][:PAGE] for partition in range(partitions)}
        self._chance = chance
        self.is_slow = False

    def _is_bad(self) -> bool:
        return self._chance is not None and self._chance.random() < 0.2

    def collectable(self, partition: int) -> Page:
        if self._is_bad():
            raise Refused("no_leader", "none")
        if self._chance is not None and self._is_bad():
            rows = self.left[partition]
            self._page[partition] = sorted(self._chance.sample(rows, min(len(rows), PAGE)))
        if self.is_slow:
            return Page(partition, (), True)
        named = self._page[partition]
        return Page(partition, tuple(task(each) for each in named), bool(named), ids=b"".join(named))

    def archived(self, page: Page) -> int:
        if self._is_bad():
            raise Uncertain("uncertain", "lost before")
        gone = [each for each in ids.split(page.ids) if each in self.left[page.partition]]
        self.left[page.partition] = [each for each in self.left[page.partition] if each not in gone]
        self._page[page.partition] = self.left[page.partition][:PAGE]
        if self._is_bad():
            raise Uncertain("uncertain", "lost behind")
        return len(gone)

    def get_many(self, wanted: list[bytes]) -> list[Task]:
        return [task(each) for each in wanted if any(each in rows for rows in self.left.values())]


def task(task_id: bytes) -> Task:
    return Task(task_id, "q", 0, b"")


def stream(cluster: Cluster, partitions: int, most: int = 100) -> Stream:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds
    return Stream(cluster, partitions, most, lambda: now[0], pause)


def stored(offset: Offset) -> Offset:
    """As Spark's checkpoint gives it back."""
    return Offset.decode(json.loads(json.dumps(offset.encode())))


def test_each_task_is_given_once_and_deleted_once_its_batch_is_over() -> None:
    cluster = Cluster(2, 7)
    reader, offset, given = stream(cluster, 2), Offset(), list[bytes]()
    while True:
        left = sum(map(len, cluster.left.values()))
        tasks, end = reader.read(offset)
        if not tasks:
            break
        assert sum(map(len, cluster.left.values())) == left - sum(map(len, offset.new.values()))
        given += [each.id for each in tasks]
        offset = stored(end)

    assert len(given) == len({*given}) == 14 and not any(cluster.left.values())
    assert end == offset


def test_a_batch_that_is_not_over_is_read_again_as_it_was() -> None:
    cluster = Cluster(2, 7)
    tasks, end = stream(cluster, 2).read(Offset())

    again = stream(cluster, 2).again(stored(end))

    assert [each.id for each in again] == [each.id for each in tasks]


def test_a_batch_whose_tasks_are_gone_is_refused() -> None:
    cluster = Cluster(1, 3)
    _, end = stream(cluster, 1).read(Offset())
    cluster.archived(cluster.collectable(0))

    with pytest.raises(Refused, match="3 tasks of batch 1 are deleted"):
        stream(cluster, 1).again(end)


def test_a_batch_has_no_more_than_wanted() -> None:
    cluster = Cluster(4, 3)
    tasks, end = stream(cluster, 4, most=4).read(Offset())
    assert len(tasks) == 4

    tasks, _ = stream(cluster, 4, most=100).read(stored(end))
    assert len(tasks) == 8


def test_a_page_that_is_about_to_come_is_waited_for_only_if_wanted() -> None:
    cluster = Cluster(1, 3)
    cluster.is_slow = True

    assert stream(cluster, 1).read(Offset()) == ([], Offset())
    assert stream(cluster, 1).read(Offset(), wait_s=2.0) == ([], Offset())


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_lost_each_task_is_given_once(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster(3, 11, chance)
    offset, given = Offset(), list[bytes]()
    for _ in range(400):
        tasks, end = stream(cluster, 3, chance.choice((2, 100))).read(offset)
        if chance.random() < 0.3 and tasks:
            tasks = stream(cluster, 3).again(stored(end))
        given += [each.id for each in tasks]
        offset = stored(end)

    assert len(given) == len({*given}) == 33


@pytest.mark.parametrize("given", [{}, {"version": 2}, {"version": 1, "round": 0, "new": {"0": "!"}, "old": {}},
                                   {"version": 1, "round": 0, "new": [], "old": {}}])
def test_another_streams_offset_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(Refused, match="checkpoint"):
        Offset.decode(given)
