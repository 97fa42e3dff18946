"""Ports for processes that will listen later: held from the choice until their owner is gone.

A port that is only looked up is lost now and then: the system gives it to any outgoing connection that is made
before the process listens, which takes seconds, and again whenever the process is down. Here a socket stays bound
to it, with ``SO_REUSEADDR`` and without listening. Linux does not give such a port to sockets that ask for any
port, and lets a listener that sets the option too, as ZeroMQ and Java do, bind it beside.

Rejected: choosing anew when a node finds its port taken. A node that was down must come back at its address.
"""

from __future__ import annotations

import socket
import weakref


def held_port(owner: object, host: str, port: int = 0) -> int:
    """``port``, or for 0 a free one, held until ``owner`` is collected; OSError when a process listens there."""
    hold = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        hold.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        hold.bind((host, port))
        chosen: int = hold.getsockname()[1]
    except BaseException:
        hold.close()
        raise
    weakref.finalize(owner, hold.close)
    return chosen
