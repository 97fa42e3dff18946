"""Certificates for ZooKeeper over TLS: two authorities, and a directory for each server and for the clients.

``DIRECTORY/authority`` has the authorities with their keys, and stays where it is; the others are copied to where
they are used, whole. Made again, a directory gets new certificates by the same authorities. Why there are two:
``zookeeper_tls``.

Invariants:

* A server's certificate is for one host, a client's for none, and no client's will do for a server.
* Files with keys are readable by their owner only, and are never there in part.

``openssl`` makes them, for it is where certificates are made at all. A library was rejected: it would weigh on
every node for what is done once at a desk. Java's ``keytool`` gives no key away that is not in a store of its own
kind.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from skuld_py.embedded.zookeeper_tls import AUTHORITY, QUORUM, QUORUM_AUTHORITY, SERVER
from skuld_py.errors import Refused

KEPT, CLIENT = "authority", "client"
"""Directories that are no server's."""
CLIENT_FILE = "client.pem"
_AUTHORITY_DAYS = 3_650
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
_SERVES, _ASKS = "serverAuth, clientAuth", "clientAuth"
"""A server dials the others, and itself."""
_CONFIGURATION = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = {name}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[owner]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = {purpose}
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


def make(directory: Path, hosts: Sequence[str], days: int) -> list[Path]:
    """Make or renew the certificates of these hosts and of the clients; gives the directories to be copied.
    ``Refused`` when a host is none, or openssl does not do it."""
    names = {host: _alternative(host) for host in hosts}
    if shutil.which("openssl") is None:
        raise Refused("no_openssl", "certificates are made by openssl, which is not on PATH; install it (Debian,"
                      " Ubuntu: apt-get install openssl)")
    kept = directory / KEPT
    clients = _authority(kept, AUTHORITY, "Skuld: ZooKeeper and its clients")
    quorum = _authority(kept, QUORUM_AUTHORITY, "Skuld: ZooKeeper servers")
    for host, name in names.items():
        clients.issue(directory / host / SERVER, _SERVES, days, name)
        quorum.issue(directory / host / QUORUM, _SERVES, days, name)
        _place(directory / host / AUTHORITY, clients.certificate.read_text())
        _place(directory / host / QUORUM_AUTHORITY, quorum.certificate.read_text())
    clients.issue(directory / CLIENT / CLIENT_FILE, _ASKS, days)
    _place(directory / CLIENT / AUTHORITY, clients.certificate.read_text())
    return [directory / each for each in (*names, CLIENT)]


@attrs.frozen
class Authority:
    """Who signs."""

    certificate: Path
    key: Path

    def issue(self, path: Path, purpose: str, days: int, name: str = "") -> None:
        """Write a new key, and the certificate for it, into one file."""
        with tempfile.TemporaryDirectory(prefix="skuld-certificates-") as place:
            extensions = f"subjectAltName = {name}\n" if name else ""
            _configure(Path(place), "ZooKeeper" if name else "ZooKeeper client", purpose, extensions)
            _openssl(place, "req", "-new", *_NEW_KEY, "-out", "request.pem")
            _openssl(place, "x509", "-req", "-in", "request.pem", "-CA", str(self.certificate.absolute()),
                     "-CAkey", str(self.key.absolute()), "-set_serial", f"0x{secrets.token_hex(16)}",
                     "-days", str(days), "-sha256", "-extfile", "made.cnf", "-extensions", "owner",
                     "-out", "made.pem")
            _place(path, (Path(place) / "made.pem").read_text() + (Path(place) / "made.key").read_text())


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "made.key", "-config",
            "made.cnf")


def _authority(directory: Path, file: str, name: str) -> Authority:
    """The one that is there, or a new one."""
    made = Authority(directory / file, (directory / file).with_suffix(".key"))
    if not made.certificate.exists():
        with tempfile.TemporaryDirectory(prefix="skuld-certificates-") as place:
            _configure(Path(place), name, _SERVES)
            _openssl(place, "req", "-x509", *_NEW_KEY, "-sha256", "-days", str(_AUTHORITY_DAYS), "-extensions",
                     "authority", "-out", "made.pem")
            _place(made.key, (Path(place) / "made.key").read_text())
            _place(made.certificate, (Path(place) / "made.pem").read_text())
    return made


def _configure(place: Path, name: str, purpose: str, extensions: str = "") -> None:
    """Of this machine's own configuration nothing counts."""
    (place / "made.cnf").write_text(_CONFIGURATION.format(name=name, purpose=purpose) + extensions)


def _openssl(place: str, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=place, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise Refused("openssl_failed", f"openssl {arguments[0]} failed:\n{done.stderr[-2_000:]}")


def _place(path: Path, text: str) -> None:
    """Write it whole, for its owner only; ``Refused`` where nothing can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent)  # of mode 0600
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as problem:
        raise Refused("not_written", f"to: cannot write {path}: {problem.strerror}; name a directory that this"
                      " user may write", file=str(path)) from problem


def _alternative(host: str) -> str:
    """A host in the words of a certificate."""
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        if not _HOST.fullmatch(host) or host in (KEPT, CLIENT):
            raise Refused("bad_host", f"host: {host!r} is no name or address that a server can have; name each as"
                          " --ensemble names it", host=host) from None
        return f"DNS:{host}"
