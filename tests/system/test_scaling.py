"""Real nodes that let each other in, lend replicas and pass entries on, as they would in a large cluster."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from skuld_py import Client
from skuld_py.cluster.log.entries import decode
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Malformed
from skuld_py.runtime.zookeeper.log_following import set_leaving

OPTIONS = ("--direct-join", "--transfer", "--sharing", "--versions")


class Log:
    """What stands in the coordination log, played."""

    def __init__(self, client: KazooClient, cluster: str) -> None:
        self._client, self._root = client, f"/skuld/{cluster}/log"
        self.replica = Replica()
        self.commands: Counter[str] = Counter()

    def follow(self) -> Replica:
        for name in sorted(self._client.get_children(self._root)):
            position = int(name.rpartition("-")[2])
            if position > self.replica.version:
                raw = self._client.get(f"{self._root}/{name}")[0]
                self.replica = play(self.replica, position, raw).replica
                try:
                    self.commands[decode(raw).command.kind] += 1
                except Malformed:
                    self.commands["malformed"] += 1
        return self.replica

    def wait(self, is_so: Callable[[Replica], bool], timeout_s: float = 30) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so(self.follow()):
            assert time.monotonic() < deadline, self.replica
            time.sleep(0.1)


@contextmanager
def zookeeper(hosts: str):  # type: ignore[no-untyped-def]
    client = KazooClient(hosts)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def is_one_ring_of(count: int) -> Callable[[Replica], bool]:
    return lambda replica: len(replica.members) == len([*replica.ring.walk()]) == count


SEEN_S = 8.0
"""Less than the shortest silence after which members that share entries look into the log."""


@pytest.mark.slow
def test_nodes_with_all_options_come_in_directly_and_close_the_ring_over_who_is_gone(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, nodes=3, skew_ms=300, session_ms=2_000, node_options=OPTIONS) as cluster, \
            zookeeper(cluster.zookeeper_hosts) as client:
        log = Log(client, cluster.name)
        log.wait(is_one_ring_of(3))
        cluster.add_node()
        cluster.add_node()
        log.wait(is_one_ring_of(5))
        assert log.commands["join-direct"] >= 2
        assert log.commands["notify-join"] <= 2
        before = log.commands["prepare-join"]

        cluster.kill_node(4)
        log.wait(is_one_ring_of(4))
        cluster.start_node(4)
        log.wait(is_one_ring_of(5))
        assert log.commands["prepare-join"] == before

        with Client(cluster.addresses, timeout_s=30) as skuld:
            ids = skuld.enqueue_many("jobs", [b"one", b"two"])
            assert len(skuld.get_many(ids)) == 2


@pytest.mark.slow
def test_nodes_that_share_entries_hear_of_an_operators_at_once(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, nodes=4, skew_ms=300, session_ms=2_000, node_options=("--sharing",)) as cluster, \
            zookeeper(cluster.zookeeper_hosts) as client:
        Log(client, cluster.name).wait(is_one_ring_of(4))
        with Client(cluster.addresses[1:2], timeout_s=30) as skuld:
            def owners() -> set[str]:
                return {owner for each in skuld.status().partitions for owner in each.owners}
            deadline = time.monotonic() + 60
            while owners() != {*cluster.addresses}:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert set_leaving(cluster.zookeeper_hosts, cluster.name, cluster.addresses[0], True)
            deadline = time.monotonic() + SEEN_S
            while owners() != {*cluster.addresses[1:]}:
                assert time.monotonic() < deadline
                time.sleep(0.1)
