"""How many tasks of each seat of a worker run, and how many are claimed besides them. In the worker's thread.

A seat is so many slots for one step of a workflow. Tiny segments end sooner than the cluster answers, as other
tasks do; so of a step some are claimed ahead (``ahead``), by how long its own segments took lately. They wait: of
a step no more run at once than its seat has slots, whatever is claimed.

Invariants:

* What was claimed ahead for a seat that is gone is given back: others have its slots now.
* What a slot takes together (``lists``) is one of a seat's slots.
* A batch takes one slot and is let in by ``batches``, one at a time; of its step one more batch may be claimed.
* Tasks of queues that the worker has no seat in are none of this module's business.

Rejected: claims for free slots alone. A step's segment then costs an answer of the cluster, twenty times the
function, however many wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from skuld_py.worker.ahead import Ahead
from skuld_py.worker.lists import Together, lists_of
from skuld_py.worker.run import Run
from skuld_py.worker.seats import Place


class Seated:
    """``on_ahead``: is told of a queue how many may be claimed beyond its cap, when that is new."""

    def __init__(self, on_ahead: Callable[[str, int], None]) -> None:
        self._on_ahead = on_ahead
        self._seats: dict[str, Place] = {}
        self._aheads: dict[str, Ahead] = {}
        self._told: dict[str, int] = {}
        self._running: Counter[str] = Counter()
        self.beyond = 0
        """How many of the running have no slot of their own: another one's call is for them."""

    def take(self, seats: Mapping[str, Place], waiting: Iterable[Run]) -> list[Run]:
        """These are the seats from now on. Gives those that wait for one that is gone."""
        gone = dict.fromkeys(queue for queue in self._seats if queue not in seats)
        self._seats = {**{queue: self._seats[queue] for queue in gone if self._running[queue]}, **seats}
        self._aheads = {queue: Ahead(seat.cap) for queue, seat in seats.items()}
        self._told = {}
        self._running = +self._running
        return [run for run in waiting if run.claim.queue in gone]

    def admitted(self, runs: Iterable[Run], slots: int) -> tuple[list[list[Run]], list[Run]]:
        """Of these, in their order: those that may start by their seats, in lists that take one of so many slots
        each; and those that need none."""
        waiting: dict[str, list[Run]] = {}
        others = []
        for run in runs:
            queue = run.claim.queue
            if run.kind is not None or queue not in self._seats:
                others.append(run)
            else:
                waiting.setdefault(queue, []).append(run)
        lists = [each for queue, some in waiting.items()
                 for each in lists_of(some, self._seats[queue].size)[: max(0, self._room(queue))]]
        lists.sort(key=lambda runs: runs[0].received_s)
        return lists[: max(0, slots)], others

    def _room(self, queue: str) -> int:
        seat = self._seats[queue]
        return seat.cap // seat.size - self._running[queue]

    def is_held_up(self, run: Run) -> bool:
        """Whether a run waits for another of its seat to end."""
        return run.kind is None and run.claim.queue in self._seats and self._room(run.claim.queue) <= 0

    def begin(self, runs: Sequence[Run]) -> None:
        """A run begins, or a list of them."""
        if len(runs) > 1:
            Together(runs)
        self._running[runs[0].claim.queue] += runs[0].claim.queue in self._seats
        self.beyond += len(runs) - 1

    def end(self, run: Run) -> None:
        """It runs no more."""
        queue = run.claim.queue
        self.beyond -= run.is_along
        if self._running[queue] and not run.is_along:
            self._running[queue] -= 1
        if queue in self._aheads and not run.is_beside:
            self._aheads[queue].note(run.age_s / len(run.together))
            self._tell(queue, self._aheads[queue].count)

    def end_batch(self, queue: str) -> None:
        """A batch of it ran."""
        if queue in self._aheads:
            self._tell(queue, self._seats[queue].cap)

    def forget(self, runs: Iterable[Run]) -> None:
        """These were claimed ahead, and waited for too long."""
        for queue in dict.fromkeys(run.claim.queue for run in runs):
            if queue in self._aheads:
                self._aheads[queue].forget()
                self._tell(queue, 0)

    def _tell(self, queue: str, count: int) -> None:
        if self._told.get(queue, 0) != count:
            self._told[queue] = count
            self._on_ahead(queue, count)
