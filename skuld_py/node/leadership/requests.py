"""Requests about leadership. Clients ask which node this is and how the cluster is; peers ask for votes and for
what a new leader must know, and tell what nodes tell each other unasked."""

from __future__ import annotations

from typing import Any

import attrs

from skuld_py.cluster.member.playback import Playback
from skuld_py.model import messages as m
from skuld_py.node.copies.moves import Moves
from skuld_py.node.knowledge.floor import Floor
from skuld_py.node.leadership.clocks import Timekeeper
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.leadership.held import held
from skuld_py.node.leadership.status import described, watches_of
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Serve, Served


class LeadershipRequests:
    """The requests about leadership that one node serves."""

    def __init__(self, operations: Operations, floor: Floor, timekeeper: Timekeeper, steward: Steward,
                 moves: Moves, playback: Playback) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._floor = floor
        self._timekeeper = timekeeper
        self._steward = steward
        self._moves = moves
        self._playback = playback
        self._ownership = ownership = Ownership(operations.view)
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
        view = self._view
        members = tuple(m.MemberRow(member.name, member.host, member.port)
                        for _, member in sorted(view.live.items()))
        self._outbox.reply(origin, m.Greeted(
            origin.request, view.me.name, view.parameters.cluster, view.parameters.partitions,
            view.replicas, view.parameters.skew_ms, self._floor.told(now_ms),
            view.limits.payload_bytes, members, view.protocol, view.release))

    def _describe(self, now_ms: int, origin: Origin, message: m.Describe) -> None:
        told = self.description(origin.request, now_ms)
        self._outbox.reply(origin, told if message.reads_unproven else attrs.evolve(told, is_unproven=False))

    def description(self, request: int, now_ms: int) -> m.Described:
        """The cluster as seen from here."""
        gossiper = self._steward.gossiper
        told = described(self._view, request, self._timekeeper.agreement,
                         (*self._moves.rows(), *gossiper.moves()), gossiper.collections(), gossiper.programs,
                         self._steward.silent, gossiper.workers,
                         held(self._view, now_ms, self._steward.audits.lacking),
                         watches_of(self._playback.replica))
        return attrs.evolve(told, is_unproven=not self._view.notary.demands(now_ms))

    def _request_vote(self, now_ms: int, peer: str, message: m.RequestVote) -> m.Vote | None:
        vnode = self._ownership.vnode(message.partition)
        return vnode.on_request_vote(now_ms, peer, message, self._steward.is_led(now_ms, vnode))

    def _vote(self, now_ms: int, peer: str, message: m.Vote) -> None:
        candidacy = self._view.candidacy(self._ownership.vnode(message.partition))
        self._moves.on_vote(peer, message)
        self._outbox.carry_out(candidacy.on_vote(now_ms, peer, message))

    def _advance(self, handler: str) -> Serve:
        def handle(now_ms: int, peer: str, message: Any) -> None:
            candidacy = self._view.candidacy(self._ownership.vnode(message.partition))
            self._outbox.carry_out(getattr(candidacy, handler)(now_ms, peer, message))
        return handle

    def _sync(self, now_ms: int, peer: str, message: m.Sync) -> None:
        self._ownership.vnode(message.partition)
        self._moves.on_sync(now_ms, peer, message)

    def _abdicate(self, now_ms: int, peer: str, message: m.Abdicate) -> None:
        if self._view.may_grant and not self._view.is_leaving:  # else nothing would be granted for a while
            candidacy = self._view.candidacy(self._ownership.vnode(message.partition))
            self._outbox.carry_out(candidacy.on_abdicate(now_ms, peer, message))
