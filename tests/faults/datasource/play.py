"""One play: clusters, Spark's own cluster, and the promises of the data source, one after another.

Executors are started on this machine, in mount namespaces that hide our files; what they know of the nodes they
are told by their environment, as on other machines. Two clusters: tasks that are written stay in one, and those
that ended are deleted from the other as the stream takes them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

import skuld_py
from faults.datasource import ended, writing
from faults.datasource.promises import Promises
from skuld_py.client.client import Client
from skuld_py.client.reading import Depth
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.spark_session import SparkRuntime
from system.standalone import CONF, Standalone

PARTS = 8
PATIENCE_S = 1_800.0
WORKER_MEMORY, EXECUTOR_MEMORY = "800m", "512m"
SPECULATION = {"spark.speculation": "true", "spark.speculation.interval": "500ms",
               "spark.speculation.quantile": "0.3", "spark.speculation.multiplier": "1.5",
               "spark.speculation.minTaskRuntime": "2s", "spark.sql.shuffle.partitions": "4"}
ARCHIVING = ("--retention", "1s", "--archive")
NONE = Depth(0, 0, 0)


@attrs.frozen
class Stage:
    """What a play has. ``place`` is the driver's, ``seen`` the executors' too."""

    place: Path
    seen: Path
    session: Any
    client: Client
    archiving: LocalCluster
    promises: Promises


@contextlib.contextmanager
def staged(place: Path) -> Iterator[Stage]:
    """All of it, in a directory that executors do not see."""
    ours, theirs = place / "ours", place / "theirs"
    for each in (ours, theirs):
        each.mkdir()
    with (LocalCluster(ours / "cluster", what_is_missing=what_is_missing) as cluster,
          LocalCluster(ours / "archiving", partitions=4, what_is_missing=what_is_missing,
                       node_options=ARCHIVING) as archiving,
          Standalone(theirs, [ours], memory=WORKER_MEMORY) as standalone,
          Client(cluster.addresses, timeout_s=120) as client,
          _session(ours / "spark", cluster, standalone) as session):
        yield Stage(ours, theirs, session, client, archiving, Promises())


@contextlib.contextmanager
def _session(place: Path, cluster: LocalCluster, standalone: Standalone) -> Iterator[Any]:
    nodes, here = ",".join(cluster.addresses), os.pathsep.join(path for path in sys.path if path)
    os.environ["SKULD_NODES"] = nodes
    runtime = SparkRuntime(place, conf={
        **CONF, **SPECULATION, "spark.master": standalone.master, "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.pyspark.python": sys.executable, "spark.executorEnv.PYTHONPATH": here,
        "spark.executorEnv.SKULD_NODES": nodes})
    try:
        session = runtime.start()
        skuld_py.register(session)
        yield session
    finally:
        runtime.stop()
        del os.environ["SKULD_NODES"]


def play(stage: Stage, rows: int, ends: int) -> None:
    """Each promise, from the shortest to the longest."""
    _see_abort(stage, max(PARTS * 100, rows // 5))
    _see_write(stage, rows)
    _see_sql(stage, rows)
    _see_ended(stage, ends)


def _see_abort(stage: Stage, rows: int) -> None:
    click.echo(f"a write of {rows:,} rows is aborted in the middle")
    problem = None
    with writing.Watch(stage.client, "aborted") as watch:
        try:
            writing.save(writing.frame_of(stage.session, rows, PARTS, is_broken=True), "aborted")
        except Exception as error:
            problem = error
    seen, promises = watch.seen, stage.promises
    promises.see("the abort is said, for its reason", str(problem).partition("\n")[0][:100],
                 is_met="a row too many" in str(problem))
    _await(lambda: not _depth(stage.client, "aborted").blocked)
    depth, claims = _depth(stage.client, "aborted"), stage.client.claim("aborted", n=10, wait_s=1)
    promises.see("it leaves none: all that was stored is dead", depth,
                 is_met=not claims and depth.total == depth.dead > 0)
    promises.see("none was ever to be claimed or listed", _said(seen), is_met=not seen.early and seen.blocked > 0)


def _see_write(stage: Stage, rows: int) -> None:
    click.echo(f"a write of {rows:,} rows; an executor is killed, and a part stands still")
    client, promises = stage.client, stage.promises
    began = time.monotonic()
    with writing.Killing(client, "big", stage.seen) as killing, writing.Watch(client, "big") as watch:
        writing.save(writing.frame_of(stage.session, rows, PARTS, killing.pipe), "big")
        saved_s = time.monotonic() - began
    _await(lambda: not _depth(client, "big").blocked)
    all_s, depth, seen = time.monotonic() - began, _depth(client, "big"), watch.seen
    promises.see("an executor died while it wrote", killing.killed, is_met=killing.killed is not None)
    promises.see("an attempt that lost had stored tasks, and these are dead", depth.dead, is_met=depth.dead > 0)
    promises.see(f"exactly {rows:,} tasks can be claimed", depth, is_met=depth.waiting + depth.claimed == rows)
    promises.see("none was to be claimed before all were", _said(seen), is_met=not seen.early and seen.blocked > 0)
    click.echo(f"written in {saved_s:.1f} s, {rows / saved_s:,.0f}/s; all to be claimed in {all_s:.1f} s,"
               f" {rows / all_s:,.0f}/s")
    payload, began = b"x" * writing.width_of(rows), time.monotonic()
    for start in range(0, rows, ended.PART):
        client.enqueue_many("client", [payload] * min(ended.PART, rows - start))
    took_s = time.monotonic() - began
    click.echo(f"enqueue_many of one client, in the same run: {took_s:.1f} s, {rows / took_s:,.0f}/s")


def _see_sql(stage: Stage, rows: int) -> None:
    click.echo("the same rows, read back and counted in SQL")
    stage.session.read.format("skuld").option("results", "false").load().createOrReplaceTempView("tasks")
    began = time.monotonic()
    found, = stage.session.sql(
        "select count(*) as tasks, count(distinct row) as rows, sum(row) as total from (select cast(trim(cast("
        "payload as string)) as bigint) as row from tasks where queue = 'big' and state in ('waiting', 'claimed'))"
    ).collect()
    took_s = time.monotonic() - began
    stage.promises.see("each row is there once", found,
                       is_met=(found.tasks, found.rows, found.total) == (rows, rows, rows * (rows - 1) // 2))
    click.echo(f"read and counted in {took_s:.1f} s, {rows / took_s:,.0f}/s")


def _see_ended(stage: Stage, count: int) -> None:
    click.echo(f"a stream of {count:,} ended tasks, over restarts of its query")
    cluster, promises = stage.archiving, stage.promises
    with Client(cluster.addresses, timeout_s=120) as client:
        made = ended.end_tasks(client, "ended", count)
        began = time.monotonic()
        given = ended.read(stage.session, client, "ended", ",".join(cluster.addresses), stage.place / "marks")
        took_s = time.monotonic() - began
        left = client.depths().get("ended")
    promises.see("each ended task is in one batch",
                 f"{len(given.ids):,} in {len(given.batches)} batches, left {left}",
                 is_met=sorted(given.ids) == sorted(made) and left is None)
    promises.see("its query was stopped and its sink failed, and batches that were run again were the same",
                 f"{given.runs} runs, {given.again} batches again",
                 is_met=given.runs > 2 and given.again > 0 and not given.changed)
    click.echo(f"streamed in {took_s:.1f} s, {count / took_s:,.0f}/s")


def _depth(client: Client, queue: str) -> Depth:
    return client.depths().get(queue, NONE)


def _said(seen: writing.Seen) -> str:
    return (f"{seen.looks} looks before the end, {seen.blocked} of them found tasks that wait,"
            f" {seen.unanswered} got no answer, {len(seen.early)} tasks could be claimed")


def _await(is_so: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.5)
