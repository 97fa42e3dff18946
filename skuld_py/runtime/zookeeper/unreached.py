"""Why no ZooKeeper server can be spoken to: kazoo tries again for ever, and says nothing of it.

Once it has been given up, each server is dialled once more, and what it makes of that is put into words. Nothing
of this costs a connection that comes about.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

from kazoo.hosts import collect_hosts

from skuld_py.errors import Refused
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.runtime.zookeeper.tls import Tls, is_alert, not_taken, sealed

_LOOK_S = 1.0
"""How long a server is looked at; where nobody listens it takes no time."""
_SERVERS_MAX = 5
_PROBE = b"ruok"
"""A command that any server answers, be it to say that it does not answer it."""


def unreached(servers: Servers) -> Refused:
    """The refusal when no server lets us in, with the reason that one of them has shown."""
    for refusal in _reasons(servers):
        return refusal
    if unknown := _unknown(servers):
        return _misnamed(servers, unknown)
    return Refused("zookeeper_unreachable", f"no ZooKeeper answers at {servers}; check that it runs, that the"
                   " address is right and that this machine may connect to it", hosts=servers)


def check_names(servers: Servers) -> None:
    """``Refused`` when this machine can resolve none of the servers' names, so that nothing waits for them."""
    unknown = _unknown(servers)
    if len(unknown) == len(collect_hosts(servers)[0]):
        raise _misnamed(servers, unknown)


def _misnamed(servers: Servers, unknown: list[str]) -> Refused:
    return Refused("zookeeper_unreachable", f"zookeeper: no address is known by the name in {', '.join(unknown)};"
                   " check how it is spelt, and this machine's name service", hosts=servers)


def _unknown(servers: Servers) -> list[str]:
    """Those servers whose names this machine cannot resolve."""
    unknown = []
    for host, port in collect_hosts(servers)[0][:_SERVERS_MAX]:
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            unknown.append(f"{host}:{port}")
    return unknown


def _reasons(servers: Servers) -> Iterator[Refused]:
    for host, port in collect_hosts(servers)[0][:_SERVERS_MAX]:
        with suppress(OSError):
            refusal = _tls_wanted(host, port) if servers.tls is None else _tls_refused(servers.tls, host, port)
            if refusal is not None:
                yield refusal


def _tls_wanted(host: str, port: int) -> Refused | None:
    """The refusal when a server speaks TLS, and was not spoken to in it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is asked or told, but whether it is TLS at all
    with socket.create_connection((host, port), _LOOK_S) as raw:
        try:
            context.wrap_socket(raw).close()
        except OSError as problem:
            if not is_alert(problem):
                return None
    return Refused("tls_needed", f"zookeeper-ca: {host}:{port} speaks TLS only; give the certificate of its"
                   " authority (--zookeeper-ca FILE, or $SKULD_ZOOKEEPER_CA)", server=f"{host}:{port}")


def _tls_refused(tls: Tls, host: str, port: int) -> Refused | None:
    """The refusal when a server and we do not take each other. In TLS 1.3 one that does not take our certificate
    says so only when it is read from."""
    try:
        with sealed(tls, (host, port), host, _LOOK_S) as connection:
            try:
                connection.sendall(_PROBE)
                is_taken = bool(connection.recv(1))
            except TimeoutError:
                return None
            except OSError:
                is_taken = False
    except Refused as refusal:
        return refusal
    return None if is_taken else not_taken(tls, f"{host}:{port}")
