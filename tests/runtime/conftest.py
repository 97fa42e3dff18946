"""A ZooKeeper for the tests of a file, and in it a cluster for each of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.runtime import connections, peeking
from skuld_py.runtime.zookeeper.clusters import create_cluster


@pytest.fixture
def memory_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is that of a node's process. That of the tests may be larger already, and would cut all."""
    monkeypatch.setattr(connections, "MEMORY_BYTES", peeking.own_bytes() + connections.MEMORY_BYTES)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        yield running


@pytest.fixture
def cluster(server: ZooKeeperServer, request: pytest.FixtureRequest) -> str:
    name = f"c{zlib.crc32(request.node.name.encode())}"
    create_cluster(server.hosts, Parameters(name, f"id-of-{name}"))
    return name
