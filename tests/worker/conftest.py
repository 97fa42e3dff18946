"""One cluster of real processes for all tests of workers; each test has a queue of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from skuld_py.client.claims import ClaimName
from skuld_py.client.client import Client
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.model.proofs import proofs_of
from skuld_py.runtime.zookeeper.clusters import read_parameters

PATIENCE_S = 180.0


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), what_is_missing=what_is_missing) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster.addresses, holder="test") as client:
        yield client


@pytest.fixture
def holders_name(cluster: LocalCluster, client: Client) -> Callable[[TaskId], ClaimName]:
    """Names the newest claim of a task as only its holder can, and who knows the cluster's key."""
    key = bytes.fromhex(read_parameters(cluster.zookeeper_hosts, cluster.name).claim_key)

    def name(task: TaskId) -> ClaimName:
        token = client.get(task).claims[-1].token
        return ClaimName(task, token, proofs_of(key, [task], [token.to_bytes(8, "big")]))
    return name


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return "".join(char if char.isalnum() else "-" for char in str(request.node.name))[:200].rstrip("-")


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Ask until it is so: what another process knows cannot be waited for otherwise."""
    def wait(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)

    return wait
