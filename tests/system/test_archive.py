"""D7: what ended goes to Parquet and then, and only then, from three real nodes; and nothing of it comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from skuld_py import AsyncClient, Client, Retry, SkuldError, Task, TaskId
from skuld_py.archive import spark_store
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.places import check_archive, uri_of
from skuld_py.archive.rows import task_of
from skuld_py.archive.spark_history import History
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import partition_of, to_text
from skuld_py.worker.spark_session import SparkRuntime
from system.conftest import SKEW_MS, await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]
PARTITIONS = 8
OPTIONS = ("--retention", "3s", "--archive")
QUEUES = ("plain", "007", "a.b-c", "null")
WAYS = ("complete", "fail", "cancel")
EACH = 3
WAIT_S = 60.0
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Nodes that delete what ended three seconds ago, once it is archived."""
    with LocalCluster(tmp_path / "cluster", nodes=3, partitions=PARTITIONS, replicas=3, skew_ms=SKEW_MS,
                      session_ms=2_000, node_options=OPTIONS) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkRuntime]:
    """One Spark for all commands of a test, which starts when the first needs it."""
    with spark_store.spark(tmp_path / "spark", QUICK) as runtime:
        @contextmanager
        def shared(*_: object) -> Iterator[SparkRuntime]:
            yield runtime
        monkeypatch.setattr(spark_store, "spark", shared)
        yield runtime


def await_true(is_so: Callable[[], bool], client: Client, what: str) -> None:
    """Return when it is; each look waits at a node."""
    deadline = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(SkuldError):
            if is_so():
                return
            client.claim("nothing-here", wait_s=0.1)
        assert time.monotonic() < deadline, what


def is_whole(client: Client) -> bool:
    """All are there, nothing is on its way, and all is led."""
    status = client.status()
    return (all(row.is_live for row in status.nodes) and len(status.nodes) == 3 and not status.moves
            and all(row.leader for row in status.partitions))


def end_tasks(client: Client) -> dict[TaskId, Task]:
    """Tasks of several queues that ended in each way, as a client sees them then. One at a time, so that they
    are of many partitions."""
    made = [client.enqueue(queue, way.encode(), retry=Retry(1), headers={"way": way})
            for queue in QUEUES for way in WAYS * EACH]
    for task in client.get_many(made):
        if task.payload == b"cancel":
            client.cancel(task.id)
    for queue in QUEUES * 2 * EACH:
        for claim in client.claim(queue, lease_s=30, wait_s=30):
            client.update(claim, b"begun")
            client.update(claim, bytes(range(256)))
            if claim.payload == b"complete":
                client.complete(claim, b"result of " + queue.encode())
            else:
                client.fail(claim, "it broke")
    ended = {TaskId(task.id): task for task in client.get_many(made)}
    states = [task.state for task in ended.values()]
    assert [states.count(state) for state in ("completed", "dead", "cancelled")] == [len(QUEUES) * EACH] * 3
    return ended


def archive(cluster: LocalCluster, root: Path, wait: str, addresses: list[str] | None = None) -> dict[str, Any]:
    """What ``skuld archive`` says in the end."""
    ran = CliRunner().invoke(main, ["archive", str(root), "--wait", wait, "--json", "--nodes",
                                    ",".join(addresses or cluster.addresses)], catch_exceptions=False)
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert said[-1]["event"] == "done"
    assert ran.exit_code == bool(said[-1]["waiting"]), ran.output
    return dict(said[-1])


def archive_all(cluster: LocalCluster, root: Path, count: int) -> None:
    """Run it until nothing is left. Of each task at least one row is written: a run does not know what one before
    wrote and could not confirm."""
    rows = 0
    with Client(cluster.addresses, timeout_s=30) as client:
        def is_done() -> bool:
            nonlocal rows
            rows += archive(cluster, root, "10s")["rows"]
            return client.count() == 0
        await_true(is_done, client, f"all {count} tasks are archived and gone")
    assert rows >= count


def assert_all_kept_while_one_is_away(cluster: LocalCluster, root: Path, count: int) -> None:
    """The third node is paused: nothing is on offer, and it is named."""
    away, others = cluster.addresses[2], cluster.addresses[:2]
    with Client(others, timeout_s=10) as client:
        def is_awaited() -> bool:
            pages = [client.collectable(partition) for partition in range(PARTITIONS)]
            return not any(page.ids for page in pages) and {away} == {name for page in pages
                                                                      for name in page.awaited}
        await_true(is_awaited, client, "the node that is away is waited for")
        assert asyncio.run(awaited_by(others)) == {away}
        done = archive(cluster, root, "1s", others)
        assert (done["rows"], done["deleted"]) == (0, 0)
        assert {name for row in done["waiting"] for name in row["for"]} == {away}
        assert client.count() == count
    assert not live(root).files


