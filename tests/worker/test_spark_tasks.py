"""What ends Spark's tasks that go on after their job was cancelled; by a fake scheduler, and by a real Spark."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JError

from skuld_py.worker import spark_tasks
from skuld_py.worker.spark_session import SparkRuntime
from skuld_py.worker.spark_worker import SparkEngine
from worker.test_spark_session import Job, runtime  # noqa: F401 - a fixture

PATIENCE_S = 60.0


def entry(task: int, group: str | None) -> Any:
    """A running task as the scheduler has it; None: of a job without properties."""
    properties = None if group is None else SimpleNamespace(getProperty={"spark.jobGroup.id": group}.get)
    manager = SimpleNamespace(taskSet=lambda: SimpleNamespace(properties=lambda: properties))
    return SimpleNamespace(getKey=lambda: task, getValue=lambda: manager)


class Context:
    """Java's SparkContext, as far as it is asked here."""

    def __init__(self, *entries: Any) -> None:
        self._entries = entries
        self.was_asked = False
        self.killed: list[tuple[int, bool]] = []

    def taskScheduler(self) -> Any:
        entries = SimpleNamespace(entrySet=lambda: SimpleNamespace(toArray=self._told))
        return SimpleNamespace(taskIdToTaskSetManager=lambda: entries)

    def _told(self) -> Any:
        self.was_asked = True
        return self._entries

    def killTaskAttempt(self, task: int, interrupts: bool, reason: str) -> None:
        self.killed.append((task, interrupts))


def test_tasks_of_groups_that_are_nobodys_have_escaped() -> None:
    context = Context(entry(1, "mine"), entry(2, "lost"), entry(3, None), entry(4, "mine"))
    assert spark_tasks.escaped(context, lambda: ["mine"]) == [2, 3]
    spark_tasks.interrupt(context, [2, 3])
    assert context.killed == [(2, True), (3, True)]


def test_a_task_that_begins_meanwhile_is_no_escapee() -> None:
    context = Context(entry(1, "begins"))
    assert spark_tasks.escaped(context, lambda: ["begins"] if context.was_asked else []) == []


def test_a_sweep_waits_for_tasks_of_jobs_that_have_ended() -> None:
    seen = [[7], [7, 8], [7], [7], [7], [], [], []]
    interrupted: list[tuple[int, ...]] = []
    engine: Any = SparkEngine(Path("nowhere"))
    engine._runtime = SimpleNamespace(jobs=lambda groups: ([], []), escaped_tasks=lambda groups: seen.pop(0),
                                      interrupt_tasks=interrupted.append)
    assert engine.is_swept() and not seen
    assert interrupted == [(7,), (7,)]


@pytest.mark.spark
@pytest.mark.slow
def test_the_python_of_a_cancelled_task_ends_at_once_and_that_of_a_neighbour_goes_on(
    runtime: SparkRuntime, tmp_path: Path  # noqa: F811
) -> None:
    """Spark would look for the first in two seconds at most, and then wait for an hour: that is set here."""
    places = [tmp_path / "lost", tmp_path / "mine"]
    for place in places:
        place.mkdir()
    lost, mine = (Job(runtime, f"{place.name}:7", place) for place in places)
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
    assert isinstance(lost.error, Py4JError) and mine.is_alive()
    gone, left = psutil.wait_procs(processes, timeout=10)
    assert len(gone) == 1 and len(left) == 2, "the daemon, and the neighbour's"
    assert runtime.cancel("mine:7")
    while runtime.escaped_tasks(list):
        assert time.monotonic() < until
        time.sleep(0.05)
