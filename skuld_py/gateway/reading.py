"""The reading verbs that are more than one call of the client.

Long answers are streams, a page at a time: neither the gateway nor the cluster holds more than a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import time
from typing import Any, TypeVar

from skuld_py.client.reading import GET_TASKS, TaskPage
from skuld_py.client.steady import steady_s
from skuld_py.errors import KEY_CODES, SkuldError
from skuld_py.gateway.call import Call
from skuld_py.gateway.problems import refusal
from skuld_py.model.ids import TaskId
from skuld_py.model.task import LogEntry, Task
from skuld_py.verbs import documents, situations
from skuld_py.verbs.attention import Facts
from skuld_py.verbs.options import FILTERS
from skuld_py.verbs.workers import WorkersDocument, document

PAGE = 500
T = TypeVar("T")


async def get(call: Call, min_seq: int) -> documents.TaskDocument:
    """One task."""
    return documents.task(await call.client.get(call.task_id, min_seq=min_seq), has_logs=True)


async def results(call: Call, ids: Sequence[TaskId], wait_s: float) -> documents.Ends:
    """How tasks have ended, once they have."""
    if not wait_s:
        return documents.Ends(ends=[documents.end(end) for end in await call.client.ends(ids)])
    waiting = asyncio.ensure_future(call.client.ends(ids, wait_s=min(wait_s, call.limits.wait_s)))
    going = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((waiting, going), return_when=asyncio.FIRST_COMPLETED)
        ends = waiting.result() if waiting.done() else await call.client.ends(ids)
    finally:
        waiting.cancel()
        going.cancel()
    return documents.Ends(ends=[documents.end(end) for end in ends])


async def get_many(call: Call, ids: Sequence[TaskId]) -> AsyncIterator[list[documents.TaskDocument]]:
    """Those that exist, a few at a time: as many as may come in one answer."""
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), GET_TASKS):
        found = await call.client.get_many(wanted[start : start + GET_TASKS])
        yield [documents.task(view, has_logs=True) for view in found]


async def list_tasks(call: Call, limit: int | None, **which: Any) -> AsyncIterator[list[documents.TaskDocument]]:
    """All, in order."""
    is_filtered = any(which[name] is not None for name in (*FILTERS, "key"))
    size, left = PAGE if is_filtered else min(PAGE, limit or PAGE), limit
    page: list[Task] = []
    async for task in call.client.list(page=size, **which):
        page.append(task)
        left = None if left is None else left - 1
        if len(page) == size or left == 0:
            yield [documents.task(view, has_logs=False) for view in page]
            page = []
        if left == 0:
            return
    if page:
        yield [documents.task(view, has_logs=False) for view in page]


async def list_pages(call: Call, limit: int | None, after: TaskId | None, **which: Any) -> AsyncIterator[TaskPage]:
    """The same as nodes give them, ``limit`` at a time, pages without a task too: for who stops half way, and
    makes documents of what he shows."""
    is_over = False
    while not is_over:
        page = await call.client.list_page(page=min(PAGE, limit or PAGE), after=after, **which)
        yield page
        after, is_over = page.upto, page.upto is None


async def log(call: Call, token: int | None, follow: bool,
              wait_s: float) -> AsyncIterator[list[documents.LogLine]]:
    """The log entries of claims; then those to come."""
    until, last = steady_s() + min(wait_s, call.limits.wait_s), None
    async for entries in _noted(call, token, None, 0):
        yield [documents.log_line(entry) for entry in entries]
        last = entries[-1] if entries else last
    if follow:
        coming = _noted(call, token, last, max(0.0, until - steady_s()))
        async for entries in until_stopping(call, coming):
            yield [documents.log_line(entry) for entry in entries]


async def _noted(call: Call, token: int | None, after: LogEntry | None,
                 follow_s: float) -> AsyncIterator[list[LogEntry]]:
    """Log entries that are there, a page at a time; or entries to come, one by one."""
    page: list[LogEntry] = []
    async for entry in call.client.log(call.task_id, token=token, after=after, follow_s=follow_s):
        page.append(entry)
        if follow_s or len(page) == PAGE:
            yield page
            page = []
    yield page


async def until_stopping(call: Call, pages: AsyncIterator[list[T]]) -> AsyncIterator[list[T]]:
    """Pages as they come, as long as the gateway runs."""
    stopping = asyncio.ensure_future(call.stopping())
    coming: asyncio.Future[list[T] | None] = asyncio.ensure_future(anext(pages, None))
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


async def status(call: Call) -> dict[str, Any]:
    """The cluster."""
    greeted, seen = await call.client.greeting(), await call.client.overview()
    return situations.status_of(Facts(greeted.cluster, greeted.replicas, greeted.skew_ms, seen.described,
                                      now_ms=round(time() * 1000), silent=seen.silent, untold=seen.untold))


async def workers(call: Call) -> WorkersDocument:
    """Those that are there."""
    return document(await call.client.workers())


async def health(_: Call) -> situations.Health:
    """The gateway."""
    return situations.Health(is_well=True)


async def ready(call: Call) -> situations.Ready:
    """A node's word that it is there; refused when none says so in time, or none to this gateway's key."""
    try:
        described = await call.client.status()
    except SkuldError as error:
        if error.code in KEY_CODES:
            raise
        raise refusal("not_ready", f"no node of the cluster answers: {error.message}") from error
    return situations.Ready(is_ready=True, node=described.node)
