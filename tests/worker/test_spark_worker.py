"""A worker process with a real Spark on a real cluster: progress, loss of a claim, death of the JVM, SIGTERM."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import pytest

from family import family, is_java
from faults.workers.losses import KINDS, lose
from faults.workers.stage import APP as APP_OF_CAMPAIGN
from faults.workers.stage import LEASE_S, Stage
from skuld_py.client.client import ClaimName, Client
from skuld_py.client.options import Retry
from skuld_py.embedded import python
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.runtime.zookeeper.clusters import read_parameters
from skuld_py.worker.journal import decode_entry
from skuld_py.worker.registry import encode_call

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

Eventually = Callable[[Callable[[], bool]], None]
HoldersName = Callable[[TaskId], ClaimName]
STALL_S, START_S = 15, 300
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}

# `square` runs a small job and says how far it is. `hold` runs a job that says through a pipe that it runs, and
# would go on for a minute; the pipe's end says that Spark's Python process has gone. `crawl` has more parts than
# Spark slots, for some 40 seconds. `script` does what scripts for Spark do, from the first line to the last.
APP = '''
import os
import threading
import time
from datetime import date
import skuld_py
from pyspark.sql import SparkSession


@skuld_py.task
def square(spark, context, count):
    context.progress(0, count, "squaring")
    total = spark.sparkContext.parallelize(range(count), 2).map(lambda n: n * n).sum()
    context.progress(count, count, "squared")
    return {"total": total, "session": spark.getActiveSession() is not None}


@skuld_py.task
def copy(spark, context, path):
    spark.range(1_000).write.parquet(path)
    time.sleep(1)  # Spark's status runs behind


def hold_on(pipe):
    with open(pipe, "w") as said:
        said.write("running")
        said.flush()
        time.sleep(60)


@skuld_py.task
def stumble(spark, context):
    return spark.sparkContext.parallelize(range(2), 1).map(lambda n: 1 // n).sum()


@skuld_py.task(batch=True)
def cube(number: int, day: date | None = None):
    if number < 0:
        os._exit(3)
    if number > 1000:
        sum(range(10**10))
    return [number ** 3, day]


@skuld_py.task
def hold(spark, context, pipe):
    if context.attempt == 1:
        spark.sparkContext.parallelize([pipe], 1).foreach(hold_on)
    return context.attempt


@skuld_py.task
def crawl(spark, context):
    count = 200 * spark.sparkContext.defaultParallelism
    spark.sparkContext.parallelize(range(count), count).foreach(lambda _: time.sleep(0.2))


@skuld_py.task
def script(spark, context, view):
    own = SparkSession.builder.getOrCreate()
    seen = [own is spark, SparkSession.getActiveSession() is spark, views(own)]
    own.range(3).createOrReplaceTempView(view)
    rows = own.table(view).count()
    own.stop()
    spark.sparkContext.stop()
    stopped = SparkSession.getActiveSession() is None
    again = SparkSession.builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    return seen + [rows, stopped, again.conf.get("spark.sql.shuffle.partitions"), views(again)]


def views(session):
    return [table.name for table in session.catalog.listTables()]


@skuld_py.task
def scatter(spark, context, pipes):
    def hold_one(pipe):
        spark.sparkContext.parallelize([pipe], 1).foreach(hold_on)

    threads = [threading.Thread(target=hold_one, args=(pipe,)) for pipe in pipes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@skuld_py.task
def spread(spark, context):
    def rows():
        same = SparkSession.builder.getOrCreate().table("spread").count()
        return [same, spark.sparkContext.getLocalProperty("spark.jobGroup.id") == context.name]

    spark.range(3).createOrReplaceTempView("spread")
    return context.spawn(rows).result()


@skuld_py.task(timeout_s=3)
def grab(spark, context):
    return sum(range(1 << 60))


@skuld_py.task
def kill(spark, context):
    spark._jvm.java.lang.Runtime.getRuntime().halt(137)


@skuld_py.task
def wait(spark, context, pipe):
    with open(pipe) as gate:
        gate.read()
    return spark.sparkContext.parallelize(range(7), 1).count()
'''


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("app")
    (directory / "spark_app.py").write_text(APP)
    return directory


@pytest.fixture(scope="module")
def worker(cluster: LocalCluster, app: Path) -> Iterator[subprocess.Popen[bytes]]:
    path = python.search_path(str(app), str(Path(__file__).resolve().parents[1]))
    worker = cluster.start_worker("jobs", ["spark_app", APP_OF_CAMPAIGN], "--slots", "2", "--lease", f"{LEASE_S}s",
                                  "--grace", "15s", "--stall", f"{STALL_S}s", working_directory=app,
                                  environment={**QUICK_JAVA, "PYTHONPATH": path})
    yield worker
    worker.kill()
    worker.wait()


class Held(threading.Thread):
    """The reading end of a pipe that a Spark job holds; notes when the job runs and when it has gone."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        os.mkfifo(path)
        self._path = path
        self.is_running = threading.Event()
        self.has_gone = threading.Event()
        self.start()

    def run(self) -> None:
        with self._path.open() as pipe:
            if pipe.read(len("running")) == "running":
                self.is_running.set()
            pipe.read()
        self.has_gone.set()


