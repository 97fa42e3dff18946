"""Spark's data source on Spark's own cluster: executors are killed, slow parts are run twice, rows come in another
order the second time; and each row is one task, claimable with all the others or never."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from select import select
from threading import Thread
from typing import Any

import psutil
import pytest

import skuld_py
from skuld_py.client.client import Client
from skuld_py.datasource.gates import ATTEMPTS
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.spark_session import SparkRuntime
from system.standalone import CONF, Standalone, require_namespaces

pytest.importorskip("pyarrow", reason="skuld-py[datasource] is not installed: NOT TESTED is Spark's data source")
pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS, PARTS = 10_000, 8
WIDTH = 1_000
"""Of a payload: so wide that no buffer between Spark and Python holds half a part back."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_namespaces()
    return tmp_path_factory.mktemp("ours")


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[LocalCluster]:
    with LocalCluster(place / "cluster", nodes=3, replicas=3, partitions=4,
                      what_is_missing=what_is_missing) as running:
        yield running


@pytest.fixture(scope="module")
def standalone(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone"), [place]) as running:
        yield running


@pytest.fixture(scope="module")
def spark(place: Path, cluster: LocalCluster, standalone: Standalone) -> Iterator[Any]:
    """Executors have Skuld installed, and are told of the nodes by their environment."""
    os.environ["SKULD_NODES"] = ",".join(cluster.addresses)
    here = os.pathsep.join(path for path in sys.path if path)
    conf = {**CONF, "spark.master": standalone.master, "spark.pyspark.python": sys.executable,
            "spark.executorEnv.PYTHONPATH": here, "spark.executorEnv.SKULD_NODES": os.environ["SKULD_NODES"],
            "spark.speculation": "true", "spark.speculation.interval": "200ms",
            "spark.speculation.quantile": "0.3", "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "1s", "spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    runtime = SparkRuntime(place / "spark", conf=conf)
    try:
        session = runtime.start()
        skuld_py.register(session)
        yield session
    finally:
        runtime.stop()
        del os.environ["SKULD_NODES"]


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster.addresses, timeout_s=60) as made:
        yield made


def frame_of(spark: Any, pipe: Path | None = None, last: int = ROWS) -> Any:
    """Rows in an order that no two attempts share. With a pipe, the first attempt of one part stops half-way for
    good and says which process it is, and that of another is slow; rows behind ``last`` raise an error."""
    where = None if pipe is None else str(pipe)

    def part(number: int, rows: Any) -> Any:
        import os
        import random
        import time

        from pyspark import TaskContext

        shuffled, context = list(rows), TaskContext.get()
        random.shuffle(shuffled)
        for count, row in enumerate(shuffled):
            is_first = count == len(shuffled) // 2 and context is not None and context.attemptNumber() == 0
            if where is not None and is_first and number == 3:
                with open(where, "w") as said:
                    said.write(str(os.getpid()))
                time.sleep(600)
            if where is not None and is_first and number == 5:
                time.sleep(60)
            if row >= last:
                raise ValueError("a row too many")
            yield (f"{row:{WIDTH}}",)
    made = spark.sparkContext.range(ROWS, numSlices=PARTS).mapPartitionsWithIndex(part)
    return spark.createDataFrame(made, "payload string")


def save(frame: Any, queue: str) -> None:
    frame.write.format("skuld").options(queue=queue, batch="200").mode("append").save()


def test_each_row_is_one_task_though_an_executor_is_killed_and_slow_parts_run_twice(
    spark: Any, standalone: Standalone, client: Client, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = os.open(tmp_path / "pipe", os.O_RDWR)  # never waits for the other side
    seen: list[Any] = []
    slow = range(3 * ROWS // PARTS, 4 * ROWS // PARTS)

    def is_stored() -> bool:
        """Whether the part that stopped has stored tasks, by an attempt that will be lost."""
        return any(int(task.payload) in slow for task in client.list("big", states=("blocked",)))

    def kill() -> None:
        while not select([said], [], [], 0.5)[0] or not is_stored():
            pass
        seen.extend([client.claim("big", n=10, wait_s=0.2), client.depths()["big"]])
        inner = psutil.Process(int(os.read(said, 20)))
        next(each for each in inner.parents() if "java" in each.name()).kill()
    killing = Thread(target=kill, daemon=True)
    killing.start()

    save(frame_of(spark, tmp_path / "pipe"), "big")

    killing.join(10)
    os.close(said)
    assert seen[0] == [] and seen[1].blocked > 0
    found = spark.read.format("skuld").option("queue", "big").load()
    live = found.where("state in ('waiting', 'blocked', 'claimed')")
    assert (live.count(), live.select("payload").distinct().count()) == (ROWS, ROWS)
    payloads: list[int] = []
    while claims := client.claim("big", n=1_000, wait_s=5):
        payloads += [int(claim.payload) for claim in claims]
        client.complete_many(claims)
    assert sorted(payloads) == list(range(ROWS))
    assert client.depths()[ATTEMPTS].total > PARTS, "no part ran twice: the test has tried nothing"
    assert client.depths()["big"].blocked == 0


def test_a_write_aborted_in_the_middle_leaves_none_and_was_never_claimable(spark: Any, client: Client) -> None:
    with pytest.raises(Exception, match="a row too many"):
        save(frame_of(spark, last=ROWS - 100), "aborted")

    assert client.claim("aborted", n=10, wait_s=1) == []
    depth = client.depths()["aborted"]
    assert depth.total == depth.dead + depth.blocked and not depth.completed
