"""Messages of several frames over a ZeroMQ socket, frame by frame and with plain numbers for flags.

pyzmq's own ``send_multipart`` and ``recv_multipart`` look at every frame, put flags together as enums, and ask for
an option after each frame. For messages as small as most are, that is twice the work of sending them, and code
that runs between two waits runs cold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DONTWAIT, SNDMORE = 1, 2
"""As in ``zmq.h``."""


def put(socket: Any, frames: Sequence[bytes]) -> None:
    """Send frames as one message, without waiting; if the first one raises, nothing was sent."""
    for frame in frames[:-1]:
        socket.send(frame, DONTWAIT | SNDMORE)
    socket.send(frames[-1], DONTWAIT)


def rest(socket: Any, first: Any, frames: list[bytes], most: int) -> bool:
    """Add a message's first frame, as it was received without copying, and those behind it, which are there, until
    there are ``most``; gives whether the message goes on."""
    receive = socket.recv
    frames.append(first.bytes)
    while first.more and len(frames) < most:
        first = receive(0, False)
        frames.append(first.bytes)
    return bool(first.more)


def skip(socket: Any, most: int) -> bool:
    """Drop the next frames of a message that goes on, at most ``most``; gives whether it still does."""
    receive = socket.recv
    return all(receive(0, False).more for _ in range(most))
