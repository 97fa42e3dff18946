"""A worker's jobs on Spark's own cluster, whose executors see nothing of the worker's: they run there, all kinds
of them, and whatever is killed, each task is completed once."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.worker.registry import encode_call
from system.standalone import Standalone, require_namespaces

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_S = 300.0
QUEUE = "jobs"

# What a partition does is a function of this module, of one beside it, a lambda, or a UDF; each says in which
# directory it runs, which each executor has of its own.
BESIDE = '''
import os

def place(number):
    return os.getcwd(), number * number
'''
APP = '''
import os
import skuld_py
import beside
from pyspark import TaskContext
from pyspark.sql import functions as f


def place(number):
    return beside.place(number)


@skuld_py.task
def everything(spark, context):
    numbers = spark.sparkContext.parallelize(range(1, 101), 4)
    here = f.udf(lambda number: place(number)[0])
    frame = spark.range(1, 101, numPartitions=4).select(here("id").alias("place"), "id")
    shuffled = numbers.map(lambda n: (n % 8, n)).groupByKey(4).map(lambda kept: (os.getcwd(), sum(kept[1])))
    counted = frame.groupBy((f.col("id") % 8).alias("k")).agg(f.sum("id").alias("s")).agg(f.sum("s")).first()
    ran = {"own": numbers.map(place).collect(), "lambda": numbers.map(lambda n: (os.getcwd(), n * n)).collect(),
           "udf": [tuple(row) for row in frame.collect()], "shuffle": shuffled.collect()}
    return {"places": {kind: len({where for where, _ in rows}) for kind, rows in ran.items()},
            "sums": {kind: sum(number for _, number in rows) for kind, rows in ran.items()}, "sql": counted[0]}


def hold_first(path):
    """The first attempt of a partition says which process it is, and then waits for what does not come."""
    if TaskContext.get().attemptNumber() == 0:
        with open(path, "w") as said:
            said.write(str(os.getpid()))
            said.flush()
            import time
            time.sleep(600)
    return os.getcwd()


@skuld_py.task
def hold(spark, context, path, claims):
    """Held while it is claimed for the first few times."""
    if context.attempt <= claims:
        return spark.sparkContext.parallelize([path], 1).map(hold_first).collect()[0]
    return spark.sparkContext.parallelize(range(8), 4).map(place).count()


def wait(path):
    with open(path) as gate:
        return gate.read()


@skuld_py.task
def until(spark, context, path):
    return spark.sparkContext.parallelize([path], 1).map(wait).collect()[0]
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_namespaces()
    return tmp_path_factory.mktemp("ours")


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[LocalCluster]:
    with LocalCluster(place / "cluster", nodes=1, replicas=1, partitions=2) as running:
        (place / "app").mkdir()
        (place / "app" / "on_cluster.py").write_text(APP)
        (place / "app" / "beside.py").write_text(BESIDE)
        yield running


@pytest.fixture(scope="module")
def spark(place: Path, cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone"), [place]) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster.addresses, holder="test") as client:
        yield client


class Workers:
    """Workers of ours; the newest one's log."""

    def __init__(self, cluster: LocalCluster, spark: Standalone) -> None:
        self._cluster = cluster
        self._options = [*spark.options, "--slots", "2", "--lease", "5s", "--grace", "5s"]
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def newest(self) -> subprocess.Popen[bytes]:
        return self._started[-1]

    @property
    def log(self) -> str:
        return self._cluster.worker_log(self.newest).read_text()

    def start(self) -> subprocess.Popen[bytes]:
        app = self._cluster.node_log(0).parents[1] / "app"
        started = self._cluster.start_worker(QUEUE, "on_cluster", *self._options, working_directory=app)
        self._started.append(started)
        return started


@pytest.fixture(scope="module")
def workers(cluster: LocalCluster, spark: Standalone) -> Workers:
    made = Workers(cluster, spark)
    made.start()
    return made


