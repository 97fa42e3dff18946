"""The one place where the gateway meets the cluster: the client's verbs, as requests need them.

One asynchronous client serves all requests. Single enqueues, renewals and completions that arrive together travel
together, whoever sent them, and each has an outcome of its own; a claim that is cancelled is given back when it
comes. A task costs the gateway no thread, so a worker that waits for work costs it next to nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from skuld_py.client.async_client import AsyncClient
from skuld_py.client.claims import Claim, ClaimKey
from skuld_py.client.reading import GET_TASKS, Depth
from skuld_py.client.scheduling import Schedule
from skuld_py.client.waiting import End
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.task import LogEntry, Task

PAGE = 500


class Backend:
    """The cluster's verbs, for any number of requests at once, in one event loop. Errors are the client's."""

    def __init__(self, nodes: Sequence[str], *, timeout_s: float) -> None:
        self._client = AsyncClient(nodes, timeout_s=timeout_s, holder="gateway")

    async def close(self) -> None:
        """Close all connections; what is under way is in doubt."""
        await self._client.close()

    # -- writing -------------------------------------------------------------------------------

    async def new_ids(self, count: int, queue: str | None = None, key: str | None = None) -> list[TaskId]:
        """Ids for tasks yet to be enqueued."""
        return await self._client.new_ids(count, queue=queue, key=key)

    async def enqueue(self, queue: str, payload: bytes, id: TaskId | None, options: dict[str, Any]) -> TaskId:
        """Store a task under this id, or that of its name; doing it again changes nothing. Options are those of
        the client."""
        return await self._client.enqueue(queue, payload, id=id, **options)

    async def enqueue_many(self, queue: str, payloads: Sequence[bytes], ids: Sequence[TaskId] | None,
                           options: dict[str, Any]) -> list[TaskId]:
        """Store tasks under these ids, or those of their names; doing it again changes nothing."""
        return await self._client.enqueue_many(queue, payloads, ids=ids, **options)

    async def claim(self, queue: str, *, n: int, lease_s: float, wait_s: float, holder: str) -> list[Claim]:
        """Hold tasks. The holder is read before anything is awaited, so that no other claim can change it."""
        self._client.holder = holder
        return await self._client.claim(queue, n=n, lease_s=lease_s, wait_s=wait_s)

    async def renew(self, claim: ClaimKey, lease_s: float) -> None:
        """Hold on to a claim; raises ``Fenced`` when it is lost."""
        await self._client.renew(claim, lease_s=lease_s)

    async def renew_many(self, claims: Sequence[ClaimKey], lease_s: float) -> list[bool | None]:
        """Whether each is still held; None where nobody knows."""
        return await self._client.renew_many(claims, lease_s=lease_s)

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Give claims back."""
        await self._client.release(*claims)

    async def append(self, claim: ClaimKey, entries: Sequence[bytes], *, seq: int, w: int | None) -> int:
        """Add to a claim's log; gives the next number."""
        return await self._client.update(claim, entries, seq=seq, w=w)

    async def complete(self, claim: ClaimKey, result: bytes, w: int | None) -> None:
        """Record that a task is done."""
        await self._client.complete(claim, result, w=w)

    async def fail(self, claim: ClaimKey, error: str, retry_in_s: float | None) -> None:
        """Record that an attempt has failed; raises ``Fenced`` when the claim is lost."""
        await self._client.fail(claim, error, retry_in_s=retry_in_s)

    async def snooze(self, claim: ClaimKey, delay_s: float) -> None:
        """Give a task back for later; raises ``Fenced`` when the claim is lost."""
        await self._client.snooze(claim, delay_s)

    async def cancel(self, ids: Sequence[TaskId], w: int | None) -> None:
        """Let nobody claim these tasks any more."""
        await self._client.cancel(*ids, w=w)

    async def retry(self, ids: Sequence[TaskId]) -> None:
        """Let dead tasks begin anew."""
        await self._client.retry(*ids)

    async def complete_many(self, claims: Sequence[ClaimKey], results: Sequence[bytes], w: int | None) -> None:
        """Record that tasks are done, with what came of each."""
        await self._client.complete_many(claims, results, w=w)

    async def fail_many(self, claims: Sequence[ClaimKey], errors: Sequence[str],
                        retry_in_s: float | None) -> list[bool | None]:
        """Whether each was still held; None where nobody knows."""
        return await self._client.fail_many(claims, errors, retry_in_s=retry_in_s)

    # -- settings ------------------------------------------------------------------------------

    async def pause(self, queue: str) -> list[str]:
        """Let nothing more be claimed from a queue; gives the nodes that have not confirmed it."""
        return await self._client.pause(queue)

    async def resume(self, queue: str) -> list[str]:
        """Let a queue's tasks be claimed again; gives the nodes that have not confirmed it."""
        return await self._client.resume(queue)

    async def paused(self) -> list[str]:
        """The queues that are paused."""
        return await self._client.paused()

    # -- periodic tasks ------------------------------------------------------------------------

    async def put_schedule(self, name: str, queue: str, payload: bytes, *, cron: str | None, every_s: float | None,
                           zone: str, catch_up: int, **options: Any) -> Sequence[str]:
        """Have a task enqueued at each tick; gives the nodes that have not confirmed it."""
        return await self._client.put_schedule(name, queue, payload, cron=cron, every_s=every_s, zone=zone,
                                               catch_up=catch_up, **options)

    async def remove_schedule(self, name: str) -> Sequence[str]:
        """End it; gives the nodes that have not confirmed it."""
        return await self._client.remove_schedule(name)

    async def schedules(self) -> Sequence[Schedule]:
        """All of them."""
        return await self._client.schedules()

    # -- whole queues --------------------------------------------------------------------------

    async def set_limits(self, queue: str, **limits: Any) -> list[str]:
        """Limit a queue; gives the nodes that have not confirmed it."""
        return await self._client.set_limits(queue, **limits)

    async def remove_limits(self, queue: str) -> list[str]:
        """Limit a queue no more."""
        return await self._client.remove_limits(queue)

    async def limits(self, queue: str | None) -> dict[str, QueueLimits]:
        """The limits of one queue, or of all that have some."""
        return await self._client.limits(queue)

    # -- reading -------------------------------------------------------------------------------

    async def get(self, id: TaskId, min_seq: int) -> Task:
        """One task, with its logs, showing no less than that many facts."""
        return await self._client.get(id, min_seq=min_seq)

    async def get_many(self, ids: Sequence[TaskId]) -> AsyncIterator[list[Task]]:
        """Those that exist, a few at a time: as many as may come in one answer."""
        for start in range(0, len(ids), GET_TASKS):
            yield await self._client.get_many(ids[start : start + GET_TASKS])

    async def log(self, id: TaskId, token: int | None, after: LogEntry | None,
                  follow_s: float) -> AsyncIterator[list[LogEntry]]:
        """What claims have noted, a page at a time; then, one by one, what they note."""
        page: list[LogEntry] = []
        async for entry in self._client.log(id, token=token, after=after, follow_s=follow_s):
            page.append(entry)
            if follow_s or len(page) == PAGE:
                yield page
                page = []
        yield page

    async def ends(self, ids: Sequence[TaskId], wait_s: float) -> list[End]:
        """How tasks have ended."""
        return await self._client.ends(ids, wait_s=wait_s)

    async def list(self, queue: str | None, limit: int | None, *, states: Sequence[str], since: float | None,
                   until: float | None) -> AsyncIterator[list[Task]]:
        """Tasks in id order, a page at a time; one page in memory."""
        size, left = min(PAGE, limit or PAGE), limit
        page: list[Task] = []
        async for task in self._client.list(queue, states=states, since=since, until=until, page=size):
            page.append(task)
            left = None if left is None else left - 1
            if len(page) == size or left == 0:
                yield page
                page = []
            if left == 0:
                return
        if page:
            yield page

    async def depths(self) -> dict[str, Depth]:
        """Counts of every queue."""
        return await self._client.depths()

    async def count(self, queue: str | None, states: Sequence[str]) -> int:
        """How many tasks exist."""
        return await self._client.count(queue, states=states)

    async def status(self) -> m.Described:
        """The cluster as one of its nodes sees it."""
        return await self._client.status()
