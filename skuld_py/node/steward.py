"""Keeps the partitions of a node led and known: elections, gossip, lapses.

None of it is asked for by anybody; all of it is driven by deadlines and by what is heard. Gossip
says what a node leads and in which queues it has work; it is a hint, never a promise. A queue that
gains work is gossiped at once, so that a claim parked elsewhere need not poll. What a node knows of the
settings goes along as a digest; who knows otherwise asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model import messages as m
from skuld_py.model.events import DocumentRead, ReadDocument
from skuld_py.model.node_messages import HEAD_BYTES
from skuld_py.model.state import State
from skuld_py.node.collecting import Collecting
from skuld_py.node.comparing import Comparing
from skuld_py.node.describing import collection
from skuld_py.node.expiring import bury_expired
from skuld_py.node.household import Household
from skuld_py.node.moving import Moving
from skuld_py.node.routing import QUEUES_MAX, UNKNOWN
from skuld_py.partition.evaluator import Facts
from skuld_py.partition.exchange import Pass
from skuld_py.partition.quorum import has_majority
from skuld_py.partition.vnode import Role, Vnode

GOSSIP_HEADS_MAX = 512
"""Heads of queues looked up for one gossip, over all partitions led; the other queues' come with the next ones."""
NEVER_MS = 1 << 62


