"""A worker that takes seats of workflows: it is told by its node which steps its slots serve, and claims there.

One thread, whose report waits at the node until the seats are others, for a third of its lease at the most. That
lease is the one by which the worker holds tasks, if it is less than others' reports last: so long the seats of one
that was killed wait for it, as its tasks do.

Of a seat the step's queue is claimed from: that of an input has its roots. Besides, of a seat in an input the
feeders' queue, and the input's own; of one in an output the queue of what seals leaves, and this leaf's own.
No more is claimed from a step's queue than its seat has slots: times what a slot takes together, where ``size_of``
says so.

All its reports go to one node, as long as that answers: two would both count its slots.

While no node can be asked the seats stay as they are. That costs no order: a claim shows its seat's fence, and a
node that knows newer seats refuses it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from skuld_py.client.attending import WorkerSeats, WorkerStatus
from skuld_py.client.client import Client
from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError
from skuld_py.model.seats import INPUT, OUTPUT, Seat
from skuld_py.worker.attendance import GOODBYE_S, LEASE_S, Attendance
from skuld_py.worker.scribe import is_passing
from skuld_py.workflow.definition.names import FEED, SEAL, queue_of
from skuld_py.workflow.segments import feeder_queue, seal_queue

PAUSE_S = 1.0
SEALS_S = 30.0
"""Longer than a node lags, and than what a worker knows of a workflow counts."""
LOOKS_PART = 6
"""Of its lease, after which part it looks at no other workflow: a third is waited, one look may go unanswered."""


class Place(NamedTuple):
    """Of a queue: how many tasks may run at once, the fence by which they are claimed, and how many of them a slot
    takes together."""

    cap: int
    fence: int
    size: int = 1


Queues = Mapping[str, Place]
SizeOf = Callable[[str, str], int]
"""How many segments of a step a slot takes together."""
SeeSealed = Callable[[str], None]
"""Has a workflow's leaves sealed, if that is due."""


def _beside(seat: Seat) -> tuple[str, ...]:
    """The queues of the workflow's own tasks that are a seat's business, too."""
    if seat.kind == INPUT:
        return queue_of(seat.workflow, FEED), feeder_queue(seat.workflow, seat.step)
    return (queue_of(seat.workflow, SEAL), seal_queue(seat.workflow, seat.step)) if seat.kind == OUTPUT else ()


def _one(workflow: str, step: str) -> int:
    return 1


def queues_of(seats: Iterable[Seat], size_of: SizeOf = _one) -> Queues:
    """Where to claim for these seats."""
    caps: Counter[str] = Counter()
    fences: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for seat in seats:
        step = queue_of(seat.workflow, seat.step)
        sizes[step] = size_of(seat.workflow, seat.step)
        caps[step] += seat.count * sizes[step]
        fences[step] = seat.fence
        for beside in _beside(seat):
            caps[beside] += seat.count
            fences[beside] = seat.fence
    return {queue: Place(cap, fences[queue], sizes.get(queue, 1)) for queue, cap in caps.items()}


def reporter(client: Client, worker: WorkerStatus, look: Callable[[], WorkerStatus],
             on_seats: Callable[[Queues], None], size_of: SizeOf, see_sealed: SeeSealed, lease_s: float
             ) -> Attendance:
    """What reports for a worker: as it says of itself, with seats or without."""
    if not worker.takes_seats:
        return Attendance(client, look)
    return SeatKeeper(client, look, on_seats, size_of, lease_s, see_sealed)


class SeatKeeper(Attendance):
    """Its reports wait at the node; so what cannot wait is said beside them, by a thread of its own. ``on_seats``
    is given what the worker is told when that is new. ``lease_s``: of the worker's tasks."""

    refused = "this worker is given no seats of workflows: %s"
    after_failure_s = PAUSE_S

    def __init__(self, client: Client, look: Callable[[], WorkerStatus], on_seats: Callable[[Queues], None],
                 size_of: SizeOf = _one, lease_s: float = LEASE_S, see_sealed: SeeSealed = lambda workflow: None,
                 clock: Callable[[], float] = steady_s) -> None:
        super().__init__(client, look)
        self._on_seats = on_seats
        self._size_of = size_of
        self._lease_s = min(LEASE_S, lease_s)
        self._seats = WorkerSeats()
        self._see_sealed, self._clock = see_sealed, clock
        self._until_s: dict[str, float] = {}
        """Workflows whose seats here have changed, and how long to look whether their leaves are to be sealed."""

    def hasten(self) -> None:
        """Report beside the report that waits: something has changed."""
        if self._thread.is_alive() and not self._is_closing:
            self._beside(self._lease_s)

    def _say_goodbye(self) -> None:
        """The report that waits is answered by that."""
        self._beside(0).join(GOODBYE_S)

    def _beside(self, lease_s: float) -> threading.Thread:
        def report() -> None:
            with contextlib.suppress(SkuldError):
                self._client.report(self._look(), lease_s)
        thread = threading.Thread(target=report, name="attendance", daemon=True)
        thread.start()
        return thread

    def _report(self) -> float:
        """Report and take what is told, which may take a while; then again at once."""
        told = self._client.take_seats(self._look(), self._lease_s, wait_s=self._lease_s / 3,
                                       seated=self._seats.seated)
        if told != self._seats and not self._is_closing:
            known = {*self._seats.seats}
            queues = queues_of(told.seats, self._size_of)
            self._seats = told
            self._until_s |= dict.fromkeys((seat.workflow for seat in told.seats
                                            if seat.kind == OUTPUT and seat not in known),
                                           self._clock() + SEALS_S)
            self._on_seats(queues)
        self._see_leaves()
        return 0.0

    def _see_leaves(self) -> None:
        """The seats of a workflow change when its last input is exhausted; for a while whom it asks may lag. Where
        no answer came it looks again, however long that takes: nobody else may. The next report must be in time,
        so what is left by then is looked at after it, and what gave no answer last of all."""
        leave_s = self._clock() + self._lease_s / LOOKS_PART
        for workflow in [*self._until_s]:
            if self._clock() >= leave_s:
                return
            has_failed, until_s = False, self._until_s.pop(workflow)
            try:
                self._see_sealed(workflow)
            except SkuldError as error:
                has_failed = is_passing(error)
            if has_failed or self._clock() < until_s:
                self._until_s[workflow] = until_s
            if has_failed:
                return

    def _end(self) -> None:
        """Goodbye was said beside."""
