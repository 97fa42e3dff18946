"""Keeps the partitions of a node led, compared and known: elections, exchanges, gossip, lapses.

None of it is asked for by anybody; all of it is driven by deadlines and by what is heard. Gossip
says what a node leads and in which queues it has work; it is a hint, never a promise. A queue that
gains work is gossiped at once, so that a claim parked elsewhere need not poll.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import DocumentRead, Effect
from skuld_py.node.operation import Host
from skuld_py.partition.exchange import Exchange
from skuld_py.partition.vnode import Vnode

GOSSIP_QUEUES_MAX = 1_000


class Household(Host, Protocol):
    """What the steward may use of its node, besides what an operation may."""

    vnodes: list[Vnode]

    @property
    def is_connected(self) -> bool:
        """Whether the registry session is good."""

    def description(self, request: int) -> m.Described:
        """The cluster as seen from here."""

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Effects of the protocol, on their way out."""


class Steward:
    """The standing duties of one node."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._heard_ms: dict[str, int] = {}
        self._hints: dict[str, dict[str, None]] = {}
        self._gossiped: dict[str, None] = {}
        self._next_gossip_ms = 0
        self._next_look_ms = 0
        self._next_exchange_ms = 0
        self._round = 0
        self._exchanges: dict[tuple[int, str], Exchange] = {}
        self._wanted: dict[tuple[int, str], None] = {}
        self._debts: dict[str, dict[int, None]] = {}
        self._led: dict[int, int] = {}

    # -- time ----------------------------------------------------------------------------------

    def deadline(self) -> int:
        """When duties are due next."""
        lapses = [vnode.replica.next_lapse_ms for vnode in self._node.vnodes
                  if vnode.replica.next_lapse_ms is not None]
        return min(self._next_gossip_ms, self._next_look_ms, *lapses)

    def look(self, now_ms: int) -> None:
        """See to everything that is due."""
        for vnode in self._node.vnodes:
            vnode.replica.sweep(now_ms, self._node.timing.sweep_rows)
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + self._node.timing.heir_delay_ms
            for vnode in self._node.vnodes:
                self._see_to_leader(now_ms, vnode)
            self._see_to_exchanges(now_ms)
        if now_ms >= self._next_gossip_ms:
            self._gossip(now_ms)

    # -- elections -----------------------------------------------------------------------------

    def _see_to_leader(self, now_ms: int, vnode: Vnode) -> None:
        node, election = self._node, vnode.election
        election.on_deadline(now_ms)
        owners = node.owners(vnode.partition)
        if not node.is_connected or node.me.name not in owners:
            return
        if vnode.is_leading:
            vnode.leaderless_since_ms = None
            if sorted(owners) != sorted(election.cohort):
                node.carry_out(vnode.stand(now_ms, owners))
            return
        if self._is_led(now_ms, vnode, owners):
            vnode.leaderless_since_ms = None
            return
        if vnode.leaderless_since_ms is None:
            vnode.leaderless_since_ms = now_ms
        live = [name for name in owners if name in node.live]
        rank = live.index(node.me.name) if node.me.name in live else len(live)
        patience_ms = rank * node.timing.heir_delay_ms
        if election.is_idle and now_ms >= max(election.next_attempt_ms,
                                              vnode.leaderless_since_ms + patience_ms):
            node.carry_out(vnode.stand(now_ms, owners))

    def _is_led(self, now_ms: int, vnode: Vnode, owners: Collection[str]) -> bool:
        leader = vnode.leader
        return (leader in self._node.live and leader in owners and leader != self._node.me.name
                and now_ms - self._heard_ms.get(leader, -self._node.timing.silence_ms)
                < self._node.timing.silence_ms)

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document came."""
        vnode = self._node.vnodes[event.partition]
        since_ms = vnode.leaderless_since_ms
        is_overdue = since_ms is not None and now_ms - since_ms >= self._node.timing.silence_ms
        self._node.carry_out(vnode.on_read(now_ms, event, self._node.live, is_overdue))

    def note_leaderships(self, now_ms: int) -> bool:
        """A partition newly led: say so at once, and compare it with the other owners."""
        has_risen = False
        for vnode in self._node.vnodes:
            if not vnode.is_leading:
                self._led.pop(vnode.partition, None)
            elif self._led.get(vnode.partition) != vnode.epoch:
                self._led[vnode.partition] = vnode.epoch
                has_risen = True
                self._next_gossip_ms = now_ms
                for name in self._node.owners(vnode.partition):
                    self.want_exchange(vnode.partition, name)
        return has_risen

    # -- gossip --------------------------------------------------------------------------------

    def _gossip(self, now_ms: int) -> None:
        self._next_gossip_ms = now_ms + self._node.timing.gossip_ms
        led = self._node.led()
        queues: dict[str, None] = {}
        for vnode in led:
            for queue, waiting, _, _ in vnode.replica.tally.rows(None, GOSSIP_QUEUES_MAX):
                if waiting > 0:
                    queues[queue] = None
        self._gossiped = queues
        message = m.Gossip(tuple(m.LeaderRow(vnode.partition, vnode.epoch) for vnode in led),
                           tuple(sorted(queues)[:GOSSIP_QUEUES_MAX]))
        for name in sorted(self._node.live):
            if name != self._node.me.name:
                self._node.send(name, message)

    def note_filled(self, now_ms: int) -> list[str]:
        """Queues that gained work on partitions led here since the last call; gossiped if news."""
        filled: dict[str, None] = {}
        for vnode in self._node.vnodes:
            if vnode.replica.tally.filled:
                if vnode.is_leading:
                    filled.update((queue.decode(), None) for queue in vnode.replica.tally.filled)
                vnode.replica.tally.filled = {}
        if any(queue not in self._gossiped for queue in filled):
            self._next_gossip_ms = now_ms
        return list(filled)

    def note_drained(self, queue: str) -> None:
        """A peer found nothing here: when the queue fills again, that is news."""
        self._gossiped.pop(queue, None)

    def on_gossip(self, now_ms: int, peer: str, gossip: m.Gossip) -> None:
        """Learn what a peer leads and where it has work."""
        leads = {row.partition: row.epoch for row in gossip.leads}
        for vnode in self._node.vnodes:
            epoch = leads.get(vnode.partition)
            if epoch is not None:
                vnode.note_leader(peer, epoch)
            else:
                vnode.forget_leader(peer)
        for queue in gossip.queues:
            self._hints.setdefault(queue, {})[peer] = None
        self._pay(peer)

    def hear(self, now_ms: int, peer: str) -> None:
        """Anything at all came from a peer."""
        self._heard_ms[peer] = now_ms

    def hinted(self, queue: str) -> list[str]:
        """Live peers said to have work in a queue."""
        return [name for name in self._hints.get(queue, {}) if name in self._node.live]

    def forget_hint(self, peer: str, queue: str) -> None:
        """It had none."""
        peers = self._hints.get(queue, {})
        peers.pop(peer, None)
        if not peers:
            self._hints.pop(queue, None)

    # -- exchanges -----------------------------------------------------------------------------

    def on_members(self, came: Sequence[Member], gone: Sequence[str]) -> None:
        """Compare with whoever came (one side of each pair asks); forget who went."""
        for name in gone:
            self._heard_ms.pop(name, None)
            for vnode in self._node.vnodes:
                vnode.forget_leader(name)
        for member in came:
            if self._node.me.name < member.name:
                for vnode in self._node.vnodes:
                    self.want_exchange(vnode.partition, member.name)

    def want_exchange(self, partition: int, peer: str) -> None:
        """Compare a partition with another owner when there is room."""
        owners = self._node.owners(partition)
        if peer != self._node.me.name and peer in owners and self._node.me.name in owners:
            self._wanted[partition, peer] = None

    def on_invite(self, invite: m.Invite) -> None:
        """Somebody thinks that this copy lags."""
        for name in self._node.owners(invite.partition):
            self.want_exchange(invite.partition, name)

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """Note that a peer may lack copies, to be told when it is heard of again."""
        self._debts.setdefault(peer, {}).update(dict.fromkeys(partitions))

    def _pay(self, peer: str) -> None:
        for partition in self._debts.pop(peer, {}):
            if self._node.me.name in self._node.owners(partition):
                self.want_exchange(partition, peer)
            else:
                self._node.send(peer, m.Invite(partition))

    def _see_to_exchanges(self, now_ms: int) -> None:
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
                    self.want_exchange(vnode.partition, others[self._round % len(others)])
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
