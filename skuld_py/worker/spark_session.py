"""One JVM and one SparkSession per worker: watched, cancelled and replaced while the worker lives.

Invariants:

* A dead JVM costs one ``restart()``, never the worker: the Python side of Spark is reset and connected anew.
  DataFrames, broadcasts and functions registered with the old JVM (a module-level ``udf`` that was already
  used, too) are dead with it, and so is the text of exceptions that came from it: read it before.
* Nothing here waits for a JVM that does not answer. Calls that supervise Spark (``is_alive``, ``cancel``) go
  through one thread of their own and give up after a time; a frozen JVM blocks that thread and no other.
* A cancelled job group stays cancelled: Spark refuses its later jobs too. Cancelling only what runs at that
  instant (PySpark's ``cancelJobGroup``) misses a query that is still being planned. The price is that a
  group's name must never be used again, so name it by task and fencing token.
* The session writes nothing to the terminal and leaves Ctrl-C to the worker.
* On a cluster, executors get the application's modules with each JVM. An application that has lost all its
  executors for good is worth nothing: its JVM is killed, and so found dead like any other.

PySpark allows one context per Python process, so this refuses to start beside another.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
from py4j import java_gateway
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from skuld_py.client.steady import monotonic_s
from skuld_py.embedded import process
from skuld_py.embedded.java import Java, find_java
from skuld_py.errors import Refused
from skuld_py.worker import shipping, spark_conf, spark_jvm, spark_tasks
from skuld_py.worker.executors import Executors, Standing
from skuld_py.worker.masters import is_local

_GROUP_PROPERTIES = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
    "spark.scheduler.pool",
)


_log = logging.getLogger(__name__)

_KILLED = re.compile(r"Application has been killed\. Reason: (.+)")
"""What the driver says when a cluster does not take it."""

_open_gateway: Callable[[], Any] = launch_gateway


class _Supervisor:
    """One thread that makes calls into the JVM for callers that must not wait for ever."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="spark-supervisor", daemon=True).start()

    def ask(self, call: Callable[[], Any], timeout_s: float) -> Any:
        """The call's result, or None when it failed or did not answer in time."""
        answer: Future[Any] = Future()
        self._calls.put((call, answer))
        try:
            return answer.result(timeout_s)
        except Exception:  # also what PySpark raises since a task took it apart
            answer.cancel()
            return None

    def begin(self, call: Callable[[], Any]) -> None:
        """Make a call whose result nobody waits for."""
        self._calls.put((call, Future()))

    def close(self) -> None:
        self._calls.put(None)

    def _serve(self) -> None:
        while (asked := self._calls.get()) is not None:
            call, answer = asked
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)


@attrs.frozen
class _Live:
    """What exists between a start and the end of its JVM."""

    jvm: spark_jvm.SparkJvm
    session: SparkSession
    java_context: Any
    supervisor: _Supervisor
    executors: Executors | None
    """Of a cluster that keeps some for us at all times."""
    description: str
    parts: tuple[Any, ...]
    """By what PySpark reaches the JVM, as it was in the beginning."""


