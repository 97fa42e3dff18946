"""Keeps the partitions of a node led: elections, the upkeep of what is led, data that moves for it.

No request asks for any of it; all of it is driven by deadlines and by what is heard.

Cost follows what changed, not what exists. A partition is looked at when something of it changed (``bulletin``),
when what a look before found comes due (``Agenda``), and when something that concerns many changed: members,
placement, the nodes that this one hears, whether it may grant. Besides, a slow round looks at all of them in turn.
It finds what only time brings and no agenda knows (a clock that agrees again, say), and any change that was not
told. Of few partitions each round is of all, and goes along with a gossip.

Rejected: to look at every partition every time, which at 4,096 is a third of a core for nothing; to look every
``heir_delay_ms`` whether or not something is due, which was two thirds of what an idle node did.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

import attrs

from skuld_py.model import messages as m
from skuld_py.model.events import DocumentRead, ReadDocument
from skuld_py.model.remarks import Kind
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.copies.moves import Moves
from skuld_py.node.leadership.audits import Audits
from skuld_py.node.leadership.clocks import Timekeeper, Verdict
from skuld_py.node.leadership.gatherings import Gatherings
from skuld_py.node.leadership.gossip import Gossiper
from skuld_py.node.leadership.losses import Losses
from skuld_py.node.operations.agenda import Agenda
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.retention.slices import Slices
from skuld_py.partition.leadership.evaluator import Facts, by_wish, next_change_ms
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.vnode import Role, Vnode


class Steward(Duty):
    """Keeps the partitions of one node led."""

    silent: tuple[str, ...] = ()
    """The nodes that were live at the last look, long enough to be heard, and were not."""

    def __init__(self, operations: Operations, timekeeper: Timekeeper, exchanges: Exchanges,
                 moves: Moves) -> None:
        self._view, self._outbox = operations.view, operations.outbox
        self._timekeeper = timekeeper
        self._exchanges, self._moves, moves.suspects = exchanges, moves, self.suspects
        self.slices = Slices(operations, exchanges)
        self.losses, self.audits = Losses(operations, exchanges), Audits(operations, exchanges)
        self.gatherings = Gatherings(operations, exchanges)
        self.gossiper = Gossiper(operations, moves, self.slices)
        self._heard_ms, self._since_ms = dict[str, int](), dict[str, int]()
        self._round_ms = 0
        """When a part of the slow round is due."""
        self._silence_ms = 0
        """Until then no node that was heard at the last look can count as silent."""
        self._stirred: dict[str, None] = {}
        """Nodes that are heard now and were not at the last look."""
        self._rights = operations.view.bulletin.subscribe_to_rights()
        self._agenda = Agenda(self)
        """When each partition's leadership is to be looked at."""
        self._changed = operations.view.bulletin.subscribe()
        self.risen = operations.view.bulletin.subscribe()
        self._next_in_round = self._next_read_ms = 0
        self._is_collecting = bool(operations.view.retention.keep_ms)
        """Whether ended tasks are collected: then every look that is allowed is due."""
        self._could: tuple[bool, bool] = (False, False)
        """Whether it was connected, and might grant, at the last look."""
        self._heard: dict[str, None] = {}
        """The nodes that were heard at the last look."""
        self._led: dict[int, tuple[int, int]] = {}
        """Epoch of each partition led, and since when."""
        self._shifts: dict[int, None] = {}
        """Partitions led here that are about to change leader or cohort."""
        self._handed: dict[int, None] = {}
        """Partitions led here when the node was told to stop, or since, that no other node leads yet."""
        self._handed_until_ms = NEVER_MS
        self._next_search_ms: dict[int, int] = {}
        self._without_majority: dict[int, None] = {}
        """Partitions of which people were told that no majority of the voters is alive."""
        self._unread = {vnode.partition: None for vnode in operations.view.vnodes}
        """Partitions whose document was not read yet in this life; nothing is promised for them."""
        for vnode in operations.view.vnodes:
            self._agenda.note(vnode.partition, 0)
        self.gossiper.along += [self.go_round, partial(timekeeper.look, is_along=True)]
        self.news = self._changed, self._stirred, self._rights

    # -- time ----------------------------------------------------------------------------------

    def look(self, now_ms: int) -> None:
        """See to everything that is due."""
        self.rests_until_ms = now_ms + self._view.timing.heir_delay_ms
        if self._unread and now_ms >= self._next_read_ms and self._view.is_connected:
            self._read(now_ms)
        self._notice(now_ms)
        partitions = self._due(now_ms)
        for partition in partitions:
            vnode = self._view.vnodes[partition]
            self._agenda.note(partition, self._see_to_leader(now_ms, vnode))
        self._moves.look(now_ms, partitions)
        self.slices.look(now_ms)
        self._plan()

    def go_round(self, now_ms: int) -> None:
        """Look at a part of the slow round, if it is time."""
        if now_ms >= max(self._round_ms, self.rests_until_ms):
            self.look(now_ms)

    def _plan(self) -> None:
        """Be due when there is something to look at, as far as is known."""
        if self._is_collecting:
            self.due_ms = 0
            return
        self.due_ms = min(self._agenda.due_ms, self._silence_ms, self._moves.agenda.due_ms)
        if self._handed:
            self.hasten(self._handed_until_ms)
        if self._unread and self._view.is_connected:
            self.hasten(self._next_read_ms)

    def _read(self, now_ms: int) -> None:
        """Ask for documents not read yet, of many some at a time."""
        timing = self._view.timing
        asked = [*islice(self._unread, timing.look_due)]
        self._next_read_ms = now_ms + (timing.vote_ms if len(asked) == len(self._unread) else timing.heir_delay_ms)
        for partition in asked:
            del self._unread[partition]
            self._unread[partition] = None
        self._outbox.carry_out([ReadDocument(partition) for partition in asked])

    def _notice(self, now_ms: int) -> None:
        """Mark the partitions that a change concerns which they cannot know of."""
        self._stirred.clear()
        self._rights.clear()
        could, self._could = self._could, (self._view.is_connected, self._view.may_grant)
        if could != self._could:
            self.mark_all(now_ms)
        heard, self._heard = self._heard, {name: None for name in self._view.live if self._is_heard(now_ms, name)}
        self._silence_ms = min(map(self._heard_ms.__getitem__, self._heard), default=NEVER_MS)
        self._silence_ms += self._view.timing.silence_ms
        self.silent = tuple(name for name, since_ms in self._since_ms.items()
                            if name not in self._heard and name != self._view.me.name
                            and now_ms - since_ms > self._view.timing.silence_ms)
        if heard != self._heard:
            changed = heard.keys() ^ self._heard.keys()
            for vnode in self._view.vnodes:
                if vnode.leader in changed:
                    self._agenda.note(vnode.partition, self._urgent_ms(now_ms))
                elif vnode.is_leading:
                    self._agenda.note(vnode.partition, now_ms)

    def _urgent_ms(self, now_ms: int) -> int:
        """The moment to note for partitions that changed: before those that come due by time, unless these have
        waited long. Else partitions that change often would use up all looks."""
        return now_ms - self._view.timing.silence_ms

    def mark_all(self, now_ms: int) -> None:
        """Have every partition looked at, those first that have waited longest."""
        for vnode in self._view.vnodes:
            self._agenda.note(vnode.partition, now_ms)

    def mark(self, now_ms: int, partitions: Sequence[int]) -> None:
        """Have these partitions looked at."""
        for partition in partitions:
            self._agenda.note(partition, now_ms)

    def _due(self, now_ms: int) -> list[int]:
        """The partitions to look at: those that changed, are due, or are next in the round."""
        timing, count = self._view.timing, len(self._view.vnodes)
        for partition in self._changed:
            self._agenda.note(partition, self._urgent_ms(now_ms))
        self._changed.clear()
        due = self._agenda.take(now_ms, timing.look_due)
        if now_ms < self._round_ms:
            return sorted(due)
        first, length = self._next_in_round, min(timing.look_round, count)
        self._next_in_round = (first + length) % count
        self._round_ms = now_ms + timing.round_ms * length // count
        return sorted({*due, *((first + at) % count for at in range(length))})

    def note_misplaced(self, now_ms: int, partition: int) -> None:
        """Look soon at what is in a wrong place."""
        self._agenda.note(partition, self._urgent_ms(now_ms))

    # -- elections -----------------------------------------------------------------------------

    def _see_to_leader(self, now_ms: int, vnode: Vnode) -> int:
        """Stand for it, keep it, or look for its leader. Gives when to look again, if nothing changes before."""
        view, election = self._view, vnode.election
        self._outbox.carry_out(election.on_deadline(now_ms))
        self._note_shifting(vnode)
        self._note_majority(vnode)
        if vnode.is_leading:
            return self._see_to_leadership(now_ms, vnode)
        until_ms = NEVER_MS if election.is_idle else election.expires_ms
        if self.is_led(now_ms, vnode):
            vnode.leaderless_since_ms = None
            self._next_search_ms.pop(vnode.partition, None)
            return until_ms
        voters = vnode.standing.cohort or vnode.owners
        if view.me.name not in voters or vnode.suspicion:
            return min(until_ms, self._search_leader(now_ms, vnode))
        if not view.may_grant or view.is_leaving:
            return until_ms
        if vnode.leaderless_since_ms is None:
            vnode.leaderless_since_ms = now_ms
        due_ms = self._due_ms(vnode, voters, vnode.leaderless_since_ms)
        if election.is_idle and now_ms >= due_ms:
            self._outbox.carry_out(view.candidacy(vnode).stand(now_ms))
        return due_ms if election.is_idle else election.expires_ms

    def _due_ms(self, vnode: Vnode, voters: Sequence[str], since_ms: int) -> int:
        """When this node may stand for a leaderless partition: after the voters before it. Pauses differ by rank,
        or two that stood against each other once would do so again."""
        me, timing = self._view.me.name, self._view.timing
        if not vnode.standing.epoch:
            return max(since_ms + voters.index(me) * timing.first_heir_delay_ms, vnode.election.next_attempt_ms)
        live = [name for name in by_wish(vnode.known, voters)
                if name in self._view.live and name not in vnode.known.outlaws]
        rank = live.index(me) if me in live else len(live)
        return max(since_ms + rank * timing.heir_delay_ms,
                   vnode.election.next_attempt_ms + 2 * rank * timing.retry_ms)

    def _search_leader(self, now_ms: int, vnode: Vnode) -> int:
        """Read the document when this node knows of no vote of its own and hears of no leader: its own knowledge
        may be old. Gives when to look again."""
        due_ms = self._next_search_ms.setdefault(vnode.partition, now_ms + self._view.timing.silence_ms)
        is_concerned = (vnode.promise.epoch > vnode.standing.epoch
                        or vnode.role is not Role.STRANGER)
        if not (is_concerned and self._view.is_connected):
            return NEVER_MS
        if now_ms >= due_ms:
            del self._next_search_ms[vnode.partition]
            self._outbox.carry_out([ReadDocument(vnode.partition)])
        return max(now_ms, due_ms)

    def _see_to_leadership(self, now_ms: int, vnode: Vnode) -> int:
        """Resign without a majority in hearing; else keep document and cohort up to date. Gives when to look
        again."""
        vnode.leaderless_since_ms = None
        heard = [name for name in vnode.election.cohort
                 if name == self._view.me.name or self._is_heard(now_ms, name)]
        if not has_majority(vnode.election.cohort, heard):
            vnode.resign(now_ms, "no majority of its voters is heard")
            return now_ms
        if not self._view.is_connected:
            return NEVER_MS
        self.tend(now_ms, vnode)
        return self._next_tending_ms(now_ms, vnode)

    def _next_tending_ms(self, now_ms: int, vnode: Vnode) -> int:
        """When time alone would give a leader something to do."""
        timing, document = self._view.timing, vnode.election.document
        candidacy = self._view.candidacy(vnode)
        if candidacy.is_moving or candidacy.is_bereft:
            return now_ms
        due_ms = min(document.horizon_ms - timing.horizon_ms // 2, next_change_ms(document, now_ms))
        if not self._is_settled(now_ms, vnode):
            due_ms = min(due_ms, self._led.get(vnode.partition, (0, now_ms))[1] + timing.steady_ms)
        elif document.cohort[:1] != (self._view.me.name,):
            due_ms = min(due_ms, now_ms + timing.steady_ms)
        seasoned_ms = [since_ms + timing.seat_ms for name, since_ms in self._since_ms.items()
                       if name in vnode.owners and name not in document.cohort]
        due_ms = min([due_ms, *(each_ms for each_ms in seasoned_ms if each_ms > now_ms)])
        return max(now_ms, due_ms)

    def tend(self, now_ms: int, vnode: Vnode) -> None:
        """A leader's upkeep of its document and its cohort."""
        facts = self._facts(now_ms, vnode)
        self._shifts.pop(vnode.partition, None)
        is_parting = facts.is_gathered and vnode.election.document.promote is None
        if len(self._shifts) >= self._view.timing.look_shifts and (
                facts.filled or facts.steady or facts.strays or is_parting):
            self._agenda.note(vnode.partition, now_ms)  # when others are through
            facts = attrs.evolve(facts, filled=(), steady=(), strays=(),
                                 is_gathered=facts.is_gathered and not is_parting)
        self._outbox.carry_out(self._view.candidacy(vnode).tend(now_ms, facts))
        if vnode.is_draining:
            self._shifts[vnode.partition] = None

    def _note_shifting(self, vnode: Vnode) -> None:
        """A leader that stands again, for another cohort, shifts until it leads or has given up."""
        if vnode.is_leading or vnode.election.is_idle:
            self._shifts.pop(vnode.partition, None)

    def _note_majority(self, vnode: Vnode) -> None:
        """Say when no majority of the voters, of which this node is one, is alive; and when one is again. A node
        that starts knows of nobody before it is a member itself, and says nothing."""
        voters, partition, live, me = vnode.standing.cohort, vnode.partition, self._view.live, self._view.me.name
        is_lost = me in voters and me in live and not has_majority(
            voters, [name for name in voters if name in live])
        if is_lost and partition not in self._without_majority:
            self._without_majority[partition] = None
            vnode.remark(Kind.MAJORITY_LOST)
        elif not is_lost and partition in self._without_majority:
            del self._without_majority[partition]
            vnode.remark(Kind.MAJORITY_REGAINED)

    def _is_heard(self, now_ms: int, name: str) -> bool:
        silence_ms = self._view.timing.silence_ms
        return now_ms - self._heard_ms.get(name, now_ms - silence_ms) < silence_ms

    def is_led(self, now_ms: int, vnode: Vnode) -> bool:
        """Whether a live leader is heard of, as far as this node knows."""
        leader = vnode.leader
        return leader in self._view.live and ((leader == self._view.me.name and vnode.is_leading)
                                              or self._is_heard(now_ms, leader))

    def _facts(self, now_ms: int, vnode: Vnode) -> Facts:
        view = self._view
        since_ms = vnode.leaderless_since_ms
        moves = self.gossiper.moves_of(vnode.partition)
        return Facts(
            view.me, view.live, vnode.owners, vnode.epoch if vnode.is_leading else 0,
            remembered=vnode.standing.epoch, is_suspect=bool(vnode.suspicion),
            is_overdue=since_ms is not None and now_ms - since_ms >= view.timing.silence_ms,
            filled=[row.node for row in moves if row.role == Role.LEARNER.value and row.is_done],
            suspects=self.suspects(vnode.partition),
            fresh=[name for name in vnode.owners
                   if now_ms - self._since_ms.get(name, now_ms) < view.timing.seat_ms],
            leavers=[row.node for row in moves if row.role == Role.LEAVER.value], is_leaving=view.is_leaving,
            steady=self._steady(now_ms, vnode), strays=self._strays(now_ms, vnode, moves),
            horizon_ms=view.candidacy(vnode).needed_horizon(now_ms), is_spent=vnode.is_spent,
            missing=self.losses.of(vnode.partition),
            is_gathered=self.gatherings.is_through(vnode))

    def suspects(self, partition: int) -> dict[str, str]:
        """The other nodes whose memory of a partition is in doubt, and why; and this one, if it is in doubt."""
        rows = {row.node: row.reason for row in self.gossiper.moves_of(partition)
                if row.role == Role.SUSPECT.value}
        own = self._view.vnodes[partition].suspicion
        return {**rows, self._view.me.name: own} if own else rows

    def _steady(self, now_ms: int, vnode: Vnode) -> list[str]:
        """The first of the cohort, if it has been a member for a while, is heard and has a good clock. None right
        after a change of leaders: grants go before balance."""
        def is_long(since_ms: int) -> bool:
            return now_ms - since_ms >= self._view.timing.steady_ms
        if not self._is_settled(now_ms, vnode):
            return []
        return [name for name in vnode.election.document.cohort[:1]
                if is_long(self._since_ms.get(name, now_ms)) and self._is_heard(now_ms, name)
                and self._timekeeper.agreement.verdict(name) is Verdict.AGREED]

    def _is_settled(self, now_ms: int, vnode: Vnode) -> bool:
        """Whether this node has led the partition for a while."""
        return now_ms - self._led.get(vnode.partition, (0, now_ms))[1] >= self._view.timing.steady_ms

    def _strays(self, now_ms: int, vnode: Vnode, moves: Sequence[m.MoveRow]) -> list[str]:
        """Nodes that have filled to become voters and are not placed here: they count on a cohort for which they,
        or others, stood."""
        if not self._is_settled(now_ms, vnode):
            return []
        expected = (*vnode.owners, *vnode.election.cohort)
        return [row.node for row in moves
                if row.role == Role.LEARNER.value and row.is_done and row.node not in expected
                and row.node in self._view.live]

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document came."""
        vnode = self._view.vnodes[event.partition]
        self._unread.pop(event.partition, None)
        facts = self._facts(now_ms, vnode)
        self._outbox.carry_out(self._view.candidacy(vnode).on_read(now_ms, event, facts))

    def note_leaderships(self, now_ms: int) -> bool:
        """A partition newly led: say so at once, and compare it with the other owners."""
        has_risen, led = False, self._led
        for partition in sorted(self.risen):
            vnode = self._view.vnodes[partition]
            if not vnode.is_leading:
                led.pop(partition, None)
            elif led.get(partition, (0, 0))[0] != vnode.epoch:
                led[partition] = vnode.epoch, now_ms
                self._note_handed(now_ms, vnode)
                has_risen = True
                self.gossiper.hasten(now_ms)
                for name in self._view.vnodes[partition].keepers:
                    self._exchanges.want(partition, name)
        self.risen.clear()
        return has_risen

    # -- the end of the process -----------------------------------------------------------------

    def hand_over(self, now_ms: int) -> None:
        """The node is about to stop: have others lead what it leads, for a while at most, and tell all that it
        stops."""
        self._view.is_leaving = True
        self._handed_until_ms = now_ms + self._view.timing.handover_ms
        for vnode in self._view.vnodes:
            self._view.bulletin.change(vnode.partition)
            if vnode.is_leading:
                self._note_handed(now_ms, vnode)
        self.rests_until_ms = now_ms
        self.gossiper.hasten(now_ms)

    def _note_handed(self, now_ms: int, vnode: Vnode) -> None:
        if self._view.is_leaving:
            self._handed[vnode.partition] = None
            self._view.candidacy(vnode).hand_over(now_ms)

    def is_handing_over(self, now_ms: int) -> bool:
        """Whether there is a leadership to hand over, and hope that it is taken. One that was given up counts
        until the next leader is heard: its candidate reads claims from here."""
        if now_ms >= self._handed_until_ms or not self._view.is_connected:
            self._handed.clear()
        for partition in [*self._handed]:
            vnode = self._view.vnodes[partition]
            is_open = (self._view.candidacy(vnode).is_moving if vnode.is_leading
                       else not self.is_led(now_ms, vnode))
            if not is_open:
                del self._handed[partition]
        return bool(self._handed)

    # -- news ----------------------------------------------------------------------------------

    def led_since(self, vnode: Vnode) -> int | None:
        """Since when this node leads the partition in its present epoch; None before that was noted."""
        epoch, since_ms = self._led.get(vnode.partition, (0, 0))
        return since_ms if epoch == vnode.epoch and vnode.is_leading else None

    def take_moved(self, now_ms: int) -> tuple[dict[str, int], list[str]]:
        """How many tasks began to wait on partitions led here since the last call, by queue, gossiped if news; and
        the queues of which claims have ended there."""
        bulletin, vnodes = self._view.bulletin, self._view.vnodes
        moved, freed = [*bulletin.filled.items()], [*bulletin.freed]
        bulletin.filled.clear()
        bulletin.freed.clear()
        filled: dict[str, int] = {}
        for (partition, queue), count in moved:
            name = queue.decode()
            if vnodes[partition].is_leading and name not in self._view.settings.paused:
                filled[name] = filled.get(name, 0) + count
        for name in filled:
            self.gossiper.note_filled(now_ms, name)
        return filled, [queue.decode() for queue in dict.fromkeys(
            queue for partition, queue in freed if vnodes[partition].is_leading)]

    def note_resumed(self, now_ms: int) -> None:
        """Queues may be granted from again: claims wait for that elsewhere."""
        self.gossiper.hasten(now_ms)

    def on_gossip(self, now_ms: int, peer: str, gossip: m.Gossip) -> None:
        """A peer tells what it leads and where it has work."""
        self.gossiper.on_gossip(now_ms, peer, gossip)
        self._exchanges.pay(peer)

    def hear(self, now_ms: int, peer: str) -> None:
        """A message of any kind came from a peer."""
        self._heard_ms[peer] = now_ms
        if peer not in self._heard:
            self._stirred[peer] = None

    def on_members(self, now_ms: int, came: Sequence[str], gone: Sequence[str]) -> None:
        """Forget members that went; note since when the others are there."""
        for name in gone:
            self._heard_ms.pop(name, None)
            self._since_ms.pop(name, None)
            for vnode in self._view.vnodes:
                vnode.forget_leader(name)
        for name in self._view.live:
            self._since_ms.setdefault(name, now_ms)
        self.gossiper.on_members(came, gone)
        self.mark_all(now_ms)
