"""After completions: a worker's publisher, and the sweep that mends what a crash left.

The publisher has a thread of its own, for a store may be slow. It publishes what its worker completed; and now and
then, at a path where it has just published, whatever else is completed there, and deletes what lost.

Invariant: it fails nobody: what it cannot do is logged, and done by the next one who looks.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Sequence

from skuld_py.client.steady import steady_s
from skuld_py.output.output import Output, Outputs
from skuld_py.output.performing import OLD_S, Cluster, Performer, asking, store_of
from skuld_py.output.places import dataset
from skuld_py.output.protocol import Swept, settle, sweep

SWEEP_S = 60.0

_log = logging.getLogger(__name__)


def sweep_output(path: str | os.PathLike[str], client: Cluster, *, unknown_after_s: float | None = None) -> Swept:
    """Publish what tasks completed below a path and a crash kept from being published; delete what claims wrote
    that lost. Running tasks are left alone, and so are dead ones, which may be revived.

    ``unknown_after_s``: delete also what was left unfinished by tasks that the client's cluster does not know,
    where nothing was written for so long. Only for a path that no other cluster's tasks write to.
    """
    base = dataset(path)
    performer = Performer(store_of(base), base, asking(client),
                          OLD_S if unknown_after_s is None else unknown_after_s)
    return performer.perform(sweep(takes_unknown=unknown_after_s is not None))


def publish_now(task: str, outputs: Outputs, client: Cluster) -> None:
    """Publish what a task wrote, which was completed."""
    for output in outputs.every:
        Performer(output.store, output.base, asking(client)).perform(settle(task))


class Turns:
    """When each path was swept, of those that were swept within ``SWEEP_S``: there may be a path for each task."""

    def __init__(self) -> None:
        self._swept_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._swept_at)

    def take(self, path: str, now: float) -> bool:
        """Whether it is the path's turn; if so, its next one is ``SWEEP_S`` later."""
        self._swept_at = {each: at for each, at in self._swept_at.items() if now < at + SWEEP_S}
        return self._swept_at.setdefault(path, now) == now


class Publisher:
    """Publishes what a worker's tasks completed."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = steady_s) -> None:
        self._known = asking(cluster)
        self._clock = clock
        self._inbox: queue.SimpleQueue[tuple[str, list[Output]] | None] = queue.SimpleQueue()
        self._turns = Turns()
        self._thread: threading.Thread | None = None

    def publish(self, completed: Sequence[tuple[str, Outputs]]) -> None:
        """These tasks were completed, by their ids. In one thread."""
        for task, outputs in completed:
            if outputs.every:
                self._inbox.put((task, outputs.every))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="publisher", daemon=True)
                    self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Publish what is left; whether that succeeded in time."""
        if self._thread is None:
            return True
        self._inbox.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while (completed := self._inbox.get()) is not None:
            task, outputs = completed
            for output in outputs:
                try:
                    self._publish(task, output)
                except Exception as error:
                    _log.warning("the output of task %s below %s is not published yet: %s", task, output.base,
                    error)

    def _publish(self, task: str, output: Output) -> None:
        performer = Performer(output.store, output.base, self._known)
        performer.perform(settle(task))
        if self._turns.take(output.base, self._clock()):
            swept = performer.perform(sweep())
            if swept.published or swept.deleted:
                _log.info("below %s: %d tasks published, %d directories deleted", output.base,
                len(swept.published),
                          swept.deleted)
