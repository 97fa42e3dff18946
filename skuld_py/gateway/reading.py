"""The verbs that change nothing.

What may be long comes as a stream, a page at a time: neither the gateway nor the cluster holds more of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.gateway import requests
from skuld_py.gateway.call import Call
from skuld_py.model.task import LogEntry
from skuld_py.verbs import documents


async def get(call: Call, asked: requests.Get) -> documents.TaskDocument:
    """One task."""
    return documents.task(await call.backend.get(call.task_id, asked.min_seq), has_logs=True)


async def results(call: Call, asked: requests.Results) -> documents.Ends:
    """How tasks have ended, once they have."""
    if not asked.wait_s:
        return documents.Ends(ends=[documents.end(end) for end in await call.backend.ends(asked.ids, 0)])
    waiting = asyncio.ensure_future(call.backend.ends(asked.ids, min(asked.wait_s, call.limits.wait_s)))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((waiting, going), return_when=asyncio.FIRST_COMPLETED)
        ends = waiting.result() if waiting.done() else await call.backend.ends(asked.ids, 0)
    finally:
        waiting.cancel()
        going.cancel()
    return documents.Ends(ends=[documents.end(end) for end in ends])


async def get_many(call: Call, asked: requests.GetMany) -> AsyncIterator[list[documents.TaskDocument]]:
    """Those that exist."""
    async for found in call.backend.get_many(list(dict.fromkeys(asked.ids))):
        yield [documents.task(view, has_logs=True) for view in found]


async def list_tasks(call: Call, asked: requests.Page) -> AsyncIterator[list[documents.TaskDocument]]:
    """All, in order."""
    async for found in call.backend.list(asked.queue, asked.limit, states=asked.states, since=asked.since_s,
                                         until=asked.until_s):
        yield [documents.task(view, has_logs=False) for view in found]


async def log(call: Call, asked: requests.Follow) -> AsyncIterator[list[documents.LogLine]]:
    """What claims have noted; then what they note."""
    until, last = steady_s() + min(asked.wait_s, call.limits.wait_s), None
    async for entries in call.backend.log(call.task_id, asked.token, None, 0):
        yield [documents.log_line(entry) for entry in entries]
        last = entries[-1] if entries else last
    if asked.follow:
        async for entries in _until_stopping(call, call.backend.log(call.task_id, asked.token, last,
                                                                    max(0.0, until - steady_s()))):
            yield [documents.log_line(entry) for entry in entries]


async def _until_stopping(call: Call, pages: AsyncIterator[list[LogEntry]]) -> AsyncIterator[list[LogEntry]]:
    """Pages as they come, as long as the gateway runs."""
    stopping = asyncio.ensure_future(call.stopping())
    coming: asyncio.Future[list[LogEntry] | None] = asyncio.ensure_future(anext(pages, None))
    try:
        while True:
            await asyncio.wait((coming, stopping), return_when=asyncio.FIRST_COMPLETED)
            page = coming.result() if coming.done() else None
            if page is None:
                return
            yield page
            coming = asyncio.ensure_future(anext(pages, None))
    finally:
        stopping.cancel()
        coming.cancel()


async def count(call: Call, asked: requests.Count) -> documents.Counted:
    """How many."""
    return documents.Counted(count=await call.backend.count(asked.queue, asked.states))


async def queues(call: Call, _: requests.NoInput) -> documents.Queues:
    """How many of each queue, in which state."""
    rows = sorted((await call.backend.depths()).items())
    return documents.Queues(queues=[
        documents.QueueDepth(queue=queue, waiting=depth.waiting, claimed=depth.claimed, completed=depth.completed,
                           scheduled=depth.scheduled, blocked=depth.blocked, cancelled=depth.cancelled,
                           dead=depth.dead) for queue, depth in rows])


async def status(call: Call, _: requests.NoInput) -> dict[str, Any]:
    """The cluster."""
    found = attrs.asdict(await call.backend.status())
    return {name: value for name, value in found.items() if name != "request"}


async def health(_: Call, __: requests.NoInput) -> documents.Health:
    """The gateway."""
    return documents.Health(is_well=True)