def call(function: str, *args: Any) -> bytes:
    return encode_call(f"spark_app:{function}", *args)


def jvm_of(worker: subprocess.Popen[bytes]) -> psutil.Process:
    return family(worker.pid, is_java)[0]


@pytest.fixture
def jvm(worker: subprocess.Popen[bytes], client: Client, eventually: Eventually) -> psutil.Process:
    """The JVM of a worker that is ready."""
    task = client.enqueue("jobs", call("square", 1))
    with contextlib.suppress(AssertionError):
        eventually(is_completed(client, task))  # a JVM may take minutes on a busy machine
    eventually(is_completed(client, task))
    return jvm_of(worker)


def is_completed(client: Client, task: TaskId) -> Callable[[], bool]:
    return lambda: client.get(task).is_completed


def outcomes(client: Client, task: TaskId) -> list[str]:
    return [claim.outcome for claim in client.get(task).claims]


@pytest.mark.smoke
def test_a_task_runs_and_its_log_tells_how_far_it_came(
    jvm: psutil.Process, client: Client, eventually: Eventually
) -> None:
    task = client.enqueue("jobs", call("square", 1_000))

    eventually(is_completed(client, task))

    entries = list(map(decode_entry, client.get(task).claims[0].log))
    assert client.get(task).result == {"total": 332_833_500, "session": True}
    progress = [entry for entry in entries if entry["kind"] == "progress"]
    assert (progress[-1]["done"], progress[-1]["note"]) == (1_000, "squared")
    spark = progress[-1]["spark"]  # Spark's status runs behind: what is done may be a step short at the end
    assert (spark["jobs"], spark["stages"][1], spark["tasks"][1]) == (1, 1, 2)
    assert spark["stages"][0] <= 1 and 1 <= spark["tasks"][0] <= 2
    assert "rows" not in spark and "bytes" not in spark, "no file is read or written"


def test_rows_and_bytes_that_a_task_reads_and_writes_are_in_its_log(
    jvm: psutil.Process, client: Client, eventually: Eventually, tmp_path: Path
) -> None:
    task = client.enqueue("jobs", call("copy", str(tmp_path / "copy")))

    eventually(is_completed(client, task))

    spark = [decode_entry(data) for data in client.get(task).claims[0].log][-1]["spark"]
    assert (spark["rows"], spark["bytes"][0]) == ([1_000, 1_000], 0) and spark["bytes"][1] > 1_000


def test_a_short_task_does_not_wait_for_the_end_of_a_long_one(
    worker: subprocess.Popen[bytes], client: Client, eventually: Eventually
) -> None:
    long = client.enqueue("jobs", call("crawl"))
    eventually(lambda: any(b'"spark"' in entry for claim in client.get(long).claims for entry in claim.log))
    short = client.enqueue("jobs", call("square", 10))

    eventually(is_completed(client, short))

    assert not client.get(long).is_completed
    client.cancel(long)
    eventually(lambda: client.get(long).claims[0].is_released)


def test_a_script_that_makes_and_stops_a_session_has_its_own_and_ends_no_other(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, eventually: Eventually
) -> None:
    scripts = [client.enqueue("jobs", call("script", view)) for view in ("red", "green")]
    after = client.enqueue("jobs", call("script", "blue"), deps=scripts)

    eventually(is_completed(client, after))

    for task in client.get_many([*scripts, after]):
        assert task.result == [True, True, [], 3, True, "3", []]
        assert len(task.claims) == 1
    assert jvm_of(worker) == jvm


