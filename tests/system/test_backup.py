"""Nodes are copied while they serve, and an operator goes back to the copies of one node, and of a cluster."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.runtime.zookeeper.clusters import destroy_cluster
from system.conftest import SKEW_MS, await_leaders
from system.test_recovery import documents, skuld, wall_ms

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
HORIZON = ("--timing-horizon", "3s")
WAIT_S = 40.0


def data_of(cluster: LocalCluster, index: int) -> Path:
    return cluster.node_log(index).with_suffix("")


def from_(directories: list[Path]) -> list[str]:
    return [word for directory in directories for word in ("--from", str(directory))]


def test_copies_taken_while_nodes_serve_bring_back_one_node_by_filling_and_a_cluster_by_consent(
        tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "c", nodes=3, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=1_000,
                      node_options=HORIZON) as cluster:
        data = [data_of(cluster, index) for index in range(3)]
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
            before = client.enqueue_many("q", [b"%d" % number for number in range(20)])
            is_over, during = threading.Event(), []

            def write() -> None:
                while not is_over.is_set():
                    during.extend(client.enqueue_many("other", [b"x" * 500] * 20))
            writer = threading.Thread(target=write)
            writer.start()
            taken = skuld("backup", "take", str(tmp_path / "b"), *from_(data), "--json").splitlines()
            is_over.set()
            writer.join()
            held = client.claim("q", lease_s=2, n=10)
        places = [Path(json.loads(line)["backup"]) for line in taken]
        assert [json.loads(line)["node"] for line in taken] == cluster.addresses
        assert skuld("backup", "verify", *map(str, places)).count("is whole") == 3
        assert "exists" in skuld("backup", "take", str(tmp_path / "b"), *from_(data[:1]), expected=1)
        assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(place.name for place in places)

        cluster.stop_node(2)
        put_back(places[2], data[2])
        cluster.start_node(2)
        assert "is a backup" in cluster.node_log(2).read_text()
        with Client(cluster.addresses, timeout_s=30) as client:
            await_full(client)
            assert len(client.get_many(during)) == len(during)
        old = documents(cluster)

        cluster.stop_nodes()
        for index in range(3):
            put_back(places[index], data[index])
        destroy_cluster(cluster.zookeeper_hosts, cluster.name)
        restore = ("cluster", "restore", cluster.name, "--zookeeper", cluster.zookeeper_hosts, *from_(data))
        assert "--accept-loss" in skuld(*restore, expected=1)
        assert "gone back to old copies" in skuld(*restore, "--accept-loss", "--horizon", "3s")
        restored_ms = wall_ms()
        cluster.start()
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
            assert len(client.get_many(before)) == 20
            again = []
            while len(again) < 20:
                again += client.claim("q", lease_s=30, n=20, wait_s=2)
            assert wall_ms() >= restored_ms + 3_000 - SKEW_MS
        tokens = {claim.id: claim.token for claim in held}
        assert all(claim.token > tokens.get(claim.id, 0) for claim in again)
        assert all(document.epoch > old[partition].epoch for partition, document in documents(cluster).items())


def put_back(backup: Path, data: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(backup, data)


def await_full(client: Client) -> None:
    deadline = time.monotonic() + WAIT_S
    while moves := [row for row in client.status().moves if row.role == "suspect" and not row.is_done]:
        assert time.monotonic() < deadline, moves
        time.sleep(0.05)
