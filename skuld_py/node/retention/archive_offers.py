"""Pages of tasks that an archiver must write before they are deleted: how they are offered and discarded, both
sides.

A leader that collects for an archive keeps some pages of each partition on offer (``slices``). An archiver reads
them, writes them where they are to stay, and says so, page by page; then all replicas delete exactly what was
read, by its digests, and others come. It may read the next while it writes. Whatever is interrupted, a page is
offered again, whole or in other pages: what is deleted was archived at least once, and what is archived more than
once is the same.

A node that is asked passes the question to the partition's leader, wherever that moves. Both questions may be
repeated.
"""

from __future__ import annotations

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.state import State
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.retention.sharing import Sharing
from skuld_py.node.retention.slices import Slices
from skuld_py.partition.data.rows import read_columns, read_rows
from skuld_py.partition.vnode import Vnode

RECOUNT_MS = 1_000
ENDS = (State.COMPLETED, State.CANCELLED, State.DEAD)


class PartitionQuestion(Operation):
    """A client's question about a partition, passed to its leader."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.Offer | m.Discard) -> None:
        super().__init__(operations, origin, now_ms)
        if question.partition >= operations.view.parameters.partitions:
            raise Refused("bad_partition", f"partition: {question.partition} does not exist; there are"
                          f" {operations.view.parameters.partitions}, numbered from 0")
        self._question = attrs.evolve(question, request=self.request)
        self._was_asked = False

    def begin(self, now_ms: int) -> None:
        """Ask the leader, if there is one."""
        self.pending = {}
        leader = self.view.leader_of(self._question.partition)
        self._was_asked = self._was_asked or bool(leader)
        self.ask(now_ms, {leader: self._question} if leader else {})

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """The leader's answer; a node that does not lead is not asked again."""
        if isinstance(message, m.Failed) and message.code == "not_leader":
            self.pending.pop(peer, None)
        elif isinstance(message, m.Failed | m.Offered | m.Discarded):
            self.answer(attrs.evolve(message, request=self.origin.request))
            self.end()

    def on_timer(self, now_ms: int) -> None:
        """Ask again, the node that leads by now."""
        if now_ms < self.deadline_ms:
            self.begin(now_ms)
        else:
            super().on_timer(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """No leader, or none that answers."""
        if isinstance(self._question, m.Discard) and self._was_asked:
            self.give_up("partition: not all replicas answered in time; the page may be deleted, or be"
                         " offered again")
        else:
            self.refuse("no_leader", f"partition: {self._question.partition} has no leader that answers; try again"
                        " in a few seconds")
        self.end()


class ArchiveOffers:
    """The leader's answers."""

    def __init__(self, operations: Operations, slices: Slices) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._slices = slices
        self._sharing = Sharing()
        self._counted: dict[int, tuple[int, int]] = {}
        """How many tasks of a partition had ended, and when to count them anew."""

    def on_offer(self, now_ms: int, peer: str, message: m.Offer) -> m.Message:
        """The page on offer, as this copy has it: what all replicas agreed on does not change. An archiver of a
        release before protocol 3 is given the first one, as rows, until it is gone."""
        partition, slices = message.partition, self._slices
        problem = self._problem(partition)
        if problem is not None:
            return attrs.evolve(problem, request=message.request)
        vnode = self._view.vnodes[partition]
        if message.in_columns:
            return self._in_columns(now_ms, vnode, message)
        page = slices.offer(partition)
        if page is None:
            return m.Offered(message.request, vnode.epoch, slices.is_under_way(partition),
                             tuple(slices.awaited(partition)), b"", b"", b"", ())
        rows = tuple(read_rows(vnode.replica, ids.split(page.ids)))
        return m.Offered(message.request, vnode.epoch, True, (), page.ids, page.digests, page.cut, rows)

    def _in_columns(self, now_ms: int, vnode: Vnode, message: m.Offer) -> m.Offered:
        partition, slices = message.partition, self._slices
        is_others = self._sharing.is_others(now_ms, partition, message.archiver)
        if message.leaves:
            self._sharing.leave(partition, message.archiver)
            is_others = True
        page = None if is_others else slices.offer(partition, message.after if message.epoch == vnode.epoch else 0)
        if page is None:
            slices.hasten(now_ms, partition, message.wanted_ms)
        said = m.Offered(message.request, vnode.epoch, page is not None or slices.is_under_way(partition),
                         () if page else tuple(slices.awaited(partition)), b"", b"", b"", (),
                         due_ms=slices.due_ms(now_ms, partition), upto_ms=slices.collected_ms(vnode),
                         ended=self._ended(now_ms, vnode), is_others=is_others,
                         deleted=slices.deleted(partition) if is_others else 0)
        if page is None:
            return said
        bodies, histories, entries = read_columns(vnode.replica, ids.split(page.ids))
        counts = columns.pack_u64([*map(len, entries)]) if any(entries) else b""
        each = [entry for found in entries for entry in found]
        tokens = columns.pack_u64([entry[0] for entry in each])
        seqs = columns.pack_u64([entry[1] for entry in each])
        return attrs.evolve(said, number=page.number, ids=page.ids, digests=page.digests, cut=page.cut,
                            bodies=columns.pack(bodies), histories=columns.pack(histories), counts=counts,
                            tokens=tokens, seqs=seqs, entries=columns.pack([entry[2] for entry in each]))

    def _ended(self, now_ms: int, vnode: Vnode) -> int:
        """Of few queues counted for each page, of many once a second: it takes a thousandth of the time."""
        due_ms, count = self._counted.get(vnode.partition, (0, 0))
        if now_ms >= due_ms:
            rows = [row for _, row in vnode.replica.filing.tally.rows()]
            count = sum(row[state] for row in rows for state in ENDS)
            self._counted[vnode.partition] = now_ms + min(RECOUNT_MS, len(rows)), count
        return count

    def on_discard(self, now_ms: int, peer: str, message: m.Discard) -> m.Message | None:
        """Have the page deleted; answers when it is."""
        problem = self._problem(message.partition)
        if problem is not None:
            return attrs.evolve(problem, request=message.request)

        def answer(count: int | None) -> None:
            self._outbox.send(peer, m.Discarded(message.request, count is not None, count or 0))
        self._slices.discard(now_ms, message.partition, message.epoch, message.ids, message.digests, answer)
        return None

    def _problem(self, partition: int) -> m.Failed | None:
        view = self._view
        if not view.retention.keep_ms or not view.retention.archives:
            option = "--archive" if view.retention.keep_ms else "--retention and --archive"
            return m.Failed(0, "no_archive", f"partition: its leader {view.me.name} offers nothing to an archive;"
                            f" start all nodes with {option}", True)
        if not (view.vnodes[partition].is_leading and view.may_grant):
            return m.Failed(0, "not_leader", "no longer the leader", True)
        return None
