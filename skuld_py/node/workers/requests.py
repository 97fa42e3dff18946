"""What workers say of themselves, who asks for it, and what of it goes into the coordination log."""

from __future__ import annotations

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.places import Places
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.node.workers.capacity import Capacity
from skuld_py.node.workers.muster import MusterOperation


class WorkerRequests(Duty):
    """The requests about workers that one node serves. Wakes when a report is over, and when a number is due."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._attendance = operations.view.attendance
        self._places = Places()
        self.capacity = Capacity()
        self.asked: Asked = {m.Report: self._report, m.Muster: self._muster}
        self.served: Served = {m.Muster: self._tell}

    def look(self, now_ms: int) -> None:
        """Forget who is gone; see whether the number of slots is to be written."""
        self._attendance.expire(now_ms)
        self.due_ms = min(self._attendance.due_ms, self.capacity.see(now_ms, self._attendance.slots))

    def _report(self, now_ms: int, origin: Origin, message: m.Report) -> None:
        for row in message.workers:
            if len(row.weights) != 8 * len(row.queues):
                raise Refused("malformed", "Report.weights: has not one for each queue")
            self._attendance.note(now_ms, row, message.lease_ms)
        self.hasten(now_ms)
        self._operations.outbox.reply(origin, m.Reported(origin.request))

    def _muster(self, now_ms: int, origin: Origin, message: m.Muster) -> Operation:
        limits, muster = self._view.limits, MusterOperation(self._operations, origin, now_ms, message)
        if not self._places.take(muster, limits.listings, limits.listings_each):
            raise Refused("busy", "workers are asked for too often at this node, or over this connection; try"
                          " again, or ask for them one time after the other")
        return muster

    def _tell(self, now_ms: int, peer: str, message: m.Muster) -> m.Mustered:
        return m.Mustered(message.request, *self._attendance.page(now_ms, message.behind), ())
