"""The caller's trace, as a header of the tasks it enqueues; behind the extra ``tracing``.

Where OpenTelemetry is not installed, or no span is current, tasks are as they were. It is looked up by
``sys.modules``: a program without a tracer has not imported the library, and pays nothing. A ``traceparent`` that
the caller gives goes before the current span.

Invariant: tasks whose id or unique name the caller chose get no header of ours. Enqueued again, perhaps from
another span, they must be the same tasks with the same content.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from skuld_py.model.tracing import TRACEPARENT


def traced(headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The headers, and the current span if there is one."""
    if "opentelemetry.trace" not in sys.modules or (headers is not None and TRACEPARENT in headers):
        return headers
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return headers
    return {**(headers or {}), TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}"
            f"-{int(context.trace_flags):02x}"}
