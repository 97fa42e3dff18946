"""Claims of a worker whose tasks have not begun: they wait for a slot, for Spark, or to be given back.

In the worker's thread. Each is here once, in the order in which it came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from skuld_py.client.steady import monotonic_s
from skuld_py.model.task import Task
from skuld_py.worker.ahead import PATIENCE_S
from skuld_py.worker.blame import deaths_under
from skuld_py.worker.lease import Key
from skuld_py.worker.run import Run


class Waiting:
    """``runs``: those that wait."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def add(self, runs: Iterable[Run]) -> None:
        """These wait from now on, behind the others."""
        self.runs += runs

    def take(self, keys: Collection[Key]) -> list[Run]:
        """Those of these claims that wait; they do so no more."""
        taken = [run for run in self.runs if run.key in keys]
        self.runs = [run for run in self.runs if run.key not in keys]
        return taken

    def take_all(self) -> list[Run]:
        """All of them; none waits any more."""
        taken, self.runs = self.runs, []
        return taken

    def take_late(self, patience_s: Callable[[Run], float], is_held_up: Callable[[Run], bool] | None = None, *,
                  has_spark: bool) -> list[Run]:
        """Those that were claimed ahead and have waited for longer than was thought; they do so no more.
        ``patience_s``: how much longer than others one may wait. ``is_held_up``: only those of
        which this is so."""
        before_s = monotonic_s() - PATIENCE_S
        return self.take({run.key for run in self.runs
                          if run.received_s + patience_s(run) < before_s and run.deaths == 0
                          and (has_spark or not run.needs_spark) and (is_held_up is None or is_held_up(run))})

    def know(self, keys: Collection[Key], tasks: Mapping[bytes, Task]) -> None:
        """What the tasks of these claims went through before; of one that is left out, nothing is known."""
        for run in self.runs:
            if run.key in keys:
                task = tasks.get(run.claim.id)
                if task is not None:
                    run.context.know(task)
                run.deaths = 0 if task is None else deaths_under(run.context.earlier)

    def extend(self, key: Key, deadline: float) -> None:
        """The lease of a claim was renewed until then."""
        for run in self.runs:
            if run.key == key:
                run.context.extend(deadline)
