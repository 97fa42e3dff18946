"""Nodes that say for ever, in doubt, that tasks are too old, or others: the workflow ends, and says of what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from skuld_py.errors import Uncertain
from skuld_py.worker.endings import Failed, Returned
from skuld_py.worker.workflows.driving import DOUBTS_MAX, Doubts
from skuld_py.worker.workflows.feeding import ClientHands
from worker.test_feeding import Farm


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.driving.AGAIN_S", 0.0)
    monkeypatch.setattr("skuld_py.worker.workflows.driving.DOUBT_S", 0.0)


def doubting(farm: Farm, code: str, is_of: Callable[[str], bool], times: int = 1_000) -> list[str]:
    """Storing tasks under ids in some queues is answered like this so often; what was asked."""
    store, asked = farm.client.enqueue_many, list[str]()

    def storing(queue: str, payloads: Any, **options: Any) -> Any:
        if "ids" in options and is_of(queue) and len(asked) < times:
            asked.append(queue)
            raise Uncertain(code, "some nodes say so, and others may have it")
        return store(queue, payloads, **options)
    farm.client.enqueue_many = storing  # type: ignore[method-assign]
    return asked


def test_roots_that_stay_too_old_in_doubt_end_the_workflow_and_the_reason_says_what_to_do() -> None:
    farm = Farm("one two", "three")
    asked = doubting(farm, "too_old", lambda queue: queue == farm.queue("texts"))
    ending = farm.feed()
    assert isinstance(ending, Failed) and ending.is_final and len(asked) == DOUBTS_MAX
    assert "is older than what the cluster keeps: raise its retention" in farm.killed["w"]


def test_roots_that_stay_other_tasks_in_doubt_end_the_workflow() -> None:
    farm = Farm("one two", "three")
    asked = doubting(farm, "conflict", lambda queue: queue == farm.queue("texts"))
    ending = farm.feed()
    assert isinstance(ending, Failed) and ending.is_final and len(asked) == DOUBTS_MAX
    assert "it gives other values than before" in farm.killed["w"]


@pytest.mark.parametrize("code", ["too_old", "conflict", "deadline"])
def test_what_was_in_doubt_for_a_while_is_asked_for_again(code: str) -> None:
    farm = Farm("one two", "three")
    asked = doubting(farm, code, lambda queue: queue == farm.queue("texts"),
                     3 * DOUBTS_MAX if code == "deadline" else DOUBTS_MAX - 1)
    assert isinstance(farm.feed(), Returned) and len(asked) >= DOUBTS_MAX - 1
    assert farm.sizes() == [3, 3, 5] and not farm.killed


def test_what_is_in_doubt_often_and_not_for_long_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.driving.DOUBT_S", 1e9)
    farm = Farm("one two", "three")
    asked = doubting(farm, "too_old", lambda queue: queue == farm.queue("texts"), 3 * DOUBTS_MAX)
    assert isinstance(farm.feed(), Returned) and len(asked) == 3 * DOUBTS_MAX
    assert farm.sizes() == [3, 3, 5] and not farm.killed


def test_what_is_in_doubt_for_long_and_not_often_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.driving.DOUBT_S", 600.0)
    now_s = [0.0]
    doubts = Doubts(lambda: now_s[0])
    for _ in range(DOUBTS_MAX - 1):
        assert not doubts.suffice()
        now_s[0] += 600.0
    doubts.forget()
    assert not any(doubts.suffice() for _ in range(DOUBTS_MAX))
    now_s[0] += 599.0
    assert not doubts.suffice()
    now_s[0] += 1.0
    assert doubts.suffice()


def test_children_that_stay_too_old_in_doubt_end_the_workflow_with_the_first_of_them(
        monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(*["one two three"] * 8)
    monkeypatch.setattr(farm.flow._emitter, "emit", lambda written: None)
    asked = doubting(farm, "too_old", lambda queue: queue == farm.queue("words"))
    ending = farm.feed()
    assert isinstance(ending, Failed) and ending.is_final
    assert DOUBTS_MAX <= len(asked) <= 3 * DOUBTS_MAX
    assert "is older than what the cluster keeps" in farm.killed["w"]


def test_leaves_whose_seals_stay_too_old_in_doubt_are_sealed_by_name_once() -> None:
    farm = Farm()
    run, = farm.claimed("feed")
    farm.flow.begin([run])
    hands = ClientHands(farm, run.claim, farm.definition, "texts")
    asked = doubting(farm, "too_old", lambda queue: queue == farm.queue("seal"))
    for _ in range(DOUBTS_MAX - 1):
        with pytest.raises(Uncertain):
            hands.exhaust()
    assert not [*farm.client.list(farm.queue("seal"))]
    hands.exhaust()
    hands.exhaust()
    assert len([*farm.client.list(farm.queue("seal"))]) == 1 and len(asked) == DOUBTS_MAX + 1


def test_seals_that_stay_too_old_in_doubt_are_enqueued_by_name_by_whoever_has_a_seat() -> None:
    farm = Farm()
    farm.standings["w"] = attrs.evolve(farm.standings["w"], exhausted=("texts",))
    asked = doubting(farm, "too_old", lambda queue: queue == farm.queue("seal"))
    for _ in range(DOUBTS_MAX - 1):
        with pytest.raises(Uncertain):
            farm.flow.see_sealed("w")
    assert not [*farm.client.list(farm.queue("seal"))]
    farm.flow.see_sealed("w")
    farm.flow.see_sealed("w")
    assert len([*farm.client.list(farm.queue("seal"))]) == 1 and len(asked) == DOUBTS_MAX + 1
