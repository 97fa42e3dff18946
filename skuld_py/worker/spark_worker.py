"""Spark as the engine of a worker: each task gets a session of its own in the worker's one JVM.

Tasks of a batched function get no session: they run as one job, in Spark's Python processes (``batches``).

Invariants:

* All jobs of a task belong to the group ``ID:TOKEN``, which no other claim ever has, and to a pool that no other
  running task has: a short task is not kept waiting by a long one.
* Its views, settings and streaming queries live in a session of its own, which is also what PySpark gives it when
  it asks (``spark_guard``).
* When a task is cancelled, no job goes on that no running task owns (``escapees``).
* Numbers of finished stages are remembered per task, because Spark forgets them: what is shown never falls.

``counts`` waits for Spark without a limit; it is called where only the beats to the renewer would wait, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import attrs
from py4j.protocol import Py4JError
from pyspark import SparkContext

from skuld_py.calls.payloads import Call
from skuld_py.client.steady import monotonic_s, sleep
from skuld_py.errors import Refused
from skuld_py.worker.batches.part import Done, Item, Order, run_part
from skuld_py.worker.context import TaskContext
from skuld_py.worker.escapees import LOOK_S, Sweep
from skuld_py.worker.pools import Pools
from skuld_py.worker.spark_guard import Home, at_home, guard, inherited
from skuld_py.worker.spark_session import SparkRuntime

CRASHED = "Python worker exited unexpectedly"
"""Of all that Spark says of a job that failed for it, what matters begins so."""


class ProcessEnded(Exception):
    """A Python process of Spark's ended under a job, with its last words."""


class Seen(NamedTuple):
    """A stage as it was seen last: tasks done and known; rows and bytes read and written."""

    tasks: tuple[int, int]
    rows: tuple[int, int]
    bytes: tuple[int, int]


