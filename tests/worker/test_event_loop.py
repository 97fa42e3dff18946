"""The event loop of a worker turns on, whatever one of its coroutines does to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest

from skuld_py.worker.event_loop import EventLoop


def stop() -> None:
    asyncio.get_running_loop().stop()


def leave() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 3)


def interrupt() -> None:
    async def beside() -> None:
        raise KeyboardInterrupt
    HELD.append(asyncio.get_running_loop().create_task(beside()))


HELD: list[asyncio.Task[None]] = []


@pytest.mark.parametrize("harm", [stop, leave, interrupt])
def test_the_loop_turns_on_whatever_a_coroutine_does_to_it(harm: Callable[[], None]) -> None:
    loop = EventLoop()
    neighbour_goes_on = asyncio.Event()

    async def do() -> None:
        harm()

    async def wait() -> None:
        await neighbour_goes_on.wait()

    async def wake() -> None:
        neighbour_goes_on.set()

    neighbour = loop.start(wait)
    assert loop.start(do).join(20)
    assert loop.start(wake).join(20) and neighbour.join(20)
    loop.close()
