"""The client for asyncio: the verbs of ``Client``, awaited; calls made at the same time share requests.

    async with AsyncClient("127.0.0.1:13000") as client:
        await asyncio.gather(*(client.enqueue("reports", day) for day in days))
        async for task in client.list("reports"): ...

Any number of calls may be under way. Single calls of ``enqueue``, ``complete`` and ``renew`` that are made at
the same time travel together (``coalescing``), each with an outcome of its own. A call that is cancelled stops
waiting, and no other one is affected: it may have happened, as after ``Uncertain``, except that claims which
arrive for it are given back at once.

A call has its ``timeout_s`` from when its request leaves; one that travels with others may wait for the request
before it as long again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import attrs

from skuld_py.client.asking import Answered, Ask, Awaiting, Joint, Step
from skuld_py.client.async_connection import CLOSED, AsyncConnection
from skuld_py.client.coalescing import Lane, own
from skuld_py.client.verbs import TIMEOUT_S, Verbs, addresses_of
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import messages as m

Caller = asyncio.Future[Any]
Taken = list[tuple[Joint[Any, Any], Caller]]


class AsyncClient(Verbs, Awaiting):
    """A connection to a cluster, for one event loop."""

    def __init__(self, nodes: str | Sequence[str] = "127.0.0.1:13000", *, holder: str | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(holder)
        self._timeout_s = timeout_s
        self._connection = AsyncConnection(addresses_of(nodes))
        self._lanes: dict[tuple[Hashable, ...], Lane[Caller]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls under way become ``Uncertain``; claims stay until their leases end."""
        self._is_closed = True
        for lane in self._lanes.values():
            while lane.waiting:
                for _, caller in lane.take(_is_wanted):
                    caller.set_exception(Refused("closed", "the client was closed before the request left"))
        await self._connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _perform(self, step: Step) -> Any:
        return await (self._ask(step) if isinstance(step, Ask) else self._join(step))

    async def _ask(self, question: Ask) -> Answered[Any]:
        sent = self._clock()
        if type(question.message) is m.Greet:
            return Answered(await self._connection.greet(self._timeout_s), sent)
        request = self._connection.next_request()
        message = attrs.evolve(question.message, request=request)  # type: ignore[call-arg]
        try:
            answer = await self._connection.call(message, self._timeout_s, wait_s=question.wait_s,
                                                 is_idempotent=question.is_idempotent)
        except (asyncio.CancelledError, Uncertain):
            if question.undo is not None and not self._is_closed:
                self._connection.expect_stray(request, partial(self._undo, question.undo))
            raise
        return Answered(answer, sent)

    def _undo(self, undo: Callable[[m.Message], Ask | None], answer: m.Message) -> None:
        question = undo(answer)
        if question is not None:
            self._spawn(self._ask_quietly(question))

    async def _ask_quietly(self, question: Ask) -> None:
        """Nobody waits for this one; what it fails to undo ends by its lease."""
        try:
            await self._ask(question)
        except SkuldError:
            return

    # -- calls that travel together ------------------------------------------------------------

    async def _join(self, joint: Joint[Any, Any]) -> Any:
        if self._is_closed:
            raise Refused("closed", "the client is closed")
        loop = asyncio.get_running_loop()
        caller: Caller = loop.create_future()
        lane = self._lanes.get(joint.key)
        if lane is None:
            lane = self._lanes[joint.key] = Lane()
        lane.add(joint, caller)
        if len(lane.waiting) == 1 or lane.is_full:
            loop.call_soon(self._look, joint.key)  # behind the callers that are ready to run
        return own(await caller)

    def _look(self, key: tuple[Hashable, ...]) -> None:
        """Send what is due; forget a lane that is empty."""
        lane = self._lanes.get(key)
        while lane is not None and lane.is_due() and not self._is_closed:
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
        except SkuldError as error:
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
