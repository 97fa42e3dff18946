"""The event loop of a worker, in a thread of its own, in which its async functions run side by side.

The thread starts with the first coroutine: a worker without async functions has none.

Invariants:

* A coroutine ends once, however it ends, and is told of then. The order to stop is ``CancelledError`` where it
  awaits; one that does not await does not hear it, and keeps all others waiting meanwhile.
* Nothing here waits for a coroutine, except ``close``, for a moment.
* The loop turns until ``close``. It is every task's, so one may stop it, or start beside itself what ends it by
  ``sys.exit``: then it turns on, or all the others would never end, nor any that come. And it tells the time by a
  clock that no task stops.

Rejected: a loop for each task. Then a thousand tasks that wait for a thousand answers are a thousand threads,
which is what async functions are written to avoid.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from skuld_py.client.steady import monotonic_s

if TYPE_CHECKING:
    import asyncio

CLOSE_S = 1.0

_log = logging.getLogger(__name__)


class Course:
    """One coroutine on its way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._is_over = threading.Event()

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start it; in the loop."""
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(lambda _: self._is_over.set())
        if self._is_stopped:
            self._task.cancel()

    def stop(self) -> None:
        """Cancel it, from any thread."""
        self._loop.call_soon_threadsafe(self._cancel)

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; whether it came."""
        return self._is_over.wait(timeout_s)

    def _cancel(self) -> None:
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()


class EventLoop:
    """Runs coroutines. ``start`` and ``close`` are called in one thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def start(self, make: Callable[[], Coroutine[Any, Any, None]]) -> Course:
        """Have the loop run a coroutine, which is made there."""
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
            vars(self._loop)["time"] = monotonic_s
            self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="event loop", daemon=True)
            self._thread.start()
        course = Course(self._loop)
        self._loop.call_soon_threadsafe(lambda: course.begin(make()))
        return course

    def close(self) -> None:
        """End the loop and what runs in it; a coroutine that does not obey is left behind."""
        self._is_closing = True
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_S)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        while not self._is_closing:
            try:
                loop.run_forever()
            except BaseException as error:  # SystemExit and KeyboardInterrupt of what a task left in the loop
                _log.warning("what a task started in the event loop raised %s", type(error).__name__)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(asyncio.gather(*left, return_exceptions=True), CLOSE_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
