"""Where a node listens, where others find it, and whether two names of nodes are one address.

Without keys a node listens on loopback addresses only, since anyone who reached it could speak to it. With keys it
listens anywhere, on all interfaces too; then it has to say by which name or address others find it.

That must be one at which the others reach it, and it them. So it is no name that means each machine itself, as
some /etc/hosts have one for the machine's own; it is none of another interface than the one that a node listens
at; and no new node is at loopback where others are elsewhere, or elsewhere where others are at the loopback of
another machine. A cluster whose nodes are all at loopback is one on one machine. A name is looked up for its IPv4
address: libzmq takes the first one that it finds, and of ``localhost`` that may be one at which nobody listens.
IPv6 addresses are written as such.

``localhost:13000`` and ``127.0.0.1:13000`` reach the same socket, and nodes are told apart by name alone. So the
cluster would place copies on both, and count one process as two voters. A new name for an address that has one
already is refused; a node that is registered goes on as it was.

Names are looked up beside each other and no longer than ``LOOK_S``; one that cannot be found by then is passed
over.
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
ANSWER_S = 1.0
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


def advertised(advertise: str, at: Listening, *, is_keyed: bool) -> str:
    """The host by which others find a node; ``Refused`` where they would find themselves, or nothing."""
    if not advertise and at.is_everywhere:
        raise Refused("no_address", f"advertise: with --host {at.host} this node listens on all interfaces;"
                      " say by which name or address others find it (--advertise)", host=at.host)
    host = (advertise or at.host).strip("[]")
    field, found = "advertise" if advertise else "host", _addresses(host)
    if ":" in host and not _is_plain(host):
        raise Refused("bad_host", f"{field}: {host!r} is no host: give a name or an address alone; the port is"
                      " that of --port", host=host)
    if any(_is_unspecified(each) for each in found):
        raise Refused("no_address", f"{field}: {host} means all interfaces, at which nobody is found; use an"
                      " address of this machine, or a name of one", host=host)
    if _is_loopback(found) and (not at.is_loopback or (is_keyed and not _is_plain(host))):
        raise Refused("loopback_name", f"{field}: {host} means {', '.join(sorted(found))} on this machine,"
                      " which on every other one is that machine itself; use an address of this machine, or mend"
                      " its name service (/etc/hosts)", host=host)
    if at.is_loopback and found and not _is_loopback(found):
        raise Refused("unheard_address", f"advertise: others would look for this node at {host}, and with --host"
                      f" {at.host} it listens to this machine alone; use --host {host}, or 0.0.0.0", host=host)
    return f"0{host}" if host.startswith(":") else host  # names of nodes begin with a letter or digit


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
    """``Refused`` when this name is new, and a node of another name has its address, or either could not reach
    the other."""
    others = list(registered)
    if name in others or not others:
        return
    found = _look_up([name, *others], limit_s)
    mine = found.get(name, frozenset())
    for other in others:
        theirs = found.get(other, frozenset())
        if mine & theirs and other.rpartition(":")[2] == name.rpartition(":")[2]:
            raise Refused("address_in_use", f"--host, --port: {name} is the address of node {other} of this"
                          " cluster; start it under that name, with the data directory that it has, or choose"
                          " another port", name=name, other=other)
        if mine and theirs:
            _check_reach(name, _is_loopback(mine), other, _is_loopback(theirs))


def _check_reach(name: str, is_loopback: bool, other: str, is_other_loopback: bool) -> None:
    if is_loopback and not is_other_loopback:
        raise Refused("loopback_name", f"host: node {other} of this cluster is not at loopback, and would find"
                      f" itself at {name}; use an address of this machine (--host)", name=name, other=other)
    if is_other_loopback and not is_loopback and not _answers(other):
        raise Refused("loopback_name", f"host: node {other} of this cluster is at loopback, and does not answer on"
                      f" this machine; {name} would never find it. Start that node, if it is one of this machine;"
                      " else start others in its place, at addresses of its machine", name=name, other=other)


def _answers(name: str) -> bool:
    """Whether something listens there."""
    host, _, port = name.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, UnicodeError, ValueError):
        return False
    return True


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


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _is_unspecified(text: str) -> bool:
    return _address(text).is_unspecified


def _is_loopback(found: frozenset[str]) -> bool:
    """Whether these are a machine's own alone; not so where nothing is found."""
    return bool(found) and all(_address(each).is_loopback for each in found)


def _is_plain(host: str) -> bool:
    """Whether everyone sees that it is loopback, if it is."""
    try:
        return host == "localhost" or bool(_address(host))
    except ValueError:
        return False
