"""Tells workers their seats: at once when they report, and again as soon as they are others.

A worker's report waits here, for as long as it says, until its seats are others than those that it named. So a
change of the allocation is with a worker as soon as with its node, for one request in ten seconds, as without.
"""

from __future__ import annotations

from hashlib import blake2b

from skuld_py.model import messages as m
from skuld_py.model.seats import SEATED, Seat
from skuld_py.node.knowledge.attendance import Name, Tags
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.workers.dealing import Step, deal

Rows = tuple[m.SeatRow, ...]


class WaitingReport(Operation):
    """A report that is answered when its worker's seats change, or its time is over."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, usher: Usher, name: Name,
                 message: m.Report) -> None:
        super().__init__(operations, origin, now_ms, message.wait_ms)
        self._usher = usher
        self.name = name
        self.seated = message.seated

    def begin(self, now_ms: int) -> None:
        """Wait."""
        self.operations.timers.set(self.deadline_ms, self)

    def on_deadline(self, now_ms: int) -> None:
        """Tell what there is."""
        self.answer(self._usher.told(self.origin.request, self.name))
        self.end()


class Usher:
    """The seats of the workers that report to one node."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._dealt: dict[Tags, dict[Name, dict[Step, int]]] = {}
        self._rows: dict[Tags, dict[Name, Rows]] = {}
        self._waiting: dict[Name, WaitingReport] = {}

    def told(self, request: int, name: Name) -> m.Reported:
        """The answer to a worker."""
        rows = self._rows_of(name)
        return m.Reported(request, rows, digest_of(rows))

    def _rows_of(self, name: Name) -> Rows:
        return next((rows[name] for rows in self._rows.values() if name in rows), ())

    def wait(self, now_ms: int, origin: Origin, name: Name, message: m.Report) -> WaitingReport | None:
        """The operation that a report waits in; None when there is something to tell now. Of one worker the newest
        report waits."""
        self.look(now_ms)
        if not message.wait_ms or self._view.is_leaving:
            return None
        former = self._waiting.pop(name, None)
        if former is not None:
            former.on_deadline(now_ms)
        if digest_of(self._rows_of(name)) != message.seated:
            return None
        operation = self._waiting[name] = WaitingReport(self._operations, origin, now_ms, self, name, message)
        operation.at_end.append(lambda: self._forget(name, operation))
        return operation

    def _forget(self, name: Name, operation: WaitingReport) -> None:
        if self._waiting.get(name) is operation:
            del self._waiting[name]

    def look(self, now_ms: int) -> None:
        """Deal anew what has changed, and tell whom it concerns."""
        view = self._view
        if not (view.seating.news or view.attendance.news):
            return
        changed = [*view.attendance.news]
        if view.seating.news:
            changed += [*self._dealt, *((SEATED, *tags) for tags, _ in view.seating.seats.here)]
        view.seating.news.clear()
        view.attendance.news.clear()
        for tags in dict.fromkeys(changed):
            if tags:
                self._deal(tags)
        for waiting in [*self._waiting.values()]:
            if digest_of(self._rows_of(waiting.name)) != waiting.seated or waiting.name not in view.attendance:
                waiting.on_deadline(now_ms)

    def dismiss(self, now_ms: int) -> None:
        """The node is about to stop: answer all."""
        for waiting in [*self._waiting.values()]:
            waiting.on_deadline(now_ms)

    def _deal(self, tags: Tags) -> None:
        workers = self._view.attendance.with_slots(tags)
        seats = self._view.seating.here(tags[1:])
        dealt = deal(seats, workers, self._dealt.get(tags, {}))
        by_step = {(seat.workflow, seat.step): seat for seat in seats}
        self._dealt[tags] = dealt
        self._rows[tags] = {name: tuple(_row(by_step[step], count) for step, count in sorted(steps.items()))
                            for name, steps in dealt.items()}
        if not dealt:
            del self._dealt[tags], self._rows[tags]


def _row(seat: Seat, count: int) -> m.SeatRow:
    return m.SeatRow(seat.workflow, seat.step, seat.kind, count, seat.fence)


def digest_of(rows: Rows) -> int:
    """What tells seats from others; 0 for none."""
    if not rows:
        return 0
    text = "\n".join(f"{row.workflow} {row.step} {row.kind} {row.count} {row.fence}" for row in rows)
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big") + 1