def test_an_error_in_spark_ends_the_attempt_with_its_words(
    worker: subprocess.Popen[bytes], client: Client, eventually: Eventually
) -> None:
    task = client.enqueue("jobs", call("stumble"), retry=Retry(2, backoff_s=0.1))

    eventually(lambda: client.get(task).state == "dead")

    dead = client.get(task)
    assert dead.death == "exhausted" and [claim.outcome for claim in dead.claims] == ["failed", "failed"]
    assert b"ZeroDivisionError" in (dead.error or b"") and b"in stumble" in (dead.error or b"")


def test_a_lost_lease_ends_the_spark_job(
    jvm: psutil.Process, client: Client, tmp_path: Path, eventually: Eventually,
    holders_name: HoldersName
) -> None:
    held = Held(tmp_path / "pipe")
    task = client.enqueue("jobs", call("hold", str(tmp_path / "pipe")))
    assert held.is_running.wait(60)

    client.release(holders_name(task))
    assert held.has_gone.wait(40), "the job would have gone on for a minute"

    eventually(is_completed(client, task))
    claims = client.get(task).claims
    assert client.get(task).completed_token == claims[1].token
    assert client.get(task).result == 2
    assert claims[0].outcome != "completed"


def test_a_worker_that_was_stopped_keeps_its_healthy_jvm(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, eventually: Eventually
) -> None:
    worker.send_signal(signal.SIGSTOP)
    try:
        time.sleep(STALL_S + 5)
    finally:
        worker.send_signal(signal.SIGCONT)
    task = client.enqueue("jobs", call("square", 10))

    eventually(is_completed(client, task))
    assert jvm_of(worker) == jvm


def test_tasks_of_a_batched_function_are_one_job_and_what_kills_its_process_fails_alone(
    worker: subprocess.Popen[bytes], client: Client, eventually: Eventually
) -> None:
    day = date(2026, 11, 20)
    calls = [call("cube", number, day.isoformat()) for number in (2, -1, 1001, 3)]
    tasks = client.enqueue_many("jobs", calls, retry=Retry(1), headers={"skuld-timeout-s": "0.5"})

    eventually(lambda: all(task.state in ("completed", "dead") for task in client.get_many(tasks)))

    two, crashed, late, three = (client.get(task) for task in tasks)
    assert [two.result, three.result] == [[8, day], [27, day]]
    assert (crashed.error or b"").startswith(b"crashed: the Python process that ran it ended")
    assert (late.error or b"").startswith(b"timeout: it ran for longer") and b"in cube" in (late.error or b"")
    assert {len(task.claims) for task in (two, crashed, late, three)} == {1}


def test_jobs_from_a_tasks_own_threads_end_with_it(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, tmp_path: Path, eventually: Eventually
) -> None:
    held = [Held(tmp_path / name) for name in ("one", "two")]
    task = client.enqueue("jobs", call("scatter", [str(tmp_path / name) for name in ("one", "two")]))
    assert all(each.is_running.wait(60) for each in held)

    client.cancel(task)

    assert all(each.has_gone.wait(40) for each in held)
    eventually(lambda: outcomes(client, task) == ["released"])
    eventually(is_completed(client, client.enqueue("jobs", call("square", 10))))
    assert jvm_of(worker) == jvm


def test_a_spawned_thread_is_the_tasks(
    worker: subprocess.Popen[bytes], client: Client, eventually: Eventually
) -> None:
    task = client.enqueue("jobs", call("spread"))

    eventually(is_completed(client, task))

    assert client.get(task).result == [3, True]


def test_nothing_of_a_lost_claim_runs_on_while_its_worker_is_stopped(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, tmp_path: Path, eventually: Eventually
) -> None:
    held = Held(tmp_path / "pipe")
    task = client.enqueue("jobs", call("hold", str(tmp_path / "pipe")))
    assert held.is_running.wait(60)

    worker.send_signal(signal.SIGSTOP)
    try:
        assert held.has_gone.wait(40), "the job would have gone on for a minute"
        assert not jvm.is_running() or jvm.status() == psutil.STATUS_ZOMBIE
    finally:
        worker.send_signal(signal.SIGCONT)

    eventually(is_completed(client, task))
    assert client.get(task).result == 2


def test_of_a_worker_that_wakes_after_its_lease_nothing_acts_on(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, cluster: LocalCluster, tmp_path: Path
) -> None:
    """A round of ``scripts/faults workers``."""
    key = bytes.fromhex(read_parameters(cluster.zookeeper_hosts, cluster.name).claim_key)
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    stage = Stage(tmp_path, client, key, lambda: worker, nothing, nothing, queue="jobs")
    kind = next(kind for kind in KINDS if kind.wakes)

    loss = lose(stage, kind, 1, random.Random(1))

    assert not loss.violations, loss.line
    assert jvm.is_running(), "for its jobs ended without"


