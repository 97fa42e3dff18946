"""Nodes that stop cleanly: others lead first, and who came for a moment takes nothing along, its disk included."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from patience import in_time
from skuld_py import Client
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.node.node import NO_SESSION
from system.conftest import SKEW_MS, await_leaders, linger
from system.test_moves import await_status, has_left

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
STAY_S = 12.0
TASKS = 80


def skuld(cluster: LocalCluster, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--zookeeper", cluster.zookeeper_hosts], prog_name="skuld",
                              env={"SKULD_CLUSTER": cluster.name})


def say(words: str) -> None:
    sys.stdout.write(f"\n{words}\n")


class Pulse:
    """Clients that claim and complete without a pause; when claims came to any of them."""

    def __init__(self, addresses: list[str], clients: int = 3) -> None:
        self.granted_s: list[float] = []
        self._addresses = addresses
        self._change = threading.Condition()
        self._is_over = False
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]

    def _run(self) -> None:
        with Client(self._addresses, timeout_s=2) as client:
            while not self._is_over:
                with suppress(SkuldError):
                    claims = client.claim("gap", n=1, lease_s=30, wait_s=1)
                    with self._change:
                        self.granted_s += [time.monotonic()] * len(claims)
                        self._change.notify_all()
                    client.complete_many(claims)

    def __enter__(self) -> Pulse:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()

    def await_more(self, count: int = 20, timeout_s: float = 30) -> None:
        with self._change:
            mark = len(self.granted_s)
            assert self._change.wait_for(lambda: len(self.granted_s) >= mark + count, timeout_s), mark

    def longest_since(self, since_s: float) -> float:
        times = [since_s, *(each for each in self.granted_s if each >= since_s)]
        return max(later - earlier for earlier, later in pairwise(times))


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three nodes and one partition: while it has no leader, nothing is granted."""
    with LocalCluster(tmp_path, nodes=3, partitions=1, replicas=3, skew_ms=SKEW_MS, session_ms=2_000) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


def gap(cluster: LocalCluster, end: Callable[[int], None]) -> tuple[float, float]:
    """For how long no claim was granted over the end of the node that leads most, and how long it took to end."""
    with Client(cluster.addresses, timeout_s=20) as client:
        # By the partitions, not by what nodes have told of themselves, which may be older; and by this one answer:
        # where ZooKeeper is slow for seconds, the next one may find a partition without a leader.
        status = await_leaders(client)
        (leader, _), = Counter(row.leader for row in status.partitions).most_common(1)
        index = cluster.addresses.index(leader)
        others = [address for at, address in enumerate(cluster.addresses) if at != index]
        client.enqueue_many("gap", [b"x"] * 1_000)
        client.enqueue_many("gap", [b"x"] * 1_000)
    with Pulse(others) as pulse:
        pulse.await_more()
        begun_s = time.monotonic()
        end(index)
        ended_s = time.monotonic()
        pulse.await_more(100)
        with Client(others, timeout_s=20) as client:
            await_leaders(client)
        pulse.await_more()
        longest_s = pulse.longest_since(begun_s)
    cluster.start_node(index)
    return longest_s, ended_s - begun_s


def leaderless_s(cluster: LocalCluster, end: Callable[[int], None]) -> float:
    """How long after the end of a node begins until others lead all partitions."""
    with Client(cluster.addresses[1:], timeout_s=20) as client:
        begun_s = time.monotonic()
        worker = threading.Thread(target=end, args=(0,))
        worker.start()
        await_status(client, lambda status: all(row.leader not in ("", cluster.addresses[0])
                                                for row in status.partitions))
        led_s = time.monotonic() - begun_s
        worker.join()
    cluster.start_node(0)
    return led_s


def at_rest(cluster: LocalCluster) -> None:
    """What is led by its first owner again, and votes with all, changes hands by a stop alone."""
    with Client(cluster.addresses, timeout_s=20) as client:
        await_status(client, lambda status: all(row.leader == row.owners[0] and {*row.cohort} == {*row.owners}
                                                for row in status.partitions))


def test_a_clean_stop_hands_leaderships_over(narrow: LocalCluster) -> None:
    killed, _ = gap(narrow, narrow.kill_node)
    def stop() -> float:
        at_rest(narrow)
        stopped, took_s = gap(narrow, narrow.stop_node)
        say(f"no claim was granted for {1000 * stopped:.0f} ms over a clean stop, which took"
            f" {1000 * took_s:.0f} ms; {1000 * killed:.0f} ms over a kill")
        return max(stopped, took_s / 4)

    assert killed > 1
    in_time(1, stop)
    logs = "".join(narrow.node_log(index).read_text() for index in range(3))
    begins = "stops, and has others lead what it leads; partitions: 1\n"
    ends = [stop.partition("has stopped: others lead 1 of 1, and it left the log, after ")
            for stop in logs.split(begins)[1:]]
    assert ends and all(word for _, word, _ in ends)
    assert not any(NO_SESSION in stopping for stopping, _, _ in ends), "it has ended the session itself"


