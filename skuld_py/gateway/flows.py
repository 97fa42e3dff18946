"""The verbs about workflows and the coordination log that wait, or are streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from skuld_py.client.flows import LogLine
from skuld_py.client.steady import steady_s
from skuld_py.gateway.call import Call
from skuld_py.gateway.reading import PAGE, until_stopping
from skuld_py.verbs.workflows import LogEntryDocument, WorkflowDocument, document, entry


async def await_workflow(call: Call, workflow: str, wait_s: float) -> WorkflowDocument:
    """A workflow once it has ended."""
    if not wait_s:
        return document(await call.client.workflow(workflow))
    waiting = asyncio.ensure_future(call.client.await_workflow(
        workflow, timeout_s=min(wait_s, call.limits.wait_s)))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((waiting, going), return_when=asyncio.FIRST_COMPLETED)
        return document(waiting.result() if waiting.done() else await call.client.workflow(workflow))
    finally:
        waiting.cancel()
        going.cancel()


async def follow_log(call: Call, position: int, wait_s: float) -> AsyncIterator[list[LogEntryDocument]]:
    """Entries that are there, a page at a time; then those to come."""
    until = steady_s() + min(wait_s, call.limits.wait_s)
    async for page in _lines(call, position, 0):
        yield [*map(entry, page)]
        position = page[-1].position + 1 if page else position
    if wait_s:
        async for page in until_stopping(call, _lines(call, position, max(0.0, until - steady_s()))):
            yield [*map(entry, page)]


async def _lines(call: Call, position: int, follow_s: float) -> AsyncIterator[list[LogLine]]:
    page: list[LogLine] = []
    async for line in call.client.follow_log(position, follow_s=follow_s):
        page.append(line)
        if follow_s or len(page) == PAGE:
            yield page
            page = []
    yield page
