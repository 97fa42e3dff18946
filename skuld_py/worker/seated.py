"""How many tasks of each seat of a worker run, and how many are claimed besides them. In the worker's thread.

A seat is so many slots for one step of a workflow. Tiny segments end sooner than the cluster answers, as other
tasks do; so of a step some are claimed ahead (``ahead``), by how long its own segments took lately. They wait: of
a step no more run at once than its seat has slots, whatever is claimed.

Invariants:

* What was claimed ahead for a seat that is gone is given back: others have its slots now.
* A batch takes one slot and is let in by ``batches``, one at a time; of its step one more batch may be claimed.
* Tasks of queues that the worker has no seat in are none of this module's business.

Rejected: claims for free slots alone. A step's segment then costs an answer of the cluster, twenty times the
function, however many wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from skuld_py.worker.ahead import Ahead
from skuld_py.worker.run import Run


class Seated:
    """``on_ahead``: is told of a queue how many may be claimed beyond its cap, when that is new."""

    def __init__(self, on_ahead: Callable[[str, int], None]) -> None:
        self._on_ahead = on_ahead
        self._caps: dict[str, int] = {}
        self._aheads: dict[str, Ahead] = {}
        self._told: dict[str, int] = {}
        self._running: Counter[str] = Counter()

    def take(self, caps: Mapping[str, int], waiting: Iterable[Run]) -> list[Run]:
        """These are the seats from now on. Gives those that wait for one that is gone."""
        gone = {queue for queue in self._caps if queue not in caps}
        self._caps = {**{queue: self._caps[queue] for queue in gone if self._running[queue]}, **caps}
        self._aheads = {queue: Ahead(cap) for queue, cap in caps.items()}
        self._told = {}
        self._running = +self._running
        return [run for run in waiting if run.claim.queue in gone]

    def admitted(self, runs: Iterable[Run]) -> list[Run]:
        """Those of these, in their order, that may start as far as their seats go."""
        left: dict[str, int] = {}
        found = []
        for run in runs:
            queue = run.claim.queue
            if run.kind is not None or queue not in self._caps:
                found.append(run)
                continue
            room = left.setdefault(queue, self._caps[queue] - self._running[queue])
            if room > 0:
                left[queue] = room - 1
                found.append(run)
        return found

    def is_held_up(self, run: Run) -> bool:
        """Whether a run waits for another of its seat to end."""
        queue = run.claim.queue
        return run.kind is None and queue in self._caps and self._running[queue] >= self._caps[queue]

    def begin(self, run: Run) -> None:
        """It runs."""
        self._running[run.claim.queue] += run.claim.queue in self._caps

    def end(self, run: Run) -> None:
        """It runs no more."""
        queue = run.claim.queue
        if self._running[queue]:
            self._running[queue] -= 1
        if queue in self._aheads and not run.is_beside:
            self._aheads[queue].note(run.age_s)
            self._tell(queue, self._aheads[queue].count)

    def end_batch(self, queue: str) -> None:
        """A batch of it ran."""
        if queue in self._aheads:
            self._tell(queue, self._caps[queue])

    def forget(self, runs: Iterable[Run]) -> None:
        """These were claimed ahead, and waited for too long."""
        for queue in {run.claim.queue for run in runs} & {*self._aheads}:
            self._aheads[queue].forget()
            self._tell(queue, 0)

    def _tell(self, queue: str, count: int) -> None:
        if self._told.get(queue, 0) != count:
            self._told[queue] = count
            self._on_ahead(queue, count)
