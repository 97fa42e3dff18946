"""A cluster as an archiver asks it: many partitions at a time, from a thread that does not await.

The connection lives in a loop of its own, on a thread of its own: the archiver waits for answers while another
thread writes. A few questions are on their way at a time.

An archiver that is stopped waits no more, wherever it stands, while its questions are still on their way. They
are ended before it says that it leaves, for nodes that answer them later would think that it is there; and
whatever is left, as of one that was stopped again, the thread ends, and waits until it has, before it closes the
loop.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from skuld_py.archive.archiver import AT_ONCE, Question
from skuld_py.client.archiving import Page
from skuld_py.client.async_client import AsyncClient
from skuld_py.client.reading import GET_TASKS
from skuld_py.errors import SkuldError
from skuld_py.model.task import Task

T = TypeVar("T")
Call = Callable[[], Coroutine[Any, Any, T]]
READ_AT_ONCE = 4
"""Questions for tasks that are on their way at a time: each comes whole, with payload and log of up to 1 MiB."""
LEAVE_S = 2.0


class ClusterSource:
    """A source of the archiver."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._number = secrets.randbits(62) + 1
        """Of this archiver, among others."""
        self._asked: dict[int, None] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        """Whoever writes asks, too, while others are read."""
        self._is_over = False

    def interrupt(self) -> None:
        """Nothing more is wanted to be known: who waits for an answer, or asks, is told that it was cancelled."""
        self._loop.call_soon_threadsafe(self._end)

    def leave(self) -> None:
        """Nothing more is wanted: others are given all pages at once. Who does not hear it finds out."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._left(), LEAVE_S), self._loop).result()

    def offered(self, questions: Sequence[Question]) -> list[Page | SkuldError]:
        """The pages on offer, or why there is none."""
        self._asked.update((each.partition, None) for each in questions)
        return self._all([partial(self._client.offered, each.partition, epoch=each.epoch, after=each.after,
                                  wanted_ms=each.wanted_ms, archiver=self._number) for each in questions])

    def counted(self, partitions: Sequence[int]) -> list[Page | SkuldError]:
        """Pages without tasks. Who says that it leaves, and not who, is given none, and leaves nothing."""
        return self._all([partial(self._client.offered, each, leaves=True) for each in partitions])

    def archived(self, pages: Sequence[Page]) -> list[int | SkuldError]:
        """Have pages deleted; how many tasks of each were."""
        return self._all([partial(self._client.archived, page) for page in pages])

    def tasks(self, ids: Sequence[bytes | str]) -> Iterator[Task]:
        """Those that exist of some tasks, read as they are wanted. ``SkuldError`` where nobody says."""
        for start in range(0, len(ids), READ_AT_ONCE * GET_TASKS):
            some = ids[start : start + READ_AT_ONCE * GET_TASKS]
            for answer in self._all([partial(self._client.get_many, some[at : at + GET_TASKS])
                                     for at in range(0, len(some), GET_TASKS)]):
                if isinstance(answer, SkuldError):
                    raise answer
                yield from answer

    def are_gone(self, ids: Sequence[str]) -> bool:
        """Whether the nodes have none of these tasks. The first that is there is enough."""
        try:
            return next(self.tasks(ids), None) is None
        except SkuldError:
            return False

    def _all(self, calls: Sequence[Call[T]]) -> list[T | SkuldError]:
        return asyncio.run_coroutine_threadsafe(self._asking(calls), self._loop).result()

    async def _asking(self, calls: Sequence[Call[T]]) -> list[T | SkuldError]:
        if self._is_over:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(_gathered(calls))
        self._under_way.add(task)
        try:
            return await task
        finally:
            self._under_way.discard(task)

    def _end(self) -> None:
        self._is_over = True
        for task in self._under_way:
            task.cancel()

    async def _left(self) -> None:
        """Of an archiver that was interrupted questions are under way: asked behind this, they would undo it."""
        self._end()
        await _gathered([partial(self._client.offered, each, archiver=self._number, leaves=True)
                         for each in self._asked])


async def _gathered(calls: Sequence[Call[T]]) -> list[T | SkuldError]:
    """What calls give, a few of them at a time. One is made when it has its turn: so none is left over."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(call: Call[T]) -> T | SkuldError:
        async with room:
            try:
                return await call()
            except SkuldError as error:
                return error
    return list(await asyncio.gather(*map(one, calls)))


@contextmanager
def source_of(nodes: str | Sequence[str] | None, timeout_s: float) -> Iterator[ClusterSource]:
    """A source, for as long as the block lasts. However it ends, other archivers are given its pages at once."""
    client, loop = AsyncClient(nodes, timeout_s=timeout_s), asyncio.new_event_loop()
    thread = Thread(target=_serve, args=(loop, client), name="skuld-archive-source", daemon=True)
    thread.start()
    try:
        source = ClusterSource(client, loop)
        try:
            yield source
        finally:
            source.leave()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _serve(loop: asyncio.AbstractEventLoop, client: AsyncClient) -> None:
    """Until the loop is stopped; and then until nothing is left of what was begun there."""
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(_ended(client))
        loop.close()


async def _ended(client: AsyncClient) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.close()


@contextmanager
def one_beside() -> Iterator[Callable[[Callable[[], None]], Callable[[], None]]]:
    """A thread that does one thing at a time; what is begun is waited for in the end."""
    with ThreadPoolExecutor(1, thread_name_prefix="skuld-archive-write") as pool:
        yield lambda work: pool.submit(work).result
