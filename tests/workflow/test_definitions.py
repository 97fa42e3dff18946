"""Definitions: what is wrong with them, told at once; and one text for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from skuld_py.workflow.definition.definition import Definition
from workflow.definition_scenario import Scenario, scenarios

SCENARIOS = [*scenarios(Path(__file__).with_name("scenarios") / "definitions.txt")]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_is_told_what_is_wrong(scenario: Scenario) -> None:
    made = scenario.made()

    assert (made if isinstance(made, list) else []) == scenario.expected
    assert isinstance(made, Definition) is not bool(scenario.expected)
