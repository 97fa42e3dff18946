"""What a node tells all others unasked: the partitions that it leads, the queues in which it has work, its data on
the move, and which program it runs.

All of it is a hint, never a promise. A queue that gains work is told of at once, so that a claim parked elsewhere
need not poll. What a node knows of the settings goes along as a digest; a peer whose digest is another one asks.

Of few partitions all is told each time. Of many, each gossip tells of the next stretch, and of partitions that
changed. A change is told ``TOLD_TIMES``, since a message may be lost; a peer that missed all of them learns it
when its stretch comes. Such a ``PartialGossip`` names the partitions that it speaks for, so that peers also learn
what is not led any more. For peers that have just come the stretches follow one another quickly. A gossip between
two turns, sent because there is news, tells the news only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from skuld_py.errors import Malformed
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.messages.elections import HEAD_BYTES
from skuld_py.node.copies.moves import Moves
from skuld_py.node.knowledge.heads import UNKNOWN
from skuld_py.node.leadership.status import Program, collection, own_program
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.retention.slices import Slices

TOLD_TIMES = 3
Rows = tuple[m.LeaderRow | None, m.MoveRow | None]
"""What there is to tell of a partition."""


class Gossiper(Duty):
    """What one node tells, and what the others have told it. ``slices``: what it collects."""

    def __init__(self, operations: Operations, moves: Moves, slices: Slices) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._moves = moves
        self._slices = slices
        self.along: list[Callable[[int], None]] = []
        """Called before it tells: work that may be done at the same time, so that a node at rest wakes less
        often."""
        self._changed = operations.view.bulletin.subscribe()
        self._told: dict[int, tuple[object, ...]] = {}
        """The rows told last of each partition, without how far its move has come."""
        self._news: dict[int, int] = {}
        """Partitions of which something changed, and how many times more that is to be told."""
        self._next_partition = 0
        self._next_turn_ms = 0
        self._turns_left = 0
        """How many turns are still to follow one another quickly."""
        self._may_lead = False
        """Whether this node was allowed to lead when it last told. When that changes, all is told."""
        self._fresh: dict[str, None] = {}
        """Queues that others do not know to have work here."""
        self._next_queue = b""
        """The first queue of which no head was told in the last turn."""
        self._heads: dict[str, bytes] = {}
        self._others: list[str] = []
        """The queues told of last: with heads, and without."""
        self._told_moves: dict[str, dict[int, m.MoveRow]] = {}
        self._collections: dict[str, tuple[m.CollectionRow, ...]] = {}
        self.workers: dict[str, tuple[int, int]] = {}
        """How many workers report to each other node, and their slots."""
        self.programs: dict[str, Program] = {}
        """What the others run, as far as they have said; of rules before 3 they cannot."""

    # -- telling -------------------------------------------------------------------------------

    def look(self, now_ms: int) -> None:
        """Tell all others: it is time."""
        for look in self.along:
            look(now_ms)
        view = self._view
        is_turn = now_ms >= self._next_turn_ms or len(view.vnodes) <= view.timing.gossip_partitions
        queues, heads = self._offers(view.leaderships.bits() if view.may_grant else 0, is_turn)
        view.router.note(view.me.name, queues, heads)
        partitions, spans = self._due(now_ms)
        self.due_ms = self._next_turn_ms
        rows = [self._rows(partition, view.may_grant) for partition in partitions]
        leads = tuple(lead for lead, _ in rows if lead is not None)
        moves = tuple(move for _, move in rows if move is not None)
        told = leads, queues, moves, heads, view.settings.digest, self._collection()
        program = *own_program(view), len(view.attendance), view.attendance.slots
        message = m.PartialGossip(*told, columns.pack_u64(spans), *program) if spans else m.Gossip(*told, *program)
        for name in sorted(view.live):
            if name != view.me.name:
                self._outbox.send(name, message)

    def _rows(self, partition: int, may_lead: bool) -> Rows:
        vnode = self._view.vnodes[partition]
        lead = (m.LeaderRow(partition, vnode.epoch, vnode.election.document.era, vnode.election.cohort)
                if may_lead and vnode.is_leading else None)
        return lead, self._moves.row(partition)

    def _due(self, now_ms: int) -> tuple[Iterable[int], Sequence[int]]:
        """The partitions to tell of, and as spans; no span means all."""
        timing, count = self._view.timing, len(self._view.vnodes)
        could_lead, self._may_lead = self._may_lead, self._view.may_grant
        self._note_changed()
        if count <= timing.gossip_partitions or could_lead != self._may_lead:
            self._next_turn_ms = now_ms + timing.gossip_ms
            return range(count), ()
        stretch = range(0)
        if now_ms >= self._next_turn_ms:
            first = self._next_partition
            stretch = range(first, min(first + timing.gossip_partitions, count))
            self._next_partition = stretch.stop % count
            self._turns_left = max(0, self._turns_left - 1)
            self._next_turn_ms = now_ms + (timing.heir_delay_ms if self._turns_left else timing.gossip_ms)
        partitions = sorted({*stretch, *self._news})
        self._news = {partition: left - 1 for partition, left in self._news.items() if left > 1}
        return partitions, _spans(partitions)

    def _note_changed(self) -> None:
        may_lead = self._view.may_grant
        for partition in self._changed:
            lead, move = self._rows(partition, may_lead)
            told = lead, _gist(move)
            if self._told.get(partition, (None, ())) != told:
                self._told[partition] = told
                self._news[partition] = TOLD_TIMES
        self._changed.clear()

    def _offers(self, bits: int, is_turn: bool) -> tuple[tuple[str, ...], bytes]:
        """Queues with something to grant, and the heads of the first of them; in the next turn others are first.
        Between two turns only queues that have just gained work are looked up."""
        names, self._fresh = self._fresh, {}
        if is_turn:
            stocked = self._view.bulletin.stock.queues(self._next_queue, bits)
            names |= dict.fromkeys(map(bytes.decode, stocked))
        heads, others = self._look_up(names, bits)
        if is_turn:
            self._next_queue = others[0].encode() if others else b""
        elif bits:
            heads |= {name: head for name, head in self._heads.items() if name not in heads}
            others += [name for name in self._others if name not in heads]
        self._heads, self._others = heads, others
        most = self._view.timing.gossip_queues
        return (*heads, *others)[:most], b"".join([*heads.values()][:most])

    def _look_up(self, names: Iterable[str], bits: int) -> tuple[dict[str, bytes], list[str]]:
        """Heads of the first of these queues, and the others; none of what is paused or has nothing."""
        timing = self._view.timing
        heads: dict[str, bytes] = {}
        others: list[str] = []
        looked = 0
        for name in names:
            if name in self._view.settings.paused:
                continue
            if looked >= timing.gossip_heads or len(heads) == timing.gossip_queues:
                others.append(name)
                continue
            stocked = self._view.bulletin.stock.partitions(name.encode(), bits)
            seen = stocked[: timing.gossip_heads - looked]
            looked += len(seen)
            head = self._head(seen, name)
            if head != UNKNOWN:
                heads[name] = head
            elif len(seen) < len(stocked):
                others.append(name)
        return heads, others

    def _head(self, stocked: Sequence[int], queue: str) -> bytes:
        at = len(queue) + 1
        heads = [head[at : at + HEAD_BYTES] for partition in stocked
                 for head in self._view.vnodes[partition].replica.filing.heads(queue, None, 1)]
        return min(heads, default=UNKNOWN)

    def note_filled(self, now_ms: int, queue: str) -> None:
        """A queue gained work here."""
        if not self._view.router.is_listed(self._view.me.name, queue):
            self._fresh[queue] = None
            self.due_ms = min(self.due_ms, now_ms)

    # -- what others tell ----------------------------------------------------------------------

    def on_gossip(self, now_ms: int, peer: str, gossip: m.Gossip) -> None:
        """Learn what a peer leads and where it has work. Its cohort is learnt from the document."""
        view = self._view
        spans = gossip.spans if isinstance(gossip, m.PartialGossip) else b""
        partitions = _within(columns.unpack_u64(spans), len(view.vnodes))
        leads = {row.partition: row for row in gossip.leads}
        moves = {row.partition: row for row in gossip.moves if row.node == peer}
        known = self._told_moves.setdefault(peer, {})
        for partition in partitions:
            vnode, row = view.vnodes[partition], leads.get(partition)
            if row is None:
                vnode.forget_leader(peer)
            elif vnode.believes(row.epoch, row.cohort, led=row.epoch):
                vnode.note_leader(peer, row.epoch)
            if known.get(partition) != moves.get(partition):
                self._note_move(known, partition, moves.get(partition))
        if gossip.rules:
            self.programs[peer] = gossip.release, gossip.rules
        self.workers[peer] = gossip.workers, gossip.slots
        self._collections[peer] = tuple(row for row in gossip.collection if row.node == peer)
        view.router.note(peer, gossip.queues, gossip.heads)
        if gossip.settings != view.settings.digest:
            self._outbox.send(peer, view.settings.question())

    def _note_move(self, known: dict[int, m.MoveRow], partition: int, row: m.MoveRow | None) -> None:
        old = known.pop(partition, None)
        if row is not None:
            known[partition] = row
        if _gist(old) != _gist(row):
            self._view.bulletin.change(partition)

    def moves_of(self, partition: int) -> list[m.MoveRow]:
        """Data of a partition on its way at other nodes, as they tell."""
        return [known[partition] for _, known in sorted(self._told_moves.items()) if partition in known]

    def moves(self) -> list[m.MoveRow]:
        """That of all partitions."""
        return [row for _, known in sorted(self._told_moves.items()) for _, row in sorted(known.items())]

    def collections(self) -> tuple[m.CollectionRow, ...]:
        """What this node collects, and others that are live, as they tell; a dead one leads nothing."""
        told = [self._collections.get(name, ()) for name in sorted(self._view.live)]
        return (*self._collection(), *(row for rows in told for row in rows))

    def _collection(self) -> tuple[m.CollectionRow, ...]:
        return collection(self._view, self._slices)

    def on_members(self, came: Sequence[str], gone: Sequence[str]) -> None:
        """Forget what peers that went have said; tell all to peers that came."""
        if came:
            self._turns_left = -(-len(self._view.vnodes) // self._view.timing.gossip_partitions)
            self._next_turn_ms = 0
        for name in gone:
            for partition in self._told_moves.pop(name, {}):
                self._view.bulletin.change(partition)
            self._collections.pop(name, None)
            self.programs.pop(name, None)
            self.workers.pop(name, None)
            self._view.router.drop(name)


def _gist(row: m.MoveRow | None) -> tuple[object, ...]:
    """The part of a row that peers act by: not how far the move has come."""
    return () if row is None else (row.role, row.is_done, row.reason)


def _spans(partitions: Sequence[int]) -> list[int]:
    """First and end of each run of numbers; of no numbers, one empty span."""
    spans: list[int] = [] if partitions else [0, 0]
    for partition in partitions:
        if spans and spans[-1] == partition:
            spans[-1] += 1
        else:
            spans += partition, partition + 1
    return spans


def _within(spans: Sequence[int], count: int) -> list[int]:
    """The partitions within spans, which follow one another; all without any."""
    ends = [0, *spans]
    if len(spans) % 2 or ends != sorted(ends) or ends[-1] > count:
        raise Malformed("PartialGossip.spans", f"are no stretches of the {count} partitions")
    if not spans:
        return list(range(count))
    return [partition for first, end in zip(spans[::2], spans[1::2], strict=True)
            for partition in range(first, end)]
