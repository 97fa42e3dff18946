"""A workflow whose cluster is in memory, and whose segments are run one batch at a time, as a worker runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from skuld_py.client.options import Retry
from skuld_py.model.task import Task
from skuld_py.testing import MemoryClient
from skuld_py.worker.assignment import assigned
from skuld_py.worker.context import TaskContext
from skuld_py.worker.endings import Ending, Failed, Returned, Snoozed
from skuld_py.worker.registry import lookup
from skuld_py.worker.run import Run
from skuld_py.worker.workflows.children import Calls, packed
from skuld_py.worker.workflows.flow import Flow
from skuld_py.worker.workflows.plans import Standing
from skuld_py.workflow.acking.acks import Acks
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.definition.writing import digest_of, text_of
from skuld_py.workflow.segments import ack_queue, root_id


class Home:
    """A cluster with one workflow, and one worker's part of it. ``asked``: how often whether it lives."""

    def __init__(self, workflow: Mapping[str, Any] | Definition,
                 resolve: Callable[[str], Callable[..., Any]] = lookup) -> None:
        self.client = MemoryClient()
        self.definition: Definition = workflow if isinstance(workflow, Definition) else read(workflow)
        plan = self.client.enqueue(self.queue("plan"), text_of(self.definition).encode())
        self.standings = {self.definition.id: Standing("live", str(plan), digest_of(self.definition))}
        self.asked = 0
        self.requests: list[tuple[str, int]] = []
        self.killed: dict[str, str] = {}
        self.sealed: list[str] = []
        self.on_seal: Callable[[str], None] = lambda step: None
        self.flow = Flow(self, resolve)
        self._roots = 0

    # -- the cluster, as a worker asks it

    def standing(self, workflow: str) -> Standing:
        self.asked += 1
        return self.standings[workflow]

    def get(self, id: bytes | str) -> Task:
        return self.client.get(id)

    def get_many(self, ids: Sequence[bytes | str]) -> list[Task]:
        return self.client.get_many(ids)

    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, ids: Sequence[bytes | str] | None = None,
                     retry: Retry | None = None, headers: Mapping[str, str] | None = None) -> Any:
        payloads = list(payloads)
        self.requests.append((queue, len(payloads)))
        return self.client.enqueue_many(queue, payloads, ids=ids, retry=retry, headers=headers)

    def seal_output(self, workflow: str, step: str, *, life: int = 0) -> None:
        self.on_seal(step)
        self.sealed.append(step)
        if {*self.sealed} == {*self.definition.leaves}:
            self.standings[workflow] = attrs.evolve(self.standings[workflow], state="completed")

    def kill_workflow(self, workflow: str, reason: str, *, life: int = 0) -> None:
        self.killed[workflow] = reason

    # -- the test's side

    @property
    def life(self) -> int:
        """When it was submitted."""
        return self.standings[self.definition.id].life

    def queue(self, step: str) -> str:
        return self.definition.queue(step)

    def submit_again(self) -> None:
        """It has ended, the log has forgotten it, and it is submitted once more, in the same content."""
        self.client.advance(1)
        plan = self.client.enqueue(self.queue("plan"), text_of(self.definition).encode())
        self.standings[self.definition.id] = Standing("live", str(plan), digest_of(self.definition))

    def draw(self, *values: Any, step: str = "numbers") -> list[bytes]:
        """Roots with these values, as a feeder makes them."""
        calls = Calls(self.definition.entries[step], self.life)
        made: list[bytes] = []
        for value in values:
            root = root_id(self.definition.id, step, self._roots, self.client.cluster.wall_ms())
            self._roots += 1
            self.client.enqueue_many(self.queue(step), [calls.payload(packed(value), root, step)], ids=[root],
                                     **calls.options)
            made.append(root)
        return made

    def claimed(self, step: str, count: int = 100) -> list[Run]:
        """Runs of what waits for a step."""
        return [self.run_of(claim) for claim in self.client.claim(self.queue(step), n=count)]

    def run_of(self, claim: Any) -> Run:
        context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, self.client.get,
                              self.client.results_of, claim.clock, claim.headers)
        nothing: Any = None
        return Run(assigned(claim), context, nothing, nothing, nothing, nothing, self.flow.of(claim))

    def work(self, step: str, count: int = 100) -> list[Ending]:
        """Run what waits for a step, write how it ended, and emit."""
        runs = self.claimed(step, count)
        return self.conclude(runs, [run.ending() for run in runs])

    def conclude(self, runs: Sequence[Run], endings: Sequence[Ending]) -> list[Ending]:
        completed = [(run, ending) for run, ending in zip(runs, endings, strict=True)
                     if isinstance(ending, Returned)]
        if completed:
            self.client.complete_many([run.claim for run, _ in completed], [end.result for _, end in completed])
        for run, ending in zip(runs, endings, strict=True):
            if isinstance(ending, Failed):
                self.client.fail_many([run.claim], [ending.error], final=ending.is_final)
            if isinstance(ending, Snoozed):
                self.client.snooze_many([run.claim], ending.delay_ms / 1000)
        self.flow.written(lambda runs, what: None)([run for run, _ in completed], "completed")
        self.flow.settle()
        return list(endings)

    def waiting(self, step: str) -> list[Any]:
        """The values that wait for a step."""
        return sorted((assigned_value(task) for task in self.client.list(self.queue(step))
                       if task.state == "waiting"), key=repr)

    def acks(self, step: str = "numbers") -> list[Acks]:
        """What was told to the feeder of an input."""
        claims = self.client.claim(ack_queue(self.definition.id, step), n=100)
        self.client.complete_many(claims)
        return [Acks.decode(claim.payload) for claim in claims]


def assigned_value(task: Task) -> Any:
    from skuld_py.calls.payloads import decode_call

    return decode_call(task.payload).args[0]
