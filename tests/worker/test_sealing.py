"""What seals do: an output's values are written once, then the log is told, then the plan task ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.testing import MemoryClient
from skuld_py.worker.endings import Failed, Returned
from skuld_py.worker.workflows.gathering import gather_frame
from skuld_py.worker.workflows.sealing import LOOK_S_MAX, look_s, seal_call
from skuld_py.workflow.segments import seal_id, seal_queue
from worker.flows import Home


@skuld_py.task(name="seals.twice")
def twice(value: Any) -> list[Any]:
    return [value, value]


def home(place: Path, format: str = "json") -> Home:
    at = Home({"id": "sums", "edges": [["numbers", "kept"], ["numbers", "leaf"], ["numbers", "made"]], "catalog": {
        "numbers": {"kind": "input", "function": "seals.numbers"},
        "kept": {"kind": "output", "path": str(place / "kept"), "format": format},
        "made": {"kind": "output", "path": str(place / "made"), "format": format, "function": "seals.twice"},
        "leaf": {"kind": "function", "function": "seals.twice"}}})
    at.draw(*range(3), [7, 8])
    for step in ("numbers", *at.definition.leaves):
        at.work(step)
    return at


def sealed(at: Home, step: str) -> bytes:
    """The id of the task that seals a leaf."""
    id = seal_id("sums", step, at.client.cluster.wall_ms())
    at.client.enqueue_many(at.queue("seal"), [seal_call("sums", step, at.life)], ids=[id])
    return id


def tagged() -> Home:
    """Two leaves, for two kinds of workers, and an input that is exhausted."""
    at = Home({"id": "sums", "edges": [["numbers", "a"], ["numbers", "b"]], "catalog": {
        "numbers": {"kind": "input", "function": "seals.numbers"},
        **{step: {"kind": "function", "function": "seals.twice", "tags": [f"on-{step}"]} for step in "ab"}}})
    at.standings["sums"] = attrs.evolve(at.standings["sums"], exhausted=("numbers",))
    return at


@pytest.mark.parametrize("error", [None, Uncertain])
def test_leaves_are_sealed_though_an_older_release_stored_what_seals_others_in_another_queue(
        error: type[SkuldError] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, or in doubt where a node does not answer."""
    at = tagged()
    former = seal_id("sums", "a", at.life)
    at.client.enqueue_many(at.queue("seal"), [seal_call("sums", "a", at.life)], ids=[former])
    enqueue_many = at.client.enqueue_many

    def doubt(*given: Any, **named: Any) -> Any:
        try:
            return enqueue_many(*given, **named)
        except Refused as refusal:
            raise (error or Refused)(refusal.code, refusal.message) from None
    monkeypatch.setattr(at.client, "enqueue_many", doubt)
    at.flow.see_sealed("sums")
    assert [len([*at.client.list(queue)]) for queue in (at.queue("seal"), *(seal_queue("sums", each)
                                                                             for each in "ab"))] == [1, 0, 1]


def test_a_leaf_is_not_sealed_twice_where_an_older_release_stored_its_seal_by_name_in_another_queue(
        monkeypatch: pytest.MonkeyPatch) -> None:
    at = tagged()
    at.client.enqueue(at.queue("seal"), seal_call("sums", "a", at.life))
    enqueue_many = at.client.enqueue_many

    def refuse(queue: str, payloads: Any, **named: Any) -> Any:
        if named.get("ids"):
            raise Refused("too_old", "ids: too old")
        return enqueue_many(queue, payloads, **named)
    monkeypatch.setattr(at.client, "enqueue_many", refuse)
    at.flow.see_sealed("sums")
    calls = [task.payload for queue in (at.queue("seal"), *(seal_queue("sums", each) for each in "ab"))
             for task in at.client.list(queue)]
    assert sorted(calls) == [seal_call("sums", each, at.life) for each in "ab"]


def until_over(at: Home) -> list[Any]:
    """Run what waits for sealing until nothing does."""
    endings: list[Any] = []
    for _ in range(10):
        endings += at.work("seal")
        at.client.advance(1)
    return endings


def rows(place: Path) -> list[str]:
    return [line for file in sorted(place.glob("task=*/part*")) for line in file.read_text().splitlines()]


def test_an_outputs_values_are_written_once_as_one_dataset(tmp_path: Path) -> None:
    at = home(tmp_path)
    for step in ("kept", "made"):
        sealed(at, step)
    until_over(at)

    assert sorted(rows(tmp_path / "kept")) == ["0", "1", "2", "[7, 8]"]
    assert sorted(rows(tmp_path / "made")) == ["0", "0", "1", "1", "2", "2", "[7, 8]", "[7, 8]"]
    assert len([*(tmp_path / "kept").glob("task=*")]) == 1
    assert at.sealed == ["kept", "made"]


def test_the_log_is_told_when_the_values_stand_where_readers_look(tmp_path: Path) -> None:
    at = home(tmp_path)
    sealed(at, "kept")
    seen: list[int] = []
    at.on_seal = lambda step: seen.append(len(rows(tmp_path / "kept")))
    until_over(at)
    assert seen == [4]


def test_a_leaf_without_a_path_is_only_sealed(tmp_path: Path) -> None:
    at = home(tmp_path)
    sealed(at, "leaf")
    ending, = at.work("seal")
    assert isinstance(ending, Returned) and at.sealed == ["leaf"]


