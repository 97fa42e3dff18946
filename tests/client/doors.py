"""What a client can connect to without a cluster: a door that answers by a script, and a real node in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import zmq

from skuld_py.client.steady import wall_ms
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.testing.single_node import SingleNode
from skuld_py.wire.codec import Envelope, MalformedRequest, decode, encode

NODE = "127.0.0.1:13000"
TICK_MS = 5
Script = Callable[[int, m.Message], m.Message | None]
Serve = Callable[[bytes, m.Message], None]


class Door:
    """A ROUTER in a thread. ``say`` may be called in that thread only."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self.port = self._router.bind_to_random_port("tcp://127.0.0.1")
        self.address = f"127.0.0.1:{self.port}"
        self.spoken: list[tuple[type[m.Message], int]] = []
        """Each request with the protocol that it came in."""
        self._is_over = threading.Event()
        self._failure: BaseException | None = None

    def say(self, client: bytes, answer: m.Message) -> None:
        """Answer."""
        self._router.send_multipart([client, *encode(Envelope(NODE, "memory", (answer,)))])

    def vanish(self) -> None:
        """Break all connections, and take no more."""
        self._is_over.set()
        self._router.close()

    @contextmanager
    def serving(self, serve: Serve, tick: Callable[[], None]) -> Iterator[None]:
        """Hand requests over as they come, and call ``tick`` every few milliseconds."""
        thread = threading.Thread(target=self._serve, args=(serve, tick))
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            self._router.close()
            self._context.term()
        if self._failure is not None:
            raise self._failure

    def _take(self, client: bytes, frames: list[bytes], serve: Serve) -> None:
        try:
            envelope = decode(frames)
            for message in envelope.messages:
                self.spoken.append((type(message), envelope.version))
                serve(client, message)
        except MalformedRequest as problem:
            self.say(client, m.Failed(problem.request, problem.code, problem.message, True))
        except Malformed:
            return  # as a node does

    def _serve(self, serve: Serve, tick: Callable[[], None]) -> None:
        try:
            while not self._is_over.is_set():
                if self._router.poll(TICK_MS):
                    client, *frames = self._router.recv_multipart()
                    self._take(client, frames, serve)
                if not self._is_over.is_set():
                    tick()
        except BaseException as failure:
            self._failure = failure


@attrs.define
class Scripted:
    """A door that answers the n-th request, greetings left out, by a script; None is silence.

    Answers to requests that come while ``is_open`` is not set are given once it is. It vanishes with the request
    of number ``vanishes_at``, gives no answer to the first ``deaf_to`` greetings, and says farewell to the clients
    that have spoken once it ``is_leaving``.
    """

    script: Script
    address: str = ""
    greetings: int = 0
    members: tuple[m.MemberRow, ...] = ()
    asked: list[m.Message] = attrs.field(factory=list)
    is_open: threading.Event = attrs.field(factory=threading.Event)
    is_leaving: threading.Event = attrs.field(factory=threading.Event)
    vanishes_at: int = 0
    deaf_to: int = 0
    _clients: dict[bytes, None] = attrs.field(factory=dict)
    _kept: list[tuple[bytes, m.Message]] = attrs.field(factory=list)

    def serve(self, door: Door, client: bytes, message: m.Message) -> None:
        self._clients[client] = None
        if isinstance(message, m.Greet):
            self.greetings += 1
            if self.greetings > self.deaf_to:
                door.say(client, m.Greeted(message.request, NODE, "memory", 1, 1, 1, 0, 1, self.members))
            return
        self.asked.append(message)
        if len(self.asked) == self.vanishes_at:
            door.vanish()
            return
        answer = self.script(len(self.asked), message)
        if answer is not None:
            self._kept.append((client, attrs.evolve(answer, request=message.request)))  # type: ignore

    def tick(self, door: Door) -> None:
        while self.is_leaving.is_set() and self._clients:
            door.say(self._clients.popitem()[0], m.Failed(0, "not_ready", "this node stops", True))
        if self.is_open.is_set():
            kept, self._kept = self._kept, []
            for client, answer in kept:
                door.say(client, answer)


@contextmanager
def scripted(script: Script, *, is_open: bool = True) -> Iterator[Scripted]:
    """A door that answers by a script."""
    door = Door()
    made = Scripted(script, door.address)
    if is_open:
        made.is_open.set()
    with door.serving(lambda client, message: made.serve(door, client, message), lambda: made.tick(door)):
        yield made


@contextmanager
def node_in_memory(is_open: threading.Event | None = None) -> Iterator[str]:
    """A real node of a cluster of one, at this address, by the real clock. While ``is_open`` is not set, its
    answers are kept."""
    door = Door()
    node = SingleNode(wall_ms(), Member(door.address, "127.0.0.1", door.port, "boot", "data"))

    def answer() -> None:
        for client, message in node.answers() if is_open is None or is_open.is_set() else ():
            door.say(client, message)

    def serve(client: bytes, message: m.Message) -> None:
        node.pass_until(wall_ms())
        node.ask(client, message)
        answer()

    def tick() -> None:
        node.pass_until(wall_ms())
        answer()
    with door.serving(serve, tick):
        yield door.address
