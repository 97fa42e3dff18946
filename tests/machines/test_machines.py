"""A cluster over machines: tasks from enqueue to completion while cables are pulled, machines stand still, a disk
is full and one is replaced by an empty one. Nothing acknowledged is lost, and nothing is held twice.

``SKULD_TEST_MACHINES_S``: for how many seconds faults go on, one round at least.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from machines.machine import why_not
from machines.town import NODES, Town, town

REASON = why_not()
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1_800),
              pytest.mark.skipif(bool(REASON), reason=f"NOTHING WAS TESTED: {REASON}")]
FAULT_S = 8.0
TESTS = Path(__file__).resolve().parents[1]


@contextmanager
def at_work(made: Town) -> Iterator[None]:
    """Clients at work on their machine; judged at the end."""
    environment = {"SKULD_CLIENT_KEY": str(made.key("load")), "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    client = made.machines["client"].spawn([sys.executable, "-m", "machines.client", *made.addresses],
                                           made.log("client"), environment=environment, stdin=subprocess.PIPE)
    made.await_word("client", "at work")
    yield
    made.say("all is healed; draining")
    assert client.stdin is not None
    client.stdin.close()
    assert client.wait(300) == 0, made.log("client").read_text()[-6_000:]
    judged = made.lines()[-1]
    made.say(f"judged: {judged['acked']} acknowledged, none lost; {judged['held']} claims, none held twice;"
             f" {judged['errors']} calls uncertain")
    assert judged["what"] == "judged" and judged["acked"] > 100


def hold(seconds: float) -> None:
    """Let a fault last."""
    time.sleep(seconds)


def cable_pulled(made: Town, node: str) -> None:
    at = time.monotonic()
    made.machines[node].cut()
    took = made.await_leaders(at, lambda leaders: made.name(node) not in leaders)
    made.say(f"{node}'s cable is pulled: others lead after {took:.1f} s")
    hold(FAULT_S)
    made.machines[node].mend()
    back(made, node, time.monotonic(), "is plugged in")


def stands_still(made: Town, node: str) -> None:
    at = time.monotonic()
    made.machines[node].freeze()
    took = made.await_leaders(at, lambda leaders: made.name(node) not in leaders)
    made.say(f"{node} stands still: others lead after {took:.1f} s")
    hold(FAULT_S)
    made.machines[node].thaw()
    back(made, node, time.monotonic(), "goes on")


def disk_full(made: Town, node: str) -> None:
    at = time.monotonic()
    made.disk.fill()
    took = made.await_leaders(at, lambda leaders: made.name(node) not in leaders)
    process = made.machines[node].running[-1]
    assert process.wait(60) != 0, "it ends, for what it cannot write it cannot promise"
    assert "the node ends: the store in" in made.log(node).read_text()
    made.say(f"{node}'s disk is full: it has ended, and others lead after {took:.1f} s")
    made.disk.free()
    restart(made, node, "has room")


def replaced(made: Town, node: str) -> None:
    at = time.monotonic()
    made.machines[node].lose_power()
    took = made.await_leaders(at, lambda leaders: made.name(node) not in leaders)
    made.say(f"{node} loses power: others lead after {took:.1f} s")
    shutil.rmtree(made.data(node))
    restart(made, node, "is replaced by an empty one")


def registry_cut(made: Town, server: str) -> None:
    made.machines[server].cut()
    made.say(f"{server}'s cable is pulled")
    hold(FAULT_S)
    made.machines[server].mend()
    told = [line for line in made.lines() if line["what"] == "leaders"]
    assert all(told[-1]["leaders"]), "two servers of three are enough"
    made.say(f"{server} is plugged in")


def restart(made: Town, node: str, what: str) -> None:
    since, at = made.log(node).stat().st_size, time.monotonic()
    made.start_node(node)
    made.await_word(node, "is ready", since)
    back(made, node, at, what)


def back(made: Town, node: str, since: float, what: str) -> None:
    """It leads again what is its by placement."""
    took = made.await_leaders(since, lambda leaders: made.name(node) in leaders, 90.0)
    made.say(f"{node} {what}: it leads again after {took:.1f} s")


def test_a_cluster_over_machines_loses_nothing_and_grants_nothing_twice(tmp_path: Path) -> None:
    until = time.monotonic() + float(os.environ.get("SKULD_TEST_MACHINES_S", "0"))
    with town(tmp_path) as made, at_work(made):
        leading = [node for node in NODES if node != "n4"]
        for number in range(1_000):
            cable_pulled(made, leading[number % 4])
            stands_still(made, leading[(number + 1) % 4])
            disk_full(made, "n4")
            replaced(made, leading[(number + 2) % 4])
            registry_cut(made, f"zk{number % 3 + 1}")
            if time.monotonic() >= until:
                break


def test_a_task_goes_from_desk_to_worker_and_gateway(tmp_path: Path) -> None:
    """Each on a machine of its own; the nodes' machines are those that the client is told of."""
    with town(tmp_path) as made:
        url, token, certificate = made.start_gateway()
        made.start_worker("machines.app", str(TESTS.parent), str(TESTS))
        said = made.at_desk(
            sys.executable, "-m", "machines.desk", made.address("n1"), url, token, str(certificate), key="worker",
            timeout_s=180.0, search_path=(str(TESTS.parent), str(TESTS)))
        assert json.loads(said) == {"result": "500500", "state": "completed", "queue": "sums"}


def test_machines_find_each_other_by_their_ipv6_addresses(tmp_path: Path) -> None:
    with town(tmp_path, ipv6=True) as made, at_work(made):
        replaced(made, "n1")
