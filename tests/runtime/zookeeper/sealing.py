"""A server that speaks TLS and answers what ZooKeeper would to a probe, for tests without a ZooKeeper."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def listening(directory: Path | None, host: str = "127.0.0.1", answer: bytes = b"imok") -> Iterator[str]:
    """``directory``: of a server; without it nothing is sealed, and whatever comes in is cut off. Gives its
    address."""
    with socket.create_server((host, 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, directory, answer), daemon=True)
        thread.start()
        try:
            yield f"{host}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, directory: Path | None, answer: bytes) -> None:
    while True:
        try:
            raw, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), raw:
            raw.settimeout(10)
            if directory is None:
                raw.recv(100)
                continue
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(directory / "server.pem")
            context.load_verify_locations(directory / "ca.pem")
            context.verify_mode = ssl.CERT_REQUIRED
            with context.wrap_socket(raw, server_side=True) as sealed:
                if sealed.recv(100):
                    sealed.sendall(answer)
                    sealed.recv(100)
