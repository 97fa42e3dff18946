"""What a step of a workflow returned, drawn by an input of another one, or of the same.

Its completed tasks are read in the order of their ids, once the step is finished: its workflow is complete, or all
inputs that lead to the step are exhausted. From then on they are what they are, so what was drawn is drawn again,
as long as they are kept. Until then nothing is drawn.

So an input with ``together`` is where values meet: its one root is the list of all that a step returned.

Of a workflow that was killed nobody knows which steps were finished, but for who resumes it: he says so
(``resuming``). A definition names what it was resumed from by content, and that is compared.

Rejected: to draw while the step runs. Ids are in no order of completion, so what comes later stands in between. To
snooze the feeder: each claim stays in its task's history, and waiting may take days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from skuld_py.calls.payloads import function_of
from skuld_py.errors import Malformed, Refused
from skuld_py.model.ids import to_text
from skuld_py.model.task import Task
from skuld_py.worker.workflows.children import KEEP, life_bytes, packed, unpacked
from skuld_py.worker.workflows.plans import LIVE
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.resuming import contents
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.segments import EMISSION_BYTES_MAX, Emission

PAGE = 500
KILLED = "killed"
SPARE_BYTES = 256


@attrs.frozen
class Returned:
    """The values of steps that are finished."""

    client: Any
    source: Outputs
    life: int
    definition: Definition
    steps: tuple[str, ...]

    def values(self) -> Iterator[Any]:
        """Each of them, or one list of all."""
        each = (value for step in self.steps for task in self._tasks(step) for value in self._of(step, task))
        if not self.source.together:
            yield from each
            return
        values, size = [], 0
        for value in each:
            values.append(value)
            size += len(packed(value))
            if size > EMISSION_BYTES_MAX - SPARE_BYTES:
                raise bad(f"together: what {self.steps[0]} returned has more than {EMISSION_BYTES_MAX} bytes; let"
                          " it write files, and return their paths")
        yield values

    def _tasks(self, step: str) -> Iterator[Task]:
        page: list[bytes] = []
        for found in self.client.list(self.definition.queue(step), states=("completed",)):
            page.append(found.id)
            if len(page) == PAGE:
                yield from self._read(page)
                page = []
        if page:
            yield from self._read(page)

    def _read(self, page: list[bytes]) -> Iterator[Task]:
        """Those of this workflow, none of an earlier one of the same id."""
        mark = life_bytes(self.life)
        return (task for task in self.client.get_many(page) if task.payload.endswith(mark))

    def _of(self, step: str, task: Task) -> Sequence[Any]:
        """What one segment returned. Of what went several ways, each value once."""
        if not self.definition.children[step]:
            if function_of(task.payload) == KEEP:
                return [task.result]
            return task.result if isinstance(task.result, list) else [] if task.result is None else [task.result]
        try:
            rows = Emission.decode(task.result).rows
        except Malformed:
            raise bad(f"step: segment {to_text(task.id)} of {self.definition.id} was completed by something else"
                      " than its workflow, which does not say what it emits") from None
        if self.source.routed:
            return [[[to, unpacked(value)] for to, value in rows]] if rows else []
        ways: dict[str, Counter[bytes]] = {}
        for to, value in rows:
            ways.setdefault(to, Counter())[value] += 1
        most = Counter[bytes]()
        for way in ways.values():
            most |= way
        left = Counter[bytes](most)
        found = []
        for _, value in rows:
            if left[value] > 0:
                left[value] -= 1
                found.append(unpacked(value))
        return found


def returned(flow: Any, mine: str, source: Outputs) -> Returned | None:
    """What is to be drawn for an input of the workflow ``mine``; None until it is there. ``Refused`` as
    ``bad_source`` for what never will be."""
    name = source.workflow or mine
    try:
        standing, definition = flow.known(name)
    except Refused as refusal:
        if refusal.code not in ("no_such_workflow", "no_such_task"):
            raise
        raise bad(f"workflow: {name} is not known any more, or never was: {refusal.message}") from None
    if source.step and source.step not in definition.entries:
        raise bad(f"workflow.step: {name} has no step {source.step}")
    if source.content and contents(definition).get(source.step) != source.content:
        raise bad(f"workflow.content: step {source.step} of {name} is not what was taken over")
    steps = (source.step,) if source.step else definition.leaves
    if standing.state == KILLED and not source.content:
        raise bad(f"workflow: {name} was killed, and nobody knows which of its steps were finished; resume from"
                  " it, naming those")
    above = {each for step in steps for each in definition.inputs_above(step)}
    if standing.state == LIVE and not above <= {*standing.exhausted} and not source.content:
        return None
    return Returned(flow.cluster.client, source, standing.life, definition, steps)


def bad(problem: str) -> Refused:
    """What ends the workflow that draws."""
    return Refused("bad_source", problem, field=problem.partition(":")[0])
