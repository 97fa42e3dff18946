"""kazoo's sockets and threads, where they must be others than its own: with TLS, or a name and a password.

Invariants:

* Why a sealed connection did not come about is logged, once for each server and reason: kazoo's loop takes it for
  a network that is down, and tries again without a word.
* Servers that do not know a name and password end kazoo's loop by an error that it does not expect; that is told
  (``is_denied``), and no traceback.
* What OpenSSL has unsealed is read at once: kazoo waits for the kernel, which knows nothing of it.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler

from skuld_py.errors import Refused
from skuld_py.runtime.zookeeper.tls import Tls, sealed

_log = logging.getLogger(__name__)


def _is_news(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], SessionClosedRequireSaslError)


logger = logging.getLogger("kazoo.named")
"""kazoo's, without the traceback of a name that is not known."""
logger.addFilter(_is_news)


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """``tls``: what its sockets are sealed with."""

    def __init__(self, tls: Tls | None) -> None:
        super().__init__()
        self.is_denied = False
        self._tls = tls
        self._troubles: dict[str, str] = {}
        """Why the last connection to a server did not come about, by server."""

    def create_connection(self, address: tuple[str, int], hostname: str = "", timeout: float | None = None,
                          **others: Any) -> Any:
        """Called by kazoo's loop, which takes an ``OSError`` for a reason to try the next server."""
        if self._tls is None:
            return super().create_connection(address, hostname, timeout, **others)
        host = hostname or address[0]
        server = f"{host}:{address[1]}"
        try:
            made = sealed(self._tls, address, host, timeout)
        except Refused as refusal:
            if self._troubles.get(server) != refusal.message:
                _log.warning("no connection to ZooKeeper: %s", refusal.message)
            self._troubles[server] = refusal.message
            raise ConnectionError(refusal.message) from refusal
        self._troubles.pop(server, None)
        return made

    def select(self, readers: list[Any], *others: Any) -> Any:
        """Who can be read or written."""
        unsealed = [each for each in readers if isinstance(each, ssl.SSLSocket) and each.pending()]
        return (unsealed, [], []) if unsealed else super().select(readers, *others)

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> threading.Thread:
        """Start a thread."""
        def run() -> None:
            try:
                func(*args, **kwargs)
            except SessionClosedRequireSaslError:
                self.is_denied = True
        made: threading.Thread = super().spawn(run)
        return made
