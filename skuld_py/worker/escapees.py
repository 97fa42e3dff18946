"""Jobs that outlive the task that started them, and when a cancellation is proven.

A job belongs to its task by the group of the thread that started it. A thread that a task made by itself has no
group, so cancelling the task's group misses its jobs. Hence a cancellation is done when no job is active whose
group is not that of a task that runs. What is found is cancelled by its number, again and again, for ``SWEEP_S``;
a program that starts jobs faster than that is stopped with its engine.

One quiet look proves little: a thread may be between two jobs. So ``QUIET_LOOKS`` in a row are wanted. Nor has a
job ended because Spark says so: its tasks may go on (``spark_tasks``). A task that is still seen after a while is
interrupted again, and nothing is quiet while there is one.

The price: jobs that another task, which runs, starts from threads or under groups of its own making are taken for
escapees too. ``TaskContext.spawn`` makes threads whose jobs belong to their task.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

SWEEP_S = 10.0
"""Long enough for a busy machine: Spark tells of a job's end a while later."""
LOOK_S = 0.1
QUIET_LOOKS = 3
OBEYED_LOOKS = 3
"""A task that was interrupted is given so many to end; some that are interrupted as they clean up leave files."""


@attrs.frozen
class Found:
    """What a look shows: jobs to cancel and tasks to interrupt; and, once that is known, whether all is quiet."""

    cancel: tuple[int, ...] = ()
    interrupt: tuple[int, ...] = ()
    is_quiet: bool | None = None


class Sweep:
    """One hunt for escapees, begun at ``now``."""

    def __init__(self, now: float) -> None:
        self._until = now + SWEEP_S
        self._quiet_looks = 0
        self._seen: dict[int, int] = {}

    def look(self, now: float, active: Iterable[int], owned: Iterable[int], tasks: Iterable[int] = ()) -> Found:
        """``active``: jobs that run; ``owned``: those of running tasks, read after the others; ``tasks``: those of
        Spark's that run for nobody."""
        escaped = {*active} - {*owned}
        self._seen = {task: self._seen.get(task, 0) + 1 for task in tasks}
        if escaped or self._seen:
            self._quiet_looks = 0
            deaf = tuple(sorted(task for task, looks in self._seen.items() if looks > OBEYED_LOOKS))
            return Found(tuple(sorted(escaped)), deaf, False if now >= self._until else None)
        self._quiet_looks += 1
        return Found((), (), True if self._quiet_looks >= QUIET_LOOKS else None)
