"""Writing all values of an output as one dataset, once all of them are there.

The values are what the output's segments returned: results, which outlive their claims and count once, however
often a segment ran. They are read page by page, in the order of their ids, and written below the path through this
task's own output, so they become visible together, when it is completed.

Invariant: each segment of the output that was completed is written once, and nothing else: none of an earlier
workflow of the same id.

Price: the values are kept by the cluster until they are gathered. So a workflow must take less time than ended
tasks are kept for. What is large belongs below ``context.output`` of the step's function.

Rejected: an output for each segment, as functions may have: a thousand roots were a thousand directories. One for
each batch of a worker: a batch's segments are completed one by one, and some of them again elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skuld_py.calls.payloads import call, function_of
from skuld_py.calls.results import jsonable
from skuld_py.output.output import Output
from skuld_py.worker.context import TaskContext
from skuld_py.worker.directives import Dead
from skuld_py.worker.registry import task
from skuld_py.worker.workflows.children import KEEP, life_bytes
from skuld_py.workflow.definition.entries import Target
from skuld_py.workflow.definition.names import queue_of

SEAL, GATHER, GATHER_FRAME = "skuld:seal", "skuld:gather", "skuld:gather_frame"
PLAIN = ("json", "text")
"""Formats that need no Spark."""
LISTED, PAGE = 1_000, 500
MARGIN_S = 600.0
"""How far clocks may be apart: no segment is older than its workflow's submission."""


def gather_call(workflow: str, step: str, life: int, target: Target) -> bytes:
    """The payload of the task that gathers a leaf's values."""
    name = GATHER if target.format in PLAIN else GATHER_FRAME
    return call(name, workflow, step, life, target.path, target.format)


@task(name=GATHER)
def gather(context: TaskContext, workflow: str, step: str, life: int, path: str, format: str) -> dict[str, int]:
    """Write them as lines of JSON, or of text; how many."""
    count = [0]
    values = _counted(_values(context, workflow, step, life), count)
    output = context.output(path)
    if format == "json":
        output.write_json("part.json", map(jsonable, values))
    else:
        _write_text(output, values)
    return {"segments": count[0]}


@task(name=GATHER_FRAME)
def gather_frame(spark: Any, context: TaskContext, workflow: str, step: str, life: int, path: str, format: str
                 ) -> dict[str, int]:
    """Write them as a DataFrame: its columns are the keys of tables, and ``value`` of what is none. No format has
    rows without columns, so of no values there is a dataset without files."""
    values = map(jsonable, _values(context, workflow, step, life))
    rows = [value if isinstance(value, dict) else {"value": value} for value in values]
    output = context.output(path)
    if any(rows):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        output.write(spark.read.json(spark.sparkContext.parallelize(lines)), format)
    return {"segments": len(rows)}


def _write_text(output: Output, values: Iterator[Any]) -> None:
    with output.open("part.txt") as file:
        for value in values:
            file.write(f"{value}\n".encode())


def _values(context: TaskContext, workflow: str, step: str, life: int) -> Iterator[Any]:
    """What the segments of a leaf returned: of a function a list is many values, and nothing is none."""
    if context.workflows is None:
        raise Dead(f"{GATHER}: this task is not in a queue of a workflow; do not enqueue it by hand")
    client = context.workflows.cluster.client
    page, mark = list[bytes](), life_bytes(life)
    since_s = max(0.0, life / 1000 - MARGIN_S)
    for found in client.list(queue_of(workflow, step), since=since_s, page=LISTED):
        page.append(found.id)
        if len(page) == PAGE:
            yield from _read(context, page, mark)
            page = []
    yield from _read(context, page, mark)


def _read(context: TaskContext, page: list[bytes], mark: bytes) -> Iterator[Any]:
    context.check()
    for found in context.workflows.cluster.client.get_many(page) if page else ():
        if not found.is_completed or not found.payload.endswith(mark):
            continue
        if function_of(found.payload) == KEEP:
            yield found.result
        elif isinstance(found.result, list):
            yield from found.result
        elif found.result is not None:
            yield found.result


def _counted(values: Iterator[Any], count: list[int]) -> Iterator[Any]:
    for value in values:
        count[0] += 1
        yield value
