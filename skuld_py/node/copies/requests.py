"""What peers ask of copies when they compare them, and what they answer when this node does."""

from __future__ import annotations

from typing import ClassVar

from skuld_py.model import messages as m
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.partition.copies.exchange import answer_compare, answer_fetch, answer_probe


class CopyRequests:
    """The requests about copies that one node serves."""

    asked: ClassVar[Asked] = {}

    def __init__(self, view: View, exchanges: Exchanges) -> None:
        self._view = view
        self._exchanges = exchanges
        self._ownership = Ownership(view)
        self.served: Served = {
            m.Probe: self._probe, m.Compare: self._compare, m.Fetch: self._fetch, m.Invite: self._invite,
            m.Probed: exchanges.on_answer, m.Compared: exchanges.on_answer, m.Fetched: exchanges.on_answer,
        }

    def _invite(self, now_ms: int, peer: str, message: m.Invite) -> None:
        self._ownership.vnode(message.partition)
        self._exchanges.on_invite(message)

    def _probe(self, now_ms: int, peer: str, message: m.Probe) -> m.Probed | None:
        """Answer a peer's probe, unless this copy takes no writes any more."""
        vnode = self._ownership.vnode(message.partition)
        return answer_probe(vnode.replica, message) if vnode.takes_writes else None

    def _compare(self, now_ms: int, peer: str, message: m.Compare) -> m.Compared:
        return answer_compare(self._ownership.vnode(message.partition).replica, self._view.limits, message)

    def _fetch(self, now_ms: int, peer: str, message: m.Fetch) -> m.Fetched:
        return answer_fetch(self._ownership.vnode(message.partition).replica, self._view.limits, message)
