"""Who may connect to a gateway at all: so many connections, and so many of one address.

A connection costs a file and says nothing until it has sent a head, for which it has ``header_s``. Without a bound
whoever opens connections and keeps silent takes all files, and with them the answer to everybody's requests.

Invariants:

* No more than ``most`` are open. Beyond, a connection is closed as soon as it is there: who made it sees that it
  is refused, and the ready one behind it is looked at.
* One address has no more than are free: alone half of them, beside another one a third. Behind a proxy all come
  from one, so there it is not looked at. Of IPv6 an address is its first 64 bits: one machine has all the others.
* What is accepted counts until its file is closed, whoever closes it: so asyncio's own ends count, too.

Rejected: uvicorn's ``limit_concurrency``, which counts requests, and answers when they are read.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections import Counter
from typing import Any

from skuld_py.files import remedy, take
from skuld_py.gateway.limits import Limits

OWN_FILES = 128
"""Files that a gateway needs besides: for nodes, two each, for metrics, and for what it reads."""
FILES_MIN = 256
REFUSALS_MAX = 256
"""Connections refused in one go; what waits behind them is looked at in the next turn of the loop."""

_log = logging.getLogger(__name__)


def allowed_connections(limits: Limits) -> int:
    """How many connections there may be, by the files that this process may have; raises their limit. A request
    needs a connection, so there are never fewer wanted than twice the places."""
    wanted = max(limits.connections, 2 * (limits.requests + limits.waiting))
    allowed = take("a gateway", OWN_FILES + wanted, FILES_MIN) - OWN_FILES
    if allowed < wanted:
        _log.warning("there are files for %d connections, and not for %d; for more %s", allowed, wanted,
                     remedy(OWN_FILES + wanted))
    return allowed


class Crowd:
    """Counts connections by address. ``most``: in all. ``is_shared``: everybody comes from one address."""

    def __init__(self, most: int, *, is_shared: bool = False) -> None:
        self._most = most
        self._is_shared = is_shared
        self._all = 0
        self._counts: Counter[str] = Counter()

    def enter(self, host: str) -> str | None:
        """Let one in; gives by what it is to ``leave``, None if there is no place for it."""
        address = "" if self._is_shared else _address(host)
        free = self._most - self._all
        if free <= 0 or (not self._is_shared and self._counts[address] >= free):
            return None
        self._all += 1
        self._counts[address] += 1
        return address

    def leave(self, address: str) -> None:
        """One that was let in is gone."""
        self._all -= 1
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]


class Listener(socket.socket):
    """A listening socket, made of another one, that lets in who has a place in the crowd."""

    def __init__(self, bound: socket.socket, crowd: Crowd) -> None:
        super().__init__(bound.family, bound.type, bound.proto, bound.detach())
        self._crowd = crowd

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that has a place; ``BlockingIOError`` when none is ready."""
        for _ in range(REFUSALS_MAX):
            raw, address = super().accept()
            place = self._crowd.enter(address[0])
            if place is not None:
                return _Accepted(raw, self._crowd, place), address
            raw.close()
        raise BlockingIOError


class _Accepted(socket.socket):
    """A connection that leaves the crowd when it is closed."""

    def __init__(self, raw: socket.socket, crowd: Crowd, place: str) -> None:
        super().__init__(raw.family, raw.type, raw.proto, raw.detach())
        self._crowd: Crowd | None = crowd
        self._place = place

    def close(self) -> None:
        super().close()
        if self._crowd is not None:
            self._crowd.leave(self._place)
            self._crowd = None


def _address(host: str) -> str:
    """What one machine has one of."""
    if ":" not in host:
        return host
    found = ipaddress.IPv6Address(host)
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), 64), strict=False))
