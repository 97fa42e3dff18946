"""Where ``skuld dev`` leaves its clients' key, so that its user's other terminals need no words about keys.

A file for each port that a node of it listens at, in ``$XDG_STATE_HOME/skuld``, or ``~/.local/state/skuld``. A
client that was given no key looks there for the ports of its nodes, if these are on loopback. The name has the
machine's, for homes are shared by machines, and loopback is not.

Who left a file holds a lock on it while it runs. A file without that lock is what a killed process left, and
counts for nothing: a cluster without keys may listen at its port by now. Whoever uses the port next replaces it.

Rejected: ``$XDG_RUNTIME_DIR``, which ``su``, cron and containers do not set, so that one terminal would look where
another did not write; to ask a node for a key, which would hand it to every user of the machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from skuld_py.keys.files import ClientKey, read_client_key, write_new

_LOOPBACK = ("127.0.0.1", "localhost")


def place_of(port: int) -> Path:
    """Where the key for a node at a port is left; ``FileNotFoundError`` for a user without a home."""
    state = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))
    if not state.is_absolute():
        raise FileNotFoundError(f"{state} is no directory from the root on")
    return state / "skuld" / f"dev-{socket.gethostname()}-{port}.key"


@contextmanager
def left(key: ClientKey, ports: Iterable[int]) -> Iterator[None]:
    """Leave a key for the clients of nodes at these ports, for as long as this lasts; ``OSError`` or ``Refused``
    where that cannot be."""
    files: list[tuple[Path, IO[bytes]]] = []
    try:
        for port in ports:
            files.append(_leave(key, place_of(port)))
        yield
    finally:
        for path, file in files:
            with suppress(OSError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    path.unlink()
            file.close()


def found(nodes: Sequence[str]) -> ClientKey | None:
    """The key that was left for one of these nodes by a process that still runs."""
    for node in nodes:
        host, _, port = node.rpartition(":")
        if host in _LOOPBACK and port.isdecimal():
            with suppress(OSError), place_of(int(port)).open("rb") as file:
                if _is_own(file) and not _is_stale(file):
                    return read_client_key(place_of(int(port)))
    return None


def _leave(key: ClientKey, path: Path) -> tuple[Path, IO[bytes]]:
    """Write it aside, lock it, and only then put it in its place: whoever finds it finds it whole, and locked."""
    import fcntl

    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    write_new(aside, key.text)
    file = aside.open("rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        aside.replace(path)
    except BaseException:
        file.close()
        aside.unlink(missing_ok=True)
        raise
    return path, file


def _is_own(file: IO[bytes]) -> bool:
    return os.fstat(file.fileno()).st_uid == os.geteuid()


def _is_stale(file: IO[bytes]) -> bool:
    """Whether nobody holds it. The lock that is tried goes with the file's closing."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
