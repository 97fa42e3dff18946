"""The worst has happened: most data directories are gone, or ZooKeeper's data is. An operator goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from skuld_py import Client, SkuldError
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.document import Document
from skuld_py.runtime.zookeeper.clusters import destroy_cluster, read_documents, read_parameters
from system.conftest import SKEW_MS, await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WAIT_S = 40.0


def skuld(*words: str, expected: int = 0) -> str:
    """A command, in this process: a process for each would take most of the test's time."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == expected, done.output
    return done.output


def documents(cluster: LocalCluster) -> dict[int, Document]:
    parameters = read_parameters(cluster.zookeeper_hosts, cluster.name)
    return read_documents(cluster.zookeeper_hosts, parameters)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def test_two_of_three_data_directories_are_gone_and_the_last_one_goes_on_after_all_leases(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, nodes=3, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=1_000,
                      node_options=("--timing-horizon", "5s")) as cluster:
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
            client.enqueue_many("q", [b"%d" % number for number in range(20)])
            held = client.claim("q", lease_s=2, n=20)
        before = documents(cluster)
        for index in (1, 2):
            cluster.kill_node(index)
            cluster.wipe_node(index)
        node = cluster.addresses[0]
        lost = [address for address in cluster.addresses if address != node]
        with Client([node], timeout_s=10) as client:
            deadline = time.monotonic() + WAIT_S
            while "force-epoch --all" not in (told := skuld("status", "--nodes", node)):
                assert time.monotonic() < deadline, told
            assert all(address in told for address in lost)
            assert "not_confirmed" in skuld("cluster", "force-epoch", "--all", "--nodes", node, "--json",
                                            expected=1)
            forced = skuld("cluster", "force-epoch", "--all", "--yes", "--reason", "fire", "--nodes", node)
            assert "forced: 4 partitions changed" in forced
            again = []
            while len(again) < 20:
                assert time.monotonic() < deadline, skuld("status", "--nodes", node)
                try:
                    found = client.claim("q", lease_s=30, n=20, wait_s=1)
                except SkuldError:
                    continue
                again += [(claim, wall_ms()) for claim in found]
            await_leaders(client)
            after = documents(cluster)
            told = skuld("status", "--nodes", node)
        assert "given up by" in told and "(fire)" in told and "no lost task is known" in told
        assert {claim.token >> 32 for claim, _ in again} <= {document.epoch for document in after.values()}
        assert min(document.epoch for document in after.values()) > max(each.epoch for each in before.values())
        ends = {claim.id: (claim.token, claim.end_ms) for claim in held}
        for claim, at_ms in again:
            assert claim.token > ends[claim.id][0] and at_ms > ends[claim.id][1]
        barrier_ms = min(each.no_grant_before_ms for each in after.values())
        assert min(at_ms for _, at_ms in again) >= barrier_ms - SKEW_MS
        assert all(each.no_grant_before_ms >= before[partition].horizon_ms + SKEW_MS
                   for partition, each in after.items())


def test_zookeeper_has_lost_the_cluster_and_data_directories_bring_it_back(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, nodes=3, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=1_000) as cluster:
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
            ids = client.enqueue_many("q", [b"%d" % number for number in range(40)])
            held = client.claim("q", lease_s=2, n=10)
            client.complete_many(held[:5])
        before = documents(cluster)
        node = cluster.node_log(0).with_suffix("")
        data = [cluster.node_log(index).with_suffix("") for index in range(3)]
        cluster.stop_nodes()
        hosts = ("--zookeeper", cluster.zookeeper_hosts)
        assert "nothing has to be restored" in skuld(
            "cluster", "restore", cluster.name, *hosts, "--from", str(node), "--from", str(data[1]), expected=1)
        destroy_cluster(cluster.zookeeper_hosts, cluster.name)
        refused = skuld("node", "--cluster", cluster.name, *hosts, "--port", str(cluster.ports[0]),
                        "--data", str(node), expected=1)
        assert f"skuld cluster restore {cluster.name} --from {node}" in refused
        assert cluster.addresses[1] in skuld("cluster", "restore", cluster.name, *hosts, "--from", str(node),
                                             expected=1)
        restored = skuld("cluster", "restore", cluster.name, *hosts, *(
            word for directory in data for word in ("--from", str(directory))))
        assert "is restored: 4 partitions, 3 nodes" in restored and "!" not in restored
        cluster.start()
        with Client(cluster.addresses, timeout_s=30) as client:
            await_leaders(client)
            found = client.get_many(ids)
            assert len(found) == 40
            assert sum(task.state == "completed" for task in found) == 5
            again = []
            while len(again) < 35:
                again += client.claim("q", lease_s=30, n=40, wait_s=2)
            oldest = {each.partition: each.cause for each in client.partition_history(most=100)}  # newest first
        assert oldest == dict.fromkeys(range(4), "restored from data directories")
        after = documents(cluster)
        tokens = {claim.id: claim.token for claim in held}
        assert all(claim.token > tokens.get(claim.id, 0) for claim in again)
        assert all(document.epoch > before[partition].epoch for partition, document in after.items())
