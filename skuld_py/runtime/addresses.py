"""Whether two names of nodes are one address: ``localhost:13000`` and ``127.0.0.1:13000`` reach the same socket.

Nodes are told apart by name alone. So the cluster would place copies on both, and count one process as two voters.
A new name for an address that has one already is refused; a node that is registered goes on as it was.

Names are looked up beside each other and no longer than ``LOOK_S``; one that cannot be found by then is passed
over. Only those with the same port are looked up.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable

from skuld_py.errors import Refused

LOOK_S = 3.0


def check_address(name: str, registered: Iterable[str], limit_s: float = LOOK_S) -> None:
    """``Refused`` when this name is new, and a node of another name has its address."""
    known, port = list(registered), name.rpartition(":")[2]
    others = [] if name in known else [other for other in known if other.rpartition(":")[2] == port]
    found = _look_up([name, *others], limit_s) if others else {}
    for other in others:
        if found.get(name, frozenset()) & found.get(other, frozenset()):
            raise Refused("address_in_use", f"--host, --port: {name} is the address of node {other} of this"
                          " cluster; start it under that name, with the data directory that it has, or choose"
                          " another port", name=name, other=other)


def _look_up(names: Iterable[str], limit_s: float) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}

    def look(name: str) -> None:
        found[name] = _addresses(name.rpartition(":")[0])
    threads = [threading.Thread(target=look, args=(name,), daemon=True) for name in names]
    end_s = time.monotonic() + limit_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end_s - time.monotonic()))
    return dict(found)


def _addresses(host: str) -> frozenset[str]:
    try:
        return frozenset(str(row[4][0]) for row in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return frozenset()
