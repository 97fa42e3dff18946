"""A worker that says it is there, on a real cluster: listed while it works, by one node, and not afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import skuld_py
from skuld_py.cli.main import main
from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker import attendance
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

Eventually = Callable[[Callable[[], bool]], None]


@skuld_py.task(name="attendance.spark_name")
def spark_name(spark: FakeEngine) -> str:
    return spark.describe()


@pytest.fixture
def running(cluster: LocalCluster, queue: str, tmp_path: Path,
            monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningWorker]:
    monkeypatch.setattr(attendance, "AGAIN_S", 0.1)
    worker = Worker(cluster.addresses, f"{queue}:3,other", FakeEngine(), slots=4, holder="anna",
                    renewer_log=tmp_path / "renewer.log", report=lambda line: None)
    made = RunningWorker(worker, FakeEngine(), [])
    yield made
    worker.stop()
    made.end()


def test_a_worker_is_listed_while_it_works_and_says_goodbye(
    running: RunningWorker, cluster: LocalCluster, client: Client, queue: str, eventually: Eventually
) -> None:
    eventually(lambda: len(client.workers().workers) == 1)
    seen, = client.workers().workers
    assert (seen.name, seen.slots, seen.queues, seen.spark) == ("anna", 4, {queue: 3, "other": 1}, "")
    assert seen.node in cluster.addresses and seen.age_s < attendance.LEASE_S

    assert client.results([client.enqueue(queue, spark_name.call())], wait_s=60) == ["engine 1"]
    eventually(lambda: client.workers().workers[0].spark == "engine 1")
    assert client.workers().workers[0].node == seen.node, "it stays with one node, though it reports often"
    eventually(lambda: client.status().workers == 1)

    nodes = ["--nodes", ",".join(cluster.addresses)]
    told = CliRunner().invoke(main, ["workers", *nodes]).output
    assert "1 worker, 4 slots" in told and f"{queue}:3, other" in told and "engine 1" in told
    document = json.loads(CliRunner().invoke(main, ["workers", *nodes, "--json"]).output)
    assert document["workers"][0]["name"] == "anna" and document["missing"] == []

    running.worker.stop()
    running.end()
    assert client.workers().workers == ()
