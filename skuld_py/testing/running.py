"""Running the tasks of a cluster in memory, one after another, in the test's own thread.

Each waiting task is claimed, the function it names is called as a worker calls it: with what it names of session
and ``TaskContext``, inside the worker's middleware, an async one in an event loop of its own. The outcome is
written as a worker writes it: its log, then the completion with the result. What tasks enqueue while they run is
run too. Nobody watches the time: ``timeout_s`` ends nothing here. Segments of workflows emit what they return.

A task that fails, or raises ``Snooze``, is run once: its claim is ended so when the run is over. Its retry
policy, or the delay, then says when it waits again; a test lets that time pass with ``advance``. Spark is
whatever the test gives, ``None`` by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.client.claims import Claim
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.ids import TaskId
from skuld_py.output.sweeping import publish_now
from skuld_py.worker.assignment import Work, assigned
from skuld_py.worker.context import TaskContext
from skuld_py.worker.endings import Ending, Failed, Returned, Snoozed, ended_by, ended_with, refused
from skuld_py.worker.middleware import Middleware, middleware_added
from skuld_py.worker.run import body_of
from skuld_py.workflow.definition.names import QUEUES

if TYPE_CHECKING:
    from skuld_py.testing.memory import MemoryClient
    from skuld_py.testing.segments import Segments

Middlewares = Sequence[Middleware]
LEASE_S = 3_600.0


@attrs.frozen
class Ran:
    """A task that was run: its function's name (empty when it names none), and what that returned or raised; and
    with what it was called. ``is_final``: no other attempt follows. ``snoozed_s``: it is to wait for so long."""

    id: TaskId
    queue: str
    name: str
    value: Any = None
    error: BaseException | None = None
    is_final: bool = False
    snoozed_s: float | None = None
    priority: int = 0
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = attrs.field(factory=dict)


def run_until_empty(client: MemoryClient, queues: Sequence[str], spark: Any, middleware: Middlewares | None,
                    raises: bool) -> list[Ran]:
    """What was run, in order. With ``raises`` the first error is raised, after its claim was failed."""
    around = middleware_added() if middleware is None else middleware
    ran: list[Ran] = []
    ended: list[tuple[Claim, Failed | Snoozed]] = []
    segments = _segments(client, queues)
    try:
        while claim := _next(client, queues):
            each, ending = _run(client, claim, spark, around, segments)
            ran.append(each)
            if isinstance(ending, Failed | Snoozed):
                ended.append((claim, ending))
            if each.error is not None and raises:
                raise each.error
    finally:
        _conclude(client, ended)
    return ran


def _conclude(client: MemoryClient, ended: Sequence[tuple[Claim, Failed | Snoozed]]) -> None:
    for claim, ending in ended:
        if isinstance(ending, Snoozed):
            client.snooze_many([claim], ending.delay_ms / 1000)
        else:
            client.fail_many([claim], [ending.error], final=ending.is_final)


def _next(client: MemoryClient, queues: Sequence[str]) -> Claim | None:
    claims = (client.claim_one(queue, lease_s=LEASE_S) for queue in queues)
    return next((claim for claim in claims if claim is not None), None)


def _run(client: MemoryClient, claim: Claim, spark: Any, middleware: Middlewares,
         segments: Segments | None) -> tuple[Ran, Ending]:
    context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get, client.results_of,
                          claim.clock, claim.headers)
    ran = Ran(claim.id, claim.queue, "", priority=claim.priority)
    assignment = assigned(claim)
    work = assignment.work
    segment = None if segments is None else segments.run_of(claim, assignment, context)
    if isinstance(work, Work):
        ran = attrs.evolve(ran, name=work.call.name, args=work.call.args, kwargs=work.call.kwargs)
        work = work.made()
    if isinstance(work, Refused):
        _write(client, claim, context)
        return attrs.evolve(ran, error=work, is_final=True), refused(work)
    ending: Ending
    if segments is not None and segment is not None and (early := segments.begin(segment)) is not None:
        return attrs.evolve(ran, error=_error_of(early), is_final=_is_final(early)), early
    try:
        value = _called(work, context, spark, middleware)
        carried = context.outputs.sealed(value)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        ending = ended_by(error, work.traits)
        is_snoozed = isinstance(ending, Snoozed)
        ran = attrs.evolve(ran, error=None if is_snoozed else error,
                           snoozed_s=ending.delay_ms / 1000 if isinstance(ending, Snoozed) else None)
    else:
        ending = ended_with(carried)
        ran = attrs.evolve(ran, value=value) if isinstance(ending, Returned) else attrs.evolve(
            ran, error=Refused("bad_result", ending.words))
    _write(client, claim, context)
    if segments is not None and segment is not None:
        ending = segments.end(segment, ending)
        ran = attrs.evolve(ran, error=(ran.error or _error_of(ending)) if isinstance(ending, Failed) else None)
    if isinstance(ending, Returned):
        client.complete(claim, ending.result)
        publish_now(str(claim.id), context.outputs, client)
        if segments is not None and segment is not None:
            segments.completed(segment)
    return attrs.evolve(ran, is_final=_is_final(ending)), ending


def _segments(client: MemoryClient, queues: Sequence[str]) -> Segments | None:
    """For those who test a workflow."""
    if not any(queue.startswith(QUEUES) for queue in queues):
        return None
    from skuld_py.testing.segments import Segments

    return Segments(client)


def _is_final(ending: Ending) -> bool:
    return isinstance(ending, Failed) and ending.is_final


def _error_of(ending: Ending) -> Refused | None:
    """What a workflow makes of a segment, as an error."""
    return Refused("failed", ending.words) if isinstance(ending, Failed) else None


def _called(work: Work, context: TaskContext, spark: Any, middleware: Middlewares) -> Any:
    body, call = body_of(work, middleware), work.call
    value = body(spark, context, *call.args, **call.kwargs)
    if work.traits.is_async:
        value = _awaited(value)
    context.join()
    return value


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """In an event loop of its own; in another thread where one runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, coroutine).result()


def _write(client: MemoryClient, claim: Claim, context: TaskContext) -> None:
    at_ms = client.cluster.wall_ms()
    context.journal.close(at_ms)
    while (batch := context.journal.take(client.cluster.steady_s(), at_ms)) is not None:
        try:
            client.update(claim, batch.entries, **batch.said)
        except SkuldError:
            return  # the lease ended while the function moved the clock; the completion counts all the same
        context.journal.confirm()
