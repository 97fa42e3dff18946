"""Requests to a cluster over sockets, from any number of threads; ``pursuit`` decides which node is asked what.

One DEALER per node; answers are matched by request number. A calling thread does its own work: it sends, and when
no other thread reads it reads, for itself and for all, until its own answer is there; then another waiting thread
goes on. So a lone call is handed to no other thread, and a call that waits long holds up no other.

Invariants:

* Sockets are touched under the lock only, and nothing blocks there. The reader waits for file descriptors without
  the lock. A thread that touched a socket leaves nothing to be read on it: its descriptor tells only what is new.
* An exception may strike between any two calls (``waiter``), and so may a signal's handler that uses the client;
  also within a call of pyzmq, before it sends or receives. A socket over which a message was half sent is left to
  the thread that may still send the rest; the next thread has another socket to that node. The rest of a half-read
  message is dropped by the next thread, and the interrupted one sees that. So nothing else is taken for either
  rest, and a torn message counts as lost. What was read whole stays in the inbox until it has been handed out.
* A thread looks at a socket before it sends: a farewell that has come is heeded. And a thread that finds a broken
  connection wakes those whose requests were sent over it (``lines``).
* An answer that comes when no call waits for it any more is undone if its question says how (``Ask.undo``): as
  soon as it is read, which the next call does, and asked again until it is answered.
* In the child of a fork there is another one (``forks``); one that nobody closes is collected (``dropping``).
"""

from __future__ import annotations

import itertools
import math
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import zmq

from skuld_py.client import dropping, forks
from skuld_py.client.calls import Call
from skuld_py.client.debts import Debt
from skuld_py.client.diagnosis import Looks, diagnosed
from skuld_py.client.dial import addresses_in, check_addresses, dial
from skuld_py.client.frames import decoded, encoded, is_farewell
from skuld_py.client.lines import EVENTS, POLLIN, POLLOUT, Lines, skip_rest
from skuld_py.client.pursuit import CLOSED, Doubted, Heard, Listen, Nodes, Pursuit, Step, Try, pursue
from skuld_py.client.steady import monotonic_s
from skuld_py.client.waiter import LOOK_S
from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.errors import Refused, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.model.messages import Greet, Greeted, Message
from skuld_py.wire import multipart

STRAYS_MAX = 10_000
"""Late answers that are to be undone; the oldest are forgotten."""
LEFT_MAX = 16
"""Sockets that were left with a message half sent. Handlers are not nested that deep, so the thread that sent over
the oldest is gone."""
FIRST_GREETING_S = 1.0
"""If no node can be reached for this long, it is looked at why."""
GREETED_AGAIN = ("unreachable", "deadline")
"""What a first greeting may end in, and be tried again for the rest of its time."""
LINGER_MS = 200
"""How long requests that undo something have to leave when the client is closed."""

Undo = Callable[[Message], Message | None]
"""Gives the request that undoes an answer which no call waits for any more."""


