"""Requests to a cluster: which node to ask, how long to wait, and what may be asked twice.

A call has one deadline. Nodes are asked in turn; one that was silent is passed over for a while, unless
all are. A request that is idempotent is sent to another node when one is silent; any other is sent once,
and silence makes its outcome ``Uncertain``. A refusal is definite only if no earlier attempt is in doubt.
A node that is not connected is never sent to (the socket refuses at once), so "no node is reachable" is
a definite refusal.

One DEALER per node; answers are matched by request number, late ones dropped.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import zmq

from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.errors import Malformed, Refused, Uncertain
from skuld_py.model.messages import Failed, Greet, Greeted, Message
from skuld_py.wire.codec import Envelope, decode, encode

ATTEMPT_S = 1.5
"""A silent node is given up for another one after this, within the call's deadline."""
SILENCE_S = 5.0
"""A node that gave no answer is asked again only after this, as long as others are there."""
CONNECT_S = 0.05
RETRIED_CODES = ("not_ready", "unavailable", "busy", "no_leader")
"""Refusals that pass by themselves: tried again until the deadline."""


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` as a pair; raises ``Refused``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise Refused("bad_address", f"node: {text!r} is not HOST:PORT, such as 127.0.0.1:13000")
    return host, int(port)


class Connection:
    """Sockets to the nodes of a cluster. Not thread-safe: its owner serialises calls."""

    def __init__(self, nodes: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> None:
        if not nodes:
            raise Refused("no_nodes", "nodes: name at least one HOST:PORT")
        for node in nodes:
            parse_address(node)
        self._limits = limits
        self._context = zmq.Context()
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._poller = zmq.Poller()
        self._requests = itertools.count(1)
        self._turn = 0
        self._silent_until: dict[str, float] = {}
        for node in nodes:
            self._connect(node)
        self.greeted: Greeted | None = None

    def _connect(self, node: str) -> None:
        host, port = parse_address(node)
        socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        for option, value in ((zmq.LINGER, 0), (zmq.IMMEDIATE, 1), (zmq.SNDHWM, 1_000), (zmq.RCVHWM, 1_000),
                              (zmq.HEARTBEAT_IVL, 1_000), (zmq.HEARTBEAT_TIMEOUT, 3_000),
                              (zmq.RECONNECT_IVL, 50), (zmq.RECONNECT_IVL_MAX, 1_000),
                              (zmq.CONNECT_TIMEOUT, 2_000), (zmq.HANDSHAKE_IVL, 5_000),
                              (zmq.MAXMSGSIZE, self._limits.message_bytes)):
            socket.setsockopt(option, value)
        socket.connect(f"tcp://{host}:{port}")
        self._sockets[node] = socket
        self._poller.register(socket, zmq.POLLIN)

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
                if f"{member.host}:{member.port}" not in self._sockets:
                    self._connect(f"{member.host}:{member.port}")
        return self.greeted

    def call(self, message: Message, timeout_s: float, *, is_idempotent: bool, wait_s: float = 0,
             is_greeting: bool = False) -> Message:
        """Send a request and give its answer, which may take ``wait_s`` more than the timeout.

        Raises ``Refused`` when it did not happen, ``Uncertain`` when it may have.
        """
        reach_by = time.monotonic() + timeout_s
        deadline = reach_by + wait_s
        cluster = "" if is_greeting else self.greet(timeout_s).cluster
        request: int = message.request  # type: ignore[attr-defined]
        frames = encode(Envelope("", cluster, (message,)))
        was_sent, is_in_doubt, refusal = False, False, None
        while time.monotonic() < (deadline if was_sent else reach_by):
            node = self._send(frames)
            if not node:
                self._pause(reach_by)
                continue
            was_sent = True
            until = min(deadline, time.monotonic() + wait_s + ATTEMPT_S) if is_idempotent else deadline
            answer = self._receive(request, until)
            if answer is not None and not isinstance(answer, Failed):
                return answer
            if answer is None:
                self._silent_until[node] = time.monotonic() + SILENCE_S
            else:
                refusal = self._judge(answer, is_idempotent, is_in_doubt)
            is_in_doubt = is_in_doubt or answer is None or not answer.is_definite
            if is_in_doubt and not is_idempotent:
                break
            self._pause(deadline)
        names = ", ".join(self._sockets)
        if not was_sent:
            raise Refused("unreachable", f"nodes: none of {names} can be reached; are they running?")
        if refusal is not None and (not is_in_doubt or isinstance(refusal, Uncertain)):
            raise refusal
        raise Uncertain("deadline", f"no answer from {names} before the deadline")

    def _judge(self, answer: Failed, is_idempotent: bool, is_in_doubt: bool) -> Refused | Uncertain:
        """Raise what is final; give back what may be tried again. What an earlier attempt may have done, no
        refusal undoes."""
        if not answer.is_definite:
            doubt = Uncertain(answer.code, answer.text)
            if not is_idempotent:
                raise doubt
            return doubt
        refusal = Refused(answer.code, answer.text)
        if answer.code not in RETRIED_CODES:
            raise Uncertain(answer.code, answer.text) if is_in_doubt else refusal
        return refusal

    def _send(self, frames: list[bytes]) -> str:
        """Send to the next node that takes it; gives its name, or nothing."""
        self._turn += 1
        now, first = time.monotonic(), self._turn % len(self._sockets)
        nodes = [*list(self._sockets)[first:], *list(self._sockets)[:first]]
        for node in sorted(nodes, key=lambda node: self._silent_until.get(node, 0) > now):
            try:
                self._sockets[node].send_multipart(frames, zmq.DONTWAIT)
            except zmq.Again:
                continue
            return node
        return ""

    def _pause(self, deadline: float) -> None:
        """Give connections a moment; an answer that comes meanwhile is stale."""
        left = min(CONNECT_S, deadline - time.monotonic())
        if left > 0:
            self._receive(-1, time.monotonic() + left)

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
