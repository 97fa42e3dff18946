"""Workflows written in Python: the same as plain data."""

from __future__ import annotations

from typing import Any

import pytest

import skuld_py
from skuld_py.errors import Refused
from skuld_py.workflow.definition.builder import name_of
from skuld_py.workflow.definition.faults import BadWorkflow
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.graph.rails import drawing
from skuld_py.workflow.graph.svg import svg


@skuld_py.task(name="census-words")
def words(line: str) -> list[str]:
    return line.split()


def is_longer(word: str, than: int) -> bool:
    return len(word) > than


def connect() -> None:
    """Only its name counts."""


def census(id: str = "census") -> skuld_py.Workflow:
    flow = skuld_py.Workflow(id, spreading="percentage", percentage=30, metadata={"owner": "me"})
    archives = flow.input("archives", files="/data/*.gz", max_pending=10)
    split = flow.step("words", words, most=4, tags={"ssd", "gpu"}, parameters={"n": 1})
    seen = flow.step("seen", "acme:seen", batch=100)
    long = flow.output("long", "/data/long", "parquet", timeout_s=2.5)
    archives >> split >> [seen, long]
    flow.condition(split, long, when=["and", [is_longer, "than"], "acme:is_word"], parameters={"than": 10})
    flow.condition("words", "all", exception=True, transform=is_longer)
    flow.lifecycle(split, before_start=connect, on_exception="restart")
    flow.lifecycle(on_exception="acme:judge")
    return flow


def test_it_is_what_plain_data_say() -> None:
    here = f"{__name__}:"
    assert census().definition() == read({
        "id": "census", "spreading": "percentage", "percentage": 30, "metadata": {"owner": "me"},
        "edges": [["archives", "words"], ["words", "seen"], ["words", "long"]],
        "catalog": {
            "archives": {"kind": "input", "files": "/data/*.gz", "max_pending": 10},
            "words": {"kind": "function", "function": "census-words", "most": 4, "tags": ["gpu", "ssd"],
                      "parameters": {"n": 1}},
            "seen": {"kind": "function", "function": "acme:seen", "batch": 100},
            "long": {"kind": "output", "path": "/data/long", "format": "parquet", "timeout_s": 2.5}},
        "conditions": [
            {"from": "words", "to": ["long"], "parameters": {"than": 10},
             "when": ["and", [f"{here}is_longer", "than"], "acme:is_word"]},
            {"from": "words", "to": "all", "exception": True, "transform": f"{here}is_longer"}],
        "lifecycles": [{"step": "words", "before_start": f"{here}connect", "on_exception": "restart"},
                       {"step": "all", "on_exception": "acme:judge"}]})


def test_several_steps_lead_to_one() -> None:
    flow = skuld_py.Workflow("two")
    lines, days = flow.input("lines", files="/data"), flow.input("days", function="acme:days")
    [lines, days] >> flow.step("join", "acme:join")

    assert flow.definition().parents["join"] == ("days", "lines")


def test_all_that_is_wrong_is_told_when_it_is_whole() -> None:
    flow = skuld_py.Workflow("bad id")
    flow.input("lines", files="here")
    flow.edge("lines", "wrds")
    flow.condition("lines")

    with pytest.raises(BadWorkflow) as caught:
        flow.definition()
    assert [fault.entry + "." + fault.key for fault in caught.value.faults] == [
        ".id", "lines.files", "edges[0].", "conditions[0].to"]


def test_a_name_is_one_step() -> None:
    flow = skuld_py.Workflow("twice")
    flow.step("words", words)

    with pytest.raises(Refused, match="words: there is such a step already"):
        flow.step("words", words)


def test_what_a_worker_could_not_find_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Here:
        def method(self) -> None: ...

    for function in (lambda: None, Here().method, Here.method):
        with pytest.raises(Refused, match="is no function at the top of a module"):
            name_of(function)
    monkeypatch.setattr(connect, "__module__", "__main__")
    with pytest.raises(Refused, match="connect: is in __main__"):
        name_of(connect)


def test_parameters_are_as_they_are() -> None:
    values: dict[str, Any] = {"list": [1, {"a": None}], "text": "x"}
    flow = skuld_py.Workflow("plain")
    flow.input("lines", files="/data") >> flow.step("words", words, parameters=values)

    assert flow.definition().entries["words"].parameters == values


def test_it_is_shown_as_its_graph() -> None:
    flow = census()

    assert str(flow) == drawing(flow.definition())
    assert flow._repr_svg_() == svg(flow.definition())
