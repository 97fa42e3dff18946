"""A trace goes on from the span that enqueues a task to the function that runs it, and nothing else goes along."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace

from skuld_py.calls.payloads import Call
from skuld_py.client.tracing import traced
from skuld_py.model.tracing import TRACEPARENT, is_traceparent
from skuld_py.testing import MemoryClient
from skuld_py.worker.context import TaskContext
from skuld_py.worker.tracing import spanned

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPAN = trace.NonRecordingSpan(trace.SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, False,
                                                trace.TraceFlags(1)))


@pytest.mark.parametrize("text", [
    "", "x", PARENT.upper(), PARENT + "-00", "ff" + PARENT[2:], "00-" + "0" * 32 + PARENT[35:], PARENT[:36] +
    "0" * 16 + "-01", PARENT + "\n", PARENT.replace("-", "_")])
def test_what_is_no_traceparent_is_none(text: str) -> None:
    assert is_traceparent(PARENT) and not is_traceparent(text)


def test_the_current_span_becomes_a_header_and_a_given_one_goes_before_it() -> None:
    assert traced(None) is None and traced({"a": "b"}) == {"a": "b"}
    with trace.use_span(SPAN):
        assert traced(None) == {TRACEPARENT: PARENT}
        assert traced({"a": "b"}) == {"a": "b", TRACEPARENT: PARENT}
        assert traced({TRACEPARENT: "mine"}) == {TRACEPARENT: "mine"}


def test_a_task_enqueued_in_a_span_has_it_and_one_with_a_chosen_id_has_not() -> None:
    with MemoryClient() as client:
        [chosen] = client.new_ids()
        with trace.use_span(SPAN):
            client.enqueue("q", b"a")
            client.enqueue("q", b"b", id=chosen)
            client.enqueue("q", b"c", unique="n")
        client.enqueue("q", b"b", id=chosen)
        found = {claim.payload: dict(claim.headers) for claim in client.claim("q", n=3)}

    assert found == {b"a": {TRACEPARENT: PARENT}, b"b": {}, b"c": {}}


def context_with(headers: dict[str, str]) -> TaskContext:
    def nothing(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is not read")
    with MemoryClient() as client:
        return TaskContext(client.new_ids()[0], 1, "q", 1e18, nothing, nothing, headers=headers)


def test_a_function_sees_the_trace_it_was_enqueued_in() -> None:
    assert context_with({TRACEPARENT: PARENT}).traceparent == PARENT
    assert context_with({}).traceparent is None and context_with({TRACEPARENT: "x"}).traceparent is None


def parent_seen(headers: dict[str, str]) -> str:
    """The trace that a function sees as current."""
    def function(spark: Any, context: TaskContext) -> str:
        return format(trace.get_current_span().get_span_context().trace_id, "032x")
    seen: str = spanned(function, Call("f", [], {}))(None, context_with(headers))
    return seen


def test_a_function_runs_within_the_trace_of_its_task_and_a_bad_header_is_no_trace() -> None:
    assert parent_seen({TRACEPARENT: PARENT}) == PARENT[3:35]
    assert parent_seen({TRACEPARENT: "00-zz"}) == "0" * 32 == parent_seen({})


def test_without_the_library_the_function_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.tracing._is_installed", lambda: False)

    assert spanned(len, Call("f", [], {})) is len
