"""Draws roots, and looks after them, in the simplest way that is right: by the tasks themselves, all of them.

It stands for a feeder where a cluster in memory runs one thing after the other: whatever was left out is enqueued
again, by the completions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from skuld_py.calls.payloads import decode_call
from skuld_py.client.client import Client
from skuld_py.model.ids import from_text, time_of
from skuld_py.model.task import Task
from skuld_py.worker.workflows.children import LIFE_BYTES, Calls, Completed, Nursery, packed
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.segments import Emission, child_ids, root_ids

PART = 250


class Auditor:
    """Of a workflow with one input."""

    def __init__(self, client: Client, definition: Definition) -> None:
        self._client = client
        self._definition = definition
        self._source = definition.inputs[0]
        self._life = time_of(from_text(client.workflow(definition.id).plan))
        self._nursery = Nursery(definition, self._life)
        self._made_ms = time.time_ns() // 1_000_000
        self.repaired = 0

    def draw(self, values: Sequence[Any]) -> None:
        """Make roots of these."""
        made = root_ids(self._definition.id, self._source, 0, len(values), self._made_ms)
        calls = Calls(self._definition.entries[self._source], self._life)
        payloads = [calls.payload(packed(value), root, self._source)
                    for value, root in zip(values, made, strict=True)]
        for start in range(0, len(made), PART):
            self._client.enqueue_many(self._definition.queue(self._source), payloads[start : start + PART],
                                      ids=made[start : start + PART], **calls.options)

    def is_over(self) -> bool:
        """Whether all segments of all trees are completed; what is missing is enqueued again."""
        tasks = {task.id: (step, task) for step in self._definition.order for task in self._read(step)}
        missing: list[Completed] = []
        for step, task in tasks.values():
            if task.state == "completed" and self._definition.children[step]:
                done = self._completed(task)
                if any(child not in tasks for child in child_ids(done.segment, done.token, done.start_ms,
                                                                 len(done.emission.rows))):
                    missing.append(done)
        for lot in self._nursery.lots(missing):
            for start in range(0, len(lot.ids), PART):
                self._client.enqueue_many(lot.queue, lot.payloads[start : start + PART],
                                          ids=lot.ids[start : start + PART], **lot.options)
        self.repaired += len(missing)
        return not missing and all(task.state == "completed" for _, task in tasks.values())

    def _read(self, step: str) -> list[Task]:
        ids = [task.id for task in self._client.list(self._definition.queue(step))]
        return [task for start in range(0, len(ids), PART)
                for task in self._client.get_many(ids[start : start + PART])]

    def _completed(self, task: Task) -> Completed:
        tag = decode_call(task.payload).root
        claim = next(claim for claim in task.claims if claim.token == task.completed_token)
        return Completed(task.id, tag[:20], tag[20:-LIFE_BYTES].decode(), claim.token, claim.start_ms,
                         Emission.decode(task.result))