class SparkEngine:
    """Runs task functions against a ``SparkRuntime``."""

    def __init__(self, directory: Path, *, conf: Mapping[str, str] | None = None, machine_learning: bool = False,
                 apps: Sequence[str] = (), started_in: Path | None = None) -> None:
        self._runtime = SparkRuntime(directory, conf=conf, machine_learning=machine_learning, apps=apps,
                                     started_in=started_in)
        self._pools = Pools()
        self._homes: dict[str, Home] = {}
        self._cancelled: set[str] = set()
        self._stages: dict[str, dict[int, Seen]] = {}

    def describe(self) -> str:
        """Spark's release, master and application."""
        return self._runtime.describe()

    missing = None

    def start(self) -> None:
        """Start the JVM."""
        guard(self._runtime.start().sparkContext)

    def restart(self) -> None:
        """Replace the JVM."""
        guard(self._runtime.restart().sparkContext)

    def stop(self, grace_s: float) -> None:
        """End the JVM."""
        self._runtime.stop(grace_s)

    @property
    def process_id(self) -> int | None:
        """The JVM's."""
        try:
            return self._runtime.process_id
        except Refused:
            return None

    def is_alive(self) -> bool:
        """Whether the JVM answers within five seconds."""
        return self._runtime.is_alive()

    def is_gone(self) -> bool:
        """Whether the JVM's process has ended, or PySpark cannot reach it any more."""
        if not self._runtime.is_whole:
            return True
        try:
            process_id = self._runtime.process_id
        except Refused:
            return True
        if self._runtime.is_alive(timeout_s=0.5):  # which also reaps a process that has ended
            return False
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        return False

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        """Run the function in this thread, with a session of its own."""
        home = self._homes[context.name] = Home(self._runtime.session)
        self._stages[context.name] = {}
        try:
            with (self._pools.lent() as pool, at_home(home),
                  self._runtime.run_in_group(context.name, f"{call.name} {context.id}", pool=pool)):
                context.inherit = partial(inherited, home)
                value = function(home.session(), context, *call.args, **call.kwargs)
                context.join()
            counts = self.counts(context.name)  # of a short task nobody may have asked yet
            if counts is not None:
                context.journal.spark(counts)
            return value
        finally:
            if not context.is_joined:
                self._runtime.cancel(context.name)
            self._homes.pop(context.name, None)
            self._cancelled.discard(context.name)
            self._stages.pop(context.name, None)

    def call_many(self, name: str, order: Order, items: Sequence[Item]) -> Sequence[Done]:
        """Run the items as one job, in no more parts than Spark runs at once."""
        session = self._runtime.session
        parts = min(len(items), order.parts_max, session.sparkContext.defaultParallelism)
        order = attrs.evolve(order, bytes_max=order.bytes_max // parts)
        self._homes[name] = Home(session)
        self._stages[name] = {}
        try:
            with (self._pools.lent() as pool,
                  self._runtime.run_in_group(name, f"{order.name}, {len(items)} tasks", pool=pool)):
                return (session.sparkContext.parallelize(items, parts).mapPartitions(partial(run_part, order))
                        .collect())
        except Py4JError as error:
            _, crashed, words = str(error).partition(CRASHED)
            if not crashed:
                raise
            raise ProcessEnded(crashed + words.split("\n\tat ")[0]) from None
        finally:
            self._homes.pop(name, None)
            self._stages.pop(name, None)
            self._cancelled.discard(name)

    def cancel(self, name: str, timeout_s: float = 5.0) -> bool:
        """End a task's jobs, and its streaming queries, which are in groups of their own."""
        home = self._homes.get(name)
        if home is not None:
            self._cancelled.add(name)
        if not self._runtime.cancel(name, timeout_s):
            return False
        if home is not None:
            home.end_queries()
        return True

    def is_swept(self) -> bool:
        """Cancel what runs and belongs to no running task; False when it does not end."""
        sweep = Sweep(monotonic_s())
        while (seen := self._runtime.jobs(self._groups)) is not None:
            found = sweep.look(monotonic_s(), *seen, self._runtime.escaped_tasks(self._groups) or ())
            if found.cancel:
                self._runtime.cancel_jobs(found.cancel)
            if found.interrupt:
                self._runtime.interrupt_tasks(found.interrupt)
            if found.is_quiet is not None:
                return found.is_quiet
            sleep(LOOK_S)
        return False

    def _groups(self) -> list[str]:
        """Those of the tasks that run, and of their streaming queries."""
        running = {name: home for name, home in list(self._homes.items()) if name not in self._cancelled}
        return [*running, *(group for home in running.values() for group in home.queries())]

    def counts(self, name: str) -> dict[str, Any] | None:
        """Jobs so far; stages and Spark tasks as [done, known so far]; rows and bytes as [read, written], where
        there are some, without what stages pass on to each other."""
        known = self._stages.get(name)
        context = SparkContext._active_spark_context
        if known is None or context is None:
            return None
        try:
            jobs = self._look(context, name, known)
        except (Py4JError, OSError, AttributeError):  # the JVM ends meanwhile
            return None
        if not known:
            return None
        done = [stage for stage in known.values() if stage.tasks[0] >= stage.tasks[1]]
        found: dict[str, Any] = {"jobs": jobs, "stages": [len(done), len(known)]}
        for field in ("tasks", "rows", "bytes"):
            sums = [sum(getattr(stage, field)[at] for stage in known.values()) for at in (0, 1)]
            if field == "tasks" or any(sums):
                found[field] = sums
        return found

    def _look(self, context: SparkContext, name: str, known: dict[int, Seen]) -> int:
        tracker = context.statusTracker()
        jobs = tracker.getJobIdsForGroup(name)
        for job_id in jobs:
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job is not None else ():
                if stage_id in known and known[stage_id].tasks[0] >= known[stage_id].tasks[1]:
                    continue
                stage = tracker.getStageInfo(stage_id)
                if stage is not None and stage.numTasks:
                    known[stage_id] = Seen((stage.numCompletedTasks, stage.numTasks), *_traffic(context, stage_id))
        return len(jobs)


def _traffic(context: SparkContext, stage_id: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and bytes that a stage has read and written so far, by the store that the tracker asks, too."""
    stage = context._jsc.sc().statusStore().lastStageAttempt(stage_id)
    return ((stage.inputRecords(), stage.outputRecords()), (stage.inputBytes(), stage.outputBytes()))

