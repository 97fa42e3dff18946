"""D6: a chain, a fan-out of 1,000 and a join complete while a node and a worker are killed with -9."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skuld_py import Client, SkuldError
from skuld_py.embedded import process, python
from skuld_py.embedded.local import LocalCluster
from system.light_worker import report, spell, square, total

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
PROGRAM = Path(__file__).with_name("light_worker.py")
PARTS = 1_000
IS_ON_SPARK = bool(os.environ.get("SKULD_TEST_GROUPS_ON_SPARK"))
"""With workers that run Spark, which take much longer: ``scripts/groups_on_spark`` sets it."""
TIMEOUT_S = 1_800 if IS_ON_SPARK else 240


@contextmanager
def workers(cluster: LocalCluster, directory: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts workers; those that run at the end are ended."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        if IS_ON_SPARK:
            return cluster.start_worker("group", PROGRAM.stem, "--slots", "4", "--lease", "5s",
                                        working_directory=PROGRAM.parent)
        command = [sys.executable, str(PROGRAM), ",".join(cluster.addresses), "group"]
        started.append(process.spawn(command, log=directory / f"light-{len(started)}.log",
                                     environment=python.environment()))
        return started[-1]
    try:
        yield start
    finally:
        for worker in started:
            process.stop(worker, grace_s=0)


def await_completed(client: Client, count: int, deadline: float) -> None:
    """Return when so many tasks of the queue are completed; each look waits at a node."""
    while True:
        try:
            done = client.depths()["group"].completed
            if done >= count:
                return
            client.claim("nothing-here", wait_s=0.1)
        except SkuldError:
            done = -1
        assert time.monotonic() < deadline, (done, client.depths())


def test_a_chain_a_fan_out_and_a_join_complete_though_a_node_and_a_worker_are_killed(
        cluster: LocalCluster, tmp_path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    with Client(cluster.addresses, timeout_s=30) as client, workers(cluster, tmp_path) as start:
        first, _ = start(), start()
        chain = client.chain([spell.step(letter) for letter in "skuld"])
        _, summed = client.chord([square.step(number) for number in range(PARTS)], total.step())
        last = client.join([chain[-1], summed], report.step())
        tasks = len(chain) + PARTS + 2

        await_completed(client, PARTS // 10, deadline)
        process.stop(first, grace_s=0)
        await_completed(client, PARTS // 5, deadline)
        assert client.depths()["group"].completed < PARTS, "there is work left to do without them"
        cluster.kill_node(0)
        await_completed(client, PARTS // 2, deadline)
        start()
        await_completed(client, tasks, deadline)
        cluster.start_node(0)

        squares = [number * number for number in range(PARTS)]
        assert client.results(chain) == ["s", "sk", "sku", "skul", "skuld"]
        assert client.results_of(summed) == squares
        assert client.results([summed]) == [[PARTS, sum(squares)]]
        joined = dict(zip(sorted([chain[-1], summed]), client.result(last), strict=True))
        assert joined == {chain[-1]: "skuld", summed: [PARTS, sum(squares)]}
        assert client.count("group") == tasks
        assert all(task.is_completed for task in client.get_many([*chain, summed, last]))
