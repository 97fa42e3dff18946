"""Outputs by a real Spark: DataFrames, a zombie whose job ends late, Hadoop's file systems, and a database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import SparkSession

import skuld_py
from skuld_py.calls.results import encode_result
from skuld_py.errors import Fenced, Refused
from skuld_py.model.ids import TaskId
from skuld_py.output.performing import Performer, asking
from skuld_py.output.protocol import sweep
from skuld_py.output.spark_store import HadoopStore, hadoop_store
from skuld_py.testing import MemoryClient
from skuld_py.worker.context import TaskContext
from skuld_py.worker.spark_session import SparkRuntime
from skuld_py.worker.workflows.parts import parts_of
from skuld_py.workflow.definition.sources import Jdbc

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUEUE = "outputs"
DERBY = "org.apache.derby.jdbc.EmbeddedDriver"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if SparkSession._instantiatedSession is not None:
        yield SparkSession._instantiatedSession
        return
    runtime = SparkRuntime(tmp_path_factory.mktemp("spark"), slots=2, conf={
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m",
        "spark.scheduler.mode": "FAIR"})
    yield runtime.start()
    runtime.stop()


@pytest.fixture
def client() -> MemoryClient:
    return MemoryClient()


def claimed(client: MemoryClient) -> tuple[Any, TaskContext]:
    claim = client.claim_one(QUEUE, lease_s=10)
    assert claim is not None
    return claim, TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get, client.results_of,
                              claim.clock)


def complete(client: MemoryClient, claim: Any, context: TaskContext) -> None:
    client.complete(claim, encode_result(context.outputs.sealed(None)))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_frame_comes_back_as_it_was_and_plain_readers_see_it(
    spark: SparkSession, client: MemoryClient, tmp_path: Path
) -> None:
    task = client.enqueue(QUEUE, b"")
    claim, context = claimed(client)
    values = [(number, f"w{number % 2}", number / 2) for number in range(10)]
    table = spark.createDataFrame(values, "n bigint, word string, half double").coalesce(1).cache()
    context.output(f"{tmp_path}/parquet").write(table, partition_by=["word"])
    for _ in range(2):
        context.output(f"{tmp_path}/csv").write(table, "csv", header=True)
    context.output(f"{tmp_path}/none").write(table.where("n < 0"))
    context.output(f"{tmp_path}/nothing")
    table.write.parquet(context.output(f"{tmp_path}/own").path)
    assert not list(tmp_path.glob("*/task=*"))
    complete(client, claim, context)

    found = client.get(task)
    assert [(each.name, each.rows) for each in found.outputs] == [
        ("parquet", 10), ("csv", 20), ("none", 0), ("nothing", 0), ("own", None)]
    for name, times in (("parquet", 1), ("csv", 2), ("own", 1)):
        read = skuld_py.read_output(spark, found, name)
        assert (read.schema, rows(read)) == (table.schema, sorted(values * times))
    assert rows(skuld_py.read_output(spark, found, "none")) == []
    assert rows(skuld_py.read_output(spark, found, "csv", schema="n string, word string, half string"))[0] == (
        "0", "w0", "0.0")
    with pytest.raises(Refused, match="empty_output"):
        skuld_py.read_output(spark, found, "nothing")
    plain = spark.read.parquet(f"{tmp_path}/parquet")
    assert rows(plain.select("n", "word", "half", "task")) == [(*value, str(task)) for value in values]


def test_exactly_the_named_files_are_read_whatever_their_names_mean_to_spark(
    spark: SparkSession, client: MemoryClient, tmp_path: Path
) -> None:
    task = client.enqueue(QUEUE, b"")
    claim, context = claimed(client)
    names = ["a1.csv", "a[1].csv", "?1.csv", "*.csv", "{a1,b}.csv", "\\a%31.csv", "in [x]/a1.csv"]
    for number, name in enumerate(names):
        context.output(f"{tmp_path}/csv").write_csv(name, [[number]], header=["n"])
    complete(client, claim, context)

    read = skuld_py.read_output(spark, client.get(task), schema="n int")
    assert rows(read) == [(number,) for number in range(len(names))]


def held_at(gate: str) -> Any:
    """Rows that come when a file is there. Runs in Spark's Python processes."""
    def held(part: Iterator[int]) -> Iterator[tuple[int, str]]:
        until = time.monotonic() + 60
        while not Path(gate).exists() and time.monotonic() < until:
            time.sleep(0.02)
        yield from ((number, "zombie") for number in part)

    return held


