"""Where a node listens, where others find it, and whether two names of nodes are one address.

Without keys a node listens on loopback addresses only, since anyone who reached it could speak to it. With keys it
listens anywhere, on all interfaces too; then it has to say by which name or address others find it, and that must
not be one that means each machine itself. A name is looked up for its IPv4 address: libzmq takes the first one
that it finds, and of ``localhost`` that may be one at which nobody listens. IPv6 addresses are written as such.

``localhost:13000`` and ``127.0.0.1:13000`` reach the same socket, and nodes are told apart by name alone. So the
cluster would place copies on both, and count one process as two voters. A new name for an address that has one
already is refused; a node that is registered goes on as it was.

Names are looked up beside each other and no longer than ``LOOK_S``; one that cannot be found by then is passed
over. Only those with the same port are looked up.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterable

import attrs

from skuld_py.errors import Refused

LOOK_S = 3.0
PORT_MAX = 65_535


@attrs.frozen
class Listening:
    """``host`` as it was given, and the ``address`` that it means here."""

    host: str
    address: str

    @property
    def is_everywhere(self) -> bool:
        """Whether it is all interfaces of the machine."""
        return ipaddress.ip_address(self.address).is_unspecified

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def source(self) -> str:
        """The address that connections to other nodes leave from; empty: whichever the system takes."""
        return "" if self.is_everywhere else self.address


def listening(host: str, port: int, peer_port: int = 0, *, is_keyed: bool) -> Listening:
    """Where a node listens; ``Refused`` naming what is wrong."""
    for name, number in (("port", port), ("peer-port", peer_port)):
        if not 0 <= number <= PORT_MAX:  # libzmq would take it modulo 65536
            raise Refused("bad_port", f"{name}: {number} is not in 0..{PORT_MAX}", port=number)
    if port and port == peer_port:
        raise Refused("bad_port", f"peer-port: {port} is the port for clients; choose another one, or leave it"
                      " out", port=port)
    found = Listening(host, _address_of(host))
    if not is_keyed and not found.is_loopback:
        raise Refused("insecure_host", f"host: {host} is reachable from other machines, where anyone could speak"
                      " to this node; without keys it listens on loopback only: use 127.0.0.1, or a cluster that"
                      " has keys ('skuld cluster create --secure')", host=host)
    return found


def advertised(advertise: str, at: Listening) -> str:
    """The host by which others find a node; ``Refused`` where they would find themselves, or nothing."""
    if not advertise:
        if at.is_everywhere:
            raise Refused("no_address", f"advertise: with --host {at.host} this node listens on all interfaces;"
                          " say by which name or address others find it (--advertise)", host=at.host)
        return at.host
    found = _addresses(advertise)
    means_itself = bool(found) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)
    if means_itself and not at.is_loopback:
        raise Refused("loopback_name", f"advertise: {advertise} means {', '.join(sorted(found))} on this machine,"
                      " which on every other one is that machine itself; use an address of this machine, or mend"
                      " its name service (/etc/hosts)", host=advertise)
    return advertise


def endpoint(host: str, port: int, source: str = "") -> str:
    """What libzmq calls an address; an IPv6 address stands in brackets. ``source``: what to connect from."""
    there = f"{bracketed(host)}:{port}"
    return f"tcp://{bracketed(source)}:0;{there}" if source else f"tcp://{there}"


def is_ipv6(host: str) -> bool:
    """Whether a host is written as an IPv6 address."""
    return ":" in host


def bracketed(host: str) -> str:
    """A host in front of a port."""
    return f"[{host}]" if is_ipv6(host) and not host.startswith("[") else host


def _address_of(host: str) -> str:
    """The address that a host means, the IPv4 one if there are several kinds."""
    try:
        rows = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError, ValueError):
        rows = []
    if not rows:
        raise Refused("bad_host", f"host: {host!r} is no address and no name of one; use 127.0.0.1, or an address"
                      " of this machine", host=host)
    return str(min(rows, key=lambda row: row[0] != socket.AF_INET)[4][0])


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
