"""Why no node can be reached: libzmq keeps silent about it, and tries again for ever.

Once a call has given up, each node is dialled once more by a socket that is watched, and what the handshake came
to is put into words. Nothing of this costs a call that is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import attrs
import zmq

from skuld_py.client.dial import dial
from skuld_py.client.steady import monotonic_s
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.keys.files import ClientKey

GREETING_LOOK_S, GLANCE_S = 1.0, 0.3
"""How long is looked the first time, within the call's time where it has as much; and each other time, beyond it.
Where nobody listens it takes no time."""
NODES_MAX = 5
_DENIED, _MISMATCH = zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_BROKEN = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
_ANSWERED, _CONNECTED, _RETRIED = zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_CONNECTED, zmq.EVENT_CONNECT_RETRIED
_WATCHED = _DENIED | _MISMATCH | _BROKEN | _ANSWERED | _CONNECTED | _RETRIED


@attrs.define
class Looks:
    """How long a connection looks: it is known once that nobody can be reached, and calls are to end in time."""

    is_first: bool = True

    def next_s(self, timeout_s: float, has_greeted: bool) -> float:
        """After a call that had so long a time, and perhaps others that were answered."""
        was_first, self.is_first = self.is_first and not has_greeted, False
        return max(GLANCE_S, min(GREETING_LOOK_S, timeout_s)) if was_first else GLANCE_S


def diagnosed(refusal: Refused, nodes: Sequence[str], key: ClientKey | None, look_s: float) -> Refused:
    """The refusal to raise in place of this one: one that says why, if it is about keys."""
    if refusal.code != "unreachable":
        return refusal
    events = _handshakes(nodes[:NODES_MAX], key, monotonic_s() + look_s)
    if _DENIED in events:
        name = key.name if key is not None else "?"
        return Refused("denied", f"key: the nodes do not know the key of {name}, or it is revoked or over; have it"
                       " authorised ('skuld keys authorise'), or use another one")
    is_let_in = key is not None and bool(key.also) and _ANSWERED in events  # by one of two, and not by the other
    if not events & {_MISMATCH, _BROKEN} or is_let_in:
        return refusal
    if key is None:
        return Refused("key_needed", "key: whoever listens at the nodes' addresses speaks to keys only, or is no"
                       " node; give a client's key (--client-key FILE, $SKULD_CLIENT_KEY, or Client(key=...))")
    return Refused("wrong_cluster_key", "key: the nodes do not show the cluster's key that the key file of"
                   f" {key.name} names, or none at all; is it the key of another cluster, is it the port of"
                   " something else, or was the cluster's key replaced? Then get a newer file")


def _handshakes(nodes: Sequence[str], key: ClientKey | None, end: float) -> set[int]:
    """What handshakes with these nodes came to, as libzmq's events."""
    found: set[int] = set()
    with zmq.Context() as context:
        dialled = [(node, each) for node in nodes for each in _each(key)]
        sockets = [context.socket(zmq.DEALER) for _ in dialled]
        monitors = [socket.get_monitor_socket(_WATCHED) for socket in sockets]
        for socket, (node, each) in zip(sockets, dialled, strict=True):
            with suppress(zmq.ZMQError):
                dial(socket, node, DEFAULT_LIMITS, each)
        for monitor in monitors:
            found |= _first(monitor, end)
        for socket in sockets:
            socket.disable_monitor()
            socket.close()
        for monitor in monitors:
            monitor.close()
    return found


def _each(key: ClientKey | None) -> list[ClientKey | None]:
    """The key with each of the cluster's keys that it names."""
    return [None] if key is None else [attrs.evolve(key, cluster=cluster, also="") for cluster in key.clusters]


def _first(monitor: zmq.Socket[bytes], end: float) -> set[int]:
    """What the first handshake over a socket came to; nothing, if it has not ended by then, or nobody listens. One
    that is cut off before it has read why it was is dialled again."""
    from zmq.utils.monitor import recv_monitor_message  # brings asyncio, which few clients have use for

    is_listening = False
    while monitor.poll(max(0, int(1_000 * (end - monotonic_s())))):
        event = int(recv_monitor_message(monitor)["event"])
        if event not in (_CONNECTED, _RETRIED):
            return {event}
        if event == _RETRIED and not is_listening:
            return set()
        is_listening = is_listening or event == _CONNECTED
    return set()
