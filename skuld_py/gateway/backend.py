"""The one place where the gateway meets the cluster: the client's verbs, for an event loop.

The client blocks, so each call runs in a thread, with a client that no other call uses meanwhile: there are as
many clients as calls at once, made when they are first needed. Calls that wait for a task have threads of their
own, or a handful of idle workers would keep everybody else from enqueueing.

An asynchronous client has the same verbs and would need none of this: what is said here is all that would change.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from skuld_py.client.client import Claim, ClaimKey, Client, Depth
from skuld_py.client.reading import GET_TASKS
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId
from skuld_py.model.task import Task

T = TypeVar("T")
CALLS = 8
"""Calls at once that do not wait: each takes milliseconds, and the cluster answers them in turn anyway."""
PAGE = 500


class Backend:
    """The cluster's verbs, for any number of requests at once. Errors are the client's."""

    def __init__(self, nodes: Sequence[str], *, timeout_s: float, waiting: int) -> None:
        self._nodes = list(nodes)
        self._timeout_s = timeout_s
        self._idle: list[Client] = []
        self._lock = threading.Lock()
        self._calls = ThreadPoolExecutor(CALLS, "call")
        self._waits = ThreadPoolExecutor(waiting, "wait")

    def close(self) -> None:
        """Wait for the calls under way, which their timeouts bound, and close all connections."""
        for pool in (self._waits, self._calls):
            pool.shutdown(cancel_futures=True)
        while self._idle:
            self._idle.pop().close()

    def _with_client(self, verb: Callable[[Client], T]) -> T:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        if client is None:
            client = Client(self._nodes, timeout_s=self._timeout_s, holder="gateway")
        try:
            return verb(client)
        finally:
            with self._lock:
                self._idle.append(client)

    async def _call(self, verb: Callable[[Client], T], *, is_wait: bool = False) -> T:
        pool = self._waits if is_wait else self._calls
        return await asyncio.get_running_loop().run_in_executor(pool, self._with_client, verb)

    # -- writing -------------------------------------------------------------------------------

    async def new_ids(self, count: int) -> list[TaskId]:
        """Ids for tasks yet to be enqueued."""
        return await self._call(lambda client: client.new_ids(count))

    async def enqueue(self, queue: str, payloads: Sequence[bytes], ids: Sequence[TaskId], *, priority: int,
                      w: int | None) -> None:
        """Store tasks under these ids; doing it again changes nothing."""
        await self._call(lambda client: client.enqueue_many(queue, payloads, priority=priority, ids=ids, w=w))

    async def claim(self, queue: str, *, n: int, lease_s: float, wait_s: float, holder: str) -> list[Claim]:
        """Hold tasks."""
        def claim(client: Client) -> list[Claim]:
            client.holder = holder
            return client.claim(queue, n=n, lease_s=lease_s, wait_s=wait_s)
        return await self._call(claim, is_wait=wait_s > 0)

    async def renew(self, claims: Sequence[ClaimKey], lease_s: float) -> list[bool | None]:
        """Whether each is still held; None where nobody knows."""
        return await self._call(lambda client: client.renew_many(claims, lease_s=lease_s))

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Give claims back."""
        await self._call(lambda client: client.release(*claims))

    async def append(self, claim: ClaimKey, entries: Sequence[bytes], *, seq: int, w: int | None) -> int:
        """Add to a claim's log; gives the next number."""
        return await self._call(lambda client: client.update(claim, entries, seq=seq, w=w))

    async def complete(self, claims: Sequence[ClaimKey], w: int | None) -> None:
        """Record that tasks are done."""
        await self._call(lambda client: client.complete_many(claims, w=w))

    # -- reading -------------------------------------------------------------------------------

    async def get(self, id: TaskId) -> Task:
        """One task, with its logs."""
        return await self._call(lambda client: client.get(id))

    async def get_many(self, ids: Sequence[TaskId]) -> AsyncIterator[list[Task]]:
        """Those that exist, a few at a time: as many as may come in one answer."""
        for start in range(0, len(ids), GET_TASKS):
            part = ids[start : start + GET_TASKS]
            yield await self._call(lambda client, part=part: client.get_many(part))  # type: ignore[misc]

    async def list(self, queue: str | None, limit: int | None) -> AsyncIterator[list[Task]]:
        """Tasks in id order, a page at a time; one page in memory."""
        page = min(PAGE, limit or PAGE)
        tasks = await self._call(lambda client: islice(client.list(queue, page=page), limit))
        while found := await self._call(lambda _: _some(tasks, page)):
            yield found

    async def depths(self) -> dict[str, Depth]:
        """Counts of every queue."""
        return await self._call(lambda client: client.depths())

    async def count(self, queue: str | None) -> int:
        """How many tasks exist."""
        return await self._call(lambda client: client.count(queue))

    async def status(self) -> m.Described:
        """The cluster as one of its nodes sees it."""
        return await self._call(lambda client: client.status())


def _some(tasks: Iterator[Task], count: int) -> list[Task]:
    """The next few. Their pages are asked for by the client that began, which serialises its calls itself."""
    return list(islice(tasks, count))
