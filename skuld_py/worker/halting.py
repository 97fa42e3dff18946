"""Stopping what runs: cancel, interrupt, and see to it that it ends; in a thread, because each may take seconds.

A batch is told first to begin no other job, so that one that was cancelled is not taken for a crash.

An engine that does not confirm a cancellation is uncertain at once, whatever the function does meanwhile: only the
engine's end stops its jobs then. Of a lost claim it has little time to confirm, for the task may be granted again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from skuld_py.worker.run import Engine, Run

STOP_S = 5.0
CONFIRM_S, LOST_CONFIRM_S = 5.0, 1.0


def halt(run: Run, engine: Engine, on_abandoned: Callable[[], None], on_uncertain: Callable[[], None]) -> None:
    """Stop a run, or the batch that it is in. It is abandoned when it does not end within ``STOP_S``, and
    uncertain when its engine did not confirm that its jobs ended."""
    if run.batch is not None:
        run.batch.stop()

    def stop() -> None:
        confirm_s = LOST_CONFIRM_S if run.is_lost else CONFIRM_S
        is_cancelled = not run.needs_spark or engine.cancel(run.job, confirm_s)
        if not is_cancelled:
            on_uncertain()
        run.interrupt()
        if is_cancelled and run.needs_spark and not engine.is_swept():
            on_uncertain()
        if not run.join(STOP_S):
            on_abandoned()

    threading.Thread(target=stop, name=f"halt {run.claim.id}", daemon=True).start()
