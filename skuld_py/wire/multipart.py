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
    """Send frames as one message, without waiting; what the first one raises, nothing of it was sent."""
    for frame in frames[:-1]:
        socket.send(frame, DONTWAIT | SNDMORE)
    socket.send(frames[-1], DONTWAIT)


def rest(socket: Any, first: Any, frames: list[bytes]) -> None:
    """Add a message's first frame, as it was received without copying, and those behind it, which are there."""
    frames.append(first.bytes)
    while first.more:
        first = socket.recv(copy=False)
        frames.append(first.bytes)
