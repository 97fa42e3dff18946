"""When this node compares its partitions with other owners, and with whom.

An exchange has a reason: a node came up, a leader was made, a copy was not acknowledged, somebody asked;
and besides each partition is compared with each other owner in turn, since what nobody noticed has no
reason. Few run at once. Those that a leader takes part in go first: claims are granted from its copy.
What is wanted waits, what made a lap waits behind it with its place kept, what failed is owed again.

Hash trees are drafted here too, one at a time and in small steps: after a start, and now and then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.node.household import Household
from skuld_py.partition.exchange import Exchange, Pass, Progress

Key = tuple[int, str]
"""Partition and peer."""


class Comparing:
    """The exchanges of one node."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._next_round_ms = 0
        self._round = 0
        self._next_draft_ms = 0
        self._next_redraft_ms: int | None = None
        self._redrafts = 0
        self._running: dict[Key, Exchange] = {}
        self._waiting: dict[Key, Exchange | None] = {}
        self._wanted_again: dict[Key, None] = {}
        self._debts: dict[str, dict[int, None]] = {}
        self._is_stirred = False
        self.begun = 0
        """Passes begun so far."""
        self._serials: dict[Key, int] = {}

    # -- reasons -------------------------------------------------------------------------------

    def on_members(self, came: Sequence[Member]) -> None:
        """Compare with whoever came; one side of each pair asks."""
        self._is_stirred = True
        for member in came:
            if self._node.me.name < member.name:
                for vnode in self._node.vnodes:
                    self.want(vnode.partition, member.name)

    def want(self, partition: int, peer: str) -> None:
        """Compare a partition with another owner, from the beginning, when there is room."""
        keepers = self._node.keepers(partition)
        if peer != self._node.me.name and peer in keepers and self._node.me.name in keepers:
            self.demand(partition, peer)

    def demand(self, partition: int, peer: str) -> None:
        """Compare a partition with any node, owner or not; the pass begins after this moment."""
        self._is_stirred = True
        key = (partition, peer)
        if key in self._running or self._waiting.get(key) is not None:
            self._wanted_again[key] = None
        else:
            self._waiting.setdefault(key, None)

    def pursue(self, partition: int, peer: str) -> None:
        """Compare a partition with any node unless that is under way or waits; asked for again and again."""
        key = (partition, peer)
        if key not in self._running and key not in self._waiting:
            self.demand(partition, peer)

    def progress(self, partition: int, peer: str) -> Progress | None:
        """How far a running or resting exchange is; None without one."""
        exchange = self._running.get((partition, peer)) or self._waiting.get((partition, peer))
        return None if exchange is None else exchange.progress

    def on_invite(self, invite: m.Invite) -> None:
        """Somebody thinks that this copy lags."""
        for name in self._node.keepers(invite.partition):
            self.want(invite.partition, name)

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """Note that a peer may lack copies, to be told when it is heard of again."""
        self._debts.setdefault(peer, {}).update(dict.fromkeys(partitions))

    def pay(self, peer: str) -> None:
        """A peer was heard of: see to what it may lack."""
        for partition in self._debts.pop(peer, {}):
            if self._node.me.name in self._node.keepers(partition):
                self.want(partition, peer)
            else:
                self._node.send(peer, m.Invite(partition))

    # -- time ----------------------------------------------------------------------------------

    def deadline(self) -> int:
        """When ``look`` has something to do."""
        return min(self._next_round_ms, self._next_draft_ms,
                   *(exchange.deadline_ms for exchange in self._running.values()))

    def look(self, now_ms: int) -> None:
        """Draft; end what takes too long, ask again what was not answered; begin what is wanted or due."""
        if now_ms >= self._next_draft_ms:
            self._draft(now_ms)
        for key, exchange in list(self._running.items()):
            if exchange.has_expired(now_ms):
                self._end(key)
                self.owe(key[1], [key[0]])
            elif now_ms >= exchange.deadline_ms:
                self._node.carry_out(exchange.on_deadline(now_ms))
        if now_ms >= self._next_round_ms:
            self._begin_round(now_ms)
        if self._is_stirred:
            self._is_stirred = False
            self._begin_waiting(now_ms)

    def _begin_round(self, now_ms: int) -> None:
        self._next_round_ms = now_ms + self._node.timing.exchange_ms
        self._round += 1
        for vnode in self._node.vnodes:
            others = [name for name in self._node.keepers(vnode.partition) if name != self._node.me.name]
            if others:
                name = others[self._round % len(others)]
                if (vnode.partition, name) not in self._running:
                    self.want(vnode.partition, name)

    def _begin_waiting(self, now_ms: int) -> None:
        node = self._node
        for key in sorted(self._waiting, key=self._rank):
            if len(self._running) >= node.timing.exchanges:
                return
            partition, peer = key
            replica = node.vnodes[partition].replica
            if peer not in node.live or not replica.tree.is_built:
                continue
            exchange = self._waiting.pop(key)
            if exchange is not None:
                self._running[key] = exchange
                node.carry_out(exchange.resume(now_ms))
                continue
            exchange = self._running[key] = Exchange(replica, peer, node.limits, node.timing,
                                                     node.parameters.partitions, node.next_request)
            exchange.is_leaving = not node.vnodes[partition].takes_writes(node.owners(partition))
            self.begun += 1
            self._serials[key] = self.begun
            node.carry_out(exchange.begin(now_ms))

    def _rank(self, key: Key) -> int:
        """Those first in which a leader takes part; else in the order in which they came."""
        partition, peer = key
        return 0 if self._node.leader_of(partition) in (self._node.me.name, peer) else 1

    def _draft(self, now_ms: int) -> None:
        timing = self._node.timing
        for vnode in self._node.vnodes:
            tree = vnode.replica.tree
            if tree.is_drafting:
                tree.advance(timing.draft_rows)
                self._is_stirred = self._is_stirred or not tree.is_drafting
                self._next_draft_ms = now_ms + timing.draft_pause_ms
                return
        pace_ms = timing.draft_ms // len(self._node.vnodes)
        if self._next_redraft_ms is not None and now_ms >= self._next_redraft_ms:
            self._node.vnodes[self._redrafts % len(self._node.vnodes)].replica.tree.redraft()
            self._redrafts += 1
            self._next_redraft_ms, self._next_draft_ms = now_ms + pace_ms, now_ms + timing.draft_pause_ms
            return
        if self._next_redraft_ms is None:
            self._next_redraft_ms = now_ms + pace_ms
        self._next_draft_ms = self._next_redraft_ms

    # -- answers -------------------------------------------------------------------------------

    def on_answer(self, now_ms: int, peer: str, answer: m.Probed | m.Compared | m.Fetched) -> None:
        """An answer to one of our exchanges."""
        key = (answer.partition, peer)
        exchange = self._running.get(key)
        if exchange is None:
            return
        self._node.carry_out(exchange.on_answer(now_ms, answer))
        if exchange.is_done:
            self._end(key)
            self._node.on_pass(now_ms, Pass(*key, self._serials.pop(key), exchange.oldest, exchange.progress))
        elif exchange.is_resting:
            del self._running[key]
            self._waiting[key] = exchange
            self._is_stirred = True

    def _end(self, key: Key) -> None:
        del self._running[key]
        self._is_stirred = True
        if self._wanted_again.pop(key, key) is None:
            self._waiting[key] = None
