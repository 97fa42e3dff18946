"""The helper threads of a transport: none of them ends by an exception while the node goes on without it.

A node whose connections nobody watches, or whose handshakes nobody answers, looks alive to its peers and is deaf
to its clients: libzmq waits for such a thread for ever. So an exception in one is the node's end, by one line that
names the thread and the reason, and whoever keeps services running starts it again.

``Helpers.start`` is the only place where a transport's thread begins; ``check`` is called by whoever waits for
messages, and raises there. Rejected: ``threading.excepthook``, which is the whole process's, and sees kazoo's
threads, which are replaced when they end (``zookeeper.connection``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from skuld_py.errors import SkuldError

_log = logging.getLogger(__name__)


class HelperFailed(SkuldError):
    """A helper thread has ended by an exception: end the process."""

    def __init__(self, name: str, problem: Exception) -> None:
        super().__init__("helper_failed", f"its thread {name} failed, and a node without it is deaf:"
                         f" {type(problem).__name__}: {problem}; start the node again", thread=name)


class Helpers:
    """Starts threads and notes the first that fails. ``wake``: has the thread that waits call ``check``; it may be
    called from any thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._failure: HelperFailed | None = None

    def start(self, name: str, work: Callable[[], None],
              afterwards: Callable[[], None] = lambda: None) -> threading.Thread:
        """A thread that does ``work``; ``afterwards``: what it still does when that has failed, so that others can
        be taken down."""
        def run() -> None:
            try:
                work()
            except Exception as problem:
                _log.debug("thread %s failed", name, exc_info=True)
                self._failure = self._failure or HelperFailed(name, problem)
                self._wake()
                afterwards()
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def check(self) -> None:
        """Raise ``HelperFailed`` if one has failed."""
        if self._failure is not None:
            raise self._failure