class Steward:
    """The standing duties of one node."""

    def __init__(self, node: Household, comparing: Comparing, moving: Moving) -> None:
        self._node = node
        self._comparing = comparing
        self._moving = moving
        self.collecting = Collecting(node, comparing)
        self._heard_ms: dict[str, int] = {}
        self._since_ms: dict[str, int] = {}
        self._first_head = 0
        self._next_gossip_ms = 0
        self._next_look_ms = 0
        self._next_lapse_ms = 0
        """When the next claim lapses or pause ends on any partition, or earlier."""
        self._led: dict[int, tuple[int, int]] = {}
        """Epoch of each partition led, and since when."""
        self._next_search_ms: dict[int, int] = {}
        self._moves: dict[str, tuple[m.MoveRow, ...]] = {}
        self._collections: dict[str, tuple[m.CollectionRow, ...]] = {}

    # -- time ----------------------------------------------------------------------------------

    def deadline(self) -> int:
        """When duties are due next."""
        return min(self._next_gossip_ms, self._next_look_ms, self._next_lapse_ms)

    def look(self, now_ms: int) -> None:
        """See to everything that is due."""
        if now_ms >= self._next_lapse_ms:
            self._sweep(now_ms)
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + self._node.timing.heir_delay_ms
            for vnode in self._node.vnodes:
                self._see_to_leader(now_ms, vnode)
            bury_expired(self._node, now_ms, self._node.timing.sweep_rows)
            self._moving.look(now_ms)
            self._moving.drop()
            self.collecting.look(now_ms)
        if now_ms >= self._next_gossip_ms:
            self._gossip(now_ms)

    def _sweep(self, now_ms: int) -> None:
        filings = [vnode.replica.filing for vnode in self._node.vnodes]
        for filing in filings:
            filing.sweep(now_ms, self._node.timing.sweep_rows)
        self._next_lapse_ms = min((filing.next_lapse_ms for filing in filings if filing.next_lapse_ms is not None),
                                  default=NEVER_MS)

    def settle(self) -> None:
        """The turn ends: stage the counts of what was touched, and note when it wants to be looked at again.
        Queues that gained work since they were last asked for are looked at in the next turn."""
        touched = self._node.touched
        for partition in list(touched):
            filing = self._node.vnodes[partition].replica.filing
            filing.tally.settle()
            if filing.next_lapse_ms is not None and filing.next_lapse_ms < self._next_lapse_ms:
                self._next_lapse_ms = filing.next_lapse_ms
            if not (filing.tally.filled or filing.tally.freed or filing.waiting.is_stirred):
                del touched[partition]

    def on_pass(self, now_ms: int, ended: Pass) -> None:
        """An exchange is through."""
        self._moving.on_pass(now_ms, ended)
        self.collecting.on_pass(now_ms, ended)

    # -- elections -----------------------------------------------------------------------------

    def _see_to_leader(self, now_ms: int, vnode: Vnode) -> None:
        node, election = self._node, vnode.election
        node.carry_out(election.on_deadline(now_ms))
        if vnode.is_leading:
            self._see_to_leadership(now_ms, vnode)
            return
        if self.is_led(now_ms, vnode):
            vnode.leaderless_since_ms = None
            self._next_search_ms.pop(vnode.partition, None)
            return
        voters = vnode.standing.cohort or node.owners(vnode.partition)
        if node.me.name not in voters or vnode.suspicion:
            self._search_leader(now_ms, vnode)
            return
        if not node.may_grant:
            return
        if vnode.leaderless_since_ms is None:
            vnode.leaderless_since_ms = now_ms
        if election.is_idle and now_ms >= self._due_ms(vnode, voters, vnode.leaderless_since_ms):
            node.carry_out(node.candidacy(vnode).stand(now_ms))

    def _due_ms(self, vnode: Vnode, voters: Sequence[str], since_ms: int) -> int:
        """When this node may stand for a partition leaderless for so long: it leaves it to those before it. Two
        that have once stood against each other would do so again, were their pauses alike."""
        me, timing = self._node.me.name, self._node.timing
        if not vnode.standing.epoch:
            return max(since_ms + voters.index(me) * timing.first_heir_delay_ms, vnode.election.next_attempt_ms)
        live = [name for name in voters if name in self._node.live]
        rank = live.index(me) if me in live else len(live)
        return max(since_ms + rank * timing.heir_delay_ms,
                   vnode.election.next_attempt_ms + 2 * rank * timing.retry_ms)

    def _search_leader(self, now_ms: int, vnode: Vnode) -> None:
        """This node has no vote by what it knows, and no leader tells it more: perhaps it knows old things."""
        due_ms = self._next_search_ms.setdefault(vnode.partition, now_ms + self._node.timing.silence_ms)
        is_concerned = (vnode.promise.epoch > vnode.standing.epoch
                        or vnode.role(self._node.owners(vnode.partition)) is not Role.STRANGER)
        if is_concerned and self._node.is_connected and now_ms >= due_ms:
            del self._next_search_ms[vnode.partition]
            self._node.carry_out([ReadDocument(vnode.partition)])

    def _see_to_leadership(self, now_ms: int, vnode: Vnode) -> None:
        """Resign without a majority in hearing; else keep document and cohort up to date."""
        vnode.leaderless_since_ms = None
        heard = [name for name in vnode.election.cohort
                 if name == self._node.me.name or self._is_heard(now_ms, name)]
        if not has_majority(vnode.election.cohort, heard):
            vnode.resign(now_ms)
        elif self._node.is_connected:
            self.tend(now_ms, vnode)

    def tend(self, now_ms: int, vnode: Vnode) -> None:
        """A leader's upkeep of its document and its cohort."""
        self._node.carry_out(self._node.candidacy(vnode).tend(now_ms, self._facts(now_ms, vnode)))

    def _is_heard(self, now_ms: int, name: str) -> bool:
        silence_ms = self._node.timing.silence_ms
        return now_ms - self._heard_ms.get(name, now_ms - silence_ms) < silence_ms

    def is_led(self, now_ms: int, vnode: Vnode) -> bool:
        """Whether a live leader is heard of, as far as this node knows."""
        leader = vnode.leader
        return leader in self._node.live and ((leader == self._node.me.name and vnode.is_leading)
                                              or self._is_heard(now_ms, leader))

    def _facts(self, now_ms: int, vnode: Vnode) -> Facts:
        node, partition = self._node, vnode.partition
        since_ms = vnode.leaderless_since_ms
        moves = [row for rows in self._moves.values() for row in rows if row.partition == partition]
        return Facts(
            node.me, node.live, node.owners(partition), vnode.epoch if vnode.is_leading else 0,
            remembered=vnode.standing.epoch, is_suspect=bool(vnode.suspicion),
            is_overdue=since_ms is not None and now_ms - since_ms >= node.timing.silence_ms,
            filled=[row.node for row in moves if row.role == Role.LEARNER.value and row.is_done],
            suspects={row.node: row.reason for row in moves if row.role == Role.SUSPECT.value},
            steady=self._steady(now_ms, vnode), strays=self._strays(now_ms, vnode, moves),
            horizon_ms=node.candidacy(vnode).needed_horizon(now_ms))

    def _steady(self, now_ms: int, vnode: Vnode) -> list[str]:
        """The first of the cohort, if it has been a member for a while, is heard and has a good clock. Nobody
        right after a change of leaders: grants go before balance."""
        def is_long(since_ms: int) -> bool:
            return now_ms - since_ms >= self._node.timing.steady_ms
        if not self._is_settled(now_ms, vnode):
            return []
        return [name for name in vnode.election.document.cohort[:1]
                if is_long(self._since_ms.get(name, now_ms)) and self._is_heard(now_ms, name)
                and self._node.is_agreed(name)]

    def _is_settled(self, now_ms: int, vnode: Vnode) -> bool:
        """Whether this node has led the partition for a while."""
        return now_ms - self._led.get(vnode.partition, (0, now_ms))[1] >= self._node.timing.steady_ms

    def _strays(self, now_ms: int, vnode: Vnode, moves: Sequence[m.MoveRow]) -> list[str]:
        """Those that have filled to become voters and are not placed here: they count on a cohort that they, or
        others, stood for."""
        if not self._is_settled(now_ms, vnode):
            return []
        expected = (*self._node.owners(vnode.partition), *vnode.election.cohort)
        return [row.node for row in moves
                if row.role == Role.LEARNER.value and row.is_done and row.node not in expected
                and row.node in self._node.live]

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document came."""
        vnode = self._node.vnodes[event.partition]
        facts = self._facts(now_ms, vnode)
        self._node.carry_out(self._node.candidacy(vnode).on_read(now_ms, event, facts))

    def note_leaderships(self, now_ms: int) -> bool:
        """A partition newly led: say so at once, and compare it with the other owners."""
        has_risen, led = False, self._led
        for vnode in self._node.vnodes:
            if not vnode.is_leading:
                if vnode.partition in led:
                    del led[vnode.partition]
            elif led.get(vnode.partition, (0, 0))[0] != vnode.epoch:
                led[vnode.partition] = vnode.epoch, now_ms
                has_risen = True
                self._next_gossip_ms = now_ms
                for name in self._node.keepers(vnode.partition):
                    self._comparing.want(vnode.partition, name)
        return has_risen

    # -- gossip --------------------------------------------------------------------------------

    def _gossip(self, now_ms: int) -> None:
        self._next_gossip_ms = now_ms + self._node.timing.gossip_ms
        led = self._node.led()
        queues, heads = self._offers(led)
        self._node.router.note(self._node.me.name, queues, heads)
        leads = tuple(m.LeaderRow(vnode.partition, vnode.epoch, vnode.election.document.era,
                                  vnode.election.cohort) for vnode in led)
        message = m.Gossip(leads, queues, self._node.moves(), heads, self._node.settings.digest,
                           collection(self._node, self.collecting.awaited))
        for name in sorted(self._node.live):
            if name != self._node.me.name:
                self._node.send(name, message)

    def _offers(self, led: Sequence[Vnode]) -> tuple[tuple[str, ...], bytes]:
        """Queues with something to grant, and the heads of the first of them; others are first the next time."""
        settings = self._node.settings
        found = sorted({queue: None for vnode in led
                        for queue, counts in vnode.replica.filing.tally.rows(None, QUEUES_MAX)
                        if counts[State.WAITING] > 0 and not settings.is_paused(queue)})
        count = min(len(found), QUEUES_MAX, max(1, GOSSIP_HEADS_MAX // max(1, len(led))))
        at = self._first_head % len(found) if count < len(found) else 0
        self._first_head = at + count
        queues = (*found[at:], *found[:at])[:QUEUES_MAX]
        return queues, b"".join(self._head(led, queue) for queue in queues[:count])

    def _head(self, led: Sequence[Vnode], queue: str) -> bytes:
        heads = [head[-HEAD_BYTES:] for vnode in led for head in vnode.replica.filing.heads(queue, None, 1)]
        return min(heads, default=UNKNOWN)

    def led_since(self, vnode: Vnode) -> int | None:
        """Since when this node leads the partition in its present epoch; None before that was noted."""
        epoch, since_ms = self._led.get(vnode.partition, (0, 0))
        return since_ms if epoch == vnode.epoch and vnode.is_leading else None

    def take_moved(self, now_ms: int) -> tuple[list[str], list[str]]:
        """Queues that gained work on partitions led here since the last call, gossiped if news; and those of which
        claims have ended there."""
        filled: dict[bytes, None] = {}
        freed: dict[bytes, None] = {}
        for partition in self._node.touched:
            vnode = self._node.vnodes[partition]
            tally = vnode.replica.filing.tally
            if vnode.is_leading:
                filled |= tally.filled
                freed |= tally.freed
            tally.filled, tally.freed = {}, {}
        news = [name for name in (queue.decode() for queue in filled) if not self._node.settings.is_paused(name)]
        for queue in news:
            if not self._node.router.is_listed(self._node.me.name, queue):
                self._next_gossip_ms = now_ms
        return news, [queue.decode() for queue in freed]

    def note_resumed(self, now_ms: int) -> None:
        """Queues may be granted from again: claims wait for that elsewhere."""
        self._next_gossip_ms = now_ms

    def on_gossip(self, now_ms: int, peer: str, gossip: m.Gossip) -> None:
        """Learn what a peer leads and where it has work."""
        leads = {row.partition: row for row in gossip.leads}
        for vnode in self._node.vnodes:
            row = leads.get(vnode.partition)
            if row is None:
                vnode.forget_leader(peer)
                continue
            vnode.note_leader(peer, row.epoch)
            vnode.settle(now_ms, row.epoch, row.era, row.cohort)
        self._moves[peer] = gossip.moves
        self._collections[peer] = gossip.collection
        self._node.router.note(peer, gossip.queues, gossip.heads)
        if gossip.settings != self._node.settings.digest:
            self._node.send(peer, self._node.settings.question())
        self._comparing.pay(peer)

    def hear(self, now_ms: int, peer: str) -> None:
        """Anything at all came from a peer."""
        self._heard_ms[peer] = now_ms

    def moves(self) -> list[m.MoveRow]:
        """Data on its way at other nodes, as they tell."""
        return [row for _, rows in sorted(self._moves.items()) for row in rows]

    def collections(self) -> tuple[m.CollectionRow, ...]:
        """What this node collects, and others that are live, as they tell; a dead one leads nothing."""
        told = [self._collections.get(name, ()) for name in sorted(self._node.live)]
        return (*collection(self._node, self.collecting.awaited), *(row for rows in told for row in rows))

    def on_members(self, now_ms: int, gone: Sequence[str]) -> None:
        """Forget who went; note since when the others are there."""
        for name in gone:
            self._heard_ms.pop(name, None)
            self._since_ms.pop(name, None)
            self._moves.pop(name, None)
            self._collections.pop(name, None)
            self._node.router.drop(name)
            for vnode in self._node.vnodes:
                vnode.forget_leader(name)
        for name in self._node.live:
            self._since_ms.setdefault(name, now_ms)
