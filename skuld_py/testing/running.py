"""Running the tasks of a cluster in memory, one after another, in the test's own thread.

Each waiting task is claimed, the function it names is called with a real ``TaskContext``, inside the worker's
middleware, and the outcome is written as a worker writes it: its log, then the completion with the result. What
tasks enqueue while they run is run too.

A task that fails is run once: its claim is failed, with the error, when the run is over. Its retry policy then
says when it waits again; a test lets that time pass with ``advance``. Spark is whatever the test gives, ``None``
by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.calls.payloads import decode_call
from skuld_py.calls.results import encode_result
from skuld_py.client.claims import Claim
from skuld_py.errors import SkuldError
from skuld_py.model.ids import TaskId
from skuld_py.worker.context import TaskContext
from skuld_py.worker.middleware import Middleware, middleware_added, surround
from skuld_py.worker.outcome import error_of
from skuld_py.worker.registry import function_of, rebuilt

if TYPE_CHECKING:
    from skuld_py.testing.memory import MemoryClient

Middlewares = Sequence[Middleware]
LEASE_S = 3_600.0


@attrs.frozen
class Ran:
    """A task that was run: its function's name (empty when it names none), and what that returned or raised.
    ``is_final``: nothing that the function does could have helped."""

    id: TaskId
    queue: str
    name: str
    value: Any = None
    error: Exception | None = None
    is_final: bool = False


def run_until_empty(client: MemoryClient, queues: Sequence[str], spark: Any, middleware: Middlewares | None,
                    raises: bool) -> list[Ran]:
    """What was run, in order. With ``raises`` the first error is raised, after its claim was failed."""
    around = middleware_added() if middleware is None else middleware
    ran: list[Ran] = []
    failed: dict[bool, list[tuple[Claim, bytes]]] = {False: [], True: []}
    try:
        while claim := _next(client, queues):
            ran.append(_run(client, claim, spark, around))
            error = ran[-1].error
            if error is not None:
                failed[ran[-1].is_final].append((claim, error_of(error)))
                if raises:
                    raise error
    finally:
        for is_final, ended in failed.items():
            if ended:
                client.fail_many([claim for claim, _ in ended], [error for _, error in ended], final=is_final)
    return ran


def _next(client: MemoryClient, queues: Sequence[str]) -> Claim | None:
    claims = (client.claim_one(queue, lease_s=LEASE_S) for queue in queues)
    return next((claim for claim in claims if claim is not None), None)


def _run(client: MemoryClient, claim: Claim, spark: Any, middleware: Middlewares) -> Ran:
    context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get, client.results_of,
                          claim.clock, claim.headers)
    name, is_final = "", True
    try:
        call = decode_call(claim.payload)
        name = call.name
        called = function_of(call)
        call = rebuilt(called, call)
        function = surround(called, call, middleware)
        is_final = False
        value = function(spark, context, *call.args, **call.kwargs)
        context.join()
        is_final = True
        result = encode_result(value)
    except Exception as error:
        _write(client, claim, context)
        return Ran(claim.id, claim.queue, name, error=error, is_final=is_final)
    _write(client, claim, context)
    client.complete(claim, result)
    return Ran(claim.id, claim.queue, name, value)


def _write(client: MemoryClient, claim: Claim, context: TaskContext) -> None:
    at_ms = client.cluster.wall_ms()
    context.journal.close(at_ms)
    while (batch := context.journal.take(client.cluster.steady_s(), at_ms)) is not None:
        try:
            client.update(claim, batch.entries, seq=batch.seq)
        except SkuldError:
            return  # the lease ended while the function moved the clock; the completion counts all the same
        context.journal.confirm()
