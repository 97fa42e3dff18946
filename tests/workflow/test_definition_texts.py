"""One text for each definition; and any bytes give a definition, or what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.faults import FAULTS_MAX, BadWorkflow
from skuld_py.workflow.definition.names import STEPS_MAX, TEXT_BYTES_MAX
from skuld_py.workflow.definition.reading import parse, read
from skuld_py.workflow.definition.writing import digest_of, plain_of, text_of
from workflow.definition_scenario import begun
from workflow.definitions import JSON, plain_definitions


@given(plain_definitions())
def test_a_definition_is_read_again_from_its_text(plain: dict[str, Any]) -> None:
    made = read(plain)
    text = text_of(made)

    assert parse(text) == made
    assert text_of(parse(text)) == text_of(read(plain_of(made))) == text


@given(plain_definitions(), st.randoms(use_true_random=False))
def test_the_order_in_which_it_is_written_is_no_part_of_it(plain: dict[str, Any], random: Any) -> None:
    made = read(plain)
    steps = list(plain["catalog"])
    random.shuffle(steps)
    random.shuffle(plain["edges"])

    catalog = {step: plain["catalog"][step] for step in steps}
    assert digest_of(read(plain | {"catalog": catalog})) == digest_of(made)


@given(plain_definitions())
def test_the_graph_is_what_the_edges_say(plain: dict[str, Any]) -> None:
    made = read(plain)
    place = {step: at for at, step in enumerate(made.order)}

    assert sorted(place) == sorted(plain["catalog"])
    assert all(place[source] < place[to] for source, to in made.edges)
    for step in made.order:
        assert {(step, to) for to in made.children[step]} == {edge for edge in made.edges if edge[0] == step}
        assert [*made.parents[step]] == [source for source, to in made.edges if to == step]
        assert bool(made.parents[step]) is (made.entries[step].kind is not Kind.INPUT)
    assert {step for step in made.order if not made.children[step]} == {*made.leaves}
    assert [step.name for step in made.demand.steps] == [*made.order]


@given(plain_definitions(), st.data())
def test_whatever_stands_under_a_key_it_is_read_or_refused(plain: dict[str, Any], data: st.DataObject) -> None:
    at: Any = plain
    for _ in range(data.draw(st.integers(1, 4))):
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key]:
            break
        if data.draw(st.booleans()):
            at = at[key]
    else:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[key] = data.draw(JSON)
    try:
        made = read(plain)
    except BadWorkflow as error:
        assert error.faults
        return
    assert parse(text_of(made)) == made


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(BadWorkflow):
        parse(data)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BadWorkflow, match="is no JSON"):
        parse(b"[" * 200_000)


@pytest.mark.parametrize(("text", "words"), [
    ('{"id": "a", "id": "b"}', "the key 'id' stands twice"), ('{"id": NaN}', "NaN is no number"),
    ("{" + " " * TEXT_BYTES_MAX + "}", "has 262146 bytes"), ("{", "is no JSON"), ("9" * 5000, "is no JSON")])
def test_a_text_that_is_no_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadWorkflow, match=words):
        parse(text)


def test_plain_data_that_are_too_large_as_text_are_refused() -> None:
    with pytest.raises(BadWorkflow, match="bytes as text"):
        read(begun() | {"metadata": {"x": "é" * (TEXT_BYTES_MAX // 2)}})


def test_steps_are_bounded() -> None:
    plain = begun()
    for number in range(STEPS_MAX - 3):
        plain["catalog"][f"s{number}"] = {"kind": "function", "function": "acme:x"}
        plain["edges"].append(["lines", f"s{number}"])
    assert len(read(plain).order) == STEPS_MAX
    plain["catalog"]["one-more"] = {"kind": "function", "function": "acme:x"}

    with pytest.raises(BadWorkflow, match=r"catalog: has 257 steps; 256 are the most"):
        read(plain)


def test_edges_conditions_and_lifecycles_are_bounded() -> None:
    with pytest.raises(BadWorkflow, match="edges: there are more than 4096"):
        names = [f"s{number}" for number in range(100)]
        read(begun() | {"catalog": {name: {"kind": "function", "function": "acme:x"} for name in names},
                        "edges": [[a, b] for a in names for b in names if a != b]})
    for key, most in (("conditions", 1024), ("lifecycles", 256)):
        with pytest.raises(BadWorkflow, match=f"{key}: there are {most + 1}; write a list of at most {most}"):
            read(begun() | {key: [{}] * (most + 1)})


def test_an_error_is_bounded_whatever_is_wrong() -> None:
    plain = begun()
    plain["catalog"]["words"] |= {f"key{number}" + "x" * 1000: 1 for number in range(1000)}
    with pytest.raises(BadWorkflow) as caught:
        read(plain)

    assert len(caught.value.faults) == FAULTS_MAX and caught.value.left_out == 900
    assert len(caught.value.message) < 50_000
    assert "the workflow has 1000 errors" in caught.value.message and "and 900 more" in caught.value.message


def test_parameters_and_predicates_are_not_nested_for_ever() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(BadWorkflow, match=r"metadata: .* is nested deeper than 32"):
        read(begun() | {"metadata": {"x": deep}})
    tree: Any = "acme:a"
    for _ in range(40):
        tree = ["not", tree]
    with pytest.raises(BadWorkflow, match=r"conditions\[0\].when: is nested deeper than 32"):
        read(begun() | {"conditions": [{"from": "words", "to": "count", "when": tree}]})


def test_what_a_later_release_takes_no_more_is_read_where_it_is_stored() -> None:
    plain = begun()
    plain["catalog"]["lines"] |= {"most": 8, "max_pending": 4}
    with pytest.raises(BadWorkflow):
        read(plain)
    text = json.dumps(plain)
    stored = parse(text, is_stored=True)
    assert (stored.entries["lines"].most, stored.entries["lines"].max_pending) == (8, 4)
    assert digest_of(parse(text_of(stored), is_stored=True)) == digest_of(stored)


def test_what_is_as_it_is_anyway_is_not_written() -> None:
    plain = begun()
    plain["catalog"]["words"] |= {"least": 1, "attempts": 5, "flux": "continue", "parameters": {},
                                  "timeout_s": 2.5}
    plain["catalog"]["lines"] |= {"max_pending": 10_000, "root_timeout_s": 60}
    made = read(plain | {"percentage": 0, "conditions": [], "spreading": "balanced"})

    assert plain_of(made)["catalog"]["words"] == begun()["catalog"]["words"] | {"timeout_s": 2.5}
    assert plain_of(made) | {"catalog": {}} == begun() | {"catalog": {}}
    assert digest_of(made) != digest_of(read(begun()))
    assert digest_of(read(begun())) == "695f977d4bbccf3d95108f32f87edec83b9d570b582bf081b3bcf89c00573920"