def test_the_last_seal_ends_the_plan_task(tmp_path: Path) -> None:
    at = home(tmp_path)
    plan = at.standings["sums"].plan
    for step in at.definition.leaves:
        assert at.client.get(plan).state == "waiting"
        sealed(at, step)
        until_over(at)
    assert at.client.get(plan).state == "completed"


def test_a_seal_that_is_done_again_writes_nothing_again(tmp_path: Path) -> None:
    at = home(tmp_path)
    sealed(at, "kept")
    at.work("seal")
    at.work("seal")
    at.client.advance(1)
    run, = at.claimed("seal")
    assert isinstance(run.ending(), Returned) and at.sealed == ["kept"]

    at.client.advance(3_600)
    until_over(at)

    assert at.sealed == ["kept", "kept"] and len(rows(tmp_path / "kept")) == 4
    assert {task.state for task in at.client.list(at.queue("seal"))} == {"completed"}


def test_a_worker_that_ends_before_the_log_is_told_leaves_all_to_the_next_claim(tmp_path: Path) -> None:
    at = home(tmp_path)
    sealed(at, "kept")
    troubles = [Uncertain("deadline", "no answer")]

    def fail(step: str) -> None:
        if troubles:
            raise troubles.pop()

    at.on_seal = fail
    endings = until_over(at)
    assert [type(ending) for ending in endings].count(Failed) == 1
    assert at.sealed == ["kept"] and len(rows(tmp_path / "kept")) == 4


def test_text_is_a_line_for_each_value(tmp_path: Path) -> None:
    at = home(tmp_path, "text")
    sealed(at, "kept")
    until_over(at)
    assert sorted(rows(tmp_path / "kept")) == ["0", "1", "2", "[7, 8]"]


def test_a_seal_outside_of_a_workflow_is_refused() -> None:
    client = MemoryClient()
    client.enqueue("own", seal_call("sums", "kept", 0))
    ran, = client.run_until_empty("own", raises=False)
    assert ran.is_final and "do not enqueue it by hand" in str(ran.error)


def test_a_seal_that_waits_for_long_looks_seldom() -> None:
    waits = [look_s(number) for number in range(400)]
    assert waits[0] < 1.0 and waits == sorted(waits) and waits[-1] == LOOK_S_MAX
    assert sum(waits[:50]) > 300.0, "each look is a claim on the task's record"


def test_what_a_segment_did_not_come_to_is_not_gathered(tmp_path: Path) -> None:
    at = home(tmp_path)
    at.draw(9)
    at.work("numbers")
    claims = at.client.claim(at.queue("kept"))
    at.client.fail_many(claims, [b"broken"], final=True)
    sealed(at, "kept")
    until_over(at)
    assert sorted(rows(tmp_path / "kept")) == ["0", "1", "2", "[7, 8]"]


class Lines:
    """As much of Spark, and of a task's context, as makes a frame of lines of JSON."""

    def __init__(self, at: Home) -> None:
        self.workflows = at.flow
        self.written: list[list[str]] = []
        self.read = self.sparkContext = self
        self.parallelize = self.json = lambda lines: lines

    def check(self) -> None:
        """Nothing is lost."""

    def output(self, path: str) -> Lines:
        return self

    def write(self, frame: list[str], format: str) -> None:
        self.written.append(sorted(frame))


def framed(at: Home, step: str) -> list[list[str]]:
    """The frames that are written of an output, as lines."""
    spark: Any = Lines(at)
    gather_frame(spark, spark, "sums", step, at.life, "/out", "parquet")
    return spark.written


def test_what_is_no_table_has_the_column_value(tmp_path: Path) -> None:
    at = home(tmp_path, "parquet")
    assert framed(at, "kept") == [['{"value": 0}', '{"value": 1}', '{"value": 2}', '{"value": [7, 8]}']]

    at.draw({"word": "a"})
    for step in ("numbers", "kept"):
        at.work(step)
    assert '{"word": "a"}' in framed(at, "kept")[0]


def test_of_no_values_there_is_a_dataset_without_files(tmp_path: Path) -> None:
    at = home(tmp_path, "parquet")
    assert framed(at, "leaf")[0] and framed(at, "no-such") == []


def test_whoever_has_a_seat_sees_to_what_a_feeder_that_died_left_unsealed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.plans.FRESH_S", 0.0)
    at = home(tmp_path)
    lives = at.standings["sums"]

    def seen(**changes: Any) -> list[bytes]:
        at.standings["sums"] = attrs.evolve(lives, **changes)
        at.flow.see_sealed("sums")
        return sorted(task.payload for task in at.client.list(at.queue("seal")))
    assert seen() == seen(state="killed", exhausted=("numbers",)) == []
    calls = {leaf: seal_call("sums", leaf, at.life) for leaf in at.definition.leaves}
    assert seen(exhausted=("numbers",), sealed=("kept",)) == sorted([calls["leaf"], calls["made"]])
    for _ in range(2):
        assert seen(exhausted=("numbers",)) == sorted(calls.values())
    at.standings["sums"] = lives
    until_over(at)
    assert sorted(at.sealed) == sorted(calls)
