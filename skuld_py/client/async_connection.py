"""Requests to a cluster from an event loop, many at a time; ``pursuit`` decides which node is asked what.

One DEALER per node. The event loop watches its descriptor, and whenever there is news the socket is read empty. A
call waits for a future of its own and never for a socket: a cancelled wait takes nothing from a socket, so no
message is lost with it. An answer that no call waits for any more is dropped, unless its call left word what to do
with it (``expect_stray``).

A descriptor tells only what is new, and sending takes the news too: so whoever has sent has the socket looked at
soon. It is looked at before, too, for a farewell that has come is heeded. Whoever finds a broken connection ends
the waits of those whose requests were sent over it (``lines``).

Rejected: pyzmq's sockets for asyncio, which make a future for each message, and tell of no connection that breaks.

Everything happens in one event loop, the one of the first call. In the child of a fork there is another
connection, for another loop (``forks``). One that nobody closes is closed when it is collected (``dropping``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import zmq

from skuld_py.client import dropping, forks
from skuld_py.client.connection import FIRST_GREETING_S, GREETED_AGAIN, STRAYS_MAX
from skuld_py.client.diagnosis import Looks, diagnosed
from skuld_py.client.dial import addresses_in, check_addresses, dial
from skuld_py.client.frames import decoded, encoded, is_farewell
from skuld_py.client.lines import EVENTS, POLLIN, POLLOUT, Lines
from skuld_py.client.pursuit import (
    CLOSED,
    OTHER_LOOP,
    Doubted,
    Heard,
    Listen,
    Nodes,
    Pause,
    Step,
    Try,
    pursue,
)
from skuld_py.client.steady import monotonic_s
from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.errors import Refused, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.model.messages import Greet, Greeted, Message
from skuld_py.wire import multipart

MOST = 100
"""Answers that are read before others have their turn in the event loop."""
Waiter = asyncio.Future[Message | None]


class AsyncConnection:
    """Sockets to the nodes of a cluster, opened by the first call."""

    def __init__(self, nodes: Sequence[str], limits: Limits = DEFAULT_LIMITS,
                 key: ClientKey | None = None) -> None:
        self._nodes = Nodes(check_addresses(nodes))
        self._key = key
        self._limits = limits
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropped: dropping.Watch | None = None
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._lines: Lines[zmq.Socket[bytes]] = Lines()
        self._cut: dict[int, None] = {}
        """Requests whose connection broke before their calls have heard of it."""
        self._requests = itertools.count(1)
        self._waiters: dict[int, Waiter] = {}
        self._greeting: asyncio.Task[Greeted] | None = None
        self._looks = Looks()
        self.is_closed = False
        self.greeted: Greeted | None = None
        self._late: dict[int, Message] = {}
        self._unheard: tuple[int, Message | None] = (0, None)
        self._strays: dict[int, Callable[[Message], None]] = {}

    def _open(self) -> None:
        """Make the sockets, in the loop that runs now."""
        loop = asyncio.get_running_loop()
        if self.is_closed:
            raise Refused("closed", CLOSED)
        if self._loop is None:
            self._loop = loop
            self._context = zmq.Context()
            self._dropped = dropping.watch(self, self._context)
            self._connect()
        elif self._loop is not loop:
            raise Refused("other_loop", OTHER_LOOP)

    def _connect(self) -> None:
        """Have a socket to each node that is known, and to no other one."""
        assert self._context is not None and self._loop is not None
        for node in [*self._sockets]:
            if node not in self._nodes.names:
                self._hang_up(node)
        for node in self._nodes.names:
            if node not in self._sockets:
                socket = self._context.socket(zmq.DEALER)
                dial(socket, node, self._limits, self._key)
                self._sockets[node] = socket
                self._loop.add_reader(socket.FD, self._read, node)

    def _hang_up(self, node: str) -> None:
        """Close the socket to a node; what was sent over it will not be answered."""
        assert self._loop is not None
        socket = self._sockets.pop(node)
        self._loop.remove_reader(socket.FD)
        socket.close()
        self._tell_of(self._lines.broken(socket, is_closed=True))

    def abandon(self) -> None:
        """This is the child of a fork: leave everything to the parent, its event loop above all."""
        dropping.forget(self._dropped)
        forks.keep(self._context, self._sockets, self._loop, self._waiters, self._greeting)
        self._sockets, self._context, self.is_closed = {}, None, True

    async def close(self) -> None:
        """Close all sockets. Calls under way end, as closed."""
        self.is_closed = True
        for node in [*self._sockets]:
            self._hang_up(node)
        if self._greeting is not None:
            await asyncio.gather(self._greeting, return_exceptions=True)
        dropping.forget(self._dropped)
        if self._context is not None:
            self._context.term()
            self._context = None

    def next_request(self) -> int:
        """A number no other request of this connection had."""
        return next(self._requests)

    async def greet(self, timeout_s: float) -> Greeted:
        """Learn the cluster, and connect to all its live nodes: once for all calls that wait for it, and now and
        then beside other calls."""
        self._open()
        if self.greeted is not None:
            return self.greeted
        if self._greeting is None:
            assert self._loop is not None
            self._greeting = self._loop.create_task(self._greet(timeout_s))
            self._greeting.add_done_callback(self._on_greeted)
        return await asyncio.shield(self._greeting)

    async def _greet(self, timeout_s: float) -> Greeted:
        end = monotonic_s() + timeout_s
        try:
            answer = await self._greeted_within(min(timeout_s, FIRST_GREETING_S))
        except (Refused, Uncertain) as problem:
            if problem.code not in GREETED_AGAIN or monotonic_s() >= end:
                raise
            answer = await self._greeted_within(end - monotonic_s())
        assert isinstance(answer, Greeted), answer
        self._learn(answer)
        return answer

    async def _greeted_within(self, timeout_s: float) -> Message:
        return await self.call(Greet(self.next_request()), timeout_s, is_idempotent=True, is_greeting=True)

    def _learn(self, greeted: Greeted) -> None:
        """Learn which nodes live, and connect to all of them."""
        if self.is_closed or (self.greeted is not None and self.greeted.cluster != greeted.cluster):
            return
        self._nodes.learn(addresses_in(greeted), monotonic_s(), greeted.protocol)
        self._connect()
        self.greeted = greeted

    def _on_greeted(self, greeting: asyncio.Task[Greeted]) -> None:
        self._greeting = None
        if not greeting.cancelled():
            greeting.exception()  # the calls that wait for it are told

    async def call(self, message: Message, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0,
                   is_greeting: bool = False, doubted: Doubted | None = None, only: str = "") -> Message:
        """Send a request and give its answer, which may take ``wait_s`` more than the timeout. ``only``: the
        address of the one node to ask.

        Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
        """
        self._open()
        started = monotonic_s()
        cluster = "" if is_greeting else (await self.greet(timeout_s)).cluster
        request: int = message.request  # type: ignore[attr-defined]
        frames = encoded(self._nodes, cluster, message)
        pursuit = pursue(self._nodes, started, timeout_s, is_idempotent=is_idempotent, wait_s=wait_s,
                         is_reading=message.is_reading, doubted=doubted, only=only,
                         first=self._nodes.first_for(message))
        try:
            step = next(pursuit)
            while True:
                step = pursuit.send(await self._take(step, frames, request))
        except StopIteration as end:
            answer: Message = end.value
            return answer
        except Refused as refusal:
            raise (refusal if only else await self._explained(refusal, timeout_s)) from None
        finally:
            self._lines.forget(request)
            self._cut.pop(request, None)

    async def _explained(self, refusal: Refused, timeout_s: float) -> Refused:
        """Why nobody could be reached. libzmq does not dial again where a key was refused; the next call does."""
        assert self._loop is not None
        if refusal.code != "unreachable":
            return refusal
        explained = await self._loop.run_in_executor(None, diagnosed, refusal, self._nodes.names, self._key,
                                                      self._looks.next_s(timeout_s, self.greeted is not None))
        if explained is not refusal and not self.is_closed:
            for node in [*self._sockets]:
                self._hang_up(node)
            self._connect()
        return explained

    async def _take(self, step: Step, frames: list[bytes], request: int) -> Heard:
        match step:
            case Try(nodes):
                node = self._send(nodes, frames, request)
                return Heard(monotonic_s(), node, is_closed=not node and self.is_closed)
            case Listen(until):
                answer = await self._receive(request, until)
                return Heard(monotonic_s(), answer=answer, is_closed=self.is_closed,
                             is_cut=answer is None and request in self._cut)
            case Pause(until):
                await asyncio.sleep(max(0.0, until - monotonic_s()))
                return Heard(monotonic_s())

    def _send(self, nodes: Sequence[str], frames: list[bytes], request: int) -> str:
        self._cut.pop(request, None)
        for node in nodes:
            self._read(node)
            if not self._nodes.is_leaving(node, monotonic_s()) and self._put(node, frames):
                self._lines.note(request, self._sockets[node])
                if self.greeted is not None and self._nodes.is_greeting_due(monotonic_s()):
                    self._put(node, encoded(self._nodes, self.greeted.cluster, Greet(self.next_request())))
                return node
        return ""

    def _put(self, node: str, frames: list[bytes]) -> bool:
        """Send, unless the node is not connected or reads too slowly."""
        socket = self._sockets.get(node)
        if socket is None:
            return False
        assert self._loop is not None
        self._loop.call_soon(self._read, node)
        try:
            multipart.put(socket, frames)
        except zmq.Again:
            return False
        return True

    async def _receive(self, request: int, until: float) -> Message | None:
        assert self._loop is not None
        if request in self._cut:
            return None
        waiter: Waiter = self._loop.create_future()
        self._waiters[request] = waiter
        timer = self._loop.call_later(max(0.0, until - monotonic_s()), _give_up, waiter)
        try:
            answer = await waiter
        except asyncio.CancelledError:  # the call is gone, perhaps just when the answer came
            has_answer = waiter.done() and not waiter.cancelled() and waiter.exception() is None
            self._unheard = request, waiter.result() if has_answer else self._late.pop(request, None)
            raise
        finally:
            timer.cancel()
            del self._waiters[request]
        return answer if answer is not None else self._late.pop(request, None)

    def _read(self, node: str) -> None:
        """Read all there is of a node, and hand it out; then tell those whose connection is broken."""
        for _ in range(MOST):
            socket = self._sockets.get(node)
            if socket is None:
                return
            events = int(socket.getsockopt(EVENTS))
            if not events & POLLIN:
                if not events & POLLOUT:
                    self._tell_of(self._lines.broken(socket))
                return
            for answer in decoded(self._nodes, socket.recv_multipart(multipart.DONTWAIT), self._limits):
                if is_farewell(answer):
                    self._nodes.note_farewell(node, monotonic_s())
                else:
                    self._hand_out(answer)
        assert self._loop is not None
        self._loop.call_soon(self._read, node)

    def _tell_of(self, lost: Sequence[int]) -> None:
        """End the waits for the answers to these requests: there will be none."""
        for request in lost:
            self._cut[request] = None
            if (waiter := self._waiters.get(request)) is not None:
                _give_up(waiter)

    def _hand_out(self, answer: Message) -> None:
        request = getattr(answer, "request", -1)
        waiter = self._waiters.get(request)
        if waiter is None:
            handle = self._strays.pop(request, None)
            if handle is not None:
                handle(answer)
            elif isinstance(answer, Greeted):
                self._learn(answer)
        elif waiter.done():
            self._late[request] = answer
        else:
            waiter.set_result(answer)

    def expect_stray(self, request: int, handle: Callable[[Message], None]) -> None:
        """The call just failed, or was cancelled: should its answer still come, hand it here."""
        unheard, answer = self._unheard
        if unheard == request and answer is not None:
            handle(answer)
            return
        self._strays[request] = handle
        if len(self._strays) > STRAYS_MAX:
            del self._strays[next(iter(self._strays))]


def _give_up(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)
