"""Where values go, and what is called around the work: by texts, and by what holds of any conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.workflow.definition.definition import Moment
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.routing.hooks import hooks
from skuld_py.workflow.routing.passage import WORDS_CHARS_MAX, Failure, Outcome, Verdict
from skuld_py.workflow.routing.routes import Router, route
from workflow.definitions import plain_definitions
from workflow.routing_scenario import Scenario, scenarios

SCENARIOS = [*scenarios(Path(__file__).with_name("scenarios") / "routing.txt")]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_is_routed_as_it_says(scenario: Scenario) -> None:
    assert scenario.told() == scenario.claims


@given(plain_definitions(), st.data())
def test_values_go_along_edges_once_and_in_order(plain: dict[str, Any], data: st.DataObject) -> None:
    definition = read(plain)
    step = data.draw(st.sampled_from([name for name in definition.order
                                      if definition.entries[name].kind is not Kind.INPUT]))
    answers = data.draw(st.dictionaries(st.integers(0, 3), st.booleans(), min_size=4))
    values = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))

    def resolve(name: str) -> Any:
        return lambda value, **_: answers[value]

    router = Router(definition, step, resolve)
    routed = router.route(Outcome("given", values))
    apart = [router.route(Outcome("given", (value,))).emitted for value in values]

    assert routed.verdict is Verdict.EMIT
    assert routed == route(definition, step, Outcome("given", values), resolve)
    assert routed.emitted == tuple(pair for pairs in apart for pair in pairs)
    for pairs in apart:
        assert [to for to, _ in pairs] == sorted({to for to, _ in pairs})
        assert {to for to, _ in pairs} <= {*definition.children[step]}


@given(plain_definitions())
def test_each_function_of_a_lifecycle_has_its_moment(plain: dict[str, Any]) -> None:
    definition = read(plain)
    for step in definition.order:
        named = hooks(definition, step)
        about = [each for each in definition.lifecycles if each.step in ("all", step)]
        assert [*named] == [*Moment]
        assert sum(map(len, named.values())) == sum(len(each.calls) for each in about)


def test_words_of_an_exception_are_bounded() -> None:
    failure = Failure.of(ValueError("x" * 10_000))

    assert failure == Failure("ValueError", "x" * WORDS_CHARS_MAX)


def test_a_name_that_nobody_knows_is_told_as_it_is() -> None:
    definition = read(SCENARIOS[0].plain | {"conditions": [{"from": "s", "to": "a", "when": "unknown"}]})

    def resolve(name: str) -> Any:
        raise LookupError(name)

    with pytest.raises(LookupError, match="unknown"):
        route(definition, "s", Outcome(1, (1,)), resolve)
