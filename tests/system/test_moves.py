"""Nodes come, go and lose their disks under load: data moves, votes follow, nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import pytest

from patience import in_time
from skuld_py import Client
from skuld_py.cluster.log.commands import SetReplicas
from skuld_py.cluster.log.play import Outcome
from skuld_py.embedded.local import LocalCluster
from skuld_py.model import messages as m
from skuld_py.runtime.zookeeper.clusters import read_parameters
from skuld_py.runtime.zookeeper.log_following import command, set_leaving
from system.conftest import LONG_SESSION_MS, SKEW_MS, a_cluster, await_leaders, claim_all, linger
from system.load import at_work, await_depth

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
TOUR = (0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0)
"""Each pair of five nodes stands next to each other once: from pair to pair one comes back and one dies."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster that a test may break, and that newcomers are soon given seats of: by itself it waits half a
    minute."""
    with a_cluster(tmp_path, "--timing-seat", "3s") as made:
        yield made


@pytest.fixture
def calm(tmp_path: Path) -> Iterator[LocalCluster]:
    """The like, in which no node dies that has anything."""
    with a_cluster(tmp_path, "--timing-seat", "3s", session_ms=LONG_SESSION_MS) as made:
        yield made


def await_status(client: Client, is_so: Callable[[m.Described], bool], timeout_s: float = 90) -> m.Described:
    """The first status of which it is so; each look waits at a node."""
    deadline = time.monotonic() + timeout_s
    while not is_so(status := client.status()):
        assert time.monotonic() < deadline, status
        linger(client, 0.2)
    return status


def has_moved(status: m.Described, nodes: int = 3) -> bool:
    """Whether everybody who should vote does, the first of them leads, and nobody else keeps anything."""
    return len(status.nodes) == nodes and not status.moves and all(
        row.leader == row.cohort[0] and sorted(row.cohort) == sorted(row.owners) for row in status.partitions)


def is_led_by(nodes: Sequence[str]) -> Callable[[m.Described], bool]:
    """Whether all partitions are led, by these."""
    return lambda status: all(row.leader in nodes for row in status.partitions)


def has_left(status: m.Described, gone: str) -> bool:
    """Whether a node keeps and leads nothing any more, and all that it had has arrived elsewhere."""
    return not status.moves and all(row.leader not in ("", gone) and gone not in row.cohort
                                    and sorted(row.cohort) == sorted(row.owners) for row in status.partitions)


def test_nodes_are_added_and_taken_out_under_load(calm: LocalCluster) -> None:
    cluster = calm
    with at_work(cluster.addresses[:3], workers=2) as (load, client):
        await_depth(client, lambda depth: depth.completed >= 500)
        before = {row.partition: row for row in await_status(client, has_moved).partitions}
        for count in (4, 5):
            cluster.add_node()
            status = await_status(client, partial(has_moved, nodes=count))
            owned = [node.owns for node in status.nodes]
            mean = sum(owned) / count
            assert all(0.8 * mean <= number <= 1.2 * mean for number in owned), owned
            for row in status.partitions:
                if sorted(row.owners) == sorted(before[row.partition].owners):
                    assert row.epoch == before[row.partition].epoch, f"{row} was led by {before[row.partition]}"
            before = {row.partition: row for row in status.partitions}
        for index in (4, 3):
            gone = cluster.addresses[index]
            set_leaving(cluster.zookeeper_hosts, cluster.name, gone, True)
            with Client(cluster.addresses[:1], timeout_s=20) as onlooker:
                await_status(onlooker, partial(has_left, gone=gone))
            cluster.kill_node(index)
        mark = len(load.acked)
        await_depth(client, lambda depth: len(load.acked) > mark + 500)


def test_a_wiped_node_fills_again_under_load(cluster: LocalCluster) -> None:
    with at_work(cluster.addresses[1:], workers=2) as (load, client):
        await_depth(client, lambda depth: depth.completed >= 500)
        cluster.kill_node(0)
        cluster.wipe_node(0)
        cluster.start_node(0)
        with Client(cluster.addresses[1:2], timeout_s=20) as onlooker:
            await_status(onlooker, lambda status: any(row.role == "suspect" for row in status.moves))
            await_status(onlooker, has_moved)
        mark = len(load.acked)
        await_depth(client, lambda depth: len(load.acked) > mark + 500)


def keep(cluster: LocalCluster, replicas: int) -> None:
    """Have the cluster keep so many copies."""
    parameters = read_parameters(cluster.zookeeper_hosts, cluster.name)
    assert command(cluster.zookeeper_hosts, parameters, SetReplicas(replicas)).outcome is Outcome.APPLIED


def has_voters(status: m.Described, replicas: int) -> bool:
    """Whether each partition has so many, where they are to be."""
    return has_moved(status) and all(len(row.cohort) == replicas for row in status.partitions)


def test_from_one_copy_to_three_and_back_under_load(tmp_path: Path) -> None:
    with (LocalCluster(tmp_path, nodes=1, partitions=4, replicas=1, skew_ms=SKEW_MS, session_ms=2_000,
                       node_options=("--timing-seat", "3s")) as cluster,
          at_work(cluster.addresses, enqueuers=1, workers=2) as (load, client)):
        await_depth(client, lambda depth: depth.completed >= 200)
        for _ in range(2):
            cluster.add_node()
        await_status(client, partial(has_voters, replicas=1))
        keep(cluster, 3)
        await_status(client, partial(has_voters, replicas=3))
        cluster.kill_node(2)
        await_status(client, is_led_by(cluster.addresses[:2]))
        mark = len(load.acked)
        await_depth(client, lambda depth: len(load.acked) > mark + 100)
        cluster.start_node(2)
        keep(cluster, 1)
        await_status(client, partial(has_voters, replicas=1))
        mark = len(load.acked)
        await_depth(client, lambda depth: len(load.acked) > mark + 100)


@pytest.mark.smoke
def test_a_single_node_leads_at_once(tmp_path: Path) -> None:
    places = (tmp_path / str(number) for number in count())

    def led() -> float:
        with (LocalCluster(next(places), nodes=1, partitions=8, replicas=1) as cluster,
              Client(cluster.addresses, timeout_s=30) as client):
            began = time.monotonic()
            await_status(client, is_led_by(cluster.addresses))
            return time.monotonic() - began
    in_time(2, led)


def test_five_nodes_serve_with_any_two_of_them_dead(tmp_path: Path) -> None:
    assert len({frozenset(dead) for dead in pairwise(TOUR)}) == 10
    with LocalCluster(tmp_path, nodes=5, partitions=4, replicas=5, skew_ms=SKEW_MS, session_ms=2_000) as cluster:
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
        cluster.kill_node(TOUR[0])
        for dead in pairwise(TOUR):
            cluster.kill_node(dead[1])
            living = [address for index, address in enumerate(cluster.addresses) if index not in dead]
            with Client(living, timeout_s=30) as client:
                await_status(client, is_led_by(living))
                made = client.enqueue_many("load", [b"x"] * 20)
                claims = claim_all(client, "load", 20, lease_s=300)
                assert sorted(claim.id for claim in claims) == sorted(made)
                client.complete_many(claims)
            cluster.start_node(dead[0])
