"""Reads of tasks: they show what a majority of the voters knows, and from then on every majority.

All live keepers are asked, and what a majority of each partition's voters answers is joined. Where the answers
differ, the join is first given to those that lack it (``Mend``): it is shown only when a majority has it. So reads
are monotone over all readers and nodes: what was shown once, no later read lacks, however few copies the write
itself had reached. Copies that agree, the common case, cost no second round.

A reader may also say how many facts of a task it must be shown (``least``). Then copies are asked again until they
know as many; a read that finds fewer is refused as ``unavailable``.

Rejected: answering first and mending behind the reader's back, which leaves two reads in a row to chance.
Source: ABD, Attiya, Bar-Noy and Dolev, 1995: a reader writes back what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skuld_py.model import columns, ids
from skuld_py.model.asides import SILENCE, Aside
from skuld_py.model.body import Body
from skuld_py.model.cuts import WHOLE, Cuts, cut, is_long, join_cuts
from skuld_py.model.history import decode_history
from skuld_py.model.messages import Got, Kept, Mend, Message, TaskRow
from skuld_py.model.notes import is_waiting
from skuld_py.model.outcomes import entries_of, facts_of, with_entries
from skuld_py.model.state import State, state_of
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import Make, QuorumOperation
from skuld_py.node.reads.merge import merge_task_rows
from skuld_py.partition.leadership.quorum import has_majority

LEAST_MS = 1_000
"""How long copies are asked for facts that a reader has seen: less than a client waits for a silent node."""

Rows = dict[bytes, TaskRow]


class Mending(Operation):
    """Gives a peer what it lacks. The number is its own, so an answer is to these rows."""

    def __init__(self, read: ReadOperation, peer: str, rows: Sequence[TaskRow], eras: bytes, now_ms: int) -> None:
        super().__init__(read.operations, Origin(0), now_ms)
        self.deadline_ms = read.deadline_ms
        self.rows = rows
        self._read = read
        self._peer = peer
        self._eras = eras

    def begin(self, now_ms: int) -> None:
        """Send until answered."""
        self.ask(now_ms, {self._peer: Mend(self.request, tuple(self.rows), self._eras)})

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """The peer has the rows, but for partitions whose copies do not count there."""
        if peer == self._peer and isinstance(message, Kept):
            self.end()
            self._read.on_mended(now_ms, peer, self, message)

    def on_deadline(self, now_ms: int) -> None:
        """Say nothing: the read, which has the same deadline, does."""
        self.end()


class ReadOperation(QuorumOperation):
    """A read; what is done with the rows is a subclass's. ``least``: facts that must be shown of a task."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, task_ids: Sequence[bytes],
                 partitions: Iterable[int], make: Make, least: Mapping[bytes, int] | None = None) -> None:
        super().__init__(operations, origin, now_ms, partitions, make)
        self._least = least or {}
        self._hopes_until_ms = now_ms + LEAST_MS
        self._wanted = dict.fromkeys(task_ids)
        self._ids_of: dict[int, list[bytes]] = {}
        for task_id in self._wanted:
            partition = ids.partition_of(task_id, operations.view.parameters.partitions)
            self._ids_of.setdefault(partition, []).append(task_id)
        self._known: dict[str, Rows] = {}
        self._mending: dict[str, Mending] = {}

    def is_complete(self, rows: Rows) -> bool:
        """Whether nothing is waited for but what a majority has."""
        return True

    def conclude(self, now_ms: int, rows: Rows) -> None:
        """What a majority has of the tasks that exist."""
        raise NotImplementedError

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """What a copy knows."""
        if not isinstance(message, Got) or peer not in self.pending:
            return
        del self.pending[peer]
        self._known[peer] = {row.id: row for row in message.tasks if row.id in self._wanted}
        self.count(now_ms, peer, message.lacking, message.cohorts)
        self._look(now_ms)

    def on_mended(self, now_ms: int, peer: str, mending: Mending, message: Kept) -> None:
        """A copy knows more; nothing for certain where it does not count."""
        del self._mending[peer]
        self.uncount(peer, message.unkept)
        for row in mending.rows:
            self._known[peer][row.id] = row
        self.learn(now_ms, message.cohorts)
        self._look(now_ms)

    def _look(self, now_ms: int) -> None:
        """Show what a majority has, or give more of them what some know."""
        if self.is_closed:
            return
        merged = self.join()
        behind = {peer: rows for peer in self._known if (rows := self._lacking(peer, merged))}
        if not self._is_settled(behind):
            self._mend(now_ms, behind)
        elif self.is_complete(merged) and all(task_id in merged and self.facts(merged[task_id]) >= least
                                              for task_id, least in self._least.items() if least):
            self.conclude(now_ms, merged)
            self.end()

    def join(self) -> Rows:
        """What the copies that count know together."""
        return {row.id: row for row in merge_task_rows(
            row for peer, known in self._known.items() for row in known.values() if self.speaks_for(peer, row.id))}

    def facts(self, row: TaskRow) -> int:
        """How many facts there are of a task."""
        return facts_of(row)

    def speaks_for(self, peer: str, task_id: bytes) -> bool:
        """Whether a copy counts. One that does not may still hold what the voters have collected."""
        need = self.needs[ids.partition_of(task_id, self.view.parameters.partitions)]
        return peer in need.have and any(peer in group for group in need.groups)

    def _lacking(self, peer: str, merged: Rows) -> dict[int, list[TaskRow]]:
        """What a peer should be given of each partition that it was asked about and counts for."""
        known, lacking = self._known[peer], dict[int, list[TaskRow]]()
        for partition in self.asked[peer]:
            if peer in self.needs[partition].have:
                rows = [merged[task_id] for task_id in self._ids_of[partition]
                        if task_id in merged and known.get(task_id) != merged[task_id]]
                if rows:
                    lacking[partition] = rows
        return lacking

    def _is_settled(self, behind: Mapping[str, Mapping[int, object]]) -> bool:
        """Whether of each partition a majority of each cohort that counts knows all."""
        for partition, need in self.needs.items():
            sure = [name for name in need.have if partition not in behind.get(name, ())]
            if not all(has_majority(group, sure) for group in need.groups):
                return False
        return True

    def _mend(self, now_ms: int, behind: Mapping[str, Mapping[int, Sequence[TaskRow]]]) -> None:
        for peer, lacking in behind.items():
            if peer not in self._mending:
                eras = columns.pack_u64([number for partition in lacking
                                         for number in (partition, self.needs[partition].era)])
                rows = [row for part in lacking.values() for row in part]
                mending = self._mending[peer] = Mending(self, peer, rows, eras, now_ms)
                mending.start(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """The copies that can answer know too little: ask again, until ``LEAST_MS`` is over."""
        is_behind = self._is_settled({}) and not self._mending
        if is_behind and now_ms >= self._hopes_until_ms:
            self.refuse("unavailable", "min_seq: fewer facts than that are known of a task; try again")
            self.end()
            return
        if is_behind or not (self.pending or self._mending):
            self.pending = {name: self._make(self.request, partitions) for name, partitions in self.asked.items()}
        super().on_timer(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Too few voters answered."""
        self.refuse("unavailable", "fewer than a majority of a task's owners answered; try again")
        self.end()

    def end(self) -> None:
        """End, and the mending of copies with it."""
        super().end()
        for mending in self._mending.values():
            mending.end()


class GetOperation(ReadOperation):
    """A client's read of tasks, and where they stand.

    Where a task stands is decided here, once: by what was joined, this node's clock and the cluster's skew bound.
    Whether it is behind others of its key, its leader says, which grants by that and is waited for a moment;
    without its word, any copy that knows of a task before it.
    """

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, task_ids: Sequence[bytes],
                 partitions: Iterable[int], make: Make, least: Mapping[bytes, int] | None = None) -> None:
        super().__init__(operations, origin, now_ms, task_ids, partitions, make, least)
        self._asides: dict[str, dict[bytes, Aside]] = {}
        self._cuts: dict[bytes, Cuts] = {}
        """The parts left out of logs that are not shown whole."""
        self._awaits_leaders = any(map(ids.is_laned, task_ids))

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """Take what a copy knows, and what it says besides."""
        if isinstance(message, Got):
            said = zip(message.tasks, message.asides.unpack("asides"), strict=False)
            self._asides[peer] = {row.id: Aside.decode(text) for row, text in said}
        super().on_reply(now_ms, peer, message)

    def is_complete(self, rows: Rows) -> bool:
        """Whether all leaders that are waited for have answered."""
        return not self._awaits_leaders or not any(
            ids.is_laned(task_id) and self._leader_of(task_id) in self.pending for task_id in rows)

    def join(self) -> Rows:
        """Join the rows; of logs that are longer than one read shows, keep the ends."""
        rows = super().join()
        for task_id, row in rows.items():
            said = [cuts for peer, told in self._asides.items() if (cuts := told.get(task_id, SILENCE).cuts)
                    and self.speaks_for(peer, task_id)]
            if said or is_long(row):
                entries = entries_of(row)
                entries, self._cuts[task_id] = cut(entries, join_cuts(said, entries))
                rows[task_id] = with_entries(row, entries)
        return rows

    def facts(self, row: TaskRow) -> int:
        """How many facts there are of a task, with the entries that are left out."""
        return facts_of(row, self._cuts.get(row.id, WHOLE).values())

    def on_timer(self, now_ms: int) -> None:
        """No leader is waited for any longer."""
        self._awaits_leaders = False
        self._look(now_ms)
        if not self.is_closed:
            super().on_timer(now_ms)

    def conclude(self, now_ms: int, rows: Rows) -> None:
        """Show them, in id order."""
        shown = [rows[task_id] for task_id in sorted(rows)]
        self.answer(Got(self.origin.request, tuple(shown), asides=columns.pack(
            [self._aside(now_ms, row).encode() for row in shown])))

    def _aside(self, now_ms: int, row: TaskRow) -> Aside:
        """Where a task with a known body stands, behind which others of its key, and what is left out."""
        for record in row.body.unpack():
            body, history, lane = Body.decode(record), decode_history(row.history or None), self._lane(row.id)
            is_blocked = lane.standing is State.BLOCKED or is_waiting(body, entries_of(row))
            standing = state_of(history, body, now_ms, self.view.parameters.skew_ms, is_blocked)
            behind = lane.behind if standing is State.BLOCKED else ()
            return Aside(standing, behind, self._cuts.get(row.id, WHOLE))
        return SILENCE

    def _lane(self, task_id: bytes) -> Aside:
        """Whether a task is behind others of its key."""
        if not ids.is_laned(task_id):
            return SILENCE
        said = {peer: rows.get(task_id, SILENCE) for peer, rows in self._asides.items()
                if peer in self._known and self.speaks_for(peer, task_id)}
        behind = [aside for aside in said.values() if aside.standing is State.BLOCKED]
        return said.get(self._leader_of(task_id), next(iter(behind), SILENCE))

    def _leader_of(self, task_id: bytes) -> str:
        return self.view.leader_of(ids.partition_of(task_id, self.view.parameters.partitions))
