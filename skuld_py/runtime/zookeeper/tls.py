"""A sealed connection to ZooKeeper: what it shows and demands, and why one does not come about.

Invariants:

* Only the authority that is given is trusted, not those of the system; and a server's certificate must be for the
  host by which it is named.
* The files are read for each connection: renewed ones count without a restart.

kazoo's own TLS was not taken: it trusts the system's authorities as well, compares names only if told to, and its
loop takes each refusal for a network that is down, and tries again without a word (``handler``).

Source: kazoo's handlers and connection loop; the verify codes and alerts of OpenSSL.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import attrs

from skuld_py.errors import Refused
from skuld_py.keys.files import check_private

_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another name or address."""
_TOO_EARLY, _OVER = 9, 10


@attrs.frozen
class Tls:
    """``authority``: the certificates that a server's must be signed by. ``certificate`` and ``key``: what is
    shown to servers that want one; the key may stand in the same file."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """For one connection; ``Refused`` naming the file that is no use."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_verify_locations(self.authority)
        except ssl.SSLError as problem:
            raise Refused("bad_certificate", f"zookeeper-ca: {self.authority} holds no certificate in PEM",
                          file=str(self.authority)) from problem
        except OSError as problem:
            raise _unreadable("zookeeper-ca", self.authority, problem) from problem
        if self.certificate is not None:
            self._show(context, self.certificate, self.key or self.certificate)
        return context

    def _show(self, context: ssl.SSLContext, certificate: Path, key: Path) -> None:
        field = "zookeeper-cert" if self.key is None else "zookeeper-cert-key"
        try:
            check_private(key)
        except OSError as problem:
            raise _unreadable(field, key, problem) from problem
        try:
            context.load_cert_chain(certificate, key, lambda: _locked(field, key))
        except ssl.SSLError as problem:
            raise Refused("bad_certificate", f"{field}: {certificate} and {key} are not a certificate and its key,"
                          f" in PEM: {_reason(problem)}", file=str(key)) from problem
        except OSError as problem:
            raise _unreadable("zookeeper-cert", certificate, problem) from problem


def _unreadable(field: str, path: Path, problem: OSError) -> Refused:
    return Refused("bad_certificate", f"{field}: {path} cannot be read: {problem.strerror}", file=str(path))


def _locked(field: str, key: Path) -> str:
    """Asked by OpenSSL for a password, which it would else ask the terminal for."""
    raise Refused("bad_certificate", f"{field}: the key in {key} is sealed with a password; give one that is not,"
                  " in a file that is yours alone", file=str(key))


def sealed(tls: Tls, address: tuple[str, int], host: str, timeout_s: float | None) -> ssl.SSLSocket:
    """A connection to one address of a server; ``Refused`` with the reason when it is not the one that is meant,
    or does not take us for one that may."""
    context = tls.context()
    raw = socket.create_connection(address, timeout_s)
    try:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(raw, server_hostname=host)
    except OSError as problem:
        raw.close()
        if isinstance(problem, TimeoutError):
            raise
        raise refusal_of(problem, tls, f"{host}:{address[1]}") from problem


def refusal_of(problem: OSError, tls: Tls, server: str) -> Refused:
    """What it means that a handshake failed."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return _mistrust(problem, tls, server)
    if is_alert(problem):
        return not_taken(tls, server)
    return Refused("no_tls", f"zookeeper-ca: {server} does not answer in TLS; if it is just starting or ending,"
                   " try again, else name the port at which this ZooKeeper speaks TLS", server=server)


def _mistrust(problem: ssl.SSLCertVerificationError, tls: Tls, server: str) -> Refused:
    if problem.verify_code in _OTHER_NAME:
        return Refused("wrong_server", f"zookeeper: {server} shows the certificate of another host; call it by a"
                       " name that its certificate has, or give it one for this name", server=server)
    if problem.verify_code in (_TOO_EARLY, _OVER):
        return Refused("wrong_server", f"zookeeper: the certificate of {server} is not valid now"
                       f" ({problem.verify_message}); renew it, or set this machine's clock", server=server)
    return Refused("wrong_server", f"zookeeper-ca: the certificate of {server} is not by an authority in"
                   f" {tls.authority} ({problem.verify_message}); give that of this ZooKeeper", server=server)


def not_taken(tls: Tls, server: str) -> Refused:
    """The refusal when a server wants another certificate than it was shown."""
    if tls.certificate is None:
        return Refused("certificate_needed", f"zookeeper-cert: {server} wants a certificate; give one of its"
                       " authority (--zookeeper-cert FILE, or $SKULD_ZOOKEEPER_CERT)", server=server)
    return Refused("certificate_refused", f"zookeeper-cert: {server} does not take the certificate in"
                   f" {tls.certificate}; give one that is of its authority and still valid", server=server)


def is_alert(problem: OSError) -> bool:
    """Whether the other side has said in TLS that it breaks off."""
    return isinstance(problem, ssl.SSLError) and "ALERT" in (problem.reason or "")


def _reason(problem: ssl.SSLError) -> str:
    return (problem.reason or str(problem)).replace("_", " ").lower()
