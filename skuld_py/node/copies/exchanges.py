"""When this node compares its partitions with other owners, and with which.

An exchange has a reason: a node came up, a leader was made, a copy was not acknowledged, a peer asked. Besides,
each partition is compared with each other owner in turn, for differences that were not noticed. Few run at once.
Those that a candidate waits for go first, since its partition has no leader meanwhile; then those that a leader
takes part in: claims are granted from its copy. An exchange that is wanted waits, one that made a lap waits behind
it with its place kept, one that failed is owed again.

Partitions are many and exchanges short, so a round over all is spread over its time, some partitions at each step,
and at most ``PACE_PASSES`` begin in ``PACE_MS``, whatever is wanted: when thousands of partitions move, the rest
of the node's work goes on beside them.

Hash trees are drafted here too, one at a time and in small steps: after a start, and now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.node.copies.lineup import Key, Lineup
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.exchange import Exchange, Pass, Progress

ROUND_PARTITIONS = 64
"""Partitions of a round that are taken up at a time."""
PACE_MS, PACE_PASSES = 100, 40
"""At most ``PACE_PASSES`` begin in ``PACE_MS``: a tenth of a core or so."""
SYNC, LED, OTHER = range(3)
OnPass = Callable[[int, Pass], None]


class Exchanges(Duty):
    """The exchanges of one node."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self._idle_until_ms = 0
        """Until then there is nothing to do but running exchanges, unless something is stirred."""
        self._next_round_ms = 0
        self._round = 0
        self._next_draft_ms = 0
        self._next_redraft_ms: int | None = None
        self._redrafts = 0
        self.running: dict[Key, Exchange] = {}
        """Each has a deadline of its own."""
        self._waiting: dict[Key, Exchange | None] = {}
        self._lineup = Lineup(self._rank)
        """Exchanges that wait, of partitions whose tree is built."""
        self._unbuilt: dict[Key, None] = {}
        """Exchanges that wait for the tree of their partition."""
        self._awaited: dict[Key, None] = {}
        """Exchanges that a candidate waits for."""
        self._changed = operations.view.bulletin.subscribe()
        self._next_in_round = 0
        self._drafted = 0
        self._window_ends_ms = 0
        self._begun_in_window = 0
        self._wanted_again: dict[Key, None] = {}
        self.on_pass: list[OnPass] = []
        """Called when an exchange that this node began is through."""
        self.is_stirred = False
        """Whether there may be an exchange to begin."""
        self.begun = 0
        """Passes begun so far."""
        self._serials: dict[Key, int] = {}

    # -- reasons -------------------------------------------------------------------------------

    def on_members(self, came: Sequence[Member]) -> None:
        """Compare with the members that came; one side of each pair asks."""
        self._stir()
        for member in came:
            if self._view.me.name < member.name:
                for vnode in self._view.vnodes:
                    self.want(vnode.partition, member.name)

    def want(self, partition: int, peer: str) -> None:
        """Compare a partition with another owner, from the beginning, when there is room."""
        keepers = self._view.vnodes[partition].keepers
        if peer != self._view.me.name and peer in keepers and self._view.me.name in keepers:
            self.demand(partition, peer)

    def demand(self, partition: int, peer: str) -> None:
        """Compare a partition with any node, owner or not; the pass begins after this moment."""
        self._stir()
        key = (partition, peer)
        if key in self.running or self._waiting.get(key) is not None:
            self._wanted_again[key] = None
        elif key not in self._waiting:
            self._wait(key, None)

    def _wait(self, key: Key, exchange: Exchange | None) -> None:
        self._waiting[key] = exchange
        if self._view.vnodes[key[0]].replica.tree.is_built:
            self._lineup.add(key)
        else:
            self._unbuilt[key] = None

    def pursue(self, partition: int, peer: str, *, is_awaited: bool = False) -> None:
        """Compare a partition with any node unless that is under way or waits; asked for again and again.
        ``is_awaited``: a candidate waits for it."""
        key = (partition, peer)
        if is_awaited and key not in self._awaited:
            self._awaited[key] = None
            self._lineup.sort(partition)
        if key not in self.running and key not in self._waiting:
            self.demand(partition, peer)

    def progress(self, partition: int, peer: str) -> Progress | None:
        """How far a running or resting exchange is; None without one."""
        exchange = self.running.get((partition, peer)) or self._waiting.get((partition, peer))
        return None if exchange is None else exchange.progress

    def on_invite(self, invite: m.Invite) -> None:
        """A peer thinks that this copy lags."""
        for name in self._view.vnodes[invite.partition].keepers:
            self.want(invite.partition, name)

    def pay(self, peer: str) -> None:
        """A peer was heard of: see to what it may lack."""
        for partition in self._view.debts.take(peer):
            if self._view.me.name in self._view.vnodes[partition].keepers:
                self.want(partition, peer)
            else:
                self._outbox.send(peer, m.Invite(partition))

    # -- time ----------------------------------------------------------------------------------

    def _stir(self) -> None:
        """There may be an exchange to begin, as soon as the pace allows it."""
        self.is_stirred = True
        self.hasten(self._window_ends_ms if self._begun_in_window >= PACE_PASSES else 0)

    def _plan(self) -> None:
        self.due_ms = self._idle_until_ms
        for exchange in self.running.values():
            self.hasten(exchange.deadline_ms)
        if self.is_stirred:
            self._stir()

    def look(self, now_ms: int) -> None:
        """Draft; end what takes too long, ask again what was not answered; begin what is wanted or due."""
        if now_ms >= self._next_draft_ms:
            self._draft(now_ms)
        for key, exchange in list(self.running.items()):
            if exchange.has_expired(now_ms):
                self._end(key)
                self._view.debts.owe(key[1], [key[0]])
            elif now_ms >= exchange.deadline_ms:
                self._outbox.carry_out(exchange.on_deadline(now_ms))
        if now_ms >= self._next_round_ms:
            self._begin_round(now_ms)
        if self.is_stirred:
            self._begin_waiting(now_ms)
        self._idle_until_ms = min(self._next_round_ms, self._next_draft_ms)
        self._plan()

    def _begin_round(self, now_ms: int) -> None:
        """The next partitions of the round, or the first of the next one."""
        count, first = len(self._view.vnodes), self._next_in_round
        self._round += first == 0
        end = min(first + ROUND_PARTITIONS, count)
        self._next_in_round = end % count
        self._next_round_ms = now_ms + max(1, self._view.timing.exchange_ms * (end - first) // count)
        for vnode in self._view.vnodes[first:end]:
            others = [name for name in vnode.keepers if name != self._view.me.name]
            if others:
                name = others[self._round % len(others)]
                if (vnode.partition, name) not in self.running:
                    self.want(vnode.partition, name)

    def _begin_waiting(self, now_ms: int) -> None:
        """Begin what there is room for; what the pace does not allow yet, when it does."""
        self.is_stirred = False
        for partition in self._changed:
            self._lineup.sort(partition)
        self._changed.clear()
        if now_ms >= self._window_ends_ms:
            self._window_ends_ms, self._begun_in_window = now_ms + PACE_MS, 0
        while len(self.running) < self._view.timing.exchanges:
            key = self._lineup.first(self._view.live)
            if key is None:
                return
            if self._begun_in_window >= PACE_PASSES:
                self._stir()
                return
            self._lineup.remove(key)
            self._awaited.pop(key, None)
            self._begin(now_ms, key, self._waiting.pop(key))

    def _begin(self, now_ms: int, key: Key, exchange: Exchange | None) -> None:
        view, (partition, peer) = self._view, key
        if exchange is not None:
            self.running[key] = exchange
            self._outbox.carry_out(exchange.resume(now_ms))
            return
        vnode = view.vnodes[partition]
        numbers = partial(next, self._operations.numbers)
        exchange = self.running[key] = Exchange(vnode.replica, peer, view.limits, view.timing,
                                                 view.parameters.partitions, numbers)
        exchange.is_leaving = not vnode.takes_writes
        self.begun += 1
        self._begun_in_window += 1
        self._serials[key] = self.begun
        self._outbox.carry_out(exchange.begin(now_ms))

    def _rank(self, key: Key) -> int:
        """Those first that a candidate waits for, then those in which a leader takes part."""
        partition, peer = key
        if key in self._awaited:
            return SYNC
        return LED if self._view.leader_of(partition) in (self._view.me.name, peer) else OTHER

    def _draft(self, now_ms: int) -> None:
        timing, count = self._view.timing, len(self._view.vnodes)
        for at in range(count):
            tree = self._view.vnodes[(self._drafted + at) % count].replica.tree
            if tree.is_drafting:
                self._drafted = (self._drafted + at) % count
                tree.advance(timing.draft_rows)
                self._line_up_built()
                self._next_draft_ms = now_ms + timing.draft_pause_ms
                return
        pace_ms = timing.draft_ms // len(self._view.vnodes)
        if self._next_redraft_ms is not None and now_ms >= self._next_redraft_ms:
            self._view.vnodes[self._redrafts % len(self._view.vnodes)].replica.tree.redraft()
            self._redrafts += 1
            self._next_redraft_ms, self._next_draft_ms = now_ms + pace_ms, now_ms + timing.draft_pause_ms
            return
        if self._next_redraft_ms is None:
            self._next_redraft_ms = now_ms + pace_ms
        self._next_draft_ms = self._next_redraft_ms

    def _line_up_built(self) -> None:
        """Let exchanges that waited for this tree wait in line."""
        partition = self._drafted
        if self._unbuilt and self._view.vnodes[partition].replica.tree.is_built:
            for key in [key for key in self._unbuilt if key[0] == partition]:
                self._stir()
                del self._unbuilt[key]
                self._lineup.add(key)

    # -- answers -------------------------------------------------------------------------------

    def on_answer(self, now_ms: int, peer: str, answer: m.Probed | m.Compared | m.Fetched) -> None:
        """An answer to one of our exchanges."""
        key = (answer.partition, peer)
        exchange = self.running.get(key)
        if exchange is None:
            return
        self._outbox.carry_out(exchange.on_answer(now_ms, answer))
        if exchange.is_done:
            self._end(key)
            ended = Pass(*key, self._serials.pop(key), exchange.oldest, exchange.progress)
            progress = exchange.progress
            self._view.bulletin.counts.differences += progress.fetched_rows + progress.given_rows
            for on_pass in self.on_pass:
                on_pass(now_ms, ended)
        elif exchange.is_resting:
            del self.running[key]
            self._wait(key, exchange)
            self._stir()
        self._plan()

    def _end(self, key: Key) -> None:
        del self.running[key]
        self._stir()
        if self._wanted_again.pop(key, key) is None:
            self._wait(key, None)
