"""Starting the engine, and starting it again: in a thread, because a JVM takes seconds and may take for ever.

Invariants:

* One start at a time. ``is_ready`` is true from a start that succeeded until ``replace``.
* Nothing is started before somebody asks for it.
* A start that fails is tried again a few times, unless trying again cannot help (no Java, a wrong setting).
* It succeeds or is said to have failed, whatever it raises: tasks wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from skuld_py.client.steady import monotonic_s, sleep
from skuld_py.errors import SkuldError
from skuld_py.worker.outcome import said
from skuld_py.worker.run import Engine

STARTS_MAX = 5
PAUSE_S = 2.0

_log = logging.getLogger(__name__)


class Ignition:
    """Starts one engine. The callbacks are called in threads of its own; ``on_failure`` is given words."""

    def __init__(self, engine: Engine, on_ready: Callable[[float], None],
                 on_failure: Callable[[str], None]) -> None:
        self._engine = engine
        self._on_ready = on_ready
        self._on_failure = on_failure
        self.is_ready = False
        self.is_replacing = False
        self.was_asked = False
        """Whether anybody has needed the engine so far."""
        self._is_closed = False
        self.generation = 0
        """How many engines there were before this one."""

    def ask(self) -> None:
        """The engine is needed: begin to start it, unless that was begun before."""
        if not self.was_asked:
            self.was_asked = True
            self._launch(self._engine.start)

    def replace(self) -> None:
        """Begin to replace the engine."""
        self.is_ready, self.is_replacing = False, True
        self.generation += 1
        self._launch(self._engine.restart)

    def close(self) -> None:
        """Start nothing any more."""
        self._is_closed = True

    def _launch(self, start: Callable[[], None]) -> None:
        threading.Thread(target=self._begin, args=(start,), name="ignition", daemon=True).start()

    def _begin(self, start: Callable[[], None]) -> None:
        began = monotonic_s()
        for attempt in range(1, STARTS_MAX + 1):
            if self._is_closed:
                return
            try:
                start()
            except SkuldError as error:
                if attempt == STARTS_MAX or error.code != "spark_failed":
                    self._on_failure(f"Spark does not start: {error}")
                    return
                _log.warning("the engine did not start, trying again: %s", error)
                sleep(PAUSE_S)
                start = self._engine.restart
            except BaseException as error:  # of PySpark's, or since a task has changed this process
                self._on_failure(f"Spark does not start: {said(error)}")
                return
            else:
                self.is_ready, self.is_replacing = True, False
                self._on_ready(monotonic_s() - began)
                return
