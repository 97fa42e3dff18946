"""When this node compares its partitions with other owners, and with whom.

An exchange has a reason: a node came up, a leader was made, a copy was not acknowledged; and a slow
round besides. Few run at once; what is wanted meanwhile waits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.node.household import Household
from skuld_py.partition.exchange import Exchange


class Comparing:
    """The exchanges of one node."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._next_exchange_ms = 0
        self._round = 0
        self._exchanges: dict[tuple[int, str], Exchange] = {}
        self._wanted: dict[tuple[int, str], None] = {}
        self._debts: dict[str, dict[int, None]] = {}

    def on_members(self, came: Sequence[Member]) -> None:
        """Compare with whoever came; one side of each pair asks."""
        for member in came:
            if self._node.me.name < member.name:
                for vnode in self._node.vnodes:
                    self.want(vnode.partition, member.name)

    def want(self, partition: int, peer: str) -> None:
        """Compare a partition with another owner when there is room."""
        owners = self._node.owners(partition)
        if peer != self._node.me.name and peer in owners and self._node.me.name in owners:
            self._wanted[partition, peer] = None

    def on_invite(self, invite: m.Invite) -> None:
        """Somebody thinks that this copy lags."""
        for name in self._node.owners(invite.partition):
            self.want(invite.partition, name)

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """Note that a peer may lack copies, to be told when it is heard of again."""
        self._debts.setdefault(peer, {}).update(dict.fromkeys(partitions))

    def pay(self, peer: str) -> None:
        """A peer was heard of: see to what it may lack."""
        for partition in self._debts.pop(peer, {}):
            if self._node.me.name in self._node.owners(partition):
                self.want(partition, peer)
            else:
                self._node.send(peer, m.Invite(partition))

    def look(self, now_ms: int) -> None:
        """End what takes too long; begin what is wanted or due."""
        for key, exchange in list(self._exchanges.items()):
            if exchange.is_done or now_ms >= exchange.expires_ms:
                del self._exchanges[key]
                if not exchange.is_done:
                    self.owe(key[1], [key[0]])
        if now_ms >= self._next_exchange_ms:
            self._next_exchange_ms = now_ms + self._node.timing.exchange_ms
            self._round += 1
            for vnode in self._node.vnodes:
                others = [name for name in self._node.owners(vnode.partition) if name != self._node.me.name]
                if others:
                    self.want(vnode.partition, others[self._round % len(others)])
        for key in list(self._wanted):
            if len(self._exchanges) >= self._node.timing.exchanges:
                return
            if key[1] in self._node.live and key not in self._exchanges:
                del self._wanted[key]
                self._begin_exchange(now_ms, *key)

    def _begin_exchange(self, now_ms: int, partition: int, peer: str) -> None:
        node = self._node
        exchange = Exchange(node.vnodes[partition].replica, peer, node.limits, node.parameters.partitions,
                            node.timing.exchange_page_ms)
        self._exchanges[partition, peer] = exchange
        node.carry_out(exchange.ask(now_ms))

    def on_compared(self, now_ms: int, peer: str, answer: m.Compared) -> None:
        """A page of an exchange."""
        exchange = self._exchanges.get((answer.partition, peer))
        if exchange is not None:
            self._node.carry_out(exchange.on_compared(now_ms, answer))
