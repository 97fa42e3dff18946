"""The data source with a real Spark and a real cluster: written, read in SQL, streamed from and to."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skuld_py
from skuld_py.client.client import Client
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.spark_session import SparkRuntime

pytest.importorskip("pyarrow", reason="skuld-py[datasource] is not installed: NOT TESTED is Spark's data source")
pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

CONF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=1, replicas=1, partitions=4, skew_ms=200,
                      what_is_missing=what_is_missing) as running:
        yield running


@pytest.fixture(scope="module")
def archiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("archiving"), nodes=1, replicas=1, partitions=4, skew_ms=200,
                      what_is_missing=what_is_missing, node_options=["--retention", "1s", "--archive"]) as running:
        yield running


@pytest.fixture(scope="module")
def spark(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ["SKULD_NODES"] = ",".join(cluster.addresses)
    runtime = SparkRuntime(tmp_path_factory.mktemp("spark"), slots=2, conf=CONF)
    try:
        session = runtime.start()
        skuld_py.register(session)
        yield session
    finally:
        runtime.stop()
        del os.environ["SKULD_NODES"]


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster.addresses, timeout_s=30) as made:
        yield made


def save(frame: Any, queue: str, **options: str) -> None:
    frame.write.format("skuld").options(queue=queue, **options).mode("append").save()


def claimed(client: Client, queue: str, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count and (claims := client.claim(queue, n=count - len(found), wait_s=10)):
        found += claims
    return found


def plans(spark: Any) -> str:
    """All that Spark keeps to show of queries."""
    store = spark._jsparkSession.sharedState().statusStore()
    runs = store.executionsList()
    return "\n".join(f"{run.physicalPlanDescription()} {run.description()} {run.details()}"
                     for run in (runs.apply(number) for number in range(runs.size())))


def test_rows_become_tasks_with_payloads_keys_and_priorities(spark: Any, client: Client) -> None:
    frame = spark.range(40).selectExpr("cast(id as string) letter", "cast(id % 2 as int) p")

    save(frame, "letters", payload="letter", priority="p")

    found = claimed(client, "letters", 40)
    assert sorted((int(claim.payload), claim.priority) for claim in found) == [(row, row % 2) for row in range(40)]


def test_rows_become_calls(spark: Any, client: Client) -> None:
    save(spark.range(3).selectExpr("id as a", "date'2027-01-01' as day"), "calls", call="shop:add", args="a")

    found = spark.read.format("skuld").option("queue", "calls").load()
    assert {(row.function, row.state) for row in found.collect()} == {("shop:add", "waiting")}


def test_a_write_that_fails_lets_nothing_go(spark: Any, client: Client) -> None:
    frame = spark.range(0, 1_000, 1, 2).selectExpr(
        "case when id < 900 then cast(id as string) else raise_error('no') end as payload")

    with pytest.raises(Exception, match="no"):
        save(frame, "failed", batch="50")

    assert client.claim("failed", n=10, wait_s=0.5) == []
    depth = client.depths().get("failed")
    assert depth is None or depth.total == depth.dead + depth.blocked


def test_a_write_that_is_not_atomic_is_there_at_once(spark: Any, client: Client) -> None:
    save(spark.range(10).selectExpr("cast(id as string) payload"), "plain", atomic="false")

    assert len(claimed(client, "plain", 10)) == 10


def test_what_is_wrong_is_said_before_anything_is_written(spark: Any, client: Client) -> None:
    frame = spark.range(3)
    for options, words in (({"queue": "q", "payload": "none"}, "there is no column 'none'"),
                           ({"queue": "q", "quue": "r"}, "quue: is no option")):
        with pytest.raises(Exception, match=words):
            frame.write.format("skuld").options(**options).mode("append").save()
    assert "q" not in client.depths()


def test_the_queue_is_asked_in_sql_and_conditions_reach_it(spark: Any, client: Client) -> None:
    client.enqueue_many("asked", [b"%d" % number for number in range(30)])
    for number, claim in enumerate(claimed(client, "asked", 10)):
        client.complete(claim, {"n": number})
    spark.read.format("skuld").load().createOrReplaceTempView("tasks")

    rows = spark.sql("select state, count(*) n from tasks where queue = 'asked' group by state").collect()
    assert {(row.state, row.n) for row in rows} == {("waiting", 20), ("completed", 10)}
    summed, = spark.sql("select sum(get_json_object(cast(result as string), '$.n')) s from tasks"
                        " where queue = 'asked' and state in ('completed', 'dead')").collect()
    assert summed.s == 45
    narrow = spark.sql("select id from tasks where queue = 'asked' and state = 'dead'")
    plan = narrow._jdf.queryExecution().toString()
    assert "asked" not in plan.split("== Physical Plan ==")[1]  # Spark need not look again
    one = spark.sql("select * from tasks where queue = 'asked' limit 1").collect()[0]
    assert [row.payload for row in spark.sql(f"select payload from tasks where id = '{one.id}'").collect()] == [
        one.payload]


def test_there_is_a_part_for_each_partition_of_the_cluster(spark: Any, cluster: LocalCluster) -> None:
    assert spark.read.format("skuld").load().rdd.getNumPartitions() == 4


def test_neither_addresses_nor_keys_stand_in_a_plan(spark: Any, cluster: LocalCluster) -> None:
    nodes = ",".join(cluster.addresses)
    save(spark.range(1).selectExpr("cast(id as string) payload"), "shown", nodes=nodes)
    frame = spark.read.format("skuld").option("nodes", nodes).load()
    assert frame.count() >= 1

    shown = plans(spark) + frame._jdf.queryExecution().toString()
    assert "skuld" in shown
    assert not any(address in shown for address in cluster.addresses)


def test_a_stream_of_what_ended_gives_each_task_in_one_batch_over_crashes_and_restarts(
    spark: Any, archiving: LocalCluster, tmp_path: Path
) -> None:
    given: dict[int, list[str]] = {}
    crashes = [0, 1]

    def note(frame: Any, batch: int) -> None:
        found = sorted(row.id for row in frame.where("queue = 'ended'").select("id").collect())
        assert given.setdefault(batch, found) == found, "another batch under its number"
        if batch in crashes:
            crashes.remove(batch)
            raise RuntimeError("the sink has the batch, and Spark does not know")

    def run() -> None:
        ended = spark.readStream.format("skuld").options(nodes=",".join(archiving.addresses), wait="2s")
        query = (ended.load().writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path))
                 .trigger(availableNow=True).start())
        with contextlib.suppress(Exception):  # a crash of ours
            query.awaitTermination(300)
        assert query.exception() is None or "does not know" in str(query.exception())

    with Client(archiving.addresses, timeout_s=30) as client:
        made = []
        for first in (0, 750):
            made += client.enqueue_many("ended", [b"%d" % number for number in range(first, first + 750)])
            while claims := client.claim("ended", n=500):
                client.complete_many(claims)
            while "ended" in client.depths():
                run()

    every = [each for found in given.values() for each in found]
    assert sorted(every) == sorted(map(str, made)) and not crashes


def test_a_streams_batch_is_stored_once_though_it_is_run_again(spark: Any, client: Client, tmp_path: Path) -> None:
    source, marks = tmp_path / "source", tmp_path / "marks"
    source.mkdir()
    (source / "a.json").write_text("\n".join(json.dumps({"payload": str(number)}) for number in range(50)))

    def run() -> None:
        query = (spark.readStream.schema("payload string").json(str(source)).writeStream.format("skuld")
                 .option("queue", "streamed").option("checkpointLocation", str(marks)).trigger(availableNow=True)
                 .start())
        assert query.awaitTermination(300)
        assert query.exception() is None

    run()
    shutil.rmtree(marks / "commits")
    run()

    assert len(claimed(client, "streamed", 51)) == 50
    assert client.depths()["streamed"].waiting == 0
