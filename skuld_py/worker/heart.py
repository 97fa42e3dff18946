"""The pulse of a worker: every second it asks the engine whether it lives, and tells the renewer.

Invariants:

* No beat without an answer of the engine: a worker whose Spark is frozen must lose its claims in the end.
* Trouble is reported once; then the engine is not watched until ``resume``.
* An engine that is gone is reported at once, one that is silent after ``stall_s`` in which this process was awake
  (``silence``).
* The numbers of running jobs are read here too. That read has no time limit; when it hangs, the beats stop,
  and a second thread, which reads nothing, reports the silence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from skuld_py.client.steady import monotonic_s
from skuld_py.worker.helped import Helped
from skuld_py.worker.lease import Key
from skuld_py.worker.run import Engine, Run
from skuld_py.worker.silence import Silence

BEAT_S = 1.0


class Heart(Helped):
    """Watches the engine between ``resume`` and ``pause``. Callbacks are called in its threads; ``look`` at each
    beat, and it may ask the engine."""

    def __init__(self, engine: Engine, beat: Callable[[], None], stall_s: float, *,
                 on_trouble: Callable[[str], None], look: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._beat = beat
        self._on_trouble = on_trouble
        self._look = look
        self._silence = Silence(stall_s, monotonic_s())
        self._runs: dict[Key, Run] = {}
        self._is_working = threading.Event()
        self._lock = threading.Lock()
        self._is_closed = threading.Event()

    def start(self) -> None:
        """Begin to beat."""
        for target in (self._serve, self._guard):
            self._helper("heart", target).start()

    def watch(self, run: Run) -> None:
        """Read the numbers of this run's jobs."""
        self._runs[run.key] = run

    def forget(self, run: Run) -> None:
        """Read the numbers of this run no more."""
        self._runs.pop(run.key, None)

    def resume(self) -> None:
        """The engine has started."""
        self._silence.broken()
        self._is_working.set()

    def pause(self) -> None:
        """The engine is being replaced: its silence is no news."""
        self._is_working.clear()

    def close(self) -> None:
        """End."""
        self._is_closed.set()

    def _serve(self) -> None:
        while not self._is_closed.wait(BEAT_S):
            if not self._is_working.is_set():
                self._beat()  # the worker is well; it waits for its engine, which has a time limit
            elif self._engine.is_alive():
                self._silence.broken()
                self._beat()
                for run in list(self._runs.values()):
                    counts = self._engine.counts(run.context.name)
                    if counts is not None:
                        run.context.journal.spark(counts)
                self._look()
            elif self._engine.is_gone():
                self._tell("ended")

    def _guard(self) -> None:
        while not self._is_closed.wait(BEAT_S):
            if self._silence.is_too_long(monotonic_s()):
                self._tell("does not answer")

    def _tell(self, what: str) -> None:
        with self._lock:
            is_news = self._is_working.is_set()
            self._is_working.clear()
        if is_news:
            self._on_trouble(what)
