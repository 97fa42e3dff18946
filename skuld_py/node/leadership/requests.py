"""Requests about leadership. Clients ask which node this is and how the cluster is; peers ask for votes and for
what a new leader must know, and tell what nodes tell each other unasked."""

from __future__ import annotations

from typing import Any

import attrs

from skuld_py.model import messages as m
from skuld_py.node.copies.moves import Moves
from skuld_py.node.knowledge.floor import Floor
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.operations.household import Household
from skuld_py.node.operations.operation import Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Serve, Served


class LeadershipRequests:
    """The requests about leadership that one node serves."""

    def __init__(self, node: Household, floor: Floor, steward: Steward, moving: Moves) -> None:
        self._node = node
        self._floor = floor
        self._steward = steward
        self._moving = moving
        self._ownership = ownership = Ownership(node)
        self.asked: Asked = {m.Greet: self._greet, m.Describe: self._describe}
        self.served: Served = {
            m.RequestVote: self._request_vote,
            m.PullClaims: lambda now, peer, msg: ownership.vnode(msg.partition).on_pull(now, peer, msg),
            m.PushClaims: lambda now, peer, msg: ownership.vnode(msg.partition).on_push(now, peer, msg),
            m.Vote: self._vote, m.ClaimPage: self._advance("on_page"),
            m.ClaimsKept: self._advance("on_kept"), m.Synced: self._advance("on_synced"),
            m.Sync: self._sync, m.Abdicate: self._abdicate,
            m.Gossip: steward.on_gossip, m.PartialGossip: steward.on_gossip,
        }

    def _greet(self, now_ms: int, origin: Origin, message: m.Greet) -> None:
        node = self._node
        members = tuple(m.MemberRow(member.name, member.host, member.port)
                        for _, member in sorted(node.live.items()))
        node.reply(origin, m.Greeted(
            origin.request, node.me.name, node.parameters.cluster, node.parameters.partitions,
            node.parameters.replicas, node.parameters.skew_ms, self._floor.told(now_ms),
            node.limits.payload_bytes, members))

    def _describe(self, now_ms: int, origin: Origin, message: m.Describe) -> None:
        is_unproven = message.reads_unproven and not self._node.notary.demands(now_ms)
        self._node.reply(origin, attrs.evolve(self._node.description(origin.request), is_unproven=is_unproven))

    def _request_vote(self, now_ms: int, peer: str, message: m.RequestVote) -> m.Vote | None:
        vnode = self._ownership.vnode(message.partition)
        return vnode.on_request_vote(now_ms, peer, message, self._steward.is_led(now_ms, vnode))

    def _vote(self, now_ms: int, peer: str, message: m.Vote) -> None:
        candidacy = self._node.candidacy(self._ownership.vnode(message.partition))
        self._moving.on_vote(peer, message)
        self._node.carry_out(candidacy.on_vote(now_ms, peer, message))

    def _advance(self, handler: str) -> Serve:
        def handle(now_ms: int, peer: str, message: Any) -> None:
            candidacy = self._node.candidacy(self._ownership.vnode(message.partition))
            self._node.carry_out(getattr(candidacy, handler)(now_ms, peer, message))
        return handle

    def _sync(self, now_ms: int, peer: str, message: m.Sync) -> None:
        self._ownership.vnode(message.partition)
        self._moving.on_sync(now_ms, peer, message)

    def _abdicate(self, now_ms: int, peer: str, message: m.Abdicate) -> None:
        if self._node.is_connected:
            candidacy = self._node.candidacy(self._ownership.vnode(message.partition))
            self._node.carry_out(candidacy.on_abdicate(now_ms, peer, message))
