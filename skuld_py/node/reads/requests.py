"""What clients read, and what the keepers of tasks tell each other of them: single tasks, ends and logs that are
waited for, listings and counts."""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.asides import Aside
from skuld_py.model.columns import Column
from skuld_py.model.cuts import Cuts
from skuld_py.model.state import State
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.places import Places
from skuld_py.node.operations.quorum import eras_of
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.node.reads.counts import CountOperation, summed
from skuld_py.node.reads.ends import AwaitOperation, ReadLogOperation
from skuld_py.node.reads.get import GetOperation
from skuld_py.node.reads.interests import Interests
from skuld_py.node.reads.pages import Pages
from skuld_py.node.reads.survey import ListOperation
from skuld_py.partition.data.rows import read_cut, read_ends


class ReadRequests:
    """The reads that one node serves."""

    def __init__(self, operations: Operations, admission: Admission) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self._admission = admission
        self._ownership = Ownership(operations.view)
        self.pages = Pages(operations, self._ownership.owned)
        self.interests = Interests(operations.outbox, [vnode.replica for vnode in operations.view.vnodes])
        self._waits = Places()
        """The places of waits for ends and logs."""
        self._listings = Places()
        """The places of listings, and of counts of all queues."""
        self.asked: Asked = {m.Get: self._get, m.Await: self._await, m.ReadLog: self._read_log,
                             m.Count: self._count, m.List: self._list}
        self.served: Served = {m.Get: self._tell, m.Interest: self._interest, m.Sum: self._sum,
                               m.List: self.pages.put}

    def _get(self, now_ms: int, origin: Origin, message: m.Get) -> Operation:
        def make(request: int, partitions: list[int]) -> m.Get:
            return m.Get(request, message.ids, eras_of(self._view, partitions), is_bare=message.is_bare)
        task_ids, least = ids.split(message.ids), columns.unpack_u64(message.least)
        return GetOperation(self._operations, origin, now_ms, task_ids, self._admission.group(message.ids), make,
                            dict(zip(task_ids, least, strict=False)))

    def _await(self, now_ms: int, origin: Origin, message: m.Await) -> Operation:
        self._admission.group(message.ids)
        if len(message.ids) > m.ENDS_MAX * ids.ID_BYTES:
            raise Refused("too_large", f"ids: a request awaits at most {m.ENDS_MAX} tasks; send several")
        return self._with_place(AwaitOperation(self._operations, origin, now_ms, message))

    def _read_log(self, now_ms: int, origin: Origin, message: m.ReadLog) -> Operation:
        self._admission.group(message.id)
        return self._with_place(ReadLogOperation(self._operations, origin, now_ms, message))

    def _with_place(self, wait: Operation) -> Operation:
        limits = self._view.limits
        if not self._waits.take(wait, limits.waits, limits.waits_each):
            raise Refused("busy", "too many ends and logs are waited for at this node, or over this connection;"
                          " try again, ask another node, or await several tasks in one request")
        return wait

    def _count(self, now_ms: int, origin: Origin, message: m.Count) -> Operation:
        count = CountOperation(self._operations, origin, now_ms, message)
        return count if message.queue else self._among_listings(count)

    def _list(self, now_ms: int, origin: Origin, message: m.List) -> Operation:
        return self._among_listings(ListOperation(self._operations, origin, now_ms, message))

    def _among_listings(self, listing: Operation) -> Operation:
        limits = self._view.limits
        if not self._listings.take(listing, limits.listings, limits.listings_each):
            raise Refused("busy", "too many listings, or counts of all queues, are open at this node or over this"
                          " connection; try again, ask another node, or ask for one after the other")
        return listing

    def _tell(self, now_ms: int, peer: str, message: m.Get) -> m.Got:
        rows: list[tuple[m.TaskRow, Cuts]] = []
        task_ids = ids.split(message.ids)
        for partition, indexes in self._ownership.group(message.ids).items():
            rows += read_cut(self._view.vnodes[partition].replica, [task_ids[index] for index in indexes],
                             message.is_bare)
        return m.Got(message.request, tuple(row for row, _ in rows), *self._ownership.standings(message.eras),
                     self._asides(rows))

    def _asides(self, rows: Sequence[tuple[m.TaskRow, Cuts]]) -> Column:
        """The tasks that are behind others of their keys, with those others; and the parts left out of logs."""
        said = [_aside(self._ownership.vnode_of(row.id).replica.filing.ahead(row.id), cuts) for row, cuts in rows]
        return columns.pack(said) if any(said) else Column()

    def _interest(self, now_ms: int, peer: str, message: m.Interest) -> m.Got:
        rows: list[tuple[m.TaskRow, bytes]] = []
        gone: list[bytes] = []
        task_ids = ids.split(message.ids)
        for partition, indexes in self._ownership.group(message.ids).items():
            replica, part = self._view.vnodes[partition].replica, columns.pick(task_ids, indexes)
            rows += read_ends(replica, part, message.token, message.after, message.limit)
            gone += replica.gone(part)
        if message.watcher and gone:
            unkept = self._ownership.without(b"", gone)
            self._outbox.send(peer, m.Kept(message.request, b"", unkept, (), b"".join(gone)))
        if message.watcher:
            self.interests.add(now_ms, (peer, message.watcher), task_ids)
        return m.Got(message.request, tuple(row for row, _ in rows), *self._ownership.standings(message.eras),
                     columns.pack([header for _, header in rows]))

    def _sum(self, now_ms: int, peer: str, message: m.Sum) -> m.Summed | None:
        """Of one queue it is a look at some counters."""
        if message.queue:
            return summed(self._ownership.owned(), message)
        self.pages.put(now_ms, peer, message)
        return None


def _aside(ahead: Sequence[bytes], cuts: Cuts) -> bytes:
    return Aside(State.BLOCKED if ahead else None, tuple(ahead), cuts).encode()
