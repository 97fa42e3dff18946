"""A client that nobody closed is collected like anything else, and ends nothing but itself.

Python collects a circle of objects in any order. ZeroMQ's context waits, when it goes, until its sockets are
closed; if the context of a circle goes first, that is for ever, in whichever thread happens to collect.

Invariant: until the owner is collected, something outside of its circle holds the context. So the context is no
part of what is collected with it: the sockets, which close when they go, are gone before the context.

Rejected: ``__del__`` of the connection, which Python may call after that of the context.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

import zmq

if TYPE_CHECKING:
    Watch = weakref.finalize[..., Any]


def watch(owner: object, context: zmq.Context[Any], pipe: tuple[int, int] = (-1, -1)) -> Watch:
    """Hold ``context`` until ``owner`` is collected, and close the two ends of a pipe then."""
    watching = weakref.finalize(owner, _close, context, pipe)
    watching.atexit = False  # pyzmq does what must be done when a process ends
    return watching


def forget(watching: Watch | None) -> None:
    """The owner has closed everything by itself, or it belongs to another process."""
    if watching is not None:
        watching.detach()


def _close(_context: zmq.Context[Any], pipe: tuple[int, int]) -> None:
    close_pipe(pipe)


def close_pipe(pipe: tuple[int, int]) -> None:
    """Close those of its ends that were opened."""
    for end in pipe:
        if end >= 0:
            os.close(end)
