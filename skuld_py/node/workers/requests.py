"""What workers say of themselves, who asks for it, what of it goes into the coordination log, and which seats they
are told."""

from __future__ import annotations

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.seats import CLAIMS, SEATED
from skuld_py.node.knowledge.attendance import name_of
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.places import Places
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.node.workers.capacity import Capacity
from skuld_py.node.workers.muster import MusterOperation
from skuld_py.node.workers.usher import Usher


class WorkerRequests(Duty):
    """The requests about workers that one node serves. Wakes when a report is over, and when a number is due."""

    def __init__(self, operations: Operations, capacity: Capacity | None = None) -> None:
        self._operations = operations
        self._view = operations.view
        self._attendance = operations.view.attendance
        self._places = Places()
        self.capacity = capacity or Capacity()
        self._usher = Usher(operations)
        self.news = (operations.view.seating.news, operations.view.attendance.news)
        self.asked: Asked = {m.Report: self._report, m.Muster: self._muster}
        self.served: Served = {m.Muster: self._tell}

    def look(self, now_ms: int) -> None:
        """Forget who is gone; see whether the number of slots is to be written."""
        self._attendance.expire(now_ms)
        self._usher.look(now_ms)
        self.due_ms = min(self._attendance.due_ms, self.capacity.see(now_ms, self._attendance.units))

    def dismiss(self, now_ms: int) -> None:
        """The node is about to stop: keep no report waiting."""
        self._usher.dismiss(now_ms)

    def _report(self, now_ms: int, origin: Origin, message: m.Report) -> Operation | None:
        for row in message.workers:
            if len(row.weights) != 8 * len(row.queues):
                raise Refused("malformed", "Report.weights: has not one for each queue")
            if any(tag == SEATED or tag.startswith(CLAIMS) for tag in row.tags):
                raise Refused("bad_tags", f"tags: '{SEATED}' and what begins with '{CLAIMS}' are the cluster's"
                              " own; name it otherwise")
            self._attendance.note(now_ms, row, message.lease_ms)
        self.hasten(now_ms)
        if len(message.workers) == 1 and message.workers[0].takes_seats and message.lease_ms:
            name = name_of(message.workers[0])
            if (waiting := self._usher.wait(now_ms, origin, name, message)) is not None:
                return waiting
            self._operations.outbox.reply(origin, self._usher.told(origin.request, name))
            return None
        self._operations.outbox.reply(origin, m.Reported(origin.request))
        return None

    def _muster(self, now_ms: int, origin: Origin, message: m.Muster) -> Operation:
        limits, muster = self._view.limits, MusterOperation(self._operations, origin, now_ms, message)
        if not self._places.take(muster, limits.listings, limits.listings_each):
            raise Refused("busy", "workers are asked for too often at this node, or over this connection; try"
                          " again, or ask for them one time after the other")
        return muster

    def _tell(self, now_ms: int, peer: str, message: m.Muster) -> m.Mustered:
        return m.Mustered(message.request, *self._attendance.page(now_ms, message.behind), ())
