"""What a look at a node's socket tells besides messages: whether its connection stands, and what went over it.

A socket takes requests only while it is connected (``dial``). So one that takes none has lost its connection, and
with it the answers to all that was sent over it: a ROUTER forgets whom to answer. A thread that has read a socket
empty knows this by the same look, and libzmq wakes whoever waits for the socket's descriptor.

A socket whose queue is full takes none, either. So nothing is concluded where as many requests wait over it as may
fill the queue (``SURE``). And a connection that is made anew between two looks, which takes libzmq 50 ms, breaks
unnoticed: its requests wait, as for any node that is silent. Both cost time and are no error.

Rejected: libzmq's monitors, a socket more for each node, whose news of an old connection can come when requests
have gone over the next one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Generic, TypeVar

import zmq

from skuld_py.wire import multipart

EVENTS, POLLIN, POLLOUT, RCVMORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.POLLOUT), int(zmq.RCVMORE)
"""As plain numbers: an enumeration's operators cost more than the system call."""
QUEUE = 1_000
"""Requests that may wait in a socket for its node to take them."""
SURE = QUEUE // 4
"""Fewer requests than this do not fill the queue: libzmq tells of those that were taken half a queue at a time."""

Socket = TypeVar("Socket")


def skip_rest(socket: zmq.Socket[bytes]) -> None:
    """Drop the frames of a message of which some were read."""
    with suppress(zmq.Again):
        while not socket.closed and socket.getsockopt(RCVMORE):
            socket.recv(multipart.DONTWAIT)


class Lines(Generic[Socket]):
    """Over which socket each request was sent that is under way."""

    def __init__(self) -> None:
        self._over: dict[int, Socket] = {}

    def note(self, request: int, socket: Socket) -> None:
        """This request was sent, perhaps once more."""
        self._over[request] = socket

    def forget(self, request: int) -> None:
        """No call waits for it any more."""
        self._over.pop(request, None)

    def broken(self, socket: Socket, *, is_closed: bool = False) -> list[int]:
        """The requests that were sent over a socket which takes none, if that tells that they are lost; each is
        told of once. ``is_closed``: this side has closed it."""
        lost = [request for request, over in [*self._over.items()] if over is socket]
        if len(lost) >= SURE and not is_closed:
            return []
        for request in lost:
            self.forget(request)
        return lost
