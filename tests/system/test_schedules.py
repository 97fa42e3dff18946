"""A schedule on real nodes: the leaders of its home are killed in turn; no tick is missed, none is there twice."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from skuld_py import Client, Uncertain
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import time_of
from skuld_py.model.schedule import home_of
from system.conftest import await_leaders, linger

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
EVERY_S = 0.5
QUEUE = "beats"


def leader(client: Client) -> str:
    """Of the schedule's home partition. A node that has just started may not know it yet."""
    partitions = client.status().partitions
    while not (name := partitions[home_of("beat", len(partitions))].leader):
        await_leaders(client)
        partitions = client.status().partitions
    return name


def await_another(client: Client, former: str, timeout_s: float = 60) -> None:
    """Return when a node leads the schedule's home that is not the one that did."""
    deadline = time.monotonic() + timeout_s
    while leader(client) == former:
        assert time.monotonic() < deadline, f"{former} still leads"
        linger(client)


def take_ticks(client: Client, seen: list[int], count: int, timeout_s: float = 60) -> None:
    """Work on ``count`` more of them as they come."""
    deadline = time.monotonic() + timeout_s
    wanted = len(seen) + count
    while len(seen) < wanted:
        assert time.monotonic() < deadline, seen
        try:
            claims = client.claim(QUEUE, n=20, lease_s=30, wait_s=2)
        except Uncertain:  # the leader that was killed may have claimed; what it did is claimed again in time
            continue
        client.complete_many(claims)
        seen += [time_of(claim.id) for claim in claims]


def test_ticks_go_on_when_the_leader_of_their_home_is_killed(cluster: LocalCluster) -> None:
    seen: list[int] = []
    with Client(cluster.addresses, timeout_s=30) as client:
        client.put_schedule("beat", QUEUE, b"x", every_s=EVERY_S, catch_up=100)
        take_ticks(client, seen, 3)
        leaders = []
        for _ in range(2):
            leaders.append(leader(client))
            index = cluster.addresses.index(leaders[-1])
            cluster.kill_node(index)
            await_another(client, leaders[-1])
            take_ticks(client, seen, 6)
            cluster.start_node(index)
        at = ["--nodes", ",".join(cluster.addresses), "--json"]
        listed = json.loads(CliRunner().invoke(main, ["schedule", "list", *at]).stdout)["schedules"]
        assert [(row["name"], row["every_s"], row["catch_up"]) for row in listed] == [("beat", EVERY_S, 100)]
        assert CliRunner().invoke(main, ["schedule", "remove", "beat", *at]).exit_code == 0
        await_leaders(client)
        tasks = list(client.list(QUEUE))

    ticks = [time_of(task.id) for task in tasks]
    step_ms = round(EVERY_S * 1_000)
    assert ticks == list(range(ticks[0], ticks[-1] + 1, step_ms)), "each tick is one task, and none is missed"
    assert ticks[0] % step_ms == 0 and len(ticks) >= 15 and {task.payload for task in tasks} == {b"x"}
    assert len(set(leaders)) == 2
