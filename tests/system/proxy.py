"""A ZooKeeper proxy that breaks one connection at a chosen frame: before a request gets there, or its answer back.

ZooKeeper's frames are a length of four bytes and as many bytes, of which the first four are the request's number
(answers bear it too; -1 marks a notification, -2 a ping). The first frame of each side sets up the session.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from enum import Enum

PING = -2


class Side(Enum):
    """Whose frames are counted."""

    REQUESTS = "requests"
    ANSWERS = "answers"


class Proxy:
    """Listens on loopback, and passes frames on to ``upstream`` ("host:port")."""

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._side = Side.REQUESTS
        self._left: list[int] = []
        self.counts = dict.fromkeys(Side, 0)
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, side: Side, first: int, every: int = 0, times: int = 1) -> None:
        """Break at the frame ``first`` (from 1) of a side, counted from the beginning over all connections; and
        then at every so many frames more."""
        with self._lock:
            self._side, self._left = side, [first + every * number for number in range(times)]

    @property
    def breaks_left(self) -> int:
        """How many breaks have not come yet."""
        with self._lock:
            return len(self._left)

    def close(self) -> None:
        """Break everything for good."""
        self._listener.close()
        with self._lock:
            for each in self._sockets:
                _close(each)

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(self._upstream)
            except OSError:
                client.close()
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or a frame waits 40 ms for the last
            with self._lock:
                self._sockets += [client, server]
            for source, target, side in ((client, server, Side.REQUESTS), (server, client, Side.ANSWERS)):
                threading.Thread(target=self._pump, args=(source, target, side), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, side: Side) -> None:
        is_first = True
        with contextlib.suppress(OSError, EOFError):
            while True:
                size = _read(source, 4)
                frame = _read(source, struct.unpack(">i", size)[0])
                if not is_first and struct.unpack(">i", frame[:4])[0] != PING and self._breaks(side):
                    break
                is_first = False
                target.sendall(size + frame)
        _close(source)
        _close(target)

    def _breaks(self, side: Side) -> bool:
        with self._lock:
            self.counts[side] += 1
            if side is self._side and self._left and self.counts[side] >= self._left[0]:
                self._left.pop(0)
                return True
            return False


def _read(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = source.recv(count - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