def test_a_zombies_job_that_ends_late_is_never_seen(
    spark: SparkSession, client: MemoryClient, tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")
    task = client.enqueue(QUEUE, b"")
    zombies, zombie = claimed(client)
    slow = spark.createDataFrame(spark.sparkContext.parallelize(range(4), 1).mapPartitions(held_at(gate)),
                                 "n bigint, who string")
    ended: list[BaseException | None] = []
    output = zombie.output(f"{tmp_path}/data")

    def run() -> None:
        try:
            output.write(slow)
            ended.append(None)
        except Exception as error:
            ended.append(error)

    job = threading.Thread(target=run)
    job.start()
    until = time.monotonic() + PATIENCE_S
    while not list((tmp_path / "data").glob(f"_claims/*/{zombies.token}/_temporary")):
        assert time.monotonic() < until and job.is_alive()
        time.sleep(0.01)
    client.cluster.advance(60)
    claim, context = claimed(client)
    context.output(f"{tmp_path}/data").write(spark.createDataFrame([(7, "winner")], "n bigint, who string"))
    complete(client, claim, context)
    read = skuld_py.read_output(spark, task, client=client)
    assert rows(read) == [(7, "winner")]

    Path(gate).touch()
    job.join(PATIENCE_S)
    assert ended == [None], "its own place is still there, and nobody's else"
    zombie.outputs._check = output._check = lambda: None  # one that is stopped behind its checks
    complete(client, zombies, zombie)

    assert rows(read) == [(7, "winner")], "read before, and counted again"
    assert rows(skuld_py.read_output(spark, task, client=client)) == [(7, "winner")]
    assert rows(spark.read.parquet(f"{tmp_path}/data").select("n", "who")) == [(7, "winner")]
    swept = skuld_py.sweep_output(tmp_path / "data", client)
    assert (swept.published, swept.deleted, swept.left) == ((), 1, ())
    assert rows(read) == [(7, "winner")]


def test_hadoops_file_systems_do_the_same(spark: SparkSession, client: MemoryClient, tmp_path: Path) -> None:
    """Of Hadoop's only that of this machine is here; a worker uses it for other schemes."""
    base = f"{tmp_path}/data"
    store = hadoop_store(base)
    task = client.enqueue(QUEUE, b"")
    claim, context = claimed(client)
    outputs = context.outputs
    outputs._store_of = hadoop_store
    output = context.output(base)
    output.write_csv("a.csv", [["x", 1], ["é", 2]])
    with pytest.raises(Exception, match="already exists"):
        output.open("a.csv")
    output.write_csv("in/b.csv", [])
    context.output(base).reference("kept")
    complete(client, claim, context)
    assert store.files(output._place) == list(client.get(task).outputs[0].files or ())
    assert [file.bytes for file in store.files(output._place)] == [9, 0]
    performer = Performer(store, base, asking(client))

    assert performer.perform(sweep()).published == (str(task),)
    assert not store.children(f"{base}/_claims") and store.children(f"{base}/nowhere") == []
    assert store.read(f"{base}/task={task}/a.csv", 100) == "x,1\né,2\n".encode()
    assert store.read(f"{base}/task={task}/none", 100) is None
    with pytest.raises(Refused, match="more than 3"):
        store.read(f"{base}/task={task}/a.csv", 3)
    (tmp_path / "data/_claims" / str(task) / "9").mkdir(parents=True)
    (tmp_path / "data/_claims" / str(task) / "9" / "late").touch()
    assert not store.move(f"{base}/_claims/{task}/9", f"{base}/task={task}"), "one is there"
    assert not store.move(f"{base}/_claims/{task}/8", f"{base}/task=other"), "none is there"
    assert 0 <= store.idle_s(f"{base}/_claims/{task}/9") < 600
    assert performer.perform(sweep()).deleted == 1
    assert skuld_py.output_files(task, client=client)[0].path == f"{base}/task={task}/a.csv"
    elsewhere = HadoopStore.__new__(HadoopStore)
    elsewhere.can_rename = False
    assert not elsewhere.move("a", "b"), "object stores copy"


@attrs.frozen
class Claimant:
    id: TaskId
    token: int

    def check(self) -> None:
        """It believes that it holds its claim."""


def test_a_database_has_the_rows_of_the_newest_claim_once(
    spark: SparkSession, client: MemoryClient, tmp_path: Path
) -> None:
    url, given = f"jdbc:derby:{tmp_path}/db;create=true", {"driver": DERBY}
    task, other = (TaskId(client.enqueue(QUEUE, b"")) for _ in range(2))
    connection: Any = spark._jvm.java.sql.DriverManager.getConnection(url)  # type: ignore[union-attr]
    connection.createStatement().execute("create table facts (n bigint, word varchar(20), skuld_task varchar(32))")
    connection.close()

    def write(task: TaskId, token: int, *words: str) -> int:
        frame = spark.createDataFrame([*enumerate(words)], "n bigint, word string")
        return skuld_py.write_jdbc(Claimant(task, token), frame, url, "facts", given)

    def stored(table: str = "facts") -> list[tuple[Any, ...]]:
        return rows(spark.read.jdbc(url, table, properties=given))

    assert write(task, 5, "first", "claim") == 2
    assert write(other, 3, "neighbour") == 1
    assert write(task, 5, "again") == 1, "a claim that writes again replaces its rows"
    assert write(task, 7, "second", "claim") == 2
    expected = sorted([(0, "second", str(task)), (1, "claim", str(task)), (0, "neighbour", str(other))])
    assert stored() == expected

    with pytest.raises(Fenced, match="newer claim"):
        write(task, 5, "zombie")

    assert stored() == expected
    for source in (Jdbc(url, "facts", "n", 0, 2, 2, options=given), Jdbc(url, "facts", options=given)):
        read = [skuld_py.read_part(spark, part) for part in parts_of(source)]
        assert len(read) == source.partitions
        assert sorted(row for frame in read for row in rows(frame)) == expected, "each row is in one part"

    with pytest.raises(Refused, match="has no column"):
        skuld_py.write_jdbc(Claimant(task, 9), spark.range(1), url, "facts", given, task_column="whose")
    assert stored("skuld_fence") == sorted([(str(task), 7), (str(other), 3)])
    names = rows(spark.read.jdbc(url, "sys.systables", properties=given).select("tablename"))
    assert [name for name, in names if "SKULD" in name] == ["SKULD_FENCE"], "a staging table is left"
