"""The cluster as a document: the same judgement as on the command line, and every field documented."""

from __future__ import annotations

import pytest

from cli.test_verify import STATES
from skuld_py.cli.situation import document
from skuld_py.verbs.attention import Facts
from skuld_py.verbs.situations import Status, status_of

NOW_MS = 5_000_000_000_000


@pytest.mark.parametrize("state", STATES)
def test_its_level_is_that_of_verify_and_each_of_its_fields_is_said(state: str) -> None:
    situation, level, service, _ = STATES[state]
    greeted = situation.greeted

    told = status_of(Facts(greeted.cluster, greeted.replicas, greeted.skew_ms, situation.described,
                           situation.doubt, NOW_MS, situation.silent, situation.untold))

    assert (told["level"], told["service"]) == (("ok", "warning", "critical", "unknown")[level], service)
    assert told.keys() == Status.__annotations__.keys()
    shown = document(situation)
    assert [shown["level"], shown["service"], *shown["held"]] == [told["level"], service, *told["held"]]
