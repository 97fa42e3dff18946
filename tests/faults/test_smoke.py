"""The fault runs run: the shortest of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.catalogue import SHORTEST
from faults.run import run
from machines.ground import lacks

MISSING = lacks()
pytestmark = [pytest.mark.cluster, pytest.mark.slow,
              pytest.mark.skipif(bool(MISSING), reason=f"NOTHING WAS TESTED. This machine lacks: {MISSING}")]


PLAYED_MAX = 3
"""On a machine that stands still for seconds a run may have tested nothing, and says so: it is played again."""


def test_a_killed_leader_loses_nothing(tmp_path: Path) -> None:
    for _ in range(PLAYED_MAX):
        said: list[str] = []
        result = run(SHORTEST, tmp_path, said.append)
        if result.word != "VACUOUS":
            break

    assert result.word == "ok", [*result.story, *said]
    assert result.verdict["acks_in_faults"] and result.verdict["elections_in_faults"]
