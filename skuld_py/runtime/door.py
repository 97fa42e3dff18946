"""A listening socket: what comes in over it, in bounded portions, and what its connections are answered.

Invariants:

* A message of more frames than any has is no message: ``FRAMES_MAX`` of them are taken, its connection is cut, and
  the others are dropped, a bounded number in each turn, so that a turn is never as long as a message. libzmq hands
  messages over whole: all of it is in memory before its first frame can be taken, it is handed over even when its
  connection has gone, and nothing behind it can be received before its end. Until then there is something to
  receive, so a wait ends at once. A portion is bounded by its frames, too: a frame of nothing costs time.
* Nothing is handed over for a connection behind which too much waits already (``Connections``). No queue bounds
  what comes: libzmq 4.3.5 aborts the process when a connection breaks that it has stopped reading.
* With keys each message names the key of its connection, as libzmq has proved it. A connection outlives a key that
  is revoked, so the key is looked at with every message, by the loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import zmq

from skuld_py.config import Limits
from skuld_py.runtime.connections import NO_FILE, Connections
from skuld_py.wire import multipart
from skuld_py.wire.codec import FRAMES_MAX

_ARRIVED = 4
"""Messages of the largest size that may wait on one connection."""
_SHORT_FRAME, _SHORT_BYTES, _LONG_BYTES = 255, 2, 9
"""What ZMTP puts before a frame, by its length."""
_SEALED_BYTES = 33
"""What CURVE adds to a frame: the word MESSAGE, a number, the frame's flags, and what shows that it is whole."""
_USER_ID: Any = b"User-Id"
"""As bytes: a text is put into bytes with each message, which takes as long as looking the key up."""
_BATCH_FACTOR = 2
"""A batch takes in at most this many times the largest message."""
_BATCH_FRAMES = 4 * FRAMES_MAX
"""A batch also takes in at most this many frames, and one message; a turn drops as many. Each takes half a
microsecond."""


@attrs.define
class Portion:
    """How much more of what has arrived a batch takes in."""

    messages: int
    room: int
    frames: int = _BATCH_FRAMES

    @classmethod
    def of(cls, messages: int, limits: Limits) -> Portion:
        """A whole one."""
        return cls(messages, _BATCH_FACTOR * limits.message_bytes)

    @property
    def is_used(self) -> bool:
        """Whether nothing more is taken."""
        return self.messages <= 0 or self.room <= 0 or self.frames <= 0


class Arrival(NamedTuple):
    """A message: the routing id it came by, its raw frames, and the public key of its sender; "" without keys."""

    origin: bytes
    frames: list[bytes]
    key: str = ""


class Door:
    """A bound ROUTER, with the news of its connections. ``is_keyed``: they have shown keys. ``doors``: how many
    there are."""

    def __init__(self, router: zmq.Socket[bytes], news: zmq.Socket[bytes], port: int, limits: Limits,
                 *, is_keyed: bool = False, doors: int = 1) -> None:
        self.router = router
        self.port = port
        self.connections = Connections(router, news, port, limits.message_bytes, _ARRIVED, doors)
        self.malformed = 0
        self._is_keyed = is_keyed
        self._is_amid = False
        """Whether the ROUTER is in the middle of a message that is dropped."""
        self._readable = [(router, int(zmq.POLLIN))]

    def receive(self, portion: Portion, *, is_readable: bool = False) -> list[Arrival]:
        """What has arrived, as far as the portion goes. ``is_readable``: it is known that something has, and not
        looked at again: a look costs as much as taking a message."""
        arrived: list[Arrival] = []
        if self._is_amid:
            self._drop_on()
            is_readable = False
        while not self._is_amid and not portion.is_used and (is_readable or zmq.zmq_poll(self._readable, 0)):
            is_readable = False
            arrival, size = self._receive_one()
            portion.room -= size
            portion.frames -= len(arrival.frames)
            if not self._is_amid:
                portion.messages -= 1
                arrived.append(arrival)
        return arrived

    def answer(self, client: bytes, frames: Sequence[bytes]) -> bool:
        """Hand a message over for a client; false if it is dropped, as when too much waits for it already."""
        size = self._wire_bytes(frames)
        if not self.connections.has_room(client, size):
            return False
        try:
            multipart.put(self.router, [client, *frames])
        except zmq.ZMQError as problem:
            if problem.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            return False
        self.connections.debit(client, size)
        return True

    def _drop_on(self) -> None:
        """Drop a turn's part of the message that is being dropped."""
        self._is_amid = multipart.skip(self.router, _BATCH_FRAMES)
        if not self._is_amid:
            self.connections.give_back_soon()

    def _receive_one(self) -> tuple[Arrival, int]:
        """A message, and its bytes on the wire: of a whole one, unless the socket is amid it afterwards. The file
        of a connection is asked for only once: that costs more than taking a frame."""
        router, number = self.router, NO_FILE
        client: bytes = router.recv(multipart.DONTWAIT)
        frames: list[bytes] = []
        first = router.recv(copy=False)
        if not self.connections.is_heard(client):
            with contextlib.suppress(zmq.ZMQError):  # for one that speaks ZMTP 2 it names no file
                number = int(first.get(zmq.SRCFD))
        key = str(first.get(_USER_ID)) if self._is_keyed else ""
        self._is_amid = multipart.rest(router, first, frames, FRAMES_MAX)
        size = self._wire_bytes(frames)
        self.connections.credit(client, number, size)
        if self._is_amid:
            self.malformed += 1
            self.connections.cut_off(client, f"it has sent a message of more than {FRAMES_MAX} frames")
        return Arrival(client, frames, key), size

    def _wire_bytes(self, frames: Sequence[bytes]) -> int:
        """What frames are on the wire."""
        sealed = _SEALED_BYTES if self._is_keyed else 0
        size = 0
        for frame in frames:
            length = len(frame) + sealed
            size += length + (_SHORT_BYTES if length <= _SHORT_FRAME else _LONG_BYTES)
        return size