class SparkRuntime:
    """Owns one JVM and one SparkSession, with ``slots`` Spark tasks at a time unless ``conf`` names a master, in a
    directory of its own. ``apps`` are modules that executors elsewhere must find. ``started_in``: the directory in
    which the JVM runs, whatever has become of the current one."""

    def __init__(
        self,
        directory: Path,
        *,
        slots: int | None = None,
        conf: Mapping[str, str] | None = None,
        java: Java | None = None,
        machine_learning: bool = False,
        apps: Sequence[str] = (),
        started_in: Path | None = None,
        start_timeout_s: float = 120.0,
    ) -> None:
        self._files = spark_jvm.Files(directory.absolute())
        self._slots = slots or os.cpu_count() or 1
        self._asked = dict(conf or {})
        self._apps = apps
        self._started_in = started_in
        self._archive: Path | None = None
        self._java = java
        self._machine_learning = machine_learning
        self._start_timeout_s = start_timeout_s
        self._live: _Live | None = None
        self._changing = threading.RLock()
        self._hold = contextlib.ExitStack()

    @property
    def session(self) -> SparkSession:
        return self._require_live().session

    @property
    def process_id(self) -> int:
        """The JVM's process id."""
        return self._require_live().jvm.process.pid

    @property
    def log(self) -> Path:
        return self._files.log

    def describe(self) -> str:
        """Spark's release and its master; of one that runs the application too, and where it shows itself."""
        live = self._live
        if live is not None:
            return live.description
        return f"Spark {version('pyspark')} on {self._asked.get(spark_conf.MASTER, f'local[{self._slots}]')}"

    def start(self) -> SparkSession:
        """Start the JVM and connect; returns the running session when there is one."""
        with self._changing:
            if self._live is None or not self._live.jvm.is_running:
                self.stop(grace_s=0)
                self._start()
                live = self._require_live()
                live.supervisor.begin(partial(_end_escaped, live, tuple))  # what it takes is loaded when it counts
            return self.session

    def stop(self, grace_s: float = 10.0) -> None:
        """End the JVM (its exit hooks stop Spark and clean up) and everything that runs in it."""
        with self._changing:
            live, self._live = self._live, None
            if live is not None:
                live.supervisor.close()
                process.stop(live.jvm.process, grace_s)
                _forget_context(self._files)
            self._hold.close()

    def restart(self) -> SparkSession:
        """Replace the JVM, dead, frozen or healthy, by a new one. Calls waiting for the old one fail."""
        with self._changing:
            self.stop(grace_s=0)
            return self.start()

    @property
    def is_whole(self) -> bool:
        """Whether PySpark reaches the JVM as it did: its state is the process's, and a task can take it apart. All
        tasks fail then, though the JVM is well."""
        live = self._live
        return live is None or all(now is then for now, then in zip(_parts(live.session), live.parts, strict=True))

    def is_alive(self, timeout_s: float = 5.0) -> bool:
        """Whether the JVM answers in time, its Spark has not stopped itself, and its cluster has not left it."""
        live = self._live
        if live is None or not live.jvm.is_running or not self.is_whole:
            return False
        if live.supervisor.ask(live.java_context.isStopped, timeout_s) is not False:
            return False
        return live.executors is None or self._has_cluster(live, live.executors, timeout_s)

    def _has_cluster(self, live: _Live, executors: Executors, timeout_s: float) -> bool:
        def count_executors() -> int:
            return len(live.java_context.statusTracker().getExecutorInfos()) - 1  # one is the driver

        count = live.supervisor.ask(count_executors, timeout_s)
        if count is None:
            return False
        standing = executors.look(count, monotonic_s())
        if standing is Standing.NONE_YET and executors.is_news:
            _log.warning("no executor has come yet; is there room for %s?", self._asked[spark_conf.MASTER])
        if standing is Standing.LOST:
            _log.warning("all executors are lost, and none has come since; this application is given up")
            live.jvm.process.kill()
        return standing is not Standing.LOST

    def cancel(self, group: str, timeout_s: float = 5.0) -> bool:
        """Cancel the group's jobs and refuse its future ones, and touch nothing else.

        False when the JVM did not confirm, or is gone: then only ``restart`` makes sure.
        """
        live = self._live
        if live is None or not live.jvm.is_running:
            return False

        def cancel_and_confirm() -> bool:
            live.java_context.cancelJobGroupAndFutureJobs(group)
            return True

        return live.supervisor.ask(cancel_and_confirm, timeout_s) is True

    def jobs(self, groups: Callable[[], Iterable[str]],
             timeout_s: float = 5.0) -> tuple[list[int], list[int]] | None:
        """Jobs that run, and those of these groups; None without an answer. The groups are asked for in between:
        so a group whose jobs are seen is known."""
        live = self._live
        if live is None or not live.jvm.is_running:
            return None

        def look() -> tuple[list[int], list[int]]:
            tracker = live.session.sparkContext.statusTracker()
            active = tracker.getActiveJobsIds()
            return active, [job for group in groups() for job in tracker.getJobIdsForGroup(group)]

        answer: tuple[list[int], list[int]] | None = live.supervisor.ask(look, timeout_s)
        return answer

    def cancel_jobs(self, jobs: Iterable[int], timeout_s: float = 5.0) -> None:
        """Cancel jobs by their numbers; those that have ended are no matter."""
        live = self._live
        if live is not None:
            live.supervisor.ask(lambda: [live.java_context.cancelJob(job) for job in jobs], timeout_s)

    def escaped_tasks(self, groups: Callable[[], Iterable[str]], timeout_s: float = 5.0) -> list[int] | None:
        """Spark tasks that run and belong to none of these groups; the Python processes of those that are to stop
        are ended. None without an answer. As with ``jobs``, the groups are asked for afterwards."""
        live = self._live
        if live is None or not live.jvm.is_running:
            return None

        answer: list[int] | None = live.supervisor.ask(partial(_end_escaped, live, groups), timeout_s)
        return answer

    def interrupt_tasks(self, tasks: Iterable[int], timeout_s: float = 5.0) -> None:
        """Interrupt Spark tasks by their numbers, though they were before; those that have ended are no matter."""
        live = self._live
        if live is not None:
            live.supervisor.ask(lambda: spark_tasks.interrupt(live.java_context, [*tasks]), timeout_s)

    @contextlib.contextmanager
    def run_in_group(self, group: str, description: str, *, pool: str = "default") -> Iterator[None]:
        """Spark jobs this thread starts inside belong to ``group`` and share the slots as ``pool``."""
        context = self.session.sparkContext
        context.setJobGroup(group, description, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", pool)
        try:
            yield
        finally:
            # A JVM that died meanwhile has nothing left to clear.
            with contextlib.suppress(Py4JError, OSError):
                for name in _GROUP_PROPERTIES:
                    context._jsc.setLocalProperty(name, None)

    def train_archive(self) -> Path:
        """Run typical work once and archive the classes it loads; later starts on this machine are faster.

        Takes about half a minute and some 100 MB of the user's cache directory. Not while running.
        """
        with self._changing:
            if self._live is not None:
                raise Refused("spark_running", "stop this Spark runtime before training its class archive")
            java = self._java or find_java(directory=self._started_in)
            classes = self._files.directory / "classes.list"
            self._start(extra_options=[f"-XX:DumpLoadedClassList={classes}", "-Xshare:off"])
            try:
                _exercise(self.session, self._files.scratch / "training")
            finally:
                self.stop()
            archive = spark_jvm.dump_archive(java, classes, self._machine_learning, self._files)
            classes.unlink()
            return archive

    def _require_live(self) -> _Live:
        live = self._live
        if live is None:
            raise Refused("spark_not_started", "this Spark runtime is not running; start it first")
        return live

    def _start(self, extra_options: list[str] | None = None) -> None:
        if SparkContext._active_spark_context is not None:
            message = "this process already has a SparkContext; stop that one, or use a process of its own"
            raise Refused("spark_running", message)
        java = self._java or find_java(directory=self._started_in)
        conf = spark_conf.whole(self._files, self._slots, self._asked)
        self._hold.enter_context(process.held(self._files.directory))
        try:
            self._files.prepare()
            jvm = spark_jvm.launch(
                self._files,
                conf,
                java,
                self._machine_learning,
                spark_conf.python_of(conf),
                timeout_s=self._start_timeout_s,
                extra_options=extra_options or [],
                working_directory=self._started_in,
            )
            self._live = self._connect(jvm, conf)
        except BaseException:
            self._hold.close()
            raise

    def _ship(self, context: SparkContext, conf: Mapping[str, str]) -> None:
        """Give executors elsewhere what they must find; what was packed once is given again."""
        if not self._apps or is_local(conf[spark_conf.MASTER]):
            return
        if self._archive is None:
            self._archive = shipping.pack(self._apps, self._files.directory)
        context.addPyFile(str(self._archive))

    def _connect(self, jvm: spark_jvm.SparkJvm, conf: Mapping[str, str]) -> _Live:
        """Make the session; a JVM that hangs meanwhile is killed, which ends the wait."""
        watchdog = threading.Timer(self._start_timeout_s, jvm.process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            session = _connect(jvm, spark_conf.python_of(conf))
            context = session.sparkContext
            self._ship(context, conf)
            executors = None if spark_conf.has_varying_executors(conf) else Executors(monotonic_s())
            return _Live(jvm, session, context._jsc.sc(), _Supervisor(), executors, _described(context),
                         _parts(session))
        except (Py4JError, PySparkException, OSError) as error:
            # An exception from Java asks the JVM for its text, so it is read before, and not kept after.
            refused = _KILLED.findall(process.tail(self.log, lines=200))
            reason = " ".join(str(error).splitlines()[:2])
            if refused:
                reason = f"{conf[spark_conf.MASTER]}: {refused[-1]}"
            _end(jvm, self._files)
            message = f"Spark did not start: {reason}. The end of {self.log}:\n{process.tail(self.log)}"
            raise Refused("spark_failed", message, log=str(self.log)) from None
        except BaseException:
            _end(jvm, self._files)
            raise
        finally:
            watchdog.cancel()


def _end_escaped(live: _Live, groups: Callable[[], Iterable[str]]) -> list[int]:
    found = spark_tasks.escaped(live.java_context, groups)
    spark_tasks.end_python(live.session._jvm, found)
    return found


def _parts(session: SparkSession) -> tuple[Any, ...]:
    context = session._sc
    return (context, context._jsc, SparkContext._active_spark_context, SparkContext._gateway, SparkContext._jvm,
            SparkSession._instantiatedSession)


def _described(context: SparkContext) -> str:
    page = context.uiWebUrl
    return (f"Spark {context.version} on {context.master}, application {context.applicationId}"
            f"{f', {page}' if page else ''}")


def keep_terminal_quiet() -> None:
    """Have Spark's Python side log nothing that it raises as well, and nothing past the application's logging."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)  # they repeat what is raised anyway
    # Reports broken connections, and raises them as well: a JVM that is told to end breaks what it has open.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # Some of them through the root logger, which then configures itself onto the terminal.
    vars(java_gateway)["logging"] = logging.getLogger("py4j.java_gateway")


def _connect(jvm: spark_jvm.SparkJvm, python: str) -> SparkSession:
    keep_terminal_quiet()
    way_in = {
        "PYSPARK_GATEWAY_PORT": str(jvm.port),
        "PYSPARK_GATEWAY_SECRET": jvm.secret,
        "PYSPARK_PIN_THREAD": "true",  # one JVM thread per Python thread, or job groups would mix
    }
    with _environment(way_in):
        gateway = _open_gateway()
    with _interrupt_handler_kept():
        context = SparkContext(gateway=gateway)
    context.pythonExec = python
    # When the JVM dies this server's connection breaks, which is no news worth a traceback on the terminal.
    vars(context._accumulatorServer)["handle_error"] = lambda request, client_address: None
    return SparkSession(context)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """SparkContext sets its own handler for Ctrl-C; put the old one back, for the worker decides how it stops."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _end(jvm: spark_jvm.SparkJvm, files: spark_jvm.Files) -> None:
    process.stop(jvm.process, grace_s=0)
    _forget_context(files)


def _forget_context(files: spark_jvm.Files) -> None:
    """Return PySpark to the state before its first context, asking nothing of the JVM, which is gone."""
    with SparkContext._lock:
        context, gateway = SparkContext._active_spark_context, SparkContext._gateway
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
    if context is not None and hasattr(context, "_accumulatorServer"):
        context._accumulatorServer.shutdown()
    if gateway is not None:
        with contextlib.suppress(Py4JError, OSError):
            gateway._gateway_client.shutdown_gateway()  # ends py4j's finalizer thread, too
        with contextlib.suppress(Py4JError, OSError):
            gateway.shutdown_callback_server()
    sys.path[:] = [entry for entry in sys.path if not entry.startswith(f"{files.scratch}{os.sep}")]


def _exercise(session: SparkSession, directory: Path) -> None:
    """Touch what most tasks touch: a scan, a shuffle, SQL, files, Python partitions."""
    numbers = session.range(0, 10_000, numPartitions=2)
    numbers.selectExpr("id % 10 AS bucket", "cast(id AS string) AS text").createOrReplaceTempView("numbers")
    query = "SELECT bucket, count(*) AS n, max(text) AS top FROM numbers GROUP BY bucket ORDER BY n"
    counts = session.sql(query)
    counts.write.parquet(str(directory))
    session.read.parquet(str(directory)).collect()
    session.sparkContext.parallelize(range(10), 2).map(str).collect()
