"""The end of a worker's process, whatever its tasks have left running in it.

An interpreter that ends waits for all threads that are no daemons, and for those of every ``ThreadPoolExecutor``:
so a task that left one behind would keep a worker that was told to stop for ever, with no claim and no word. When
a worker is over all that counts is written; so what is left has a moment, in which files are flushed and the like,
and then the process ends.

Rejected: to end at once, which skips what libraries do when an interpreter ends.
"""

from __future__ import annotations

import logging
import os
import threading

LEAVE_S = 3.0

_log = logging.getLogger(__name__)


def leave(status: int, after_s: float = LEAVE_S) -> None:
    """The process ends with this status after this time at the latest, if it has not by itself."""
    def end() -> None:
        left = [thread.name for thread in threading.enumerate()
                if not thread.daemon and thread is not threading.main_thread()]
        _log.warning("what tasks started does not end, and is ended: %s", ", ".join(left) or "a pool of threads")
        os._exit(status)

    timer = threading.Timer(after_s, end)
    timer.daemon = True
    timer.start()
