"""Messages over ZeroMQ: one ROUTER in, one DEALER out per peer; sending never waits.

Invariants:

* Everything is received on the ROUTER, from clients and peers alike. A peer is written to only through this node's
  own DEALER to it, on which nothing is ever read. So each direction has a queue of its own, a peer that restarts
  is found again by its address, and the message itself names its sender. A routing id is a return address for
  clients and never an identity: its owner chose it.
* No call blocks and none raises for a peer's sake. What cannot be handed over at once (not connected, a full
  queue, a client that left) is dropped and counted; the machine sends again what it still needs.
* An answer that is larger than a message may be is not sent; the client is told so (``Failed``).
* The ROUTER says when it cannot deliver (``ROUTER_MANDATORY``); by default it drops in silence.
* A message of more frames than any has is no message: ``FRAMES_MAX`` of them are taken, its connection is cut, and
  the others are dropped, a bounded number in each turn, so that a turn is never as long as a message. libzmq hands
  messages over whole: all of it is in memory before its first frame can be taken, it is handed over even when its
  connection has gone, and nothing behind it can be received before its end. Until then there is something to
  receive, so ``wait`` ends at once. A batch is bounded by its frames, too: a frame of nothing costs time.
* A connection that is silent for 3 s is cut by heartbeats and made anew; an attempt to connect is given up
  after 2 s. Without either a healed partition would wait for TCP to retransmit, which it does ever more
  seldom: after 18 s of silence it took 5 s more, and it can be half a minute.
* A peer is dialled from the address this node listens at, so that rules of a network can tell by addresses
  which two nodes speak, also where several live on one machine.
* Without keys a node listens on loopback only.

``wake`` alone may be called from other threads and from signal handlers. ``MAXMSGSIZE`` bounds a frame; the sum of
what one batch takes in is bounded by ``receive``, and what waits before it, or for clients behind it, by
``Connections``. No queue bounds what comes: libzmq 4.3.5 aborts the process when a connection breaks that it has
stopped reading.

Rejected: ROUTER to ROUTER (both sides must know routing ids beforehand, and a restarted peer's is
refused while the old connection lingers); one DEALER to all peers (it would deal messages out in turn);
libzmq's own queueing to absent peers (minutes-old messages arrive in a flood when the peer is back).
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import zmq

from skuld_py.config import DEFAULT_LIMITS, PROTOCOL_VERSION, Limits
from skuld_py.errors import Refused
from skuld_py.model.messages import Message
from skuld_py.runtime.connections import NO_FILE, Connections
from skuld_py.wire import multipart
from skuld_py.wire.codec import FRAMES_MAX
from skuld_py.wire.envelopes import envelopes

Address = tuple[str, int]

_log = logging.getLogger(__name__)

PORT_MAX = 65_535

_PEER_QUEUE = 256
"""Messages waiting for one connected peer, each a whole batch; more would be stale anyway."""
_CLIENT_QUEUE = 1_000
_ARRIVED = 4
"""Messages of the largest size that may wait on one connection."""
_SHORT_FRAME, _SHORT_BYTES, _LONG_BYTES = 255, 2, 9
"""What ZMTP puts before a frame, by its length."""
_HEARTBEAT_MS, _SILENCE_MS = 1_000, 3_000
_CONNECT_MS = 2_000
"""Long enough for one lost packet, which TCP sends again after a second."""
_RECONNECT_MS, _RECONNECT_MS_MAX = 100, 1_000
_HANDSHAKE_MS = 5_000
"""A connection that does not introduce itself by then is cut; the default gives it 30 s."""
_BATCH_FACTOR = 2
"""A batch takes in at most this many times the largest message."""
_BATCH_FRAMES = 4 * FRAMES_MAX
"""A batch also takes in at most this many frames, and one message; a turn drops as many. Each takes half a
microsecond."""


@attrs.define
class Traffic:
    """What went through and what was lost, since the start."""

    received: int = 0
    malformed: int = 0
    """Messages of more frames than any has; the loop counts those that are malformed otherwise."""
    sent: int = 0
    answered: int = 0
    to_unknown_peer: int = 0
    to_silent_peer: int = 0
    to_lost_client: int = 0
    too_large: int = 0


class Transport:
    """The sockets of the node ``name``, which listens at ``host:port`` (0: any free port)."""

    def __init__(self, name: str, cluster: str, host: str, port: int,
                 limits: Limits = DEFAULT_LIMITS, protocol: int = PROTOCOL_VERSION) -> None:
        self.traffic = Traffic()
        self.protocol = protocol
        """In which peers are written to: all of them understand it."""
        self._name = name
        self.cluster = cluster
        self.limits = limits
        self._address = _loopback_address(host, port)
        self._context = zmq.Context()
        self._router = self._socket(zmq.ROUTER, _CLIENT_QUEUE)
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._router.setsockopt(zmq.RCVHWM, 0)
        try:
            self._router.bind(f"tcp://{self._address}:{port}")
        except zmq.ZMQError as problem:
            self._context.destroy(linger=0)
            raise _bind_refusal(host, port, problem) from problem
        self.port = int(self._router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
        self.connections = Connections(self._router, self.port, limits.message_bytes, _ARRIVED)
        self._is_amid = False
        """Whether the ROUTER is in the middle of a message that is dropped."""
        self._dealers: dict[str, zmq.Socket[bytes]] = {}
        self._addresses: dict[str, Address] = {}
        self._awake, self._waker = os.pipe()
        os.set_blocking(self._awake, False)
        os.set_blocking(self._waker, False)
        self._readable: list[tuple[Any, int]] = [(self._router, int(zmq.POLLIN))]
        self._sources: list[tuple[Any, int]] = [*self._readable, (self._awake, int(zmq.POLLIN))]

    def close(self) -> None:
        """Close all sockets and forget what is queued; closing twice does nothing."""
        if self._context.closed:
            return
        self.connections.close()
        self._context.destroy(linger=0)
        os.close(self._awake)
        os.close(self._waker)

    def set_peers(self, peers: Mapping[str, Address]) -> None:
        """Connect to exactly these, and never to this node; a connection whose address stays is left alone."""
        for name in [name for name, address in self._addresses.items() if peers.get(name) != address]:
            del self._addresses[name]
            self._dealers.pop(name).close(linger=0)
        for name, (host, port) in peers.items():
            if name not in self._dealers and name != self._name:
                dealer = self._socket(zmq.DEALER, _PEER_QUEUE)
                dealer.setsockopt(zmq.IMMEDIATE, 1)
                dealer.setsockopt(zmq.RCVHWM, 1)
                try:
                    dealer.connect(f"tcp://{self._address}:0;{host}:{port}")
                except zmq.ZMQError:  # no address at all: it can never be reached
                    dealer.close()
                    continue
                self._dealers[name] = dealer
                self._addresses[name] = (host, port)

    def send(self, peer: str, messages: Sequence[Message]) -> None:
        """Hand messages to a peer, all in one; or drop and count them."""
        dealer = self._dealers.get(peer)
        if dealer is None:
            self.traffic.to_unknown_peer += 1
            return
        for frames in self._envelopes(messages, self.protocol):
            try:
                multipart.put(dealer, frames)
                self.traffic.sent += 1
            except zmq.Again:
                self.traffic.to_silent_peer += 1

    def answer(self, client: bytes, messages: Sequence[Message]) -> None:
        """Hand messages to a client, all in one and in the protocol that it spoke last; or drop and count them, as
        when too much waits for it already."""
        protocol = self.connections.protocol_of(client)
        for frames in self._envelopes(messages, protocol):
            size = _wire_bytes(frames)
            if not self.connections.has_room(client, size):
                self.traffic.to_lost_client += 1
                continue
            try:
                multipart.put(self._router, [client, *frames])
                self.connections.debit(client, size)
                self.traffic.answered += 1
            except zmq.ZMQError as problem:
                if problem.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                    raise
                self.traffic.to_lost_client += 1

    def note_protocol(self, client: bytes, protocol: int) -> None:
        """This client has spoken this protocol."""
        self.connections.note_protocol(client, protocol)

    def mark_peer(self, client: bytes, name: str) -> None:
        """The node of this name is heard from this client."""
        self.connections.mark_peer(client, name)

    def wait(self, timeout_ms: int | None) -> None:
        """Until something can be received, or ``wake`` was called, or the time is over (None: never)."""
        for source, _ in zmq.zmq_poll(self._sources, -1 if timeout_ms is None else timeout_ms):
            if source == self._awake:
                os.read(self._awake, 4096)

    def wake(self) -> None:
        """End the present or next ``wait``. A full pipe wakes it anyway; with a closed one there is nothing to
        wake."""
        with contextlib.suppress(OSError):
            os.write(self._waker, b"\0")

    def receive(self, limit: int) -> list[tuple[bytes, list[bytes]]]:
        """What has arrived, at most ``limit`` messages: each its routing id and its raw frames."""
        arrived: list[tuple[bytes, list[bytes]]] = []
        room, frames_left = _BATCH_FACTOR * self.limits.message_bytes, _BATCH_FRAMES
        if self._is_amid:
            self._drop_on()
        while (not self._is_amid and len(arrived) < limit and room > 0 and frames_left > 0
               and zmq.zmq_poll(self._readable, 0)):
            client, frames, size = self._receive_one()
            room -= size
            frames_left -= len(frames)
            if not self._is_amid:
                arrived.append((client, frames))
        self.traffic.received += len(arrived)
        return arrived

    def _drop_on(self) -> None:
        """Drop a turn's part of the message that is being dropped."""
        self._is_amid = multipart.skip(self._router, _BATCH_FRAMES)
        if not self._is_amid:
            self.connections.give_back_soon()

    def _receive_one(self) -> tuple[bytes, list[bytes], int]:
        """A routing id, the frames behind it, and their bytes on the wire: of a whole message, unless the socket
        is amid one afterwards. The file of a connection is asked for only once: that costs more than taking a
        frame."""
        router, number = self._router, NO_FILE
        client: bytes = router.recv(multipart.DONTWAIT)
        frames: list[bytes] = []
        first = router.recv(copy=False)
        if not self.connections.is_heard(client):
            with contextlib.suppress(zmq.ZMQError):  # for one that speaks ZMTP 2 it names no file
                number = int(first.get(zmq.SRCFD))
        self._is_amid = multipart.rest(router, first, frames, FRAMES_MAX)
        size = _wire_bytes(frames)
        self.connections.credit(client, number, size)
        if self._is_amid:
            self.traffic.malformed += 1
            self.connections.cut_off(client, f"it has sent a message of more than {FRAMES_MAX} frames")
        return client, frames, size

    def _envelopes(self, messages: Sequence[Message], protocol: int) -> Iterator[list[bytes]]:
        """Frames for each envelope."""
        return (frames for _, frames in
                envelopes(self._name, self.cluster, messages, self._on_too_large, self.limits, protocol))

    def _on_too_large(self, message: Message, refusal: Refused, is_told: bool) -> None:
        _log.error("cannot send a %s: %s", type(message).__name__, refusal)
        self.traffic.too_large += 1

    def _socket(self, kind: int, queue: int) -> zmq.Socket[bytes]:
        opened = self._context.socket(kind)
        for option, number in (
                (zmq.LINGER, 0), (zmq.SNDHWM, queue), (zmq.RCVHWM, queue),
                (zmq.MAXMSGSIZE, self.limits.message_bytes), (zmq.HANDSHAKE_IVL, _HANDSHAKE_MS),
                (zmq.HEARTBEAT_IVL, _HEARTBEAT_MS), (zmq.HEARTBEAT_TIMEOUT, _SILENCE_MS),
                (zmq.HEARTBEAT_TTL, _SILENCE_MS), (zmq.CONNECT_TIMEOUT, _CONNECT_MS),
                (zmq.RECONNECT_IVL, _RECONNECT_MS), (zmq.RECONNECT_IVL_MAX, _RECONNECT_MS_MAX)):
            opened.setsockopt(option, number)
        return opened


