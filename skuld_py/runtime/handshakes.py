"""Who may connect at all: libzmq asks for each CURVE handshake, and is answered from the roster.

ZeroMQ's own protocol for that (ZAP, RFC 27): a request names the socket's domain and the key that was proved, the
answer is 200 or 400. A key that is let in is told with every message of its connection (``User-Id``).

Invariants: only keys of the roster are let in, those of nodes at the door of peers, all others at that of clients.
What cannot be read is denied. A client is denied for good (400), and told; libzmq does not dial again then. A peer
is denied for now (300), and dials again when it has waited for an answer in vain: its key may have just been put
into the roster.

Rejected: pyzmq's own authenticator, whose domain ``*`` is none for a socket that has a domain: it denies all.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import zmq
from zmq.utils import z85

from skuld_py.runtime.digest import Digest
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.threads import Helpers

ENDPOINT = "inproc://zeromq.zap.01"
CLIENTS, PEERS = "clients", "peers"
"""Domains."""
TOLD_S = 60.0
"""How often refusals are told of: of each key that the roster knows, and of all others together at each door."""

_log = logging.getLogger(__name__)


def wall_ms() -> int:
    """The time of now, by which keys end."""
    return time.time_ns() // 1_000_000


class Handshakes:
    """Answers libzmq for the sockets of ``context``, in a thread of its own."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keyring: Keyring, helpers: Helpers,
                 now_ms: Callable[[], int] = wall_ms) -> None:
        self.denied = 0
        self._keyring = keyring
        self._now_ms = now_ms
        self._digest = Digest(_log, TOLD_S)
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind(ENDPOINT)
        self._bell = os.pipe()
        self._thread = helpers.start("skuld-handshakes", self._serve)

    def close(self) -> None:
        """End the thread and its socket, before the context: no other thread may touch that socket."""
        os.write(self._bell[1], b".")
        self._thread.join()
        for end in self._bell:
            os.close(end)

    def _serve(self) -> None:
        sources: list[tuple[Any, int]] = [(self._socket, int(zmq.POLLIN)), (self._bell[0], int(zmq.POLLIN))]
        with contextlib.closing(self._socket):
            ready: list[Any] = []
            while self._bell[0] not in ready:
                if ready:
                    self._socket.send_multipart(self._answer(self._socket.recv_multipart()))
                self._digest.look(time.monotonic())
                pause_ms = self._digest.pause_ms(time.monotonic())
                ready = [source for source, _ in zmq.zmq_poll(sources, pause_ms)]
            self._digest.close()

    def _answer(self, request: list[bytes]) -> list[bytes]:
        version, number = request[0], request[1] if len(request) > 1 else b""
        try:
            _, _, domain, address, _, mechanism, key = request
            public = z85.encode(key).decode() if mechanism == b"CURVE" else ""
            may = self._may(domain.decode(), public)
        except (ValueError, UnicodeDecodeError):
            may, public, domain, address = False, "", b"", b""
        if may:
            return [version, number, b"200", b"OK", public.encode(), b""]
        self.denied += 1
        self._name(domain.decode(errors="replace"), address.decode(errors="replace"), public)
        status = b"300" if domain == PEERS.encode() else b"400"
        return [version, number, status, b"key not authorised", b"", b""]

    def _may(self, domain: str, public: str) -> bool:
        owner = self._keyring.owner(public, self._now_ms)
        return owner is not None and owner.is_node == (domain == PEERS)

    def _name(self, domain: str, address: str, public: str) -> None:
        """Log a refusal. A key that the roster knows is a kind of its own, for its owner has proved it; of others
        a stranger makes as many as he likes."""
        roster = self._keyring.roster
        known, is_revoked = roster.by_key.get(public), public in roster.revoked
        whose = f" (of {known.name})" if known is not None else " (revoked)" * is_revoked
        self._digest.note(public if whose else f"strangers to {domain}", f"key {public or 'that is none'}{whose}"
                          f" from {address} was refused at the door of {domain}; 'skuld keys list' shows those"
                          " that are authorised", time.monotonic())