def test_a_killed_jvm_is_replaced_and_its_task_done_again(
    jvm: psutil.Process, client: Client, tmp_path: Path, eventually: Eventually
) -> None:
    held = Held(tmp_path / "pipe")
    task = client.enqueue("jobs", call("hold", str(tmp_path / "pipe")))
    assert held.is_running.wait(60)

    jvm.kill()

    assert held.has_gone.wait(40)
    eventually(is_completed(client, task))
    first, _ = client.get(task).claims
    assert decode_entry(first.log[-1])["reason"].startswith("Spark's JVM ended")
    assert client.get(task).result == 2


def test_a_task_that_kills_its_jvm_fails_and_its_neighbour_is_done(
    jvm: psutil.Process, client: Client, tmp_path: Path, eventually: Eventually
) -> None:
    held = Held(tmp_path / "pipe")
    neighbour = client.enqueue("jobs", call("hold", str(tmp_path / "pipe")))
    assert held.is_running.wait(60)
    killer = client.enqueue("jobs", call("kill"), retry=Retry(2, backoff_s=0.1))

    eventually(is_completed(client, neighbour))
    for count in (1, 2):  # each after a start of the JVM
        eventually(lambda count=count: outcomes(client, killer).count("failed") == count)

    assert outcomes(client, neighbour) == ["released", "completed"]
    assert outcomes(client, killer) == ["released", "failed", "failed"]
    dead = client.get(killer)
    assert dead.state == "dead"
    assert b"Spark's JVM ended (out of memory?)" in (dead.error or b"")


def test_sigterm_drains_releases_and_leaves_no_process(
    worker: subprocess.Popen[bytes], jvm: psutil.Process, client: Client, cluster: LocalCluster, tmp_path: Path,
    eventually: Eventually
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    held = Held(tmp_path / "pipe")
    short = client.enqueue("jobs", call("wait", str(gate)))
    long = client.enqueue("jobs", call("hold", str(tmp_path / "pipe")))
    assert held.is_running.wait(60)
    children = psutil.Process(worker.pid).children(recursive=True)
    with gate.open("w"):  # opens when the short task has: both run
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping; 2 running tasks" in cluster.worker_log(worker).read_text())
        later = client.enqueue("jobs", call("square", 1))

    assert worker.wait(90) == 0

    assert client.get(short).result == 7
    claim = client.get(long).claims[0]
    assert claim.is_released
    assert decode_entry(claim.log[-1])["reason"].startswith("the worker stops")
    assert not client.get(long).is_completed
    assert all(claim.is_released for claim in client.get(later).claims)
    assert psutil.wait_procs(children, timeout=60)[1] == []


def test_a_task_that_holds_the_interpreter_ends_by_its_timeout_and_another_worker_does_its_neighbour(
    cluster: LocalCluster, app: Path, client: Client, tmp_path: Path, eventually: Eventually
) -> None:
    """The other worker is there all the time, and has room: nothing comes to it before the first one ends.
    What held the first one's interpreter is dead then, and does not come to it at all."""
    held = Held(tmp_path / "pipe")
    neighbour = client.enqueue("grabbed", call("hold", str(tmp_path / "pipe")))

    def start() -> subprocess.Popen[bytes]:
        return cluster.start_worker("grabbed", "spark_app", "--lease", "5s", working_directory=app,
                                    environment=QUICK_JAVA)
    first = start()
    second = None
    try:
        assert held.is_running.wait(START_S)
        grabber = client.enqueue("grabbed", call("grab"), retry=Retry(1))
        eventually(lambda: bool(client.get(grabber).claims))
        second = start()
        assert first.wait(START_S) == -signal.SIGKILL
        dead = client.get(grabber)
        assert (outcomes(client, grabber), dead.state, dead.death) == (["failed"], "dead", "exhausted")
        assert (dead.error or b"").startswith(b"timeout")
        assert held.has_gone.wait(START_S)
        eventually(is_completed(client, neighbour))
        assert second.poll() is None
    finally:
        for worker in (first, second):
            if worker is not None:
                worker.kill()
                worker.wait()
    done = client.get(neighbour)
    assert done.result == 2 and done.claims[-1].holder != done.claims[0].holder
    assert outcomes(client, neighbour) == ["released", "completed"]
