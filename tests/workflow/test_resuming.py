"""What a workflow takes over from an old one: what is the same, with all before it, and finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skuld_py
from skuld_py.errors import Refused
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.definition.resuming import contents, resumed, taken_over
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.definition.writing import plain_of
from workflow.definitions import plain_definitions

ALL = ("lines", "words", "count", "report", "plot")


def flow(id: str) -> dict[str, Any]:
    """lines -> words -> count -> report, and words -> plot."""
    return {"id": id, "edges": [["lines", "words", "count", "report"], ["words", "plot"]], "catalog": {
        "lines": {"kind": "input", "files": "/data"},
        "words": {"kind": "function", "function": "acme:words"},
        "count": {"kind": "function", "function": "acme:count", "batch": 10},
        "plot": {"kind": "output", "path": "/plot"},
        "report": {"kind": "output", "path": "/report"}},
        "conditions": [{"from": "words", "to": "count", "when": "acme:is_word"}],
        "lifecycles": [{"step": "words", "before_start": "acme:begin"}, {"on_exception": "kill"}]}


def changed(change: Callable[[dict[str, Any]], object]) -> Definition:
    plain = flow("new")
    change(plain)
    return read(plain)


OLD = read(flow("old"))


@pytest.mark.parametrize(("change", "taken"), [
    (lambda plain: None, ALL),
    (lambda plain: plain["catalog"]["count"].update(function="acme:other"), ("lines", "words", "plot")),
    (lambda plain: plain["catalog"]["lines"].update(files="/other"), ()),
    (lambda plain: plain["catalog"]["words"].update(parameters={"n": 1}), ("lines",)),
    (lambda plain: plain["catalog"]["count"].update(batch=20, most=3, attempts=9, timeout_s=9), ALL),
    (lambda plain: plain["catalog"]["count"].pop("batch"), ("lines", "words", "plot")),
    (lambda plain: plain["conditions"][0].update(when="acme:other"), ("lines",)),
    (lambda plain: plain["conditions"].append({"from": "lines", "to": "words"}), ()),
    (lambda plain: plain["edges"].append(["lines", "plot"]), ()),
    (lambda plain: plain.update(lifecycles=[], metadata={"a": 1}), ALL),
    (lambda plain: plain["catalog"]["report"].update(path="/other"), ("lines", "words", "count", "plot")),
], ids=["nothing", "a function", "an input", "parameters", "how it is run", "batches or not",
        "a condition behind it", "a condition of the input", "an edge more", "lifecycles and metadata",
        "an output's place"])
def test_what_is_the_same_with_all_before_it_is_taken_over(
        change: Callable[[dict[str, Any]], object], taken: tuple[str, ...]) -> None:
    assert {*taken_over(changed(change), OLD, ALL)} == {*taken}


def test_only_what_was_finished_is_taken_over() -> None:
    assert taken_over(changed(lambda plain: None), OLD, {"words", "lines"}) == ("lines", "words")


def test_what_a_step_sends_to_that_runs_again_runs_again_itself() -> None:
    new = changed(lambda plain: plain["catalog"]["plot"].update(path="/other"))

    assert taken_over(new, OLD, {"lines", "count"}) == ("lines",)
    assert resumed(new, OLD, {"lines", "count"}).order == ("lines", "words", "count", "plot", "report")


def test_what_only_finished_steps_need_does_not_run_again() -> None:
    made = resumed(changed(lambda plain: None), OLD, {"count", "plot"})

    assert made.order == ("count", "report")


def test_what_is_needed_is_drawn_from_the_old_workflow_and_the_rest_left_out() -> None:
    new = changed(lambda plain: plain["catalog"]["report"].update(path="/other"))
    made = resumed(new, OLD, ALL)

    assert made.order == ("count", "report") and made.edges == (("count", "report"),)
    assert made.entries["count"].kind is Kind.INPUT
    assert made.entries["count"].source == Outputs("old", "count", routed=True, content=contents(OLD)["count"])
    assert made.entries["report"] == new.entries["report"]
    assert made.conditions == () and [each.step for each in made.lifecycles] == ["all"]


def test_conditions_and_lifecycles_of_what_runs_stay() -> None:
    made = resumed(changed(lambda plain: None), OLD, {"lines"})

    assert made.order == ("lines", "words", "count", "plot", "report")
    assert len(made.conditions) == 1 and len(made.lifecycles) == 2


def test_a_resumed_workflow_is_resumed_in_its_turn() -> None:
    second = resumed(read(flow("second")), OLD, {"lines", "words"})
    third = resumed(read(flow("third")), second, {"words", "count"})

    assert third.entries["words"].source == Outputs("old", "words", routed=True, content=contents(OLD)["words"])
    assert third.entries["count"].source == Outputs("second", "count", routed=True, content=contents(OLD)["count"])
    assert third.order == ("count", "report", "words", "plot")


def test_a_workflow_is_not_resumed_as_itself_nor_for_nothing() -> None:
    with pytest.raises(Refused, match="id: old is the workflow that is to be resumed"):
        resumed(OLD, OLD, ())
    with pytest.raises(Refused, match="new would do nothing: old has finished all of its steps"):
        resumed(changed(lambda plain: None), OLD, ALL)


def test_the_builder_takes_over_too() -> None:
    def written(id: str) -> skuld_py.Workflow:
        made = skuld_py.Workflow(id)
        made.input("lines", files="/data") >> made.step("words", "acme:words")
        return made

    new = written("new")
    new.resume_from(written("old"), finished={"lines"})

    assert new.definition().entries["lines"].source == Outputs(
        "old", "lines", routed=True, content=contents(written("old").definition())["lines"])


def test_what_comes_after_a_step_that_runs_again_runs_again_though_there_are_steps_between() -> None:
    plain = {"edges": [["a", "b", "c"], ["b", "d", "e"]], "conditions": [{"from": "b", "to": ["c", "d"]}],
             "catalog": {"a": {"kind": "input", "files": "/data"},
                         **{step: {"kind": "function", "function": f"acme:{step}"} for step in "bcde"}}}
    old, new = (read({"id": id, **plain}) for id in ("old", "new"))
    assert taken_over(new, old, {"e"}) == ()
    assert resumed(new, old, {"e"}) == new
    assert taken_over(new, old, {"d", "e", "c"}) == ("c", "d", "e")


def test_a_finished_step_that_there_is_not_is_told() -> None:
    with pytest.raises(Refused, match=r"finished: 'wrds' is no step of old; did you mean words\?"):
        resumed(changed(lambda plain: None), OLD, {"lines", "wrds"})


@given(plain_definitions(), st.data())
def test_what_is_resumed_is_whole_and_runs_nothing_again(plain: dict[str, Any], data: st.DataObject) -> None:
    old = read(plain)
    new = attrs.evolve(old, id="new")
    finished = data.draw(st.sets(st.sampled_from(old.order)))
    taken = taken_over(new, old, finished)
    if {*old.leaves} <= {*taken}:
        return
    made = resumed(new, old, finished)

    assert {*taken} <= finished
    working = {step for step in made.order if made.entries[step].kind is not Kind.INPUT}
    assert {*made.leaves} == {*old.leaves} - {*taken}
    assert working.isdisjoint(taken) and all(made.children[step] == old.children[step] for step in working)
    assert all(made.parents[step] == old.parents[step] for step in working)
    assert read(plain_of(made)) == made