def eventually(is_so: Callable[[], object], worker: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        assert worker is None or worker.poll() is None, "the worker has ended"
        time.sleep(0.1)


def enqueue(client: Client, function: str, *args: object) -> TaskId:
    return client.enqueue(QUEUE, encode_call(f"on_cluster:{function}", *args))


def result_of(client: Client, task: TaskId, worker: subprocess.Popen[bytes] | None = None) -> Any:
    eventually(lambda: client.get(task).state not in ("waiting", "claimed"), worker)
    found = client.get(task)
    assert found.is_completed, found.error
    assert [claim.outcome for claim in found.claims].count("completed") == 1
    return found.result


def pipe_in(directory: Path) -> Path:
    os.mkfifo(directory / "pipe")
    return directory / "pipe"


def first_words(pipe: Path) -> tuple[int, int]:
    """The process that a partition runs in, and the open pipe."""
    opened = os.open(pipe, os.O_RDONLY)
    return int(os.read(opened, 20)), opened


def test_everything_runs_on_both_executors(workers: Workers, spark: Standalone, client: Client) -> None:
    task = enqueue(client, "everything")

    found = result_of(client, task, workers.newest)

    squares = sum(n * n for n in range(1, 101))
    assert found["places"] == {"own": 2, "lambda": 2, "udf": 2, "shuffle": 2}
    assert found["sums"] == {"own": squares, "lambda": squares, "udf": 5_050, "shuffle": 5_050}
    assert found["sql"] == 5_050


def test_the_first_lines_say_which_spark_and_where(workers: Workers, spark: Standalone) -> None:
    eventually(lambda: "ready in" in workers.log, workers.newest)

    assert "Spark starts with the first task that needs it" in workers.log.splitlines()[0]
    assert "a task needs Spark, which is starting" in workers.log
    assert re.search(rf"ready in .*: Spark \d+\.\d+\.\d+ on {spark.master}, application app-\d+-\d+", workers.log)


def test_an_executor_that_is_killed_costs_no_attempt(
    workers: Workers, spark: Standalone, client: Client, tmp_path: Path
) -> None:
    task = enqueue(client, "hold", str(pipe_in(tmp_path)), 9)
    inner, opened = first_words(tmp_path / "pipe")
    executor = next(each for each in psutil.Process(inner).parents() if "java" in each.name())
    assert executor in spark.executors()

    executor.kill()

    assert result_of(client, task, workers.newest)
    os.close(opened)
    assert len(client.get(task).claims) == 1
    eventually(lambda: len(spark.executors()) == 2)


def test_a_worker_that_is_killed_loses_its_executors_and_another_does_its_task(
    workers: Workers, spark: Standalone, client: Client, tmp_path: Path
) -> None:
    task = enqueue(client, "hold", str(pipe_in(tmp_path)), 1)
    inner, opened = first_words(tmp_path / "pipe")
    partition, killed = psutil.Process(inner), workers.newest
    executors = spark.executors()
    other = workers.start()
    eventually(lambda: "Spark starts with the first task that needs it" in workers.log, other)

    killed.kill()

    assert psutil.wait_procs([partition, *executors], timeout=60)[1] == []
    os.close(opened)
    assert result_of(client, task, other) == 8
    assert len(client.get(task).claims) == 2


def test_without_its_master_a_task_goes_on_and_so_does_the_next_and_a_new_master_gets_a_new_application(
    workers: Workers, spark: Standalone, client: Client, tmp_path: Path
) -> None:
    gate = pipe_in(tmp_path)
    running = enqueue(client, "until", str(gate))
    with gate.open("w") as opened:  # opens when the task has
        spark.kill_master()
        opened.write("done")
    assert result_of(client, running, workers.newest) == "done"
    assert result_of(client, enqueue(client, "hold", "", 0), workers.newest) == 8
    executors = spark.executors()

    spark.start_master()

    assert psutil.wait_procs(executors, timeout=120)[1] == []  # a new master knows none of them
    assert result_of(client, enqueue(client, "hold", "", 0), workers.newest) == 8
    eventually(lambda: workers.log.count("ready in") == 2, workers.newest)
    assert "all executors are lost" in workers.log
