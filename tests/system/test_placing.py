"""Real nodes whose placement is worked out aside: by two of them, and on when one of those is gone; by each."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from skuld_py import Client
from skuld_py.cluster.placement import place
from skuld_py.embedded.local import LocalCluster
from skuld_py.embedded.ports import held_port


def wait_for_owners(cluster: LocalCluster, index: int, timeout_s: float = 30) -> None:
    """Until a node says that everything is placed as it must be."""
    expected = list(place(cluster.addresses, 8, 3))
    deadline = time.monotonic() + timeout_s
    with Client([cluster.addresses[index]], timeout_s=30) as skuld:
        while (said := [each.owners for each in skuld.status().partitions]) != expected:
            assert time.monotonic() < deadline, said
            time.sleep(0.1)


@pytest.mark.slow
def test_nodes_that_are_placed_by_others_place_alike_and_do_without_them(tmp_path: Path) -> None:
    ports = [held_port(wait_for_owners, "127.0.0.1") for _ in range(4)]
    named = [option for port in ports[:2] for option in ("--scheduler", f"127.0.0.1:{port}")]
    with LocalCluster(tmp_path, 4, ports=ports, skew_ms=300, session_ms=2_000, node_options=named) as cluster:
        for index in range(4):
            wait_for_owners(cluster, index)

        cluster.kill_node(0)
        cluster.add_node()
        for index in range(1, 5):
            wait_for_owners(cluster, index)
        with Client(cluster.addresses[1:], timeout_s=30) as skuld:
            ids = skuld.enqueue_many("jobs", [b"one", b"two"])
            assert len(skuld.get_many(ids)) == 2


@pytest.mark.slow
def test_nodes_that_play_the_log_in_versions_are_placed_like_those_that_do_not(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 3, skew_ms=300, session_ms=2_000, node_options=("--versions",)) as cluster:
        for index in range(3):
            wait_for_owners(cluster, index)

        cluster.kill_node(0)
        cluster.add_node()
        for index in range(1, 4):
            wait_for_owners(cluster, index)
        cluster.start_node(0)
        wait_for_owners(cluster, 0)
        with Client(cluster.addresses, timeout_s=30) as skuld:
            ids = skuld.enqueue_many("jobs", [b"one", b"two"])
            assert len(skuld.get_many(ids)) == 2
