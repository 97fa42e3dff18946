"""What a worker does around the functions of workflows' steps, on a cluster in memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.errors import Refused, Uncertain
from skuld_py.worker.context import TaskContext
from skuld_py.worker.endings import Failed, Returned, Snoozed
from skuld_py.worker.registry import lookup
from skuld_py.worker.workflows.finding import found
from skuld_py.worker.workflows.flow import Flow
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.segments import Emission, child_ids, value_of
from worker.flows import Home

EDGES = [["numbers", "split"], ["split", "even"], ["split", "odd"]]
CATALOG: dict[str, Any] = {
    "numbers": {"kind": "input", "function": "flow.numbers"},
    "split": {"kind": "function", "function": "flow.split", "parameters": {"by": 10}, "timeout_s": 5,
              "attempts": 3},
    "even": {"kind": "function", "function": "flow.leaf"},
    "odd": {"kind": "output", "path": "/data/odd"},
}


@skuld_py.task(name="flow.split")
def split(value: Any, by: int = 1) -> Any:
    """What it is told; a number becomes two."""
    if isinstance(value, str):
        raise ValueError(value)
    if isinstance(value, dict):
        return ["x" * size for size in value["sizes"]]
    return [value, value + by] if isinstance(value, int) else value


@skuld_py.task(name="flow.leaf")
def leaf(value: Any) -> Any:
    return ["seen", value]


@skuld_py.task(name="flow.is_even")
def is_even(value: int) -> bool:
    return value % 2 == 0


@skuld_py.task(name="flow.broken")
def broken(value: Any) -> bool:
    raise KeyError("no column")


TO_EVEN = {"from": "split", "to": ["even"], "when": "flow.is_even"}
TO_ODD = {"from": "split", "to": ["odd"], "when": ["not", "flow.is_even"]}


def home(*conditions: dict[str, Any], lifecycles: tuple[dict[str, Any], ...] = (), **catalog: Any) -> Home:
    return Home({"id": "sums", "edges": EDGES, "catalog": {**CATALOG, **catalog}, "conditions": [*conditions],
                 "lifecycles": [*lifecycles]})


def test_what_a_step_returns_is_its_completion_and_then_waits_for_the_next_steps() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(3)
    at.work("numbers")
    assert at.waiting("split") == [3]

    at.work("split")

    assert (at.waiting("odd"), at.waiting("even")) == ([13, 3], [])
    done = next(iter(at.client.list(at.queue("split"))))
    kept = at.client.get(done.id)
    assert [step for step, _ in Emission.decode(kept.result).rows] == ["odd", "odd"]
    claim = kept.claims[0]
    assert {task.id for task in at.client.list(at.queue("odd"))} == {
        *child_ids(done.id, claim.token, claim.start_ms, 2)}


def test_a_batch_is_one_request_for_each_step_and_one_task_of_acks() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(*range(10))
    at.work("numbers")
    at.acks()
    at.requests.clear()

    at.work("split")

    assert sorted(at.requests) == [("wf.sums._acks-numbers", 1), ("wf.sums.even", 10), ("wf.sums.odd", 10)]
    acks, = at.acks()
    assert (len(acks.sure), len(acks.unsure)) == (10, 0)


def test_the_acks_of_a_tree_are_zero_when_all_of_it_is_done_and_not_before() -> None:
    at = home(TO_EVEN, TO_ODD)
    root, = at.draw(4)
    total = value_of(root)
    for step in ("numbers", "split", "even"):
        assert total
        at.work(step)
        for acks in at.acks():
            for of, _, ack in acks.sure:
                assert of == root
                total ^= ack
    assert total == 0


def test_children_are_called_as_their_steps_say() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(4)
    at.work("numbers")

    task, = at.client.list(at.queue("split"))
    assert (task.retry.max_attempts, task.headers["skuld-timeout-s"]) == (3, "5.0")
    assert at.claimed("split")[0].assignment.work.call.kwargs == {"by": 10}


def test_a_step_with_a_batch_gets_lists() -> None:
    at = home({"from": "split", "to": ["odd"], "when": ["flow.is_even", "given"]},
              split={**CATALOG["split"], "batch": 20})
    at.draw(3)
    at.work("numbers")
    assert at.claimed("split")[0].assignment.work.call.args == [[3]]


def test_enqueueing_children_again_changes_nothing() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(3, 4)
    at.work("numbers")
    runs = at.claimed("split")
    at.conclude(runs, [run.ending() for run in runs])
    before = at.waiting("odd"), at.waiting("even")

    at.flow.written(lambda runs, what: None)(runs, "completed")
    at.flow.settle()

    assert (at.waiting("odd"), at.waiting("even")) == before


@pytest.mark.parametrize("what", ["lost", "failed", "released"])
def test_nothing_is_emitted_before_the_completion_is_written(what: str) -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(3)
    at.work("numbers")
    runs = at.claimed("split")
    endings = [run.ending() for run in runs]
    assert isinstance(endings[0], Returned) and at.waiting("odd") == []

    at.flow.written(lambda runs, what: None)(runs, what)
    at.flow.settle()

    assert at.waiting("odd") == []


def test_what_an_earlier_claim_may_have_completed_is_left_to_the_feeder_which_is_told() -> None:
    at = home(TO_EVEN, TO_ODD)
    root, = at.draw(3)
    at.work("numbers")
    at.acks()
    at.client.claim(at.queue("split"), lease_s=1)
    at.client.advance(10)

    at.work("split")

    assert at.waiting("odd") == []
    (acks,), (done,) = at.acks(), at.client.list(at.queue("split"))
    assert (acks.sure, acks.unsure) == ((), ((root, done.id),))


def test_what_earlier_claims_were_given_back_of_is_emitted() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(3)
    at.work("numbers")
    at.acks()
    at.client.release(*at.client.claim(at.queue("split")))
    at.client.snooze_many(at.client.claim(at.queue("split")), 1)
    at.client.advance(2)

    at.work("split")

    assert at.waiting("odd") == [13, 3]
    acks, = at.acks()
    assert len(acks.sure) == 1 and not acks.unsure


def test_what_a_lease_was_over_before_is_left_to_the_feeder() -> None:
    at = home(TO_EVEN, TO_ODD)
    at.draw(3)
    at.work("numbers")
    at.acks()
    runs = at.claimed("split")
    endings = [run.ending() for run in runs]
    at.client.advance(3_600)

    at.conclude(runs, endings)

    assert at.waiting("odd") == []
    acks, = at.acks()
    assert len(acks.unsure) == 1


@pytest.mark.parametrize(("what", "is_first", "is_told"), [
    ("died", True, True), ("failed", True, False), ("failed", False, True), ("snoozed", False, False),
    ("released", False, False)])
def test_the_feeder_is_told_at_once_of_what_may_be_dead(what: str, is_first: bool, is_told: bool) -> None:
    at = home()
    root, = at.draw(3)
    at.work("numbers")
    assert len(at.acks()) == 1
    if not is_first:
        at.client.fail(*at.client.claim(at.queue("split")), "broken")
        at.client.advance(60)
    run, = at.claimed("split")
    run.flow.begin([run])

    at.flow.written(lambda runs, what: None)([run], what)
    at.flow.settle()
    assert [acks.unsure for acks in at.acks()] == [((root, run.claim.id),)] * is_told


def test_what_a_leaf_returns_is_its_result_as_that_of_any_task() -> None:
    at = home(TO_EVEN)
    at.draw(4)
    for step in ("numbers", "split", "even"):
        at.work(step)

    results = [at.client.get(task.id).result for task in at.client.list(at.queue("even"))]
    assert sorted(results) == [["seen", 4], ["seen", 14]]


@skuld_py.task(name="flow.writing")
def writing(context: TaskContext, value: str) -> str:
    context.output(value).write_json("part.json", [1, 2])
    return value


def test_a_step_may_write_an_output_of_its_own_and_emit(tmp_path: Path) -> None:
    at = home({"from": "split", "to": ["odd"]}, split={"kind": "function", "function": "flow.writing"})
    at.draw(str(tmp_path / "written"))
    at.work("numbers")
    at.work("split")

    task, = at.client.list(at.queue("split"))
    done = at.client.get(task.id)
    assert [written.rows for written in done.outputs] == [2]
    assert Emission.decode(done.result).rows[0][0] == "odd"
    assert at.waiting("odd") == [str(tmp_path / "written")]


# -- what goes wrong -------------------------------------------------------------------------------


def failing(at: Home, step: str = "split") -> Any:
    at.draw("no number")
    at.work("numbers")
    ending, = at.work(step)
    return ending


def test_what_a_function_raises_is_data_for_a_condition_about_exceptions() -> None:
    at = home({"from": "split", "to": ["odd"], "exception": True})
    assert isinstance(failing(at), Returned)
    assert at.waiting("odd") == [{"error": "ValueError", "message": "no number", "segment": "no number"}]


def test_without_such_a_condition_it_has_failed_and_is_tried_again() -> None:
    at = home()
    ending = failing(at)
    assert isinstance(ending, Failed) and not ending.is_final and not at.killed
    assert at.client.get(next(iter(at.client.list(at.queue("split")))).id).state == "scheduled"


def test_after_its_last_attempt_its_workflow_is_killed() -> None:
    at = home(split={**CATALOG["split"], "attempts": 2})
    failing(at)
    at.client.advance(60)
    ending, = at.work("split")

    assert isinstance(ending, Failed)
    assert at.killed == {"sums": "step split: attempt 2, the last one, failed: ValueError: no number"}


@pytest.mark.parametrize(("policy", "ending", "is_killed"), [
    ("restart", Snoozed, False), ("kill", Failed, True), ("defer", Failed, False)])
def test_policies_say_what_becomes_of_it(policy: str, ending: type, is_killed: bool) -> None:
    at = home(lifecycles=({"step": "split", "on_exception": policy},))
    assert isinstance(failing(at), ending)
    assert bool(at.killed) is is_killed


def test_a_condition_may_have_it_tried_again() -> None:
    at = home({"from": "split", "exception": True, "action": "retry"})
    ending = failing(at)
    assert isinstance(ending, Failed) and "a condition of its workflow" in ending.words


@pytest.mark.parametrize(("attempts", "policy", "ending"), [
    (1, "restart", Snoozed), (2, "restart", Failed), (1, "kill", Failed), (1, "defer", Failed)])
def test_what_a_condition_wants_tried_again_on_its_last_attempt_does_not_die_where_that_would_not_count(
        attempts: int, policy: str, ending: type) -> None:
    at = home({"from": "split", "exception": True, "action": "retry"},
              lifecycles=({"step": "split", "on_exception": policy},),
              split={**CATALOG["split"], "attempts": attempts})
    assert isinstance(failing(at), ending)
    split, = at.client.list(at.queue("split"))
    assert (at.get(split.id).state == "dead") is (attempts == 1 and ending is Failed) and not at.killed


@pytest.mark.parametrize("edges", [(), ({"from": "split", "exception": True, "action": "retry"},)])
def test_a_segment_that_comes_back_for_ever_comes_less_and_less_often(edges: tuple[Any, ...]) -> None:
    at = home(*edges, lifecycles=({"step": "split", "on_exception": "restart"},),
              split={**CATALOG["split"], "attempts": 1})
    assert_less_often(at, failing(at))


def test_a_segment_whose_step_may_not_start_for_long_comes_less_and_less_often() -> None:
    at = home(lifecycles=({"step": "split", "before_start": "flow.note", "parameters": {"name": "x"}},))
    may_start[0] = False
    assert_less_often(at, failing(at))


def assert_less_often(at: Home, ending: Any) -> None:
    delays_ms = [ending.delay_ms]
    for _ in range(140):
        at.client.advance(delays_ms[-1] / 1000 + 1)
        ending, = at.work("split")
        delays_ms.append(ending.delay_ms)
    assert delays_ms == sorted(delays_ms) and delays_ms[:2] == [1_000, 1_102]
    assert delays_ms[-1] == 600_000 and delays_ms[60] < 60_000


def test_an_error_of_a_predicate_is_the_segments() -> None:
    at = home({"from": "split", "to": ["even"], "when": "flow.broken"})
    at.draw(3)
    at.work("numbers")
    ending, = at.work("split")
    assert isinstance(ending, Failed) and "KeyError: in flow.broken" in ending.words
    assert at.waiting("even") == []


def test_a_name_that_nobody_registered_calls_nothing() -> None:
    at = home({"from": "split", "to": ["even"], "when": "os:system"})
    at.draw(3)
    at.work("numbers")
    ending, = at.work("split")
    assert isinstance(ending, Failed) and "os:system" in ending.words


def test_a_function_that_this_worker_has_not_costs_an_attempt_and_the_last_one_kills() -> None:
    at = Home({"id": "sums", "edges": [["numbers", "gone"]], "catalog": {
        "numbers": {"kind": "input", "function": "flow.numbers"},
        "gone": {"kind": "function", "function": "flow.not_here", "attempts": 2}}})
    at.draw(3)
    at.work("numbers")
    ending, = at.work("gone")
    assert isinstance(ending, Failed) and not ending.is_final and not at.killed
    assert "no task function is called 'flow.not_here' here" in ending.words and "start the worker" in ending.words

    at.client.advance(60)
    ending, = at.work("gone")
    assert isinstance(ending, Failed) and ending.is_final
    assert "step gone: attempt 2, the last one, failed: Refused: no task function" in at.killed["sums"]


def test_what_is_too_large_to_be_a_completion_fails_for_good() -> None:
    at = home({"from": "split", "to": ["even"]})
    at.draw({"sizes": [30_000, 30_000, 4_900]})
    at.work("numbers")
    ending, = at.work("split")
    assert isinstance(ending, Failed) and ending.is_final and "emission_too_large" in ending.words


# -- whether it lives ------------------------------------------------------------------------------


def ended(at: Home, state: str, reason: str = "") -> None:
    at.standings["sums"] = attrs.evolve(at.standings["sums"], state=state, reason=reason)


def test_segments_run_of_a_workflow_that_an_older_release_submitted_with_more_feeders_than_roots() -> None:
    catalog = {"numbers": {"kind": "input", "files": "/x", "most": 8, "max_pending": 4},
               "split": {"kind": "function", "function": "flow.split"}}
    at = Home(read({"id": "sums", "edges": [["numbers", "split"]], "catalog": catalog}, is_stored=True))
    at.draw(3)
    assert isinstance(at.work("numbers")[0], Returned) and len(at.waiting("split")) == 1


def test_a_segment_of_a_killed_workflow_does_not_run() -> None:
    at = home()
    at.draw(3)
    ended(at, "killed", "too dear")
    ending, = at.work("numbers")
    assert isinstance(ending, Failed) and ending.is_final
    assert "workflow: sums is killed: too dear" in ending.words


def test_a_segment_whose_workflow_is_killed_while_it_runs_is_not_completed(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.plans.FRESH_S", 0.0)
    at = home()
    at.draw(3)
    run, = at.claimed("numbers")
    flow, end = at.flow, at.flow.end

    def killing(pairs: Any) -> Any:
        ended(at, "killed")
        return end(pairs)

    monkeypatch.setattr(flow, "end", killing)
    ending = run.ending()
    assert isinstance(ending, Failed) and ending.is_final


def test_whether_a_workflow_lives_is_asked_once_for_all_segments_of_a_while() -> None:
    at = home()
    at.draw(*range(50))
    at.work("numbers")
    at.work("split")
    assert at.asked == 1


def test_a_definition_that_is_not_what_was_submitted_is_used_by_nobody() -> None:
    at = home()
    at.draw(3)
    at.standings["sums"] = attrs.evolve(at.standings["sums"], digest="0" * 64)
    ending, = at.work("numbers")
    assert isinstance(ending, Failed) and "is not what was submitted" in ending.words


def test_a_task_that_nobody_made_for_a_workflow_is_refused() -> None:
    at = home()
    at.client.enqueue(at.queue("split"), split.call(3))
    ending, = at.work("split")
    assert isinstance(ending, Failed) and ending.is_final and "says no root" in ending.words


# -- lifecycles ------------------------------------------------------------------------------------

calls: list[tuple[str, str]] = []
may_start = [True]


@skuld_py.task(name="flow.note")
def note(event: dict[str, Any], name: str) -> Any:
    calls.append((event["moment"], name))
    return may_start[0] if event["moment"] == "before_start" else None


@pytest.fixture(autouse=True)
def nothing_called() -> Iterator[None]:
    calls.clear()
    may_start[0] = True
    yield


MOMENTS = ("before_start", "after_start", "before_batch", "before_task", "after_task", "after_batch", "after_stop")


def test_lifecycles_are_called_around_the_work_in_their_order() -> None:
    each = [{"step": step, "parameters": {"name": step}, **dict.fromkeys(MOMENTS, "flow.note")}
            for step in ("all", "split")]
    at = home(lifecycles=tuple(each))
    at.draw(3)
    at.work("numbers")
    calls.clear()
    at.work("split")
    at.flow.close(1)

    inwards = [(moment, name) for moment in MOMENTS[:4] for name in ("all", "split")]
    outwards = [(moment, name) for moment in MOMENTS[4:6] for name in ("split", "all")]
    assert calls[:12] == inwards + outwards
    assert calls[12:] == [("after_stop", "all"), ("after_stop", "split"), ("after_stop", "all")]


LATCH = threading.Event()


@skuld_py.task(name="flow.stay")
def stay(event: dict[str, Any], name: str) -> None:
    LATCH.wait(60)
    calls.append((event["moment"], name))


@skuld_py.task(name="flow.quit")
def quit_process(event: dict[str, Any], name: str) -> None:
    sys.exit(3)


@pytest.mark.parametrize("function", ["flow.quit", "flow.stay"])
def test_the_end_of_a_worker_does_not_hang_on_what_a_lifecycle_calls(function: str) -> None:
    LATCH.clear()
    at = home(lifecycles=({"step": "numbers", "after_stop": function, "parameters": {"name": "numbers"}},
                          {"step": "split", "after_stop": "flow.note", "parameters": {"name": "split"}}))
    at.draw(3)
    at.work("numbers")
    at.work("split")
    at.flow.close(1)
    assert calls == [("after_stop", "split")]
    LATCH.set()


def test_a_step_that_may_not_start_yet_gives_its_segments_back() -> None:
    at = home(lifecycles=({"step": "split", "before_start": "flow.note", "parameters": {"name": "x"}},))
    at.draw(3)
    at.work("numbers")
    may_start[0] = False
    ending, = at.work("split")
    assert isinstance(ending, Snoozed)

    may_start[0] = True
    at.client.advance(2)
    ending, = at.work("split")
    assert isinstance(ending, Returned)


def test_a_step_is_started_once() -> None:
    at = home(lifecycles=({"step": "numbers", "before_start": "flow.note", "parameters": {"name": "x"}},))
    at.draw(1, 2, 3)
    at.work("numbers")
    at.draw(4)
    at.work("numbers")
    assert calls == [("before_start", "x")]


def plain_predicate(value: Any) -> bool:
    return True


def test_names_are_those_of_task_functions_and_of_the_applications_modules_alone() -> None:
    apps = (__name__.partition(".")[0],)
    assert found("flow.is_even", ()) is is_even
    assert found(f"{__name__}:plain_predicate", apps) is plain_predicate
    for name, own in ((f"{__name__}:plain_predicate", ()), ("os:system", apps), (f"{__name__}:read", apps),
                      (f"{__name__}:nobody", apps), ("nothing", apps)):
        with pytest.raises(Refused, match="function: "):
            found(name, own)


@skuld_py.task(name="flow.many", batch=40)
def many(value: Any) -> Any:
    return value


def test_a_slot_takes_what_its_entry_says_or_its_function_and_else_one() -> None:
    at = home(even={"kind": "function", "function": "flow.leaf", "batch": 7},
              split={"kind": "function", "function": "flow.many"})

    assert [at.flow.size_of("sums", step) for step in ("numbers", "even", "split", "odd", "none")] == [
        1, 7, 40, 1, 1]
    at.flow.close(1)
    at.standings["sums"] = attrs.evolve(at.standings["sums"], state="killed")
    assert Flow(at, lookup).size_of("sums", "even") == 1
    at.standing = silent  # type: ignore[method-assign]
    with pytest.raises(Uncertain):
        Flow(at, lookup).size_of("sums", "even")


def silent(workflow: str) -> Any:
    raise Uncertain("uncertain", "no answer")
