"""What a ZooKeeper server needs to speak TLS: a directory with its certificates, as ``certificates`` makes them.

``server.pem`` (its certificate and key) and ``ca.pem`` (who signs it, and the clients') are for the clients'
port. ``quorum.pem`` and ``quorum-ca.pem`` are for the ports at which servers of an ensemble speak to each other.
There ZooKeeper asks of who dials in no more than a certificate of the authority; were it that of the clients, any
client could vote in the ensemble's elections, and feed it data.

The server reads the first two for itself as a client, too, to see whether it serves.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from pathlib import Path

import attrs

from skuld_py.errors import Refused

SERVER, AUTHORITY = "server.pem", "ca.pem"
QUORUM, QUORUM_AUTHORITY = "quorum.pem", "quorum-ca.pem"

# Without a plain port there is nothing for whoever has no certificate.
_CLIENTS = """\
secureClientPort={port}
secureClientPortAddress={host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.clientAuth=need
"""
_QUORUM = """\
sslQuorum=true
ssl.quorum.clientAuth=need
ssl.quorum.hostnameVerification=true
"""
_STORES = """\
ssl.{0}keyStore.type=PEM
ssl.{0}keyStore.location={1}
ssl.{0}trustStore.type=PEM
ssl.{0}trustStore.location={2}
"""


@attrs.frozen
class ServerTls:
    """The directory."""

    directory: Path

    def secrets(self, *, is_one_of_several: bool) -> list[Path]:
        """Its files that hold keys."""
        return [self.directory / name for name in (SERVER, *((QUORUM,) if is_one_of_several else ()))]

    def check(self, host: str, *, is_one_of_several: bool) -> None:
        """``Refused`` naming the file that is not there, no use, or for another host than this."""
        self._check(SERVER, AUTHORITY, host)
        if is_one_of_several:
            self._check(QUORUM, QUORUM_AUTHORITY, host)

    def _check(self, own: str, authority: str, host: str) -> None:
        """Shake hands with oneself: nobody else would take a certificate that is over, or for another host."""
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        asking = self._context(own, authority)
        serving.load_cert_chain(self.directory / own, password=lambda: "")
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = asking.wrap_bio(back, there, server_hostname=host)
        server = serving.wrap_bio(there, back, server_side=True)
        try:
            for side in (client, server, client):
                with contextlib.suppress(ssl.SSLWantReadError):
                    side.do_handshake()
        except ssl.SSLCertVerificationError as problem:
            raise self._refusal(own, problem.verify_message.rstrip(".")) from problem

    def configuration(self, host: str, port: int, *, is_one_of_several: bool) -> str:
        """For ``zoo.cfg``."""
        text = _CLIENTS.format(host=host, port=port) + self._stores("", SERVER, AUTHORITY)
        return text + _QUORUM + self._stores("quorum.", QUORUM, QUORUM_AUTHORITY) if is_one_of_several else text

    def sealed(self, plain: socket.socket, host: str) -> socket.socket:
        """A connection to the server that serves with these files."""
        with contextlib.ExitStack() as held:
            held.callback(plain.close)
            made = self._context(SERVER, AUTHORITY).wrap_socket(plain, server_hostname=host)
            held.pop_all()
        return made

    def _stores(self, prefix: str, own: str, authority: str) -> str:
        directory = self.directory.absolute()
        return _STORES.format(prefix, *(_escaped(str(directory / name)) for name in (own, authority)))

    def _context(self, own: str, authority: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            name = authority
            context.load_verify_locations(self.directory / authority)
            name = own
            context.load_cert_chain(self.directory / own, password=lambda: "")
        except ssl.SSLError as problem:
            raise self._refusal(name, problem.reason or "no PEM") from problem
        except OSError as problem:
            raise self._refusal(name, problem.strerror or str(problem)) from problem
        return context

    def _refusal(self, name: str, reason: str) -> Refused:
        return Refused("bad_certificate", f"tls: {self.directory / name} is no use ({reason}); 'skuld"
                       " certificates' makes the directory of each server", file=str(self.directory / name))


def _escaped(text: str) -> str:
    """For a properties file of Java."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 < code < 127 and code != 92 else f"\\u{code:04x}" for code in codes)