class Connection:
    """Sockets to the nodes of a cluster, for the threads of one process, opened by the first call."""

    def __init__(self, nodes: Sequence[str], limits: Limits = DEFAULT_LIMITS,
                 key: ClientKey | None = None) -> None:
        self._nodes = Nodes(check_addresses(nodes))
        self._key = key
        self._limits = limits
        self._lock = threading.RLock()
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._descriptors: dict[int, zmq.Socket[bytes]] = {}
        self._era = 0
        self._bell = -1, -1
        self._dropped: dropping.Watch | None = None
        self._requests = itertools.count(1)
        self._calls: dict[int, Call] = {}
        self._reader: Call | None = None
        self._lines: Lines[zmq.Socket[bytes]] = Lines()
        self._inbox: deque[tuple[zmq.Socket[bytes], list[bytes]]] = deque()
        self._half_sent: zmq.Socket[bytes] | None = None
        """The socket over which a message is being sent, or was when an interrupt came."""
        self._left: list[zmq.Socket[bytes]] = []
        """Sockets left with a message half sent; what comes over them is still read."""
        self._half_read: tuple[zmq.Socket[bytes]] | None = None
        """The socket of a message that is being read, or was when an interrupt came, in a tuple of its own."""
        self._strays: dict[int, Undo] = {}
        self._debts: dict[int, Debt] = {}
        self._looks = Looks()
        self.is_closed = False
        self.greeted: Greeted | None = None

    # -- opening and closing ---------------------------------------------------------------------

    def _open(self) -> None:
        with self._lock:
            if self._era or self.is_closed:
                return
            if self._bell[0] < 0:
                self._bell = os.pipe()
                os.set_blocking(self._bell[0], False)
                os.set_blocking(self._bell[1], False)
            if self._context is None:
                self._context = zmq.Context()
                self._dropped = dropping.watch(self, self._context, self._bell)
            self._connect()

    def _connect(self) -> None:
        """Have a socket to each node that is known, and to no other one."""
        assert self._context is not None
        for node in [*self._sockets]:
            if node not in self._nodes.names:
                self._hang_up(node)
        for node in self._nodes.names:
            if node not in self._sockets:
                socket = self._context.socket(zmq.DEALER)
                dial(socket, node, self._limits, self._key)
                self._descriptors[socket.FD] = socket
                self._sockets[node] = socket
        self._era += 1
        self._ring()

    def _hang_up(self, node: str) -> None:
        """Close the socket to a node; what was sent over it will not be answered."""
        socket = self._sockets.pop(node)
        self._descriptors.pop(socket.FD, None)
        socket.close()
        self._tell_of(self._lines.broken(socket, is_closed=True))

    def close(self) -> None:
        """Close all sockets. Calls under way end, as closed."""
        with self._lock:
            if not self.is_closed and self._era:
                self._drain(*self._sockets.values())
            self.is_closed = True
            self._descriptors.clear()
            for socket in self._sockets.values():
                socket.close(linger=LINGER_MS if self._debts else 0)
            for call in self._calls.values():
                call.wake()
            self._ring()
            bell, self._bell = self._bell, (-1, -1)
            context, self._context = self._context, None
            dropping.forget(self._dropped)
        dropping.close_pipe(bell)
        if context is not None:
            context.destroy()

    def abandon(self) -> None:
        """This is the child of a fork: leave everything to the parent."""
        dropping.forget(self._dropped)
        forks.keep(self._context, self._sockets, self._descriptors)
        self._lock = threading.RLock()
        self._sockets, self._descriptors, self.is_closed = {}, {}, True
        dropping.close_pipe(self._bell)
        self._bell = -1, -1

    # -- calls -----------------------------------------------------------------------------------

    def next_request(self) -> int:
        """A number no other request of this connection had."""
        return next(self._requests)

    def greet(self, timeout_s: float) -> Greeted:
        """Learn the cluster, and connect to all its live nodes: by the first call, then beside others."""
        if self.is_closed:
            raise Refused("closed", CLOSED)
        if self.greeted is None:
            end = monotonic_s() + timeout_s
            try:
                answer = self._greeted_within(min(timeout_s, FIRST_GREETING_S))
            except (Refused, Uncertain) as problem:
                if problem.code not in GREETED_AGAIN or monotonic_s() >= end:
                    raise
                answer = self._greeted_within(end - monotonic_s())
            assert isinstance(answer, Greeted), answer
            self._learn(answer)
            return answer
        return self.greeted

    def _greeted_within(self, timeout_s: float) -> Message:
        return self.call(Greet(self.next_request()), timeout_s, is_idempotent=True, is_greeting=True)

    def call(self, message: Message, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0,
             is_greeting: bool = False, undo: Undo | None = None, doubted: Doubted | None = None,
             only: str = "") -> Message:
        """Send a request and give its answer, which may take ``wait_s`` more than the timeout. ``only``: the
        address of the one node to ask.

        Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
        """
        started = monotonic_s()
        if not self._era:
            self._open()
        cluster = "" if is_greeting else self.greet(timeout_s).cluster
        request: int = message.request  # type: ignore[attr-defined]
        frames = encoded(self._nodes, cluster, message)
        pursuit = pursue(self._nodes, started, timeout_s, is_idempotent=is_idempotent, wait_s=wait_s,
                         is_reading=message.is_reading, doubted=doubted, only=only,
                         first=self._nodes.first_for(message))
        call = Call(request)
        try:
            return self._pursue(pursuit, frames, call)
        except Refused as refusal:
            raise (refusal if only else self._explained(refusal, timeout_s)) from None
        except BaseException:
            if undo is not None:
                self._leave_word(call, undo)
            raise
        finally:
            call.is_gone = True
            self._leave(call)

    def _explained(self, refusal: Refused, timeout_s: float) -> Refused:
        """Why nobody could be reached. libzmq does not dial again where a key was refused; the next call does."""
        seconds = self._looks.next_s(timeout_s, self.greeted is not None)
        explained = diagnosed(refusal, self._nodes.names, self._key, seconds)
        if explained is not refusal:
            with self._lock:
                for node in [*self._sockets]:
                    self._hang_up(node)
                if not self.is_closed:
                    self._connect()
        return explained

    def _pursue(self, pursuit: Pursuit, frames: list[bytes], call: Call) -> Message:
        try:
            step = next(pursuit)
            while True:
                step = pursuit.send(self._take(step, frames, call))
        except StopIteration as end:
            answer: Message = end.value
            return answer

    def _take(self, step: Step, frames: list[bytes], call: Call) -> Heard:
        if isinstance(step, Try):
            node = self._send(step.nodes, frames, call)
            return Heard(monotonic_s(), node, is_closed=not node and self.is_closed)
        answer = self._wait(call, step.until, is_listening=isinstance(step, Listen))
        return Heard(monotonic_s(), answer=answer, is_closed=self.is_closed,
                     is_cut=answer is None and call.is_cut)

    def _leave_word(self, call: Call, undo: Undo) -> None:
        """No call waits for this answer any more: undo it, now or when it comes."""
        with self._lock:
            self._calls.pop(call.request, None)
            self._lines.forget(call.request)
            if call.answer is not None:
                self._owe(undo(call.answer))
            else:
                self._strays[call.request] = undo
                if len(self._strays) > STRAYS_MAX:
                    del self._strays[next(iter(self._strays))]

    def _leave(self, call: Call) -> None:
        """Let another thread read, if this one did."""
        with self._lock:
            self._calls.pop(call.request, None)
            self._lines.forget(call.request)
            if self._reader is call:
                self._reader = None
                for other in self._calls.values():
                    if not other.is_gone and not other.is_told:
                        other.wake()
                        break

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self, call: Call, until: float, *, is_listening: bool) -> Message | None:
        """Wait for the answer, the end of its connection or the moment, reading for all if no other thread does.
        What comes in a pause is late."""
        while not (is_listening and call.is_told):
            if not is_listening:
                call.forget()
            left = until - monotonic_s()
            if left <= 0 or self.is_closed:
                break
            if self._may_read(call):
                self._read(call, min(left, LOOK_S))
            else:
                call.wait(left)
        return call.answer

    def _may_read(self, call: Call) -> bool:
        with self._lock:
            reader = self._reader
            if reader is None or reader.is_gone or reader.thread == call.thread:
                self._reader = call
            return self._reader is call

    def _read(self, call: Call, seconds: float) -> None:
        with self._lock:
            self._hand_out_inbox()
            if self.is_closed or call.is_told:
                return
            if call.era != self._era:
                call.poll, call.era = select.poll(), self._era
                for descriptor in (self._bell[0], *self._descriptors):
                    call.poll.register(descriptor, select.POLLIN)
        ready = call.poll.poll(math.ceil(seconds * 1000))
        with self._lock:
            if not self.is_closed:
                self._drain(*(self._descriptors[each] for each, _ in ready if each in self._descriptors))
                if (self._bell[0], select.POLLIN) in ready:
                    with suppress(BlockingIOError):
                        os.read(self._bell[0], 4_096)

    def _ring(self) -> None:
        """Let the reader look up: there is news for it besides what its descriptors tell."""
        if self._reader is not None and self._bell[1] >= 0:
            with suppress(BlockingIOError):
                os.write(self._bell[1], b".")

    # -- under the lock --------------------------------------------------------------------------

    def _send(self, nodes: Sequence[str], frames: list[bytes], call: Call) -> str:
        """Send to the first node that takes it; it may be that none does, or that all is closed."""
        with self._lock:
            if self.is_closed:
                return ""
            call.forget()
            self._calls[call.request] = call
            for node in nodes:
                if self._hand_over(node, frames):
                    self._lines.note(call.request, self._sockets[node])
                    if self.greeted is not None and self._nodes.is_greeting_due(monotonic_s()):
                        greeting = Greet(self.next_request())
                        self._put(self._sockets[node], encoded(self._nodes, self.greeted.cluster, greeting))
                    self._drain(self._sockets[node])  # what came meanwhile wakes no thread; it may be another
                    return node
        return ""

    def _hand_over(self, node: str, frames: Sequence[bytes]) -> bool:
        """Send to a node, unless it has said farewell, or does not take it."""
        if node in self._sockets:
            self._drain(self._sockets[node])
        if node not in self._sockets or self._nodes.is_leaving(node, monotonic_s()):
            return False
        if self._put(self._sockets[node], frames):
            return True
        self._drain(self._sockets[node])  # the attempt took the news of it, that wakes nobody any more
        return False

    def _put(self, socket: zmq.Socket[bytes], frames: Sequence[bytes]) -> bool:
        """Send, unless the node is not connected or reads too slowly."""
        if self._half_sent is not None:
            socket = self._instead_of(self._half_sent, socket)
        mine = self._half_sent = socket
        try:
            multipart.put(socket, frames)
        except zmq.Again:
            is_sent = False
        else:
            is_sent = True
        if self._half_sent is mine:
            self._half_sent = None
        return is_sent

    def _instead_of(self, half: zmq.Socket[bytes], wanted: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
        """Give a node another socket; a thread may still be sending over the old one."""
        node = self._node_of(half)
        if not node:
            return wanted
        assert self._context is not None
        socket = self._sockets[node] = self._context.socket(zmq.DEALER)
        dial(socket, node, self._limits, self._key)
        self._descriptors[socket.FD] = socket
        self._left.append(half)
        if len(self._left) > LEFT_MAX:
            gone = self._left.pop(0)
            self._descriptors.pop(gone.FD, None)
            gone.close()
        self._era += 1
        return socket if wanted is half else wanted

    def _node_of(self, socket: zmq.Socket[bytes]) -> str:
        """The node that a socket is connected to; nothing for one that was left."""
        return next((node for node, each in self._sockets.items() if each is socket), "")

    def _drain(self, *sockets: zmq.Socket[bytes]) -> None:
        """Read all there is, and hand it out; then tell those whose connection is broken."""
        broken = [socket for socket in sockets if not self._take_all(socket)]
        self._hand_out_inbox()
        for socket in broken:
            self._tell_of(self._lines.broken(socket))
        if self._debts:
            self._pay()

    def _take_all(self, socket: zmq.Socket[bytes]) -> bool:
        """Take all messages of a socket; whether it takes requests."""
        while not socket.closed:
            events = int(socket.getsockopt(EVENTS))
            if not events & POLLIN:
                return bool(events & POLLOUT)
            if frames := self._take_frames(socket):
                self._inbox.append((socket, frames))
        return True

    def _tell_of(self, lost: Sequence[int]) -> None:
        """Wake the calls of these requests: they will not be answered."""
        for request in lost:
            call = self._calls.get(request)
            if call is not None and call.answer is None:
                call.is_cut = True
                self._rouse(call)

    def _take_frames(self, socket: zmq.Socket[bytes]) -> list[bytes]:
        """The next message; nothing where there is none, or another thread has read on in it."""
        if self._half_read is not None:
            skip_rest(*self._half_read)
        mine = self._half_read = (socket,)
        frames: list[bytes] = []
        is_more = True
        with suppress(zmq.Again):
            while is_more:
                frame = socket.recv(multipart.DONTWAIT, copy=False)
                if self._half_read is not mine:
                    self._half_read = (socket,)  # it may be the first of another message
                    return []
                frames.append(frame.bytes)
                is_more = frame.more
        self._half_read = None
        return [] if is_more else frames

    def _hand_out_inbox(self) -> None:
        while self._inbox:
            arrived = socket, frames = self._inbox[0]
            for answer in decoded(self._nodes, frames, self._limits):
                if is_farewell(answer):
                    self._nodes.note_farewell(self._node_of(socket), monotonic_s())
                else:
                    self._hand_out(answer)
            if self._inbox and self._inbox[0] is arrived:
                self._inbox.popleft()

    def _hand_out(self, answer: Message) -> None:
        """Give each answer to the call it belongs to; doing it twice changes nothing."""
        request = getattr(answer, "request", -1)
        call = self._calls.get(request)
        if call is not None:
            call.answer = answer
            self._rouse(call)
        elif request in self._strays:
            self._owe(self._strays.pop(request)(answer))
        elif request in self._debts:
            self._debts[request].hear(answer)
        elif isinstance(answer, Greeted):
            self._learn(answer)

    def _rouse(self, call: Call) -> None:
        """Let a call look up."""
        if call is not self._reader:
            call.wake()
        elif call.thread != threading.get_ident():
            self._ring()

    def _learn(self, greeted: Greeted) -> None:
        """Learn which nodes live, and connect to all of them."""
        with self._lock:
            if self.is_closed or (self.greeted is not None and self.greeted.cluster != greeted.cluster):
                return
            self._nodes.learn(addresses_in(greeted), monotonic_s(), greeted.protocol)
            if {*self._nodes.names} != self._sockets.keys():
                self._connect()
            self.greeted = greeted

    def _owe(self, message: Message | None) -> None:
        if message is not None and len(self._debts) < STRAYS_MAX:
            self._debts[self.next_request()] = Debt(message)

    def _pay(self) -> None:
        """Ask for what undoes late answers, again and again, until it is answered."""
        now = monotonic_s()
        self._debts = {request: debt for request, debt in self._debts.items() if not debt.is_over}
        for request, debt in [*self._debts.items()]:
            if not debt.is_due(now) or self.greeted is None:
                continue
            frames = encoded(self._nodes, self.greeted.cluster, debt.numbered(request))
            for node in self._nodes.in_turn(now):
                socket = self._sockets.get(node)
                if socket is not None and self._put(socket, frames):
                    debt.sent, debt.tries = now, debt.tries + 1
                    self._drain(socket)
                    break
