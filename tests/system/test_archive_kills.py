"""Two archivers on one root are killed wherever they stand: nothing is lost, nothing is there twice, and a run
that is left alone does the rest."""

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

from skuld_py import Client
from skuld_py.archive.live import live
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import to_text
from system.conftest import SKEW_MS, await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
EACH, LOADS, KILLS = 500, 8, 3
PROGRAM = """
import sys
from skuld_py.archive import archiver
archiver.BATCH_TASKS = 500
from skuld_py.cli.main import main
main()
"""
"""Small batches, so that kills fall into many of them."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Nodes that delete what ended a second ago, once it is archived."""
    with LocalCluster(tmp_path / "cluster", nodes=3, partitions=4, replicas=3, skew_ms=SKEW_MS, session_ms=4_000,
                      node_options=("--retention", "1s", "--archive")) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


def started(cluster: LocalCluster, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, "archive", str(root), "--json", "--wait", "20s", "--nodes",
               ",".join(cluster.addresses)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_killed_anywhere_it_loses_nothing_and_the_last_run_leaves_nothing(cluster: LocalCluster,
                                                                          tmp_path: Path) -> None:
    root, chance = tmp_path / "archive", random.Random(7)
    with Client(cluster.addresses, timeout_s=30) as client:
        told = list(itertools.chain.from_iterable(
            client.enqueue_many("q", [b"x" * 100] * EACH) for _ in range(LOADS)))
        while claims := client.claim("q", n=EACH, lease_s=600):
            client.complete_many(claims, [b"done"] * len(claims))
        time.sleep(1.5)  # the retention: of none is a page on offer before
        for _ in range(KILLS):
            with started(cluster, root) as running, started(cluster, root) as beside:
                for each in (running, beside):
                    assert each.stdout is not None
                    each.stdout.readline()
                    time.sleep(chance.random() * 0.2)
                    each.send_signal(signal.SIGKILL)
            assert {to_text(task_id) for task_id in told} <= archived(root) | left(client)

        with started(cluster, root) as last:
            said: dict[str, Any] = json.loads(last.communicate(timeout=60)[0].splitlines()[-1])
        assert (last.returncode, said["event"], said["waiting"], said["refused"]) == (0, "done", [], [])
        assert client.count() == 0
    assert archived(root) == {to_text(task_id) for task_id in told}
    assert not list((root / "_writing").iterdir())
    assert {str(path) for path in root.rglob("*.parquet")} == {str(path) for path in live(root).paths}


def archived(root: Path) -> set[str]:
    """What readers of the manifest see: each file is there and whole, and each task once."""
    found = [task_id for path in live(root).paths
             for task_id in pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()]
    assert len(found) == len(set(found))
    return set(found)


def left(client: Client) -> set[str]:
    """What the nodes still have."""
    return {to_text(task.id) for task in client.list("q")}
