"""Segments of workflows in a cluster in memory: what a worker does around the functions of steps, in the test's
own thread, and at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from skuld_py.client.claims import Claim
from skuld_py.worker.assignment import Assignment
from skuld_py.worker.context import TaskContext
from skuld_py.worker.endings import Ending
from skuld_py.worker.run import Run
from skuld_py.worker.workflows.cluster import ClientCluster
from skuld_py.worker.workflows.finding import found
from skuld_py.worker.workflows.flow import Flow

if TYPE_CHECKING:
    from skuld_py.testing.memory import MemoryClient


class Segments:
    """Those that one run of a cluster meets."""

    def __init__(self, client: MemoryClient) -> None:
        self._flow = Flow(ClientCluster(cast(Any, client)), lambda name: found(name, (name.partition(":")[0],)))

    def run_of(self, claim: Claim, assignment: Assignment, context: TaskContext) -> Run | None:
        """A task of a workflow as its worker has it; None for any other."""
        nothing = cast(Any, None)
        if self._flow.of(claim) is None:
            return None
        return Run(assignment, context, nothing, nothing, nothing, nothing, self._flow)

    def begin(self, run: Run) -> Ending | None:
        """How it ended, if its function must not be called."""
        return self._flow.begin([run]).get(run.key)

    def end(self, run: Run, ending: Ending) -> Ending:
        """What becomes of it."""
        return self._flow.end([(run, ending)])[0][1]

    def completed(self, run: Run) -> None:
        """Enqueue what it emitted."""
        self._flow.written(lambda runs, what: None)([run], "completed")
        self._flow.settle()
