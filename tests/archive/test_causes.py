"""When a task died of a dependency: as its dependencies tell it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

from archive.ended import NOON_MS, plain
from skuld_py.archive import causes
from skuld_py.archive.causes import Causes
from skuld_py.archive.rows import COLUMNS, Row, Rows, row_of
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.ids import TaskId
from skuld_py.model.task import Task


def died(number: int, *deps: Task, death: str = "dep_failed", **fields: Any) -> Task:
    """A task that nobody ever claimed."""
    task: Task = attrs.evolve(
        plain(number), claims=(), completed_ms=None, completed_token=None, result=None, error=None, state="dead",
        death=death, deps=tuple(TaskId(dep.id) for dep in deps), **fields)
    return task


def cancelled(number: int, at_ms: int) -> Task:
    return died(number, death="", cancelled_ms=at_ms)


class Cluster:
    """Tasks that may be asked for. ``fails_after`` so many that it has told of, nobody answers."""

    def __init__(self, *tasks: Task, fails_after: int = 1_000) -> None:
        self._tasks = {task.id: task for task in tasks}
        self.asked: list[int] = []
        self._left = fails_after

    def ask(self, ids: Sequence[bytes]) -> Iterator[Task]:
        self.asked.append(len(ids))
        for task in [self._tasks[each] for each in ids if each in self._tasks]:
            self._left -= 1
            if self._left < 0:
                raise Uncertain("timeout", "nobody answers")
            yield task

    def ends(self, *tasks: Task) -> list[Any]:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in Causes(self.ask).dated([*map(row_of, tasks)])]
        assert [row["ended"] for row in rows] == [row["ended_ms"] for row in rows]
        return [row["ended_ms"] for row in rows]


FIRST, SECOND = cancelled(1, NOON_MS + 900), cancelled(2, NOON_MS + 700)


def test_it_died_when_the_first_of_its_dependencies_failed() -> None:
    done = plain(3)
    cluster = Cluster(FIRST, SECOND, done)

    assert cluster.ends(plain(9), died(4, FIRST, SECOND, done), died(5, FIRST)) == [
        NOON_MS + 5, NOON_MS + 700, NOON_MS + 900]
    assert cluster.asked == [3]


def test_one_that_came_later_died_at_once() -> None:
    late = attrs.evolve(died(4, FIRST), made_ms=NOON_MS + 5_000)

    assert Cluster(FIRST).ends(late) == [NOON_MS + 5_000]


def test_causes_are_followed() -> None:
    middle = died(3, FIRST, SECOND)
    cluster = Cluster(FIRST, SECOND, middle)

    assert cluster.ends(died(4, middle)) == [NOON_MS + 700]
    assert cluster.asked == [1, 2]


def test_a_dependency_that_was_revived_or_is_away_tells_nothing() -> None:
    assert Cluster(plain(1)).ends(died(4, FIRST), died(5, SECOND)) == [None, None]


def test_where_the_first_to_fail_may_be_unknown_the_end_is() -> None:
    """It is away, or it has failed and nobody knows when."""
    unknown, revived = died(3, death="dep_unknown"), plain(6)

    assert Cluster(FIRST).ends(died(4, FIRST, SECOND), died(5, FIRST)) == [None, NOON_MS + 900]
    assert Cluster(FIRST, unknown).ends(died(4, FIRST, unknown), died(5, FIRST)) == [None, NOON_MS + 900]
    assert Cluster(FIRST, revived).ends(died(4, FIRST, revived)) == [NOON_MS + 900]


def test_what_was_told_before_nobody_answered_is_kept() -> None:
    cluster = Cluster(FIRST, SECOND, fails_after=1)

    assert cluster.ends(died(4, FIRST), died(5, SECOND), died(6, FIRST, SECOND)) == [NOON_MS + 900, None, None]


def test_where_nobody_answers_ends_stay_unknown() -> None:
    middle = died(3, FIRST)

    assert Cluster(FIRST, fails_after=0).ends(died(4, FIRST)) == [None]
    assert Cluster(FIRST, middle, fails_after=1).ends(died(4, middle), plain(9)) == [None, NOON_MS + 5]


def test_other_ends_are_nobodys_question() -> None:
    cluster = Cluster()

    assert cluster.ends(plain(1), died(2, death="dep_unknown"), FIRST) == [NOON_MS + 5, None, NOON_MS + 900]
    assert cluster.asked == []


def test_a_long_way_ends_and_a_circle_does(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [FIRST]
    for number in range(4, 4 + causes.DEPTH):
        chain.append(died(number, chain[-1]))

    assert Cluster(*chain).ends(chain[-1]) == [NOON_MS + 900]
    assert Cluster(*chain).ends(died(90, chain[-1])) == [None]
    one = died(91, SECOND)
    circle = attrs.evolve(SECOND, cancelled_ms=None, death="dep_failed", deps=(TaskId(one.id),))
    assert Cluster(one, circle).ends(one) == [None]
    monkeypatch.setattr(causes, "TASKS", 2)
    cluster = Cluster(FIRST, SECOND)
    cluster.ends(died(4, FIRST), died(5, SECOND), died(6, plain(7)))
    assert cluster.asked == [2]


def test_rows_that_are_written_have_these_ends() -> None:
    class Store:
        def __init__(self) -> None:
            self.rows: list[Row] = []

        def write(self, batch: str, rows: Sequence[Row]) -> int:
            self.rows += rows
            return len(rows)

        begin = settled = end = lambda self, *_: None

    store = Store()
    with pytest.raises(Refused):
        Rows(store, "c", lambda rows: (_ for _ in ()).throw(Refused("x", "y"))).write("b", [])
    row = row_of(plain(1))
    Rows(store, "c", lambda rows: [row]).write("b", [])
    assert store.rows == [row]
