"""What ends Spark's tasks that go on after their job was cancelled; with a fake scheduler."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from skuld_py.worker import spark_tasks
from skuld_py.worker.spark_worker import SparkEngine


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
