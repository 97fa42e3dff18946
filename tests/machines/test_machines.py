"""A cluster over machines: tasks from the desk to a worker and a gateway, each on a machine of its own; and a town
that lives on while cables are pulled, machines stand still, a disk is full and one is replaced by an empty one.

``SKULD_TEST_MACHINES_S``: for how many seconds faults go on, one round at least.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from faults.catalogue import BY_NAME
from faults.run import DISKS, run
from machines.ground import lacks
from machines.town import Shape, town

MISSING = lacks((*DISKS, "openssl"))
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.in_turn("machines"), pytest.mark.timeout(3_600),
              pytest.mark.skipif(bool(MISSING), reason=f"NOTHING WAS TESTED. This machine lacks: {MISSING}")]
TESTS = Path(__file__).resolve().parents[1]


def play(name: str, place: Path, seconds: float = 0.0) -> None:
    """Play a scenario, and tell all that happens."""
    result = run(BY_NAME[name], place, print, seconds=seconds)
    print(*result.story, sep="\n")
    assert result.word == "ok"


def test_a_town_loses_nothing_and_grants_nothing_twice_round_after_round(tmp_path: Path) -> None:
    play("rounds", tmp_path, float(os.environ.get("SKULD_TEST_MACHINES_S", "0")))


def test_machines_find_each_other_by_their_ipv6_addresses(tmp_path: Path) -> None:
    play("ipv6", tmp_path)


def test_a_task_goes_from_desk_to_worker_and_gateway(tmp_path: Path) -> None:
    """Each on a machine of its own; the nodes' machines are those that the client is told of."""
    with town(tmp_path, Shape(nodes=5)) as made:
        url, token, certificate = made.start_gateway()
        made.start_worker("machines.app", str(TESTS.parent), str(TESTS))
        said = made.at_desk(
            sys.executable, "-m", "machines.desk", made.addresses[0], url, token, str(certificate), key="worker",
            timeout_s=660.0, search_path=(str(TESTS.parent), str(TESTS)))
        assert json.loads(said) == {"result": 500500, "state": "completed", "queue": "sums"}
