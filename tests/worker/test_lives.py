"""An id is submitted again after the log forgot its workflow: what is left of the former does nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.errors import Refused
from skuld_py.model.ids import time_of
from skuld_py.worker.endings import Failed, Returned, Snoozed
from skuld_py.worker.workflows.feeding import ClientHands
from skuld_py.worker.workflows.plans import Standing
from skuld_py.worker.workflows.returned import returned
from skuld_py.worker.workflows.sealing import seal_call
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.segments import feeder_id
from worker.flows import Home

SEEN: list[Any] = []
MEANWHILE: list[Callable[[], None]] = []
"""What is done while the next value is seen."""
SIX_DAYS_S = 6 * 24 * 3600.0


@skuld_py.task(name="lives.seen")
def seen(value: Any) -> Any:
    SEEN.append(value)
    while MEANWHILE:
        MEANWHILE.pop()()
    return value


@skuld_py.task(name="lives.numbers")
def numbers() -> list[int]:
    return [1, 2]


class House(Home):
    """``numbers`` go through ``seen`` into ``kept``, which has a path."""

    def __init__(self, place: Path) -> None:
        SEEN.clear()
        MEANWHILE.clear()
        super().__init__({"id": "sums", "edges": [["numbers", "seen"], ["seen", "kept"]], "catalog": {
            "numbers": {"kind": "input", "function": "lives.numbers"},
            "seen": {"kind": "function", "function": "lives.seen"},
            "kept": {"kind": "output", "path": str(place / "kept")}}})
        self.exhausted: list[str] = []
        self.told: list[int] = []

    def exhaust_input(self, workflow: str, step: str, *, strand: int = 0, life: int = 0) -> Any:
        self.exhausted.append(step)
        self.told.append(life)
        return type("Status", (), {"is_sealing": True, "sealed": ()})

    def seal_output(self, workflow: str, step: str, *, life: int = 0) -> None:
        self.told.append(life)
        super().seal_output(workflow, step, life=life)

    def kill_workflow(self, workflow: str, reason: str, *, life: int = 0) -> None:
        self.told.append(life)
        super().kill_workflow(workflow, reason, life=life)

    def hands(self) -> ClientHands:
        """Those of the input's feeder."""
        self.client.enqueue_many(self.queue("feed"), [skuld_py.call("skuld:feed", "sums", "numbers")],
                                 ids=[feeder_id("sums", "numbers", self.life)])
        claim, = self.client.claim(self.queue("feed"))
        return ClientHands(self, claim, self.definition, "numbers")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr("skuld_py.worker.workflows.plans.FRESH_S", 0.0)
    return House(tmp_path)


def test_its_segments_do_not_run_and_those_of_the_new_one_do(house: House) -> None:
    house.draw(1)
    house.work("numbers")
    house.draw(2)
    house.submit_again()
    for step in ("numbers", "seen"):
        ending, = house.work(step)
        assert isinstance(ending, Failed) and ending.is_final and "is of an earlier workflow sums" in ending.words
    assert SEEN == []

    house.draw(3)
    assert [isinstance(each, Returned) for step in ("numbers", "seen") for each in house.work(step)] == [True] * 2
    assert SEEN == [3]


def test_its_segments_that_still_run_complete_nothing_and_emit_nothing(house: House) -> None:
    MEANWHILE.append(house.submit_again)
    house.draw(1)
    house.work("numbers")
    ending, = house.work("seen")
    assert SEEN == [1]
    assert isinstance(ending, Failed) and ending.is_final and "is of an earlier workflow sums" in ending.words
    assert house.waiting("kept") == []

    house.draw(2)
    house.work("numbers")
    ending, = house.work("seen")
    assert isinstance(ending, Returned) and house.waiting("kept") == [2]


def test_what_it_emits_is_its_own_though_the_next_one_was_submitted_before_that_was_written(house: House) -> None:
    house.draw(1)
    house.work("numbers")
    runs = house.claimed("seen")
    endings = [run.ending() for run in runs]
    house.submit_again()
    house.draw(2)
    house.work("numbers")
    house.work("seen")
    assert house.waiting("kept") == [2]

    house.conclude(runs, endings)
    assert sorted(isinstance(each, Returned) for each in house.work("kept")) == [False, True]
    kept = [house.get(task.id) for task in house.client.list(house.queue("kept"))]
    assert [task.result for task in kept if task.is_completed] == [2]


def test_the_log_is_told_which_life_is_meant(house: House) -> None:
    hands = house.hands()
    life = house.life
    hands.exhaust()
    hands.kill("x")
    house.work("seal")
    for _ in range(5):
        house.client.advance(1)
        house.work("seal")
    assert house.sealed == ["kept"] and house.told == [life] * 3


def test_its_feeder_exhausts_no_input(house: House) -> None:
    house.client.enqueue_many(house.queue("feed"), [skuld_py.call("skuld:feed", "sums", "numbers")],
                              ids=[feeder_id("sums", "numbers", house.life)])
    house.submit_again()
    ending, = house.work("feed")
    assert isinstance(ending, Failed) and ending.is_final and "of an earlier workflow sums" in ending.words
    assert house.exhausted == [] and house.killed == {}


