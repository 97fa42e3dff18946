"""A real cluster without keys is given them by the verb, and keeps what it had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from skuld_py import Client, Refused
from skuld_py.cli.failures import LASTING
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.roles import CLIENTS
from skuld_py.model.roster import Roster, make_row
from skuld_py.runtime.zookeeper.clusters import connection, path_of
from skuld_py.runtime.zookeeper.rosters import roster_path
from system.conftest import await_leaders, claim_all

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def skuld(cluster: LocalCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "skuld_py", *arguments, "--zookeeper", cluster.zookeeper_hosts,
                           "--json"], capture_output=True, text=True, timeout=60, check=False)


def node_without_key(cluster: LocalCluster, index: int) -> str:
    """What a node says that is started as before."""
    port = cluster.addresses[index].rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "skuld_py", "node", "--cluster", cluster.name, "--zookeeper",
         cluster.zookeeper_hosts, "--port", port, "--data", str(cluster.node_log(index).with_suffix(""))],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == LASTING, done
    return done.stderr


def test_a_cluster_is_secured_and_keeps_its_tasks_and_claims(cluster: LocalCluster, tmp_path: Path) -> None:
    key = tmp_path / "cluster.key"
    with Client(cluster.addresses, timeout_s=30) as client:
        ids = client.enqueue_many("kept", [b"%d" % number for number in range(100)])
        held, done = claim_all(client, "kept", 2, lease_s=600)
        client.complete(done, b"before")

    alive = skuld(cluster, "cluster", "secure", cluster.name, "--cluster-key", str(key))
    assert alive.returncode == 1 and "cluster_alive" in alive.stderr
    assert all(address in alive.stderr for address in cluster.addresses) and not key.exists()
    planted = Roster().authorised(make_row("m" * 40, "mallory", ("admin",)))
    with connection(cluster.zookeeper_hosts, 10.0, is_write=True) as stranger:
        stranger.create(roster_path(path_of(cluster.name)), planted.encode())
    cluster.stop_nodes()
    secured = skuld(cluster, "cluster", "secure", cluster.name, "--cluster-key", str(key))
    assert secured.returncode == 0 and json.loads(secured.stdout)["has_changed"], secured
    assert json.loads(secured.stdout)["removed"] == ["mallory"]
    again = skuld(cluster, "cluster", "secure", cluster.name, "--cluster-key", str(key))
    assert again.returncode == 0 and not json.loads(again.stdout)["has_changed"], again
    assert "give the cluster's key (--cluster-key FILE" in node_without_key(cluster, 0)

    roles = [word for role in CLIENTS for word in ("--role", role)]
    made = skuld(cluster, "keys", "make", "all", *roles, "--to", str(tmp_path / "all.key"), "--cluster",
                 cluster.name, "--cluster-key", str(key))
    assert made.returncode == 0, made
    cluster.secure(key)
    cluster.start()
    with Client(cluster.addresses, timeout_s=2) as keyless, pytest.raises(Refused, match="key_needed"):
        keyless.status()
    with Client(cluster.addresses, timeout_s=30, key=tmp_path / "all.key") as client:
        await_leaders(client)
        client.renew(held)
        client.complete(held, b"held")
        while claims := client.claim("kept", n=50, wait_s=3):
            client.complete_many(claims, [b"after"] * len(claims))
        results = dict(zip(ids, client.results(ids, wait_s=30), strict=True))
    assert results[held.id] == b"held" and results[done.id] == b"before"
    assert sorted(map(bytes, results.values())) == [b"after"] * 98 + [b"before", b"held"]
