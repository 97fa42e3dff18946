"""Stopping what runs: cancel, interrupt, and see to it that it ends; in a thread, because each may take seconds.

A batch is told first to begin no other job, so that one that was cancelled is not taken for a crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from skuld_py.worker.run import Engine, Run

STOP_S = 5.0


def halt(run: Run, engine: Engine, on_abandoned: Callable[[], None], on_uncertain: Callable[[], None]) -> None:
    """Stop a run, or the batch that it is in. It is abandoned when it does not end within ``STOP_S``, and
    uncertain when its engine did not confirm that its jobs ended."""
    if run.batch is not None:
        run.batch.stop()

    def stop() -> None:
        is_certain = not run.needs_spark or engine.cancel(run.job)
        run.interrupt()
        is_certain = is_certain and (not run.needs_spark or engine.is_swept())
        if not run.join(STOP_S):
            on_abandoned()
        if not is_certain:
            on_uncertain()

    threading.Thread(target=stop, name=f"halt {run.claim.id}", daemon=True).start()
