"""The key of a real cluster itself is replaced under load, as the manual says, and no call fails."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skuld_py import Client, Refused
from skuld_py.embedded.local import LocalCluster
from skuld_py.keys.files import read_client_key
from system.conftest import SKEW_MS, await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "keyed", skew_ms=SKEW_MS, session_ms=2_000, is_keyed=True) as made:
        with Client(made.addresses, timeout_s=30, key=made.key) as client:
            await_leaders(client)
        yield made


def skuld(cluster: LocalCluster, key: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "skuld_py", *arguments, "--zookeeper", cluster.zookeeper_hosts,
                           "--cluster-key", str(key), "--json"], capture_output=True, text=True, timeout=90,
                          check=False)


class Load:
    """A client that enqueues, claims, renews and completes without a pause, until it is told to stop."""

    def __init__(self, cluster: LocalCluster, key: Path) -> None:
        self.done, self.problems = 0, list[str]()
        self._addresses, self._key = cluster.addresses, key
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        with Client(self._addresses, key=self._key, timeout_s=30) as client:
            while not self._is_over.is_set():
                try:
                    client.enqueue_many("load", [b"x"] * 5)
                    claims = client.claim("load", n=5, lease_s=60, wait_s=5)
                    client.renew_many(claims)
                    client.complete_many(claims)
                    self.done += len(claims)
                except Exception as problem:
                    self.problems.append(repr(problem))

    def passes(self, count: int) -> None:
        """Wait until so many more are done."""
        wanted, end = self.done + count, time.monotonic() + 120
        while self.done < wanted:
            assert time.monotonic() < end and not self.problems, self.problems
            time.sleep(0.05)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def test_a_cluster_changes_its_key_under_load(keyed: LocalCluster, tmp_path: Path) -> None:
    old, new = keyed.cluster_key, tmp_path / "next.key"
    assert keyed.key is not None and old is not None
    begun = [skuld(keyed, old, "cluster", "rotate", keyed.name, "--to", str(new)) for _ in range(2)]
    assert [done.returncode for done in begun] == [0, 0], begun
    public = json.loads(begun[0].stdout)["key"]

    both = tmp_path / "both.key"
    both.touch(0o600)
    both.write_text(keyed.key.read_text() + f'also = "{public}"\n')
    early = skuld(keyed, new, "cluster", "rotate", keyed.name, "--finish")
    assert early.returncode == 1 and "nodes_behind" in early.stderr
    assert all(address in early.stderr for address in keyed.addresses)
    stale = skuld(keyed, old, "keys", "make", "late", "--role", "reader", "--cluster", keyed.name, "--to",
                  str(tmp_path / "late.key"))
    assert stale.returncode == 1 and "give the newer file" in stale.stderr

    load = Load(keyed, both)
    try:
        load.passes(50)
        keyed.secure(new)
        for index in range(3):
            keyed.stop_node(index)
            load.passes(20)
            keyed.start_node(index)
            load.passes(50)
        finished = skuld(keyed, new, "cluster", "rotate", keyed.name, "--finish")
        assert finished.returncode == 0 and json.loads(finished.stdout)["changed"], finished
        load.passes(50)
    finally:
        load.stop()
    assert load.problems == []

    with Client(keyed.addresses, key=keyed.key, timeout_s=2) as client, pytest.raises(Refused) as refused:
        client.status()
    assert refused.value.code == "wrong_cluster_key" and "replaced" in refused.value.message
    closed = skuld(keyed, old, "keys", "list", "--cluster", keyed.name)
    assert closed.returncode == 1 and "zookeeper_denied" in closed.stderr
    made = skuld(keyed, new, "keys", "make", "later", "--role", "reader", "--cluster", keyed.name, "--to",
                 str(tmp_path / "later.key"))
    assert made.returncode == 0, made
    key = read_client_key(tmp_path / "later.key")
    assert (key.cluster, key.also) == (public, "")
    with Client(keyed.addresses, key=key, timeout_s=20) as client:
        assert client.status()
