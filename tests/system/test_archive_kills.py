"""Two archivers on one root, whose clocks jump, are killed wherever they stand, and nodes with them: nothing is
lost, nothing is there twice, and a run that is left alone does the rest. Nor where Spark writes and its JVM dies.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from family import family, is_java
from skuld_py import Client
from skuld_py.archive.live import live
from skuld_py.client.steady import wall_ms
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import to_text
from system.conftest import SKEW_MS, await_leaders, linger

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
EACH, LOADS, KILLS, STOPS = 500, 8, 3, 6
PROGRAM = """
import random, time
real, chance = time.time, random.Random(11)
time.time = lambda: real() + chance.choice((-3_600, 0, 0, 86_400))
from skuld_py.archive import archiver
archiver.BATCH_TASKS = 500
from skuld_py.cli.main import main
main()
"""
"""Small batches, so that kills fall into many of them; and a clock that somebody sets back and forth."""
BY_SPARK = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pyarrow" else find(name, *more)
""" + PROGRAM


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Nodes that delete what ended a second ago, once it is archived."""
    with LocalCluster(tmp_path / "cluster", nodes=3, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=4_000,
                      node_options=("--retention", "1s", "--archive")) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


def started(cluster: LocalCluster, root: Path, program: str = PROGRAM,
            stderr: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, "archive", str(root), "--json", "--wait", "20s", "--nodes",
               ",".join(cluster.addresses)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)


def ended(client: Client, loads: int) -> set[str]:
    """Tasks that ended so long ago that they may go; what they hold cannot be packed."""
    chance = random.Random(3)
    told = list(itertools.chain.from_iterable(
        client.enqueue_many("q", [chance.randbytes(100) for _ in range(EACH)]) for _ in range(loads)))
    while claims := client.claim("q", n=EACH, lease_s=600):
        client.complete_many(claims, [b"done"] * len(claims))
    await_due(client, wall_ms())
    return {to_text(task_id) for task_id in told}


def await_due(client: Client, ended_ms: int) -> None:
    """Until all leaders say that what had ended by then may go: of none is a page on offer before. Each look waits
    at a node, not here."""
    deadline = time.monotonic() + 60
    for row in client.status().partitions:
        while client.offered(row.partition, leaves=True).due_ms <= ended_ms + SKEW_MS:
            assert time.monotonic() < deadline, row
            linger(client)


def await_lines(running: subprocess.Popen[str], lines: int) -> None:
    """Until it has told of so many batches, or ended."""
    assert running.stdout is not None
    for _ in range(lines):
        running.stdout.readline()


def test_killed_anywhere_it_loses_nothing_and_the_last_run_leaves_nothing(cluster: LocalCluster,
                                                                          tmp_path: Path) -> None:
    root, chance = tmp_path / "archive", random.Random(7)
    with Client(cluster.addresses, timeout_s=30) as client:
        told = ended(client, LOADS)
        for number in range(KILLS):
            with started(cluster, root) as running, started(cluster, root) as beside:
                await_lines(running, chance.randint(1, 3))
                await_lines(beside, 1)
                for each in chance.sample((running, beside), 2):
                    cluster.kill_node(number)
                    each.send_signal(signal.SIGKILL)
            cluster.start_node(number)
            await_leaders(client)
            assert told <= archived(root) | left(client)

        with started(cluster, root) as last:
            said: dict[str, Any] = json.loads(last.communicate(timeout=60)[0].splitlines()[-1])
        assert (last.returncode, said["event"], said["waiting"], said["refused"]) == (0, "done", [], [])
        assert client.count() == 0
    assert archived(root) == told
    assert not list((root / "_writing").iterdir())
    assert {str(path) for path in root.rglob("*.parquet")} == {str(path) for path in live(root).paths}


def test_terminated_anywhere_it_says_that_it_was_interrupted_and_no_more(cluster: LocalCluster,
                                                                         tmp_path: Path) -> None:
    root, chance, codes = tmp_path / "archive", random.Random(5), set[int]()
    with Client(cluster.addresses, timeout_s=30) as client:
        told = set[str]()
        for _ in range(STOPS):
            told |= ended(client, 2)
            with started(cluster, root, stderr=subprocess.PIPE) as running:
                await_lines(running, chance.randint(0, 3))
                running.terminate()
                said = running.communicate(timeout=60)[1]
            codes.add(running.returncode)
            assert said in ("", "interrupted; what is not deleted is offered again\n")
        assert told == archived(root) | left(client)
    assert 130 in codes and codes <= {130, 0, -signal.SIGTERM}


@pytest.mark.spark
def test_a_jvm_that_is_killed_is_followed_by_another_and_nothing_is_lost(cluster: LocalCluster,
                                                                       tmp_path: Path) -> None:
    root = tmp_path / "archive"
    with Client(cluster.addresses, timeout_s=30) as client:
        told = ended(client, 4)
        with started(cluster, root, BY_SPARK) as running:
            assert running.stdout is not None
            assert json.loads(running.stdout.readline())["event"] == "batch"
            java, = family(running.pid, is_java)
            java.kill()
            said = json.loads(running.stdout.read().splitlines()[-1])
        assert (running.returncode, said["event"], said["waiting"], said["refused"]) == (0, "done", [], [])
        assert client.count() == 0
    found = [task_id for path in root.glob("batch=*/**/*.parquet")
             for task_id in pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()]
    assert set(found) == told


def archived(root: Path) -> set[str]:
    """What readers of the manifest see: each file is there and whole, and each task once."""
    found = [task_id for path in live(root).paths
             for task_id in pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()]
    assert len(found) == len(set(found))
    return set(found)


def left(client: Client) -> set[str]:
    """What the nodes still have."""
    return {to_text(task.id) for task in client.list("q")}
