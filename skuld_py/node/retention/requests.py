"""Requests about ended tasks that are to be deleted. Archivers ask for pages and have them deleted; leaders ask
replicas to close and to delete."""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.node.retention.archive_offers import ArchiveOffers, PartitionQuestion
from skuld_py.node.retention.replica_side import delete, ebb
from skuld_py.node.retention.slices import Slices


class RetentionRequests:
    """The requests about ended tasks that one node serves."""

    def __init__(self, operations: Operations, slices: Slices) -> None:
        self._operations = operations
        ownership, offers = Ownership(operations.view), ArchiveOffers(operations, slices)
        self.asked: Asked = {m.Offer: self._pass_on, m.Discard: self._pass_on}
        self.served: Served = {
            m.Ebb: lambda now, peer, msg: ebb(operations, now, ownership.vnode(msg.partition), msg),
            m.Collect: lambda now, peer, msg: delete(operations.view, now, ownership.vnode(msg.partition), msg),
            m.Offer: offers.on_offer, m.Discard: offers.on_discard,
        }

    def _pass_on(self, now_ms: int, origin: Origin, message: m.Offer | m.Discard) -> Operation:
        return PartitionQuestion(self._operations, origin, now_ms, message)
