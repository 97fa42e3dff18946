"""Graphs are drawn: as text by examples, and so that every edge can be followed; as SVG that is well-formed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.graph import layers, rails
from skuld_py.workflow.graph.svg import escaped, svg
from skuld_py.workflow.graph.whole import whole
from skuld_py.workflow.graph.words import Standing
from workflow.definition_scenario import begun
from workflow.definitions import plain_definitions
from workflow.graph_scenario import Scenario, scenarios

SCENARIOS = [*scenarios(Path(__file__).with_name("scenarios") / "graphs.txt")]
NAMESPACE = "{http://www.w3.org/2000/svg}"
RIGHT, LEFT, UP, DOWN = (1, 0), (-1, 0), (0, -1), (0, 1)
LEADS = {"│": (UP, DOWN), "╎": (UP, DOWN), "─": (LEFT, RIGHT), "├": (UP, DOWN, RIGHT), "┤": (UP, DOWN, LEFT),
         "┼": (UP, DOWN, LEFT, RIGHT), "╰": (UP, RIGHT), "╯": (UP, LEFT), "┴": (UP, LEFT, RIGHT),
         "╭": (DOWN, RIGHT), "╮": (DOWN, LEFT), "┬": (DOWN, LEFT, RIGHT)}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_is_drawn_as_the_text_shows(scenario: Scenario) -> None:
    assert scenario.drawn() == scenario.expected
    assert followed(scenario.definition()) == {*scenario.definition().edges, *scenario.definition().own_draws}


def test_a_line_to_what_draws_from_a_step_says_when_it_does() -> None:
    definition = read({"id": "w", "edges": [["lines", "words"], ["met", "count"]], "catalog": {
        "lines": {"kind": "input", "files": "/data"}, "words": {"kind": "function", "function": "acme:words"},
        "met": {"kind": "input", "workflow": {"step": "words", "together": True}},
        "count": {"kind": "function", "function": "acme:count"}}})
    assert "<title>words → met\nonce words is finished</title>" in svg(definition)
    layout = layers.layout(whole(definition))
    assert [column[0] for column in layout.columns] == [("lines",), ("words",), ("met",), ("count",)]


def followed(definition: Definition) -> set[tuple[str, str]]:
    """The edges that a reader finds: from each step down the rails, and sideways where they branch."""
    drawn = rails.lines(definition)
    grid = {(x, y): sign for y, line in enumerate(drawn) for x, sign in enumerate(line.rails)}
    step_at = {(x, y): line.step for y, line in enumerate(drawn) if line.step
               for x, sign in enumerate(line.rails) if sign in rails.SYMBOLS.values()}
    found = set()
    for (x, y), step in step_at.items():
        ways = [((x, y + 1), DOWN)]
        while ways:
            at, going = ways.pop()
            sign = grid.get(at, " ")
            if at in step_at:
                found.add((step, step_at[at]))
            elif going == DOWN:
                ways += [((at[0] + to[0], at[1] + to[1]), to) for to in LEADS.get(sign, ()) if to != UP
                         and (to == DOWN or at[1] == y + 1)]
            elif sign in "│╎":  # it passes behind this rail
                ways.append(((at[0] + going[0], at[1]), going))
            else:
                ways += [((at[0] + to[0], at[1] + to[1]), to) for to in LEADS.get(sign, ()) if to in (DOWN, going)]
    return found


@given(plain_definitions())
def test_every_edge_can_be_followed_on_the_rails_and_no_other(plain: dict[str, Any]) -> None:
    definition = read(plain)

    assert followed(definition) == {*definition.edges}
    assert [line.step for line in rails.lines(definition) if line.step] == sorted(
        definition.order, key=layers.depths(definition).__getitem__)


@given(plain_definitions())
def test_places_do_not_overlap_and_edges_lead_to_the_right(plain: dict[str, Any]) -> None:
    definition = read(plain)
    made = layers.layout(definition)
    number = {place: at for at, column in enumerate(made.columns) for place in column}

    assert {place[0] for place in number if len(place) == 1} == {*definition.order}
    for column in made.columns:
        for above, below in pairwise(column):
            room = 1.0 if len(above) == len(below) == 1 else 0.4
            assert made.rows[below] - made.rows[above] >= room - 1e-6
    for (source, to), way in made.ways.items():
        assert (way[0], way[-1]) == ((source,), (to,))
        assert [number[place] for place in way] == [*range(number[source,], number[to,] + 1)]
    assert min(made.rows.values()) == 0


def test_lines_that_need_not_cross_do_not() -> None:
    plain = begun() | {"edges": [["lines", "words"], ["words", "a"], ["words", "b"], ["words", "c"], ["a", "z"],
                                 ["b", "y"], ["c", "x"], ["a", "count"]]}
    plain["catalog"] |= {name: {"kind": "function", "function": "acme:x"} for name in "abcxyz"}
    made = layers.layout(read(plain))
    left, right = ([place[0] for place in column] for column in made.columns[2:])

    rows = [(left.index(source), right.index(to)) for source, to in (("a", "z"), ("b", "y"), ("c", "x"))]
    assert [to for _, to in sorted(rows)] == sorted(to for _, to in rows)


def test_with_very_many_long_edges_these_go_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "PASSED_MAX", 0)
    made = layers.layout(read(begun() | {"edges": [["lines", "words", "count"], ["lines", "count"]]}))

    assert made.ways["lines", "count"] == (("lines",), ("count",))


@given(plain_definitions(), st.dictionaries(st.sampled_from(["s0", "s1"]), st.builds(
    Standing, st.text(max_size=8) | st.sampled_from(["running", "done", "failed"]),
    st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2))))
def test_a_picture_is_well_formed_and_whole(plain: dict[str, Any], standings: dict[str, Standing]) -> None:
    definition = read(plain)
    picture = ElementTree.fromstring(svg(definition, standings))
    shown = [text.text for text in picture.iter(f"{NAMESPACE}text") if text.get("font-weight")]
    ways = [way for way in picture.iter(f"{NAMESPACE}path") if way.get("marker-end")]

    assert shown == [*definition.order]
    assert len(ways) == len(definition.edges)
    assert svg(definition, standings) == svg(definition, standings)


@given(st.text())
def test_no_text_is_markup(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')

    assert len(element) == 0 and element.tag == "a"
    assert "<" not in escaped(text) and '"' not in escaped(text)


def test_a_picture_says_what_there_is_to_a_step_and_an_edge() -> None:
    plain = begun() | {"conditions": [{"from": "words", "to": "count", "when": ["acme:is_<word>", "n"],
                                       "parameters": {"n": 1}, "transform": "acme:t", "exclude": "key"}]}
    plain["catalog"]["words"] |= {"doc": "Splits & counts.", "least": 2, "most": 2, "batch": 7, "tags": ["gpu"],
                                  "percentage": 30, "flux": "kill"}
    picture = svg(read(plain), {"words": Standing("running", {"waiting": 3, "dead": 1})})
    drawn = rails.drawing(read(plain), {"words": Standing("running", {"waiting": 3, "dead": 1})})

    assert "Splits &amp; counts." in picture and "acme:is_&lt;word&gt;(n)" in picture
    assert 'stroke="#2f6fde"' in picture and "under conditions" in picture
    assert "2 slots, 30%, flux kill, batches of 7, gpu  running, 3 waiting, 1 dead" in drawn
    assert '  words → count  when acme:is_<word>(n); {"n": 1}; as acme:t; without key' in drawn
    assert "╎ under conditions" in drawn
    assert rails.drawing(read(plain), is_ascii=True).isascii()


def test_what_inputs_draw_from_is_said() -> None:
    def said(entry: dict[str, Any]) -> str:
        plain = begun()
        plain["catalog"]["lines"] = {"kind": "input", **entry}
        return rails.drawing(read(plain)).splitlines()[0].split("input")[1].strip()

    assert said({"files": ["/a", "/b", "/c"]}) == "/a and 2 more"
    assert said({"queue": "prices"}) == "queue prices"
    assert said({"function": "acme:days"}) == "acme:days"
    assert said({"offsets": "acme:topic"}) == "offsets of acme:topic"
    assert said({"workflow": {"id": "old", "step": "words"}}) == "workflow old, step words"
    assert said({"jdbc": {"url": "jdbc:h2:x", "table": "t", "partitions": 3, "column": "c", "upper": 9}}) == (
        "t of jdbc:h2:x, 3 parts")


def test_lifecycles_and_the_other_conditions_are_said() -> None:
    drawn = rails.drawing(read(begun() | {
        "conditions": [{"from": "words", "action": "retry", "when": ["not", ["or", "acme:a", "acme:b"]]},
                       {"from": "all", "to": "none", "exception": True}],
        "lifecycles": [{"step": "words", "before_start": "acme:begin", "on_exception": "acme:judge"},
                       {"on_exception": "kill"}]}))

    assert "  words → again  when not (acme:a or acme:b)\n  all → none     on exception\n" in drawn
    assert "  words  before_start acme:begin; on_exception acme:judge\n  all    on_exception kill\n" in drawn
    assert "under conditions" not in drawn
