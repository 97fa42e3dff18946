"""Reads the documents of partitions about which peers know more than this node: their word alone is not
believed."""

from __future__ import annotations

from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations


class Inquiries(Duty):
    """The inquiries of one node. They need a registry that answers, and ask about a partition only now and
    then."""

    def __init__(self, operations: Operations) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._curious: dict[int, None] = {}
        """Partitions to inquire about."""
        self._rights = operations.view.bulletin.subscribe_to_rights()
        self.news = operations.view.bulletin.curious, self._rights

    def look(self, now_ms: int) -> None:
        """Ask for what may be asked for."""
        view, curious = self._view, self._curious
        self._rights.clear()
        curious |= view.bulletin.curious
        view.bulletin.curious.clear()
        self.due_ms = NEVER_MS
        for partition in list(curious) if view.is_connected else ():
            vnode = view.vnodes[partition]
            candidacy = view.candidacy(vnode)
            self._outbox.carry_out(candidacy.inquire(now_ms))
            if vnode.heard_epoch:
                self.hasten(candidacy.next_inquiry_ms)
            else:
                del curious[partition]
