"""A cluster as an archiver asks it: many partitions at a time, from a thread that does not await.

The connection lives in a loop of its own, on a thread of its own: the archiver waits for answers while another
thread writes. A few questions are on their way at a time.
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
from skuld_py.errors import SkuldError

T = TypeVar("T")
Call = Callable[[], Coroutine[Any, Any, T]]
LEAVE_S = 2.0


class ClusterSource:
    """A source of the archiver."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._number = secrets.randbits(62) + 1
        """Of this archiver, among others."""
        self._asked: dict[int, None] = {}
        self._under_way: asyncio.Task[Any] | None = None

    def leave(self) -> None:
        """Nothing more is wanted: others are given all pages at once. Who does not hear it finds out."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._left(), LEAVE_S), self._loop).result()

    def offered(self, questions: Sequence[Question]) -> list[Page | SkuldError]:
        """The pages on offer, or why there is none."""
        client = self._client
        self._asked.update((each.partition, None) for each in questions)
        return self._all([partial(client.offered, each.partition, epoch=each.epoch, after=each.after,
                                  wanted_ms=each.wanted_ms, archiver=self._number)
                          for each in questions])

    def archived(self, pages: Sequence[Page]) -> list[int | SkuldError]:
        """Have pages deleted; how many tasks of each were."""
        return self._all([partial(self._client.archived, page) for page in pages])

    def _all(self, calls: Sequence[Call[T]]) -> list[T | SkuldError]:
        return asyncio.run_coroutine_threadsafe(self._asking(calls), self._loop).result()

    async def _asking(self, calls: Sequence[Call[T]]) -> list[T | SkuldError]:
        self._under_way = asyncio.current_task()
        return await _gathered(calls)

    async def _left(self) -> None:
        """Of an archiver that was interrupted questions are under way: asked behind this, they would undo it."""
        if self._under_way is not None:
            self._under_way.cancel()
        await _gathered([partial(self._client.offered, each, archiver=self._number, leaves=True)
                         for each in self._asked])


async def _gathered(calls: Sequence[Call[T]]) -> list[T | SkuldError]:
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
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="skuld-archive-source", daemon=True)
    thread.start()
    try:
        client = asyncio.run_coroutine_threadsafe(_client(nodes, timeout_s), loop).result()
        source = ClusterSource(client, loop)
        try:
            yield source
        finally:
            try:
                source.leave()
            finally:
                asyncio.run_coroutine_threadsafe(client.close(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(_quiet(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _client(nodes: str | Sequence[str] | None, timeout_s: float) -> AsyncClient:
    return AsyncClient(nodes, timeout_s=timeout_s)


async def _quiet() -> None:
    """Returns when nothing is under way in this loop any more."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def one_beside() -> Iterator[Callable[[Callable[[], None]], Callable[[], None]]]:
    """A thread that does one thing at a time; what is begun is waited for in the end."""
    with ThreadPoolExecutor(1, thread_name_prefix="skuld-archive-write") as pool:
        yield lambda work: pool.submit(work).result
