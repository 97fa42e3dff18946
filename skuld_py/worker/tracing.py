"""A span around each task's function, as a child of the span that enqueued it; behind the extra ``tracing``.

A middleware of the worker's own, outside all others. Without the library it is not added. What a task's header
says is checked before a tracer sees it: it may come from anybody who enqueues.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from importlib.util import find_spec
from typing import Any

from skuld_py.calls.payloads import Call
from skuld_py.worker.context import TaskContext


def spanned(function: Callable[..., Any], call: Call, *, is_async: bool = False) -> Callable[..., Any]:
    """The function within a span of its own; the function itself where there is no tracing."""
    if not _is_installed():
        return function

    def within(spark: Any, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        with _span(call, context):
            return function(spark, context, *args, **kwargs)

    async def awaited(spark: Any, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        with _span(call, context):
            return await function(spark, context, *args, **kwargs)
    return awaited if is_async else within


@cache
def _is_installed() -> bool:
    return find_spec("opentelemetry") is not None


def _span(call: Call, context: TaskContext) -> AbstractContextManager[Any]:
    from opentelemetry import trace

    span: AbstractContextManager[Any] = trace.get_tracer("skuld_py").start_as_current_span(
        f"task {call.name}", context=_parent(context), kind=trace.SpanKind.CONSUMER,
        attributes={"messaging.system": "skuld", "messaging.destination.name": context.queue,
                    "messaging.message.id": str(context.id)})
    return span


def _parent(context: TaskContext) -> Any:
    """The enqueuer's span, as a context; None when the task has none that is valid."""
    text = context.traceparent
    if text is None:
        return None
    from opentelemetry import trace

    _, trace_id, span_id, flags = text.split("-")
    parent = trace.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True,
                               trace_flags=trace.TraceFlags(int(flags, 16)))
    return trace.set_span_in_context(trace.NonRecordingSpan(parent))
