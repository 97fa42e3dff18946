"""Where nodes are, and how a client's socket is connected to one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zmq

from skuld_py.client.lines import QUEUE
from skuld_py.config import Limits
from skuld_py.errors import Refused
from skuld_py.keys import loopback
from skuld_py.keys.files import ClientKey, read_client_key
from skuld_py.model.messages import Greeted

_OTHER_KEY_MS = 500
"""How often a node is dialled by the key that it does not show: it has to look at each."""
_HOST = re.compile(r"[^\s/:*;@\[\]]+|\[[0-9A-Fa-f:.]+\]")


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` as a pair; raises ``Refused``."""
    host, _, port = text.rpartition(":")
    if not _HOST.fullmatch(host) or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        such = "[::1]:13000: an IPv6 address stands in brackets" if host.count(":") > 1 else "127.0.0.1:13000"
        raise Refused("bad_address", f"node: {text!r} is not HOST:PORT, such as {such}")
    return host, int(port)


def check_addresses(nodes: Sequence[str]) -> list[str]:
    """The addresses, when there are any and all are good."""
    if not nodes:
        raise Refused("no_nodes", "nodes: name at least one HOST:PORT")
    for node in nodes:
        parse_address(node)
    return list(nodes)


def addresses_in(greeted: Greeted) -> list[str]:
    """Addresses of the cluster's live members."""
    return [address_of(member.host, member.port) for member in greeted.members]


def address_of(host: str, port: int) -> str:
    """The address of a member of a cluster, which writes an IPv6 address bare."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def key_of(given: str | os.PathLike[str] | ClientKey | None, nodes: Sequence[str]) -> ClientKey | None:
    """The key of a file, or the one given; without one that which $SKULD_CLIENT_KEY names, if it names one; or
    that which ``skuld dev`` has left for clients of these nodes."""
    if isinstance(given, ClientKey):
        return given
    path = os.environ.get("SKULD_CLIENT_KEY") if given is None else given
    return read_client_key(Path(path).expanduser()) if path else loopback.found(nodes)


def dial(socket: zmq.Socket[Any], node: str, limits: Limits, key: ClientKey | None = None) -> None:
    """Have a fresh DEALER connect to a node, and show this key. It takes nothing to send until it has.

    Where nodes may show two keys, it is dialled by both: a node lets in by the one that it shows, and when it
    starts again with the other one, the other dialling finds it. An address with a source is another one to
    libzmq, which dials none twice.
    """
    host, port = parse_address(node)
    for option, value in ((zmq.LINGER, 0), (zmq.IMMEDIATE, 1), (zmq.SNDHWM, QUEUE), (zmq.RCVHWM, 1_000),
                          (zmq.HEARTBEAT_IVL, 1_000), (zmq.HEARTBEAT_TIMEOUT, 3_000),
                          (zmq.RECONNECT_IVL, 50), (zmq.RECONNECT_IVL_MAX, 1_000),
                          (zmq.CONNECT_TIMEOUT, 2_000), (zmq.HANDSHAKE_IVL, 5_000),
                          (zmq.MAXMSGSIZE, limits.message_bytes)):
        socket.setsockopt(option, value)
    is_ipv6 = host.startswith("[")
    if is_ipv6:
        socket.setsockopt(zmq.IPV6, 1)
    if key is None:
        socket.connect(f"tcp://{host}:{port}")
        return
    socket.curve_publickey, socket.curve_secretkey = key.pair.public.encode(), key.pair.secret.encode()
    if key.also:
        socket.setsockopt(zmq.RECONNECT_IVL, _OTHER_KEY_MS)
    for source, cluster in zip(("", "[::]:0;" if is_ipv6 else "0.0.0.0:0;"), key.clusters, strict=False):
        socket.curve_serverkey = cluster.encode()
        socket.connect(f"tcp://{source}{host}:{port}")