async def awaited_by(addresses: list[str]) -> set[str]:
    """The same question, asked without blocking."""
    async with AsyncClient(addresses, timeout_s=10) as client:
        pages = await asyncio.gather(*(client.collectable(partition) for partition in range(PARTITIONS)))
        assert [await client.archived(page) for page in pages] == [0] * PARTITIONS
    return {name for page in pages for name in page.awaited}


def end_one_in_each_partition(client: Client) -> list[TaskId]:
    made: list[TaskId] = []
    while len({partition_of(task_id, PARTITIONS) for task_id in made}) < PARTITIONS:
        made.append(client.enqueue("marks", b"mark"))
    for _ in made:
        for claim in client.claim("marks", wait_s=30):
            client.complete(claim)
    await_true(lambda: client.count("marks", states=["completed"]) == len(made), client, "all marks end")
    return made


def assert_nothing_is_left(cluster: LocalCluster, gone: list[TaskId]) -> None:
    """Whichever node is asked."""
    for address in cluster.addresses:
        with Client([address], timeout_s=30) as client:
            assert client.count() == 0
            assert list(client.list()) == []
            assert client.get_many(gone) == []


def test_what_ended_goes_to_the_archive_and_nothing_comes_back(
        cluster: LocalCluster, session: SparkRuntime, tmp_path: Path) -> None:
    root, data = tmp_path / "archive", cluster.node_log(1).with_suffix("")
    with Client(cluster.addresses, timeout_s=30) as client:
        ended = end_tasks(client)
        paused = cluster.node_process_id(2)
        assert paused is not None
        os.kill(paused, signal.SIGSTOP)
        try:
            assert_all_kept_while_one_is_away(cluster, root, len(ended))
        finally:
            os.kill(paused, signal.SIGCONT)
        await_true(lambda: is_whole(client), client, "the paused node is back")

        cluster.kill_node(1)
        shutil.copytree(data, tmp_path / "old copy")
        cluster.start_node(1)
        await_true(lambda: is_whole(client), client, "the copied node is back")
        archive_all(cluster, root, len(ended))
        assert_nothing_is_left(cluster, list(ended))

        cluster.kill_node(1)
        shutil.rmtree(data)
        shutil.move(tmp_path / "old copy", data)
        cluster.start_node(1)
        await_true(lambda: is_whole(client), client, "the node with the old copy is back")
        marks = end_one_in_each_partition(client)  # they go only once each leader was compared with all, twice
        archive_all(cluster, root, len(marks))
        assert_nothing_is_left(cluster, [*ended, *marks])

    assert_the_archive_holds(session, root, ended, marks)


def assert_the_archive_holds(runtime: SparkRuntime, root: Path, ended: dict[TaskId, Task],
                             marks: list[TaskId]) -> None:
    """Each task once for whoever reads the history, and as it was when it had ended."""
    count = len(ended) + len(marks)
    raw = runtime.start().read.parquet(*map(uri_of, live(root).paths))
    assert (raw.count(), raw.select("id").distinct().count()) == (count, count)
    found = History(runtime.session, check_archive(str(root)), Filters())
    rows = list(map(task_of, found.rows()))
    kept = {TaskId(task.id): task for task in rows}
    assert set(kept) == {*ended, *marks} and len(kept) == len(rows)
    for task_id, task in ended.items():
        assert attrs.evolve(kept[task_id], seq=0) == attrs.evolve(task, seq=0)

    ran = CliRunner().invoke(main, ["history", str(root), "--queue", "007", "--state", "dead", "--count"])
    assert (ran.exit_code, ran.stdout) == (0, f"{EACH}\n")


def test_what_died_of_another_ended_when_that_was_noted(cluster: LocalCluster, tmp_path: Path) -> None:
    with Client(cluster.addresses, timeout_s=30) as client:
        first = client.enqueue("plain", b"first")
        second = client.enqueue("plain", b"second", deps=[first], on_dep_failure="fail")
        third = client.enqueue("plain", b"third", deps=[second], on_dep_failure="fail")
        client.cancel(first)
        await_true(lambda: client.get(third).state == "dead", client, "the last one has died")
        cancelled_ms = client.get(first).cancelled_ms
        died_ms = [task.died_ms or 0 for task in client.get_many([second, third])]
    archive_all(cluster, tmp_path / "archive", 3)

    found = pq.read_table(tmp_path / "archive" / "files", columns=["id", "death", "ended_ms"]).to_pylist()
    assert {row["id"]: (row["death"], row["ended_ms"]) for row in found} == {
        to_text(first): ("", cancelled_ms), to_text(second): ("dep_failed", died_ms[0]),
        to_text(third): ("dep_failed", died_ms[1])}
    assert all(died_ms)
