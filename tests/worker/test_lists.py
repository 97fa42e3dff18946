"""Steps with ``batch``: their functions get lists of segments, each of which ends by itself."""

from __future__ import annotations

from typing import Any

import pytest

import skuld_py
from skuld_py.worker.batches.sizes import BYTES_MAX
from skuld_py.worker.context import TaskContext
from skuld_py.worker.endings import Ending, Failed, Returned, Snoozed, Stopped
from skuld_py.worker.lists import Together, lists_of, stopped_for
from skuld_py.worker.run import Lot, Run
from worker.flows import Home

EDGES = [["numbers", "sums"], ["sums", "last"]]
given: list[list[Any]] = []


@skuld_py.task(name="lists.sums")
def sums(values: list[Any], by: int = 1) -> Any:
    """Of each number as many as it says; of a text nothing but that."""
    given.append(values)
    if values == ["nothing"]:
        return None
    if "one" in values:
        return 1
    if "more" in values:
        return [*values, "more"]
    if "broken" in values:
        raise ValueError("broken")
    return [[value + by] * value for value in values]


@skuld_py.task(name="lists.logging")
def logging(context: TaskContext, values: list[Any]) -> Any:
    return values


@skuld_py.task(name="lists.last")
def last(value: Any) -> Any:
    return value


@pytest.fixture(autouse=True)
def nothing_given() -> None:
    given.clear()


def home(function: str = "lists.sums", **options: Any) -> Home:
    parameters = {"parameters": {"by": 10}} if function == "lists.sums" else {}
    return Home({"id": "sums", "edges": EDGES, "catalog": {
        "numbers": {"kind": "input", "function": "lists.numbers"},
        "sums": {"kind": "function", "function": function, "batch": 3, **parameters, **options},
        "last": {"kind": "function", "function": "lists.last"}}})


def runs_of(at: Home, *values: Any) -> list[Run]:
    at.draw(*values)
    at.work("numbers")
    at.acks()
    runs = at.claimed("sums")
    return sorted(runs, key=lambda run: repr(run.assignment.work.call.args))  # type: ignore[union-attr]


def ends_of(runs: list[Run]) -> list[Ending]:
    if len(runs) > 1:
        Together(runs)
    ended = dict(runs[0].endings())
    return [ended[run] for run in runs]


def test_a_list_is_one_call_and_each_segment_emits_its_own() -> None:
    at = home()
    runs = runs_of(at, 1, 2, 3)
    endings = ends_of(runs)
    assert given == [[1, 2, 3]] and all(isinstance(each, Returned) for each in endings)

    at.conclude(runs, endings)
    assert at.waiting("last") == [11, 12, 12, 13, 13, 13]
    acks, = at.acks()
    assert len(acks.sure) == 3 and len({root for root, _, _ in acks.sure}) == 3


def test_at_most_so_many_are_together_and_one_that_was_tried_before_is_alone() -> None:
    at = home()
    runs = runs_of(at, 1, 2, 3, 4)
    assert [len(each) for each in lists_of(runs, 3)] == [3, 1]
    assert [len(each) for each in lists_of(runs, 1)] == [1] * 4

    at.conclude(runs, [Snoozed(1)] * 4)
    at.client.advance(10)
    assert [len(each) for each in lists_of(at.claimed("sums"), 3)] == [1] * 4


def test_a_list_has_a_size_in_bytes() -> None:
    at = home()
    big = "x" * 60_000
    runs = runs_of(at, *[f"{number}{big}" for number in range(3)])
    most = BYTES_MAX // len(runs[0].claim.payload)
    assert len(lists_of(runs * most, 10**6)[0]) == most


def test_who_takes_the_context_gets_lists_of_one() -> None:
    assert [len(each) for each in lists_of(runs_of(home("lists.logging"), 1, 2), 3)] == [1, 1]


def test_a_list_of_one_is_answered_as_any_list() -> None:
    run, = runs_of(at := home(), 2)
    at.conclude([run], ends_of([run]))
    assert at.waiting("last") == [12, 12]

    run, = runs_of(at := home(), "nothing")
    at.conclude([run], ends_of([run]))
    assert at.waiting("last") == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("what", ["one", "more"])
def test_what_is_no_answer_for_each_fails_for_good(count: int, what: str) -> None:
    endings = ends_of(runs_of(home(), *[what] * count))
    assert [isinstance(each, Failed) and each.is_final and "nothing, or a list" in each.words
            for each in endings] == [True] * count


def test_an_error_is_that_of_all() -> None:
    endings = ends_of(runs_of(home(), "broken", "x"))
    assert [isinstance(each, Failed) and not each.is_final for each in endings] == [True, True]


def test_a_call_that_is_stopped_for_one_is_tried_again_for_the_others() -> None:
    lost, other = runs_of(home(), 1, 2)
    together = Together([lost, other])
    lost.decide(Lot.LOST, "claimed again")
    assert together.is_wanted and other.is_along and not lost.is_along

    assert isinstance(stopped_for(lost, Stopped()), Stopped)
    assert isinstance(stopped_for(other, Stopped()), Snoozed)
    other.decide(Lot.GIVEN_BACK, "the worker stops")
    assert not together.is_wanted
