"""What helps a worker in threads of its own: none ends by an exception while the worker goes on without it.

A worker whose logs nobody writes, or which claims nothing, looks alive: its leases are renewed and its tasks never
end. So an exception in such a thread is the worker's end, by one line that names the thread and the reason, with
status 1; and whoever keeps services running starts it again. A task function can bring that about, for it runs in
the worker's process and may change anything there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from skuld_py.worker.outcome import said

_log = logging.getLogger(__name__)


class Helped:
    """Has such threads. ``on_failure`` is told of one that failed, in its thread."""

    on_failure: Callable[[str], None] | None = None

    def _helper(self, name: str, work: Callable[..., None], *args: Any) -> threading.Thread:
        """A thread that does ``work``, not started yet."""
        return threading.Thread(target=self._guarded, args=(work, *args), name=name, daemon=True)

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except BaseException as problem:
            if self.on_failure is None:
                raise
            name = threading.current_thread().name
            _log.debug("thread %s failed", name, exc_info=True)
            self.on_failure(f"the thread {name} failed, and no worker goes on without it: {said(problem)};"
                            " start it again")
