"""Tasks of Structured Streaming: all that is new in a source goes to a sink, and then the task is over.

How far it is stands in the checkpoint below ``BASE/TASK``. It is the task's and not the claim's, so a later claim
goes on there. Two claims that run at once by mistake meet there, too: Spark gives each batch to one of them.

Invariant: a function that a stream names is one of the application's modules, defined there: not what these
import, and nothing else that Python could find.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from skuld_py.calls.kinds import STREAM
from skuld_py.calls.kinds.fields import Option
from skuld_py.calls.kinds.stream import Place, StreamTask, checked
from skuld_py.worker.context import TaskContext
from skuld_py.worker.directives import Dead
from skuld_py.worker.kinds.allowed import allowed, final, listed
from skuld_py.worker.kinds.sql import set_all
from skuld_py.worker.registry import task

LOOK_S = 0.5


@task(name=STREAM)
def run_stream(spark: Any, context: TaskContext, source: dict[str, Any], sink: dict[str, Any], checkpoints: str, *,
               transform: str | None = None, conf: dict[str, Option] | None = None) -> dict[str, int]:
    """Stream until all that was there is done. ``batches`` and ``rows`` of this claim, and ``first_batch``, its
    number: above 0 in a claim that went on where an earlier one was."""
    now = allowed(STREAM)
    with final():
        job = checked(source, sink, checkpoints, transform=transform, conf=conf)
    function = None if job.transform is None else transform_of(job.transform, now.apps)
    set_all(spark, job.conf)
    query = _started(spark, context, job, function)
    batches: dict[int, int] = {}
    try:
        while not query.awaitTermination(LOOK_S):
            context.check()
            _note(query, batches, context)
        context.check()  # a query that was stopped ends as one that is through
    finally:
        query.stop()
    _note(query, batches, context)
    return {"batches": len(batches), "rows": sum(batches.values()), "first_batch": min(batches, default=0)}


def transform_of(name: str, apps: Sequence[str]) -> Callable[[Any], Any]:
    """The function of the application; ``Dead`` for what is none."""
    module, _, function = name.partition(":")
    packages = {app.partition(".")[0] for app in apps}
    if module.partition(".")[0] not in packages:
        raise Dead(f"transform: {name!r} is in none of the worker's modules, {listed(apps)}; name its module by"
                   " --app")
    try:
        found = getattr(sys.modules.get(module) or import_module(module), function, None)
    except ImportError as error:
        raise Dead(f"transform: {module} cannot be imported: {error}") from error
    if not inspect.isfunction(found) or found.__module__ != module:
        raise Dead(f"transform: {module} defines no function {function}")
    return found


def _started(spark: Any, context: TaskContext, job: StreamTask, function: Callable[[Any], Any] | None) -> Any:
    reader = spark.readStream.format(job.source.format).options(**job.source.options)
    if job.source.schema is not None:
        reader = reader.schema(job.source.schema)
    df = reader.load(*_paths(job.source))
    writer = (df if function is None else function(df)).writeStream
    return (writer.format(job.sink.format).options(**job.sink.options).outputMode(job.sink.mode)
            .option("checkpointLocation", f"{job.checkpoints.rstrip('/')}/{context.id}")
            .queryName(context.name).trigger(availableNow=True).start(*_paths(job.sink)))


def _paths(place: Place) -> list[str]:
    return [] if place.path is None else [place.path]


def _note(query: Any, batches: dict[int, int], context: TaskContext) -> None:
    """What the query did since it was looked at; how much is left only its source could tell."""
    for progress in query.recentProgress:
        if "addBatch" in progress.durationMs:
            batches[progress.batchId] = progress.numInputRows
    if batches:
        rows = sum(batches.values())
        context.progress(rows, rows, f"{len(batches)} batches, {rows} rows")
