"""The fault runs run: one of them, without root, on this machine's own loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import scenarios
from faults.world import Scenario, World

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_a_killed_leader_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    scenario = Scenario("one-kill", "", scenarios.one_kill)
    judgement = World(scenario, tmp_path, 1, is_enclosed=False, say=said.append).play()

    assert not judgement.violated, (judgement.violated, said)
    assert not judgement.vacuous, (judgement.vacuous, said)
    assert judgement.acks_in_faults and judgement.elections_in_faults