def _wire_bytes(frames: Sequence[bytes]) -> int:
    """What frames are on the wire."""
    size = 0
    for frame in frames:
        length = len(frame)
        size += length + (_SHORT_BYTES if length <= _SHORT_FRAME else _LONG_BYTES)
    return size


def _loopback_address(host: str, port: int) -> str:
    """The IPv4 loopback address that a host means; anything else is refused until there are keys."""
    if not 0 <= port <= PORT_MAX:  # libzmq would take it modulo 65536
        raise Refused("bad_port", f"port: {port} is not in 0..{PORT_MAX}", port=port)
    try:
        address = ipaddress.ip_address(socket.gethostbyname(host))
    except (OSError, UnicodeError, ValueError) as problem:
        raise Refused("bad_host", f"host: {host!r} is not an IPv4 address and no name of one; use 127.0.0.1",
                      host=host) from problem
    if not address.is_loopback:
        raise Refused("insecure_host", f"host: {host} is reachable from other machines, where anyone could"
                      " speak to this node; until CURVE keys exist a node listens on loopback only: use"
                      " 127.0.0.1", host=host)
    return str(address)


def _bind_refusal(host: str, port: int, problem: zmq.ZMQError) -> Refused:
    if problem.errno == zmq.EADDRINUSE:
        return Refused("port_in_use", f"port: {port} on {host} is in use; stop the process that listens there"
                       " or choose another port", host=host, port=port)
    return Refused("bad_address", f"cannot listen on {host}:{port}: {problem}; choose an address of this"
                   " machine and a port that this user may use", host=host, port=port)
