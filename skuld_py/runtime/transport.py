"""Messages over ZeroMQ: a ROUTER for clients and one for peers, one DEALER out per peer; sending never waits.

Invariants:

* A peer is written to only through this node's own DEALER to it, on which nothing is ever read. So each direction
  has a queue of its own, and a peer that restarts is found again by its address. A routing id is a return address
  for clients and never an identity: its owner chose it.
* Without keys a node listens on loopback only, one ROUTER takes everything, and the message itself names its
  sender. With keys each message names the key of its connection, which libzmq has proved; peers have a ROUTER and
  a port of their own, at which only nodes' keys are let in (``handshakes``), and a peer is dialled where its key's
  row in the roster says, and must show that key.
* No thread of it ends unseen: ``wait`` raises what it has failed by (``threads``).
* A node that stops says farewell to its clients, and answers what they sent before they heard it: so nothing is
  lost unread when the sockets close.
* No call blocks and none raises for a peer's sake. What cannot be handed over at once (not connected, a full
  queue, a client that left) is dropped and counted; the machine sends again what it still needs.
* An answer that is larger than a message may be is not sent; the client is told so (``Failed``).
* The ROUTER says when it cannot deliver (``ROUTER_MANDATORY``); by default it drops in silence.
* A connection that is silent for 3 s is cut by heartbeats and made anew; an attempt to connect is given up
  after 2 s. Without either a healed partition would wait for TCP to retransmit, which it does ever more
  seldom: after 18 s of silence it took 5 s more, and it can be half a minute.
* A peer is dialled from the address this node listens at, if that is one, so that rules of a network can tell by
  addresses which two nodes speak, also where several live on one machine.

``wake`` alone may be called from other threads and from signal handlers. ``MAXMSGSIZE`` bounds a frame; the sum of
what one batch takes in is bounded by ``receive``, and what waits before it, or for clients behind it, by ``Door``.

Rejected: ROUTER to ROUTER (both sides must know routing ids beforehand, and a restarted peer's is
refused while the old connection lingers); one DEALER to all peers (it would deal messages out in turn);
to stop listening before the farewell (``zmq_unbind`` ends the connections that were accepted, too);
libzmq's own queueing to absent peers (minutes-old messages arrive in a flood when the peer is back).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import zmq

from skuld_py.config import DEFAULT_LIMITS, PROTOCOL_VERSION, Limits
from skuld_py.errors import Refused
from skuld_py.model.messages import Failed, Message
from skuld_py.runtime.addresses import endpoint, is_ipv6, listening
from skuld_py.runtime.connections import news_of
from skuld_py.runtime.door import Arrival, Door, Portion
from skuld_py.runtime.handshakes import CLIENTS, PEERS, Handshakes
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.threads import Helpers
from skuld_py.runtime.watcher import Watcher
from skuld_py.wire import multipart
from skuld_py.wire.envelopes import envelopes

Address = tuple[str, int]
FAREWELL = Failed(0, "not_ready", "this node stops; send it nothing more over this connection", True)
"""Is about no request in particular."""

_log = logging.getLogger(__name__)

_PEER_QUEUE = 256
"""Messages waiting for one connected peer, each a whole batch; more would be stale anyway."""
_CLIENT_QUEUE = 1_000
_HEARTBEAT_MS, _SILENCE_MS = 1_000, 3_000
_CONNECT_MS = 2_000
"""Long enough for one lost packet, which TCP sends again after a second."""
_RECONNECT_MS, _RECONNECT_MS_MAX = 100, 1_000
_HANDSHAKE_MS = 5_000
"""A connection that does not introduce itself by then is cut; the default gives it 30 s."""
_PEER_HANDSHAKE_MS = 2_000
"""A peer that does not let this node in is dialled again after this."""


@attrs.define
class Traffic:
    """What went through and what was lost, since the start."""

    received: int = 0
    sent: int = 0
    answered: int = 0
    to_unknown_peer: int = 0
    to_silent_peer: int = 0
    to_lost_client: int = 0
    too_large: int = 0


class Transport:
    """The sockets of the node ``name``, which listens at ``host:port`` (0: any free port); with a ``keyring`` to
    keys of its roster alone, and to peers at ``peer_port``."""

    def __init__(self, name: str, cluster: str, host: str, port: int, limits: Limits = DEFAULT_LIMITS,
                 protocol: int = PROTOCOL_VERSION, keyring: Keyring | None = None, peer_port: int = 0) -> None:
        self.traffic = Traffic()
        self.protocol = protocol
        """In which peers are written to: all of them understand it."""
        self._name = name
        self.cluster = cluster
        self.limits = limits
        self._listening = listening(host, port, peer_port, is_keyed=keyring is not None)
        self._keyring = keyring
        self._context = zmq.Context()
        self._awake, self._waker = os.pipe()
        os.set_blocking(self._awake, False)
        os.set_blocking(self._waker, False)
        self._helpers = Helpers(self.wake)
        self._handshakes = None if keyring is None else Handshakes(self._context, keyring, self._helpers)
        try:
            self.clients = self._bind(port, CLIENTS)
            self.peers = self.clients if keyring is None else self._bind(peer_port, PEERS)
        except BaseException:
            self._end()
            raise
        self.port = self.clients.port
        self.connections = self.clients.connections
        self._dealers: dict[str, zmq.Socket[bytes]] = {}
        self._addresses: dict[str, tuple[str, int, str]] = {}
        self._doors = [self.peers, self.clients] if self.peers is not self.clients else [self.clients]
        self._watcher = Watcher([door.connections for door in self._doors], self._helpers)
        self._ready: list[Door] | None = None
        """The doors at which something has arrived, as the last wait has seen and nobody has taken; None: it is
        not known."""
        self._sources: list[tuple[Any, int]] = [
            *((door.router, int(zmq.POLLIN)) for door in self._doors), (self._awake, int(zmq.POLLIN))]

    def _bind(self, port: int, domain: str) -> Door:
        """Listen for one kind of sender."""
        router = self._socket(zmq.ROUTER, _CLIENT_QUEUE)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.setsockopt(zmq.RCVHWM, 0)
        keyring = self._keyring
        if keyring is not None:
            router.zap_domain = domain.encode()
            router.curve_server = True
            router.curve_secretkey = (keyring.cluster if domain == CLIENTS else keyring.me).secret.encode()
        router.setsockopt(zmq.IPV6, is_ipv6(self._listening.address))
        news = news_of(router)
        try:
            router.bind(endpoint(self._listening.address, port))
        except zmq.ZMQError as problem:
            raise _bind_refusal(self._listening.host, port, problem) from problem
        bound = int(router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
        return Door(router, news, bound, self.limits, is_keyed=keyring is not None,
                    doors=doors_of(keyring is not None))

    def _end(self) -> None:
        if self._handshakes is not None:
            self._handshakes.close()
        self._context.destroy(linger=0)
        os.close(self._awake)
        os.close(self._waker)

    def close(self) -> None:
        """Close all sockets and forget what is queued; closing twice does nothing. What a client takes has left by
        then: libzmq writes what it is handed at once, as far as the kernel has room."""
        if self._context.closed:
            return
        self._watcher.close()
        self._end()

    def set_peers(self, peers: Mapping[str, Address]) -> None:
        """Connect to exactly these, and never to this node; a connection whose address stays is left alone. With
        keys a peer that has no row in the roster yet is left out."""
        wanted = {name: place for name, (host, port) in peers.items()
                  if name != self._name and (place := self._place(name, host, port)) is not None}
        for name in [name for name, place in self._addresses.items() if wanted.get(name) != place]:
            del self._addresses[name]
            self._dealers.pop(name).close(linger=0)
        for name, place in wanted.items():
            if name not in self._dealers and (dealer := self._dialled(*place)) is not None:
                self._dealers[name] = dealer
                self._addresses[name] = place

    def _place(self, name: str, host: str, port: int) -> tuple[str, int, str] | None:
        """Where a peer is dialled, and the key that it must show."""
        if self._keyring is None:
            return host, port, ""
        place = self._keyring.place(name)
        return None if place is None else (place[1], place[2], place[0])

    def _dialled(self, host: str, port: int, key: str) -> zmq.Socket[bytes] | None:
        dealer = self._socket(zmq.DEALER, _PEER_QUEUE)
        dealer.setsockopt(zmq.IMMEDIATE, 1)
        dealer.setsockopt(zmq.RCVHWM, 1)
        if self._keyring is not None:
            dealer.setsockopt(zmq.HANDSHAKE_IVL, _PEER_HANDSHAKE_MS)
            dealer.curve_serverkey = key.encode()
            dealer.curve_publickey = self._keyring.me.public.encode()
            dealer.curve_secretkey = self._keyring.me.secret.encode()
        dealer.setsockopt(zmq.IPV6, is_ipv6(host))
        try:
            dealer.connect(endpoint(host, port, self._listening.source))
        except zmq.ZMQError:  # no address at all: it can never be reached
            dealer.close()
            return None
        return dealer

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
            if self.clients.answer(client, frames):
                self.traffic.answered += 1
            else:
                self.traffic.to_lost_client += 1

    def bid_farewell(self) -> None:
        """Tell clients that have not been told to send nothing more to this node."""
        for client in self.connections.untold():
            self.answer(client, [FAREWELL])

    def note_protocol(self, client: bytes, protocol: int) -> None:
        """This client has spoken this protocol."""
        self.connections.note_protocol(client, protocol)

    def mark_peer(self, client: bytes, name: str) -> None:
        """The node of this name is heard from this client."""
        self.peers.connections.mark_peer(client, name)

    def wait(self, timeout_ms: int | None) -> None:
        """Until something can be received, or ``wake`` was called, or the time is over (None: never); raises
        ``HelperFailed`` when this transport can do nothing more."""
        ready = [source for source, _ in zmq.zmq_poll(self._sources, -1 if timeout_ms is None else timeout_ms)]
        if self._awake in ready:
            os.read(self._awake, 4096)
        self._ready = [door for door in self._doors if door.router in ready]
        self._helpers.check()

    def wake(self) -> None:
        """End the present or next ``wait``. A full pipe wakes it anyway; with a closed one there is nothing to
        wake."""
        with contextlib.suppress(OSError):
            os.write(self._waker, b"\0")

    def receive(self, limit: int) -> list[Arrival]:
        """What has arrived, at most ``limit`` messages, those of peers first. After a ``wait`` only the doors are
        looked at that ended it."""
        portion, ready = Portion.of(limit, self.limits), self._ready
        self._ready = None
        arrived = [arrival for door in (self._doors if ready is None else ready)
                   for arrival in door.receive(portion, is_readable=ready is not None)]
        self.traffic.received += len(arrived)
        return arrived

    @property
    def malformed(self) -> int:
        """Messages of more frames than any has; the loop counts those that are malformed otherwise."""
        return sum(door.malformed for door in self._doors)

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


def doors_of(is_keyed: bool) -> int:
    """How many sockets a node listens at: with keys, one for clients and one for peers."""
    return 2 if is_keyed else 1


def _bind_refusal(host: str, port: int, problem: zmq.ZMQError) -> Refused:
    if problem.errno == zmq.EADDRINUSE:
        return Refused("port_in_use", f"port: {port} on {host} is in use; stop the process that listens there"
                       " or choose another port", host=host, port=port)
    return Refused("bad_address", f"cannot listen on {host}:{port}: {problem}; choose an address of this"
                   " machine and a port that this user may use", host=host, port=port)