def test_its_seal_seals_nothing(house: House) -> None:
    house.client.enqueue(house.queue("seal"), seal_call("sums", "kept", house.life))
    house.submit_again()
    ending, = house.work("seal")
    assert isinstance(ending, Failed) and ending.is_final and "of an earlier workflow sums" in ending.words
    assert house.sealed == []


def test_its_values_are_neither_gathered_nor_drawn(house: House, tmp_path: Path) -> None:
    house.draw(1)
    for step in house.definition.order:
        house.work(step)
    house.submit_again()
    house.draw(2)
    for step in house.definition.order:
        house.work(step)
    house.client.enqueue(house.queue("seal"), seal_call("sums", "kept", house.life))
    for _ in range(5):
        house.work("seal")
        house.client.advance(1)
    file, = (tmp_path / "kept").glob("task=*/part.json")
    assert file.read_text() == "2\n" and house.sealed == ["kept"]

    house.standings["sums"] = Standing("completed", house.standings["sums"].plan, house.standings["sums"].digest)
    drawn = returned(house.flow, "other", Outputs("sums", "seen"))
    assert drawn is not None and [*drawn.values()] == [2]


def refusing(house: House) -> Any:
    """``client.enqueue_many`` in a cluster for which the feeder's time is too old."""
    enqueue_many = house.client.enqueue_many

    def refuse(queue: str, payloads: Any, **options: Any) -> Any:
        if any(time_of(id) == house.life for id in options.get("ids") or ()):
            raise Refused("too_old", "ids: too old")
        return enqueue_many(queue, payloads, **options)
    return refuse


def test_a_seal_by_name_is_not_enqueued_again_after_its_window(
        house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = house.hands()
    monkeypatch.setattr(house.client, "enqueue_many", refusing(house))
    for _ in range(3):
        hands.exhaust()
        house.client.advance(1.1 * SIX_DAYS_S)
    assert len([*house.client.list(house.queue("seal"))]) == 1


def test_a_seal_by_name_of_the_former_is_none_of_the_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue_many = house.client.enqueue_many
    for _ in range(2):
        monkeypatch.setattr(house.client, "enqueue_many", enqueue_many)
        hands = house.hands()
        monkeypatch.setattr(house.client, "enqueue_many", refusing(house))
        hands.exhaust()
        monkeypatch.setattr(house.client, "enqueue_many", enqueue_many)
        house.submit_again()
    payloads = [each.payload for each in house.client.list(house.queue("seal"))]
    assert len({*payloads}) == len(payloads) == 2


# -- a worker that knows of an earlier life only -------------------------------------------------------


def lag(house: House, answers: int) -> Standing:
    """The former is killed, which the worker has heard of, and the next one submitted: of that the nodes that it
    asks know after so many answers more."""
    house.flow._plans._clock = lambda: 0.0
    former = house.standings["sums"] = attrs.evolve(house.standings["sums"], state="killed")
    with pytest.raises(Refused, match="is killed"):
        house.flow.plan("sums")
    house.submit_again()
    following, left = house.standings["sums"], [answers]

    def standing(workflow: str) -> Standing:
        left[0] -= 1
        return former if left[0] >= 0 else following
    house.standing = standing  # type: ignore[method-assign]
    return following


@pytest.mark.parametrize("answers", [0, 1, 3])
def test_a_segment_of_the_next_does_not_die_of_what_is_known_of_the_former(
        house: House, monkeypatch: pytest.MonkeyPatch, answers: int) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.plans.FRESH_S", 2.0)
    lag(house, answers)
    house.draw(3)
    endings = []
    for _ in range(answers + 1):
        endings += house.work("numbers")
        house.client.advance(1)
    assert [type(each) for each in endings] == [Snoozed] * answers + [Returned]
    assert isinstance(house.work("seen")[0], Returned) and SEEN == [3]


@pytest.mark.parametrize("answers", [0, 1])
def test_its_feeder_does_not_end_by_what_is_known_of_the_former(
        house: House, monkeypatch: pytest.MonkeyPatch, answers: int) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.plans.FRESH_S", 2.0)
    lag(house, answers)
    house.client.enqueue_many(house.queue("feed"), [skuld_py.call("skuld:feed", "sums", "numbers")],
                              ids=[feeder_id("sums", "numbers", house.life)])
    for _ in range(answers):
        assert isinstance(house.work("feed")[0], Snoozed)
        house.client.advance(1)
    claim, = house.client.claim(house.queue("feed"))
    assert house.flow.check_life("sums", time_of(claim.id)) == house.definition


def test_its_seals_do_not_end_by_what_is_known_of_the_former(house: House) -> None:
    lag(house, 1)
    house.client.enqueue(house.queue("seal"), seal_call("sums", "kept", house.life))
    assert isinstance(house.work("seal")[0], Snoozed) and house.sealed == []


def test_what_names_a_life_that_cannot_be_is_of_another_one(house: House) -> None:
    house.draw(1)
    claim, = house.client.claim(house.queue("numbers"))
    house.client.enqueue(house.queue("numbers"), claim.payload[:-8] + bytes([127] * 8))
    ending, = house.work("numbers")
    assert isinstance(ending, Failed) and ending.is_final and "is of an earlier workflow" in ending.words
