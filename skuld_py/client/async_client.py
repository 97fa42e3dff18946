"""The client for asyncio: the verbs of ``Client``, awaited; calls made at the same time share requests.

    async with AsyncClient("127.0.0.1:13000") as client:
        await asyncio.gather(*(client.enqueue("reports", day) for day in days))
        async for task in client.list("reports"): ...

Any number of calls may be under way. Single calls of ``enqueue``, ``complete`` and ``renew`` that are made at
the same time travel together (``coalescing``), each with an outcome of its own. A call that is cancelled stops
waiting, and no other one is affected: it may have happened, as after ``Uncertain``, except that claims which
arrive for it are given back at once.

A call has its ``timeout_s`` from when it is made; one of many requests has it for each. A client may be made
before a fork, and used on both sides: the child has connections and ids of its own, for a loop of its own
(``forks``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Self

import attrs

from skuld_py.client import forks
from skuld_py.client.asking import Answered, Ask, Awaiting, Joint, Step
from skuld_py.client.async_connection import AsyncConnection
from skuld_py.client.coalescing import GRACE_S, Lane, out_of_time, own
from skuld_py.client.dial import key_of
from skuld_py.client.pursuit import CLOSED
from skuld_py.client.verbs import TIMEOUT_S, Verbs, addresses_of
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.model import messages as m
from skuld_py.variables import check_process

Caller = asyncio.Future[Any]
Taken = list[tuple[Joint[Any, Any], Caller]]


class AsyncClient(Verbs, Awaiting):
    """A connection to a cluster, for one event loop; nodes and key as those of ``Client``."""

    def __init__(self, nodes: str | Sequence[str] | None = None, *, holder: str | None = None,
                 timeout_s: float = TIMEOUT_S, key: str | PathLike[str] | ClientKey | None = None) -> None:
        check_process()
        super().__init__(holder)
        self._timeout_s = timeout_s
        self._addresses = addresses_of(nodes)
        self._key = key_of(key, self._addresses)
        self._begin()
        forks.renew(self)

    def _begin(self) -> None:
        self._connection = AsyncConnection(self._addresses, key=self._key)
        self._lanes: dict[tuple[Hashable, ...], Lane[Caller]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def after_fork(self) -> None:
        """Begin anew, as another client; a closed one stays closed."""
        was_closed = self._connection.is_closed
        forks.keep(self._lanes, self._tasks)
        self._connection.abandon()
        self._begin()
        self._connection.is_closed = was_closed
        super().after_fork()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls under way end as ``closed``; claims stay until their leases end."""
        self._connection.is_closed = True
        for lane in self._lanes.values():
            while lane.waiting:
                for _, caller in lane.take(_is_wanted):
                    caller.set_exception(Refused("closed", CLOSED))
        await self._connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _perform(self, step: Step) -> Any:
        return await (self._ask(step, self._timeout_s) if isinstance(step, Ask) else self._join(step))

    async def _ask(self, question: Ask, timeout_s: float) -> Answered[Any]:
        sent = self._clock()
        if type(question.message) is m.Greet:
            return Answered(await self._connection.greet(timeout_s), sent)
        request = self._connection.next_request()
        message = attrs.evolve(question.message, request=request)  # type: ignore[call-arg]
        try:
            answer = await self._connection.call(message, min(timeout_s, question.within_s), only=question.only,
                                                 wait_s=question.wait_s, is_idempotent=question.is_idempotent,
                                                 doubted=question.doubted)
        except (asyncio.CancelledError, Uncertain):
            if question.undo is not None and not self._connection.is_closed:
                self._connection.expect_stray(request, partial(self._undo, question.undo))
            raise
        return Answered(answer, sent)

    def _undo(self, undo: Callable[[m.Message], Ask | None], answer: m.Message) -> None:
        question = undo(answer)
        if question is not None:
            self._spawn(self._ask_quietly(question))

    async def _ask_quietly(self, question: Ask) -> None:
        """Ask without a caller; what this fails to undo ends by its lease."""
        try:
            await self._ask(question, self._timeout_s)
        except SkuldError:
            return

    # -- calls that travel together ------------------------------------------------------------

    async def _join(self, joint: Joint[Any, Any]) -> Any:
        if self._connection.is_closed:
            raise Refused("closed", CLOSED)
        loop = asyncio.get_running_loop()
        caller: Caller = loop.create_future()
        lane = self._lanes.get(joint.key)
        if lane is None:
            lane = self._lanes[joint.key] = Lane()
        lane.add(joint, caller)
        if len(lane.waiting) == 1 or lane.is_full:
            loop.call_soon(self._look, joint.key)  # behind the callers that are ready to run
        timer = loop.call_later(self._timeout_s + GRACE_S, _give_up, lane, caller)
        try:
            return own(await caller)
        finally:
            timer.cancel()

    def _look(self, key: tuple[Hashable, ...]) -> None:
        """Send what is due; forget a lane that is empty."""
        lane = self._lanes.get(key)
        while lane is not None and lane.is_due() and not self._connection.is_closed:
            taken = lane.take(_is_wanted)
            if taken:
                lane.under_way += 1
                self._spawn(self._go_together(key, lane, taken))
        if lane is not None and not lane.waiting and not lane.under_way:
            del self._lanes[key]

    async def _go_together(self, key: tuple[Hashable, ...], lane: Lane[Caller], taken: Taken) -> None:
        outcomes: Sequence[Any] = [Uncertain("closed", CLOSED)] * len(taken)
        try:
            outcomes = await self._run(taken[0][0].together([joint.item for joint, _ in taken]))
        except Exception as error:
            outcomes = [error] * len(taken)
        finally:
            lane.under_way -= 1
            for (_, caller), outcome in zip(taken, outcomes, strict=True):
                if _is_wanted(caller):
                    caller.set_result(outcome)
            asyncio.get_running_loop().call_soon(self._look, key)  # behind those that were just answered

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_wanted(caller: Caller) -> bool:
    return not caller.done()


def _give_up(lane: Lane[Caller], caller: Caller) -> None:
    if not caller.done():
        is_unsent = any(waiting is caller for _, waiting in lane.waiting)
        caller.set_exception(out_of_time(is_unsent))
