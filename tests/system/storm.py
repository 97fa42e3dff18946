"""Threads, coroutines and forked processes that use the clients of one module, and are interrupted at random.

Everything is written down as it is acknowledged; what must hold afterwards says ``test_storm``. An interrupt may
strike anywhere, this file included: what it keeps somebody from writing down is nobody's loss.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from skuld_py import AsyncClient, Client, SkuldError
from skuld_py.client.claims import Claim

TIMEOUT_S = 10.0
SLACK_S = 5.0
"""What a call may take beyond its time where hundreds of threads share two cores."""
CLIENTS: list[Client] = []
ASYNC_CLIENTS: list[AsyncClient] = []
"""As a module of a web server has them: made before anything forks."""


class Interrupt(Exception):
    """What strikes a thread."""


@attrs.define
class Report:
    """What a process saw. ``overdue``: calls that took longer than they may."""

    made: list[tuple[str, str]] = attrs.field(factory=list)
    held: list[tuple[str, int]] = attrs.field(factory=list)
    overdue: list[tuple[str, float]] = attrs.field(factory=list)
    codes: dict[str, int] = attrs.field(factory=dict)
    calls: int = 0
    struck: int = 0

    def add(self, other: dict[str, Any]) -> None:
        """What another process wrote."""
        self.made += map(tuple, other["made"])
        self.held += map(tuple, other["held"])
        self.overdue += map(tuple, other["overdue"])
        self.calls += other["calls"]
        self.struck += other["struck"]
        for code, count in other["codes"].items():
            self.codes[code] = self.codes.get(code, 0) + count


@attrs.define(eq=False)
class Storm:
    """One process's part of it."""

    queue: str
    until: float
    report: Report = attrs.field(factory=Report)
    _idents: list[int] = attrs.field(factory=list)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    # -- threads ---------------------------------------------------------------------------------

    def in_thread(self, client: Client) -> None:
        """Call after call; an interrupt ends the call and nothing else."""
        self._idents.append(threading.get_ident())
        while not self.is_over:
            with suppress(Interrupt):
                while not self.is_over:
                    with suppress(Interrupt):
                        self._step(client)

    def _step(self, client: Client) -> None:
        wait_s, began = random.choice((0.0, 0.0, 0.05, 0.5)), time.monotonic()
        verb = random.choice(("enqueue", "enqueue", "enqueue", "keyed", "claim", "claim", "get", "count"))
        self.report.calls += 1
        try:
            self._act(client, verb, wait_s)
        except SkuldError as error:
            self._note_error(error)
        except Interrupt:
            self.report.struck += 1
        took_s = time.monotonic() - began
        if took_s > 2 * TIMEOUT_S + wait_s + SLACK_S or (verb != "claim" and took_s > TIMEOUT_S + SLACK_S):
            self.report.overdue.append((verb, took_s))

    def _act(self, client: Client, verb: str, wait_s: float) -> None:
        payload = os.urandom(8).hex()
        if verb in ("enqueue", "keyed"):
            made = client.enqueue(self.queue, payload.encode(), key="k" if verb == "keyed" else None)
            self.report.made.append((str(made), payload))
        elif verb == "claim":
            held = client.claim(self.queue, n=3, lease_s=60, wait_s=wait_s)
            self._note_held(held)
            for claim in held:
                client.complete(claim) if random.random() < 0.5 else client.release(claim)
        elif verb == "get":
            client.get_many([client.new_ids()[0]])
        else:
            client.count(self.queue)

    def strike(self) -> None:
        """Interrupt random threads until it is over."""
        while not self.is_over:
            time.sleep(0.002)
            if self._idents:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(random.choice(self._idents)),
                                                           ctypes.py_object(Interrupt))

    # -- coroutines ------------------------------------------------------------------------------

    async def in_loop(self, client: AsyncClient, count: int) -> None:
        """So many coroutines."""
        await asyncio.gather(*(self._in_coroutine(client) for _ in range(count)))

    async def _in_coroutine(self, client: AsyncClient) -> None:
        while not self.is_over:
            began = time.monotonic()
            self.report.calls += 1
            try:
                await _cancelled_at_random(self._act_async(client))
            except SkuldError as error:
                self._note_error(error)
            except TimeoutError:
                self.report.struck += 1
            if (took_s := time.monotonic() - began) > 2 * TIMEOUT_S + SLACK_S:
                self.report.overdue.append(("a coroutine", took_s))

    async def _act_async(self, client: AsyncClient) -> None:
        payload = os.urandom(8).hex()
        if random.random() < 0.7:
            made = await client.enqueue(self.queue, payload.encode(), key=random.choice(("k", None)))
            self.report.made.append((str(made), payload))
        else:
            held = await client.claim(self.queue, n=3, lease_s=60, wait_s=random.choice((0.0, 0.5)))
            self._note_held(held)
            await asyncio.gather(*map(client.complete, held))

    # -- notes -----------------------------------------------------------------------------------

    def _note_held(self, claims: list[Claim]) -> None:
        self.report.held += [(str(claim.id), claim.token) for claim in claims]

    def _note_error(self, error: SkuldError) -> None:
        name = f"{type(error).__name__} {error.code}"
        self.report.codes[name] = self.report.codes.get(name, 0) + 1


async def _cancelled_at_random(call: Coroutine[Any, Any, None]) -> None:
    await asyncio.wait_for(call, random.choice((0.002, 0.02, None, None, None, None, None, None)))


def fork(storm: Storm, path: Path) -> int:
    """A child that joins the storm with the module's clients and leaves its report at a path; gives its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        random.seed()
        mine = Storm(storm.queue, storm.until)
        half = time.monotonic() + (storm.until - time.monotonic()) / 2
        mine.until, end = half, mine.until
        _with_alarms(lambda: mine.in_thread(CLIENTS[0]))
        mine.until = end
        asyncio.run(mine.in_loop(ASYNC_CLIENTS[0], 10))
        path.write_text(json.dumps(attrs.asdict(mine.report)), encoding="ascii")
        status = 0
    finally:
        os._exit(status)


def _with_alarms(work: Callable[[], None]) -> None:
    """As task runners with soft time limits do it."""
    def alarm(*_: object) -> None:
        raise Interrupt
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.013)
    try:
        with suppress(Interrupt):
            work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