def test_after_a_clean_stop_all_partitions_are_led_sooner_than_after_a_kill(cluster: LocalCluster) -> None:
    with Client(cluster.addresses, timeout_s=20) as client:
        await_status(client, lambda status: all(node.leads for node in status.nodes))
    killed = leaderless_s(cluster, cluster.kill_node)

    def stop() -> float:
        with Client(cluster.addresses, timeout_s=20) as client:
            await_status(client, lambda status: all(node.leads for node in status.nodes))
        stopped = leaderless_s(cluster, cluster.stop_node)
        say(f"all partitions were led by others {1000 * stopped:.0f} ms after a clean stop began,"
            f" {1000 * killed:.0f} ms after a kill")
        return stopped
    in_time(killed, stop)


def test_two_nodes_that_visit_take_nobody_s_majority_with_them(cluster: LocalCluster) -> None:
    residents = cluster.addresses[:3]
    with Client(residents, timeout_s=20) as client:
        made = client.enqueue_many("visit", [b"x"] * TASKS)
        visitors = [cluster.add_node(), cluster.add_node()]
        until_s = time.monotonic() + STAY_S
        while time.monotonic() < until_s:
            linger(client, 0.5)
        for index in visitors:
            cluster.stop_node(index)
        for index in visitors:
            cluster.wipe_node(index)
        status = client.status()
        gone = [cluster.addresses[index] for index in visitors]
        assert not any(name in row.cohort for row in status.partitions for name in gone), status.partitions
        await_leaders(client)
        assert {task.id for task in client.get_many(made)} == {*made}
        claims = client.claim("visit", n=TASKS, lease_s=30, wait_s=5)
        while len(claims) < TASKS:
            claims += client.claim("visit", n=TASKS, lease_s=30, wait_s=5)
        assert {claim.id for claim in claims} == {*made}
        client.complete_many(claims)
        more = client.enqueue_many("visit", [b"y"] * TASKS)
        assert {task.id for task in client.get_many(more)} == {*more}
    for name in gone:
        assert skuld(cluster, "cluster", "forget", cluster.name, name).exit_code == 0


def see_each(addresses: list[str]) -> Iterator[m.Described]:
    """What each node says of all."""
    for address in addresses:
        with Client([address], timeout_s=20) as client:
            yield client.status()


def test_a_node_is_drained_and_then_nothing_depends_on_it(calm: LocalCluster) -> None:
    cluster = calm
    cluster.add_node()
    with Client(cluster.addresses[1:], timeout_s=20) as client:
        made = client.enqueue_many("drain", [b"x"] * TASKS)
        drained = skuld(cluster, "drain", cluster.addresses[0], "--out", "--limit", "80s", "--json")
        assert drained.exit_code == 0, drained.output
        said = [json.loads(line) for line in drained.output.splitlines()]
        assert said[-1] == {"node": cluster.addresses[0], "is_drained": True}
        assert said[0]["owns"] + said[0]["votes"] > 0, said
        assert any(has_left(status, cluster.addresses[0]) for status in see_each(cluster.addresses[1:])), (
            "so said one of them; others may hear of the last step a moment later")
        cluster.stop_node(0)
        cluster.wipe_node(0)
        await_leaders(client)
        assert {task.id for task in client.get_many(made)} == {*made}


def test_a_time_limit_says_what_is_left(cluster: LocalCluster) -> None:
    cluster.add_node()
    late = skuld(cluster, "drain", cluster.addresses[0], "--out", "--limit", "0s")

    assert late.exit_code == 1
    assert "is not drained yet" in late.stderr and "do not stop it" in late.stderr


@pytest.fixture
def crippled(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three nodes, of which two are dead."""
    with LocalCluster(tmp_path, nodes=4, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=2_000) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        made.kill_node(2)
        made.kill_node(3)
        yield made


def test_a_node_whose_vote_is_needed_is_not_forgotten(crippled: LocalCluster) -> None:
    gone = crippled.addresses[2]
    with Client(crippled.addresses[:2], timeout_s=20) as client:
        await_status(client, lambda status: sum(node.is_live for node in status.nodes) == 2)
    refused = skuld(crippled, "cluster", "forget", crippled.name, gone)
    assert refused.exit_code == 1 and "[votes_needed]" in refused.stderr, refused.output
    assert "cannot elect a leader without" in refused.stderr and gone in refused.stderr
    status = CliRunner().invoke(main, ["status", "--nodes", crippled.addresses[0]], prog_name="skuld")
    assert "cannot elect a leader: " in status.output, status.output

    forced = skuld(crippled, "cluster", "forget", crippled.name, gone, "--force")
    assert forced.exit_code == 0 and "LOST: " in forced.output, forced.output
