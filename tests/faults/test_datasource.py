"""What the play of the data source takes for a promise kept; the promises themselves are in tests/system."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from faults.datasource.promises import Promises
from faults.datasource.writing import LEAST_WIDTH, Seen, Watch, width_of
from skuld_py.client.reading import Depth
from skuld_py.datasource.gates import GATES


def test_a_promise_is_met_or_broken_and_said_with_what_was_seen(capsys: pytest.CaptureFixture[str]) -> None:
    promises = Promises()
    promises.see("each row is there once", 7, is_met=True)
    promises.see("none could be claimed", 3, is_met=False)

    assert capsys.readouterr().out.splitlines() == ["met     each row is there once: 7",
                                                    "BROKEN  none could be claimed: 3"]
    assert promises.broken == ["none could be claimed"]


def test_the_fewer_rows_the_wider_they_are_so_that_no_buffer_holds_a_part() -> None:
    assert width_of(1_000_000) == LEAST_WIDTH and 1_000 * width_of(1_000) >= 32 << 20


class Queue:
    """A client of a queue of which each look takes one line: how many wait, what may be claimed, how many gates
    are completed by then. The last one stays."""

    def __init__(self, *looks: tuple[int, list[str], int]) -> None:
        self.looks = [(0, [], 0), *looks]
        self.is_over = Event()

    def depths(self) -> dict[str, Depth]:
        blocked, _, commits = self.looks[0]
        return {"big": Depth(0, 0, 0, blocked=blocked), GATES: Depth(0, 0, commits)}

    def claim(self, queue: str, *, n: int, wait_s: float) -> list[Any]:
        if len(self.looks) > 1:
            self.looks.pop(0)
        else:
            self.is_over.set()
        return [SimpleNamespace(id=each) for each in self.looks[0][1]]

    def list(self, queue: str, *, states: tuple[str, ...]) -> Iterator[Any]:
        return iter(())


def seen_by(*looks: tuple[int, list[str], int]) -> Seen:
    client: Any = Queue(*looks)
    with Watch(client, "big") as watch:
        if looks[-1][2]:
            watch.join(20)
        else:
            assert client.is_over.wait(60)
    return watch.seen


def test_what_is_claimed_before_a_commit_is_early_and_what_is_claimed_by_one_is_not() -> None:
    assert seen_by((5, [], 0), (9, [], 0), (9, ["a"], 1)).early == []
    late = seen_by((5, [], 0), (9, [], 0), (9, ["a"], 1))
    assert (late.looks, late.early) == (2, []) and late.blocked > 0
    assert seen_by((5, ["a"], 0), (9, [], 0), (9, [], 0)).early == ["a"]
