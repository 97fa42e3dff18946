"""A thread that waits to be woken: for a bounded time, and wherever it is interrupted.

An exception can strike a thread between any two calls: a handled Ctrl-C, a soft time limit, any signal handler
that raises. So a duty that threads hand on (reading sockets, asking for others) has one holder and no count; the
holder gives it up by one assignment; and a thread that waits looks again every ``LOOK_S``, woken or not. A wake
that an exception swallowed costs a moment and hangs no thread.

Locks are only ever held by ``with``, which no exception tears, over what does not block, and are reentrant: a
signal handler may use the client whose lock its own thread holds.

Rejected: ``threading.Event`` and ``Condition``, which are written in Python and can be torn while they hold a lock
of their own.
"""

from __future__ import annotations

import threading

LOOK_S = 0.25
"""A thread that waits looks again after this, woken or not."""


class Waiter:
    """One thread, once. ``is_gone``: it waits no more, and does nothing that others wait for."""

    __slots__ = ("_lock", "is_gone", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.is_gone = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float) -> None:
        """Sleep until woken, at most for ``seconds``, perhaps less."""
        self._lock.acquire(timeout=min(LOOK_S, max(0.0, seconds)))

    def wake(self) -> None:
        """Let it wait no longer. From any thread, any number of times."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # it is awake
