"""Requests to a cluster over sockets that block; what is asked of whom and how often decides ``pursuit``.

One DEALER per node; answers are matched by request number, late ones dropped.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import zmq

from skuld_py.client.pursuit import Heard, Listen, Nodes, Step, Try, pursue
from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.errors import Malformed, Refused
from skuld_py.model.messages import Greet, Greeted, Message
from skuld_py.wire.codec import Envelope, decode, encode


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` as a pair; raises ``Refused``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise Refused("bad_address", f"node: {text!r} is not HOST:PORT, such as 127.0.0.1:13000")
    return host, int(port)


def check_addresses(nodes: Sequence[str]) -> list[str]:
    """The addresses, when there are any and all are good."""
    if not nodes:
        raise Refused("no_nodes", "nodes: name at least one HOST:PORT")
    for node in nodes:
        parse_address(node)
    return list(nodes)


def dial(socket: zmq.Socket[Any], node: str, limits: Limits) -> None:
    """Have a fresh DEALER connect to a node. It takes nothing to send until it has."""
    host, port = parse_address(node)
    for option, value in ((zmq.LINGER, 0), (zmq.IMMEDIATE, 1), (zmq.SNDHWM, 1_000), (zmq.RCVHWM, 1_000),
                          (zmq.HEARTBEAT_IVL, 1_000), (zmq.HEARTBEAT_TIMEOUT, 3_000),
                          (zmq.RECONNECT_IVL, 50), (zmq.RECONNECT_IVL_MAX, 1_000),
                          (zmq.CONNECT_TIMEOUT, 2_000), (zmq.HANDSHAKE_IVL, 5_000),
                          (zmq.MAXMSGSIZE, limits.message_bytes)):
        socket.setsockopt(option, value)
    socket.connect(f"tcp://{host}:{port}")


class Connection:
    """Sockets to the nodes of a cluster. Not thread-safe: its owner serialises calls."""

    def __init__(self, nodes: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> None:
        self._nodes = Nodes([])
        addresses = check_addresses(nodes)
        self._limits = limits
        self._context = zmq.Context()
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._poller = zmq.Poller()
        self._requests = itertools.count(1)
        for node in addresses:
            self._connect(node)
        self.greeted: Greeted | None = None

    def _connect(self, node: str) -> None:
        if node not in self._sockets:
            socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
            dial(socket, node, self._limits)
            self._sockets[node] = socket
            self._poller.register(socket, zmq.POLLIN)
            self._nodes.add(node)

    def close(self) -> None:
        """Close all sockets."""
        for socket in self._sockets.values():
            socket.close()
        self._sockets.clear()
        self._context.term()

    def next_request(self) -> int:
        """A number no other request of this connection had."""
        return next(self._requests)

    def greet(self, timeout_s: float) -> Greeted:
        """Learn the cluster, and connect to all its live nodes; once."""
        if self.greeted is None:
            answer = self.call(Greet(self.next_request()), timeout_s, is_idempotent=True, is_greeting=True)
            assert isinstance(answer, Greeted), answer
            self.greeted = answer
            for member in answer.members:
                self._connect(f"{member.host}:{member.port}")
        return self.greeted

    def call(self, message: Message, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0,
             is_greeting: bool = False) -> Message:
        """Send a request and give its answer, which may take ``wait_s`` more than the timeout.

        Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
        """
        started = time.monotonic()
        cluster = "" if is_greeting else self.greet(timeout_s).cluster
        request: int = message.request  # type: ignore[attr-defined]
        frames = encode(Envelope("", cluster, (message,)))
        pursuit = pursue(self._nodes, started, timeout_s, is_idempotent=is_idempotent, wait_s=wait_s)
        try:
            step = next(pursuit)
            while True:
                step = pursuit.send(self._take(step, frames, request))
        except StopIteration as end:
            answer: Message = end.value
            return answer

    def _take(self, step: Step, frames: list[bytes], request: int) -> Heard:
        if isinstance(step, Try):
            node = self._send(step.nodes, frames)
            return Heard(time.monotonic(), node)
        answer = self._receive(request if isinstance(step, Listen) else -1, step.until)
        return Heard(time.monotonic(), answer=answer)

    def _send(self, nodes: Sequence[str], frames: list[bytes]) -> str:
        for node in nodes:
            try:
                self._sockets[node].send_multipart(frames, zmq.DONTWAIT)
            except zmq.Again:
                continue
            return node
        return ""

    def _receive(self, request: int, until: float) -> Message | None:
        while (left := until - time.monotonic()) > 0:
            for socket, _ in self._poller.poll(max(1, int(left * 1000))):
                try:
                    envelope = decode(socket.recv_multipart(zmq.DONTWAIT), self._limits)
                except (zmq.Again, Malformed):
                    continue
                for answer in envelope.messages:
                    if getattr(answer, "request", None) == request:
                        return answer
        return None
