"""Spark tasks that go on after their job was cancelled, and what ends them.

For Spark a cancelled job is over at once; its tasks are merely told to stop. Two kinds do not obey soon:

* One that waits for its Python process. Spark ends that process, but looks only every two seconds, and no setting
  changes that: so much longer the Python code of a lost claim would act beside the next one. Here the factory that
  made the process is told to end it as soon as the task is interrupted, as Spark does it later. The thread with
  which Spark watches the process knows both.
* One that was interrupted where somebody swallows that, as Hadoop does while it waits for a program. It runs to
  its end, holds a slot and writes its files. It is interrupted again.

So what runs is asked of the scheduler, by tasks, and not by jobs. A task belongs to the group of its job.

Invariant: only tasks of job groups that are nobody's are touched, and of their processes only those whose task is
interrupted.

Processes are ended where tasks run in this JVM, which is under a local master; executors elsewhere end theirs as
Spark does. All this is Spark's own affair: where a release has it otherwise nothing is found, and its way remains.

Rejected: to kill all of Spark's Python processes, for neighbours run in them; and a worker module of our own in
them, which would have to be at all executors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

_NAME = "Worker Monitor for"
_MONITOR, _ENVIRONMENT = "org.apache.spark.api.python.BasePythonRunner$MonitorThread", "org.apache.spark.SparkEnv"
_GROUP = "spark.jobGroup.id"


def escaped(context: Any, groups: Callable[[], Iterable[str]]) -> list[int]:
    """The tasks that run and belong to none of these job groups, which are asked for behind the tasks.
    ``context``: the SparkContext, Java's."""
    found: dict[int, str | None] = {}
    for entry in context.taskScheduler().taskIdToTaskSetManager().entrySet().toArray():
        properties = entry.getValue().taskSet().properties()
        found[int(entry.getKey())] = None if properties is None else properties.getProperty(_GROUP)
    running = {*groups()}
    return [task for task, group in found.items() if group not in running]


def interrupt(context: Any, tasks: list[int]) -> None:
    """Interrupt tasks once more."""
    for task in tasks:
        context.killTaskAttempt(task, True, "its job was cancelled")


def end_python(jvm: Any, tasks: Container[int]) -> None:
    """End the Python processes of those of these tasks that are interrupted."""
    for thread in _monitors(jvm):
        task = _field(jvm, _MONITOR, "context").get(thread)
        if task.taskAttemptId() in tasks and task.isInterrupted() and not task.isCompleted():
            _end(jvm, _field(jvm, _MONITOR, "env").get(thread), _field(jvm, _MONITOR, "worker").get(thread))


def _monitors(jvm: Any) -> Iterator[Any]:
    """Found by their names in one text of all threads: to ask a hundred threads takes a tenth of a second."""
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    for place, text in enumerate(jvm.java.util.Arrays.toString(threads).split("Thread[")[1:]):
        if _NAME in text and (thread := threads[place]).getClass().getName() == _MONITOR:
            yield thread


def _end(jvm: Any, environment: Any, worker: Any) -> None:
    """One that is unknown to a factory is none of its affair. The environment itself cannot be asked: its methods
    name classes that are not there."""
    factories = _field(jvm, _ENVIRONMENT, "pythonWorkers").get(environment).values().iterator()
    while factories.hasNext():
        factories.next().stopWorker(worker)


def _field(jvm: Any, of: str, name: str) -> Any:
    field = jvm.java.lang.Class.forName(of).getDeclaredField(name)
    field.setAccessible(True)
    return field
