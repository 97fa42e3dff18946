"""A real cluster on loopback: ZooKeeper, three node processes, each tied to this one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from skuld_py import AsyncClient, Claim, Client, Uncertain
from skuld_py.embedded.local import LocalCluster
from skuld_py.model import messages as m

SKEW_MS = 300
LONG_SESSION_MS = 20_000
"""For clusters in which no node dies: a disk that is slow for seconds ends no session, so it moves no leader."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster that a test may break."""
    with a_cluster(tmp_path) as made:
        yield made


@pytest.fixture
def calm(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster of a test's own in which no node dies."""
    with a_cluster(tmp_path, session_ms=LONG_SESSION_MS) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One cluster for all tests of a file that leave it whole; each has queues of its own."""
    with a_cluster(tmp_path_factory.mktemp("shared"), session_ms=LONG_SESSION_MS) as made:
        yield made


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return "".join(char if char.isalnum() else "-" for char in str(request.node.name))[:200].rstrip("-")


@contextmanager
def a_cluster(directory: Path, *node_options: str, session_ms: int = 2_000) -> Iterator[LocalCluster]:
    with LocalCluster(directory, nodes=3, partitions=8, replicas=3, skew_ms=SKEW_MS, session_ms=session_ms,
                      node_options=node_options) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


def linger(client: Client, wait_s: float = 0.1) -> None:
    """Wait at a node. One that has just died, and is believed to live, may have claimed as far as others know."""
    with suppress(Uncertain):
        client.claim("nothing-here", wait_s=wait_s)


def claim_all(client: Client, queue: str, count: int, lease_s: float = 60, timeout_s: float = 60) -> list[Claim]:
    """So many claims, however many come at a time: other nodes may be slow to answer the one that is asked."""
    claims: list[Claim] = []
    deadline = time.monotonic() + timeout_s
    while len(claims) < count:
        assert time.monotonic() < deadline, f"{len(claims)} of {count} were granted"
        claims += client.claim(queue, n=count - len(claims), lease_s=lease_s, wait_s=5)
    return claims


async def claim_all_async(client: AsyncClient, queue: str, count: int) -> list[Claim]:
    """The same without blocking."""
    claims: list[Claim] = []
    while len(claims) < count:
        more = await client.claim(queue, n=count - len(claims), wait_s=30)
        assert more, f"{len(claims)} of {count} were granted"
        claims += more
    return claims


def await_leaders(client: Client, timeout_s: float = 30) -> m.Described:
    """The first status by which every partition is led by a live node; each look waits at a node, not here."""
    deadline = time.monotonic() + timeout_s
    while True:
        status = client.status()
        if all(row.leader for row in status.partitions):
            return status
        assert time.monotonic() < deadline, status
        linger(client)
