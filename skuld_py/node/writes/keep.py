"""What a node does with writes that any owner takes, when their coordinator asks: it stores a copy.

Each answer names the partitions whose copies here do not count, and the voters that count besides. What is stored
where this node owns nothing is found by the exchange.
"""

from __future__ import annotations

from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.history import CANCELLED
from skuld_py.model.notes import alike
from skuld_py.model.outcomes import RESULT_SEQ
from skuld_py.node.knowledge.floor import FUTURE_MS_MAX, Floor
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Served
from skuld_py.partition.copies.garbage import shut
from skuld_py.partition.data.checkpoints import Word, join_checkpoint, judged
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.rows import merge_rows


class Keeper:
    """The copies of one node; ``floor`` learns of the newest id."""

    def __init__(self, view: View, floor: Floor) -> None:
        self._view = view
        self._floor = floor
        self._ownership = Ownership(view)
        self.served: Served = {
            m.Replicate: self._replicate, m.Append: self._append, m.Complete: self._complete,
            m.Cancel: self._cancel, m.Note: self._note, m.Mend: self._mend, m.Repair: self._repair,
        }

    def _replicate(self, now_ms: int, peer: str, message: m.Replicate) -> m.Kept:
        refused: list[bytes] = []
        old: list[bytes] = []
        unkept, cohorts = self._ownership.standings(message.eras)
        for batch in message.batches:
            task_ids, payloads = ids.split(batch.ids), batch.payloads.unpack("payloads")
            groups = ids.group(batch.ids, self._view.parameters.partitions)
            if len(groups) != 1:
                raise Malformed("Replicate.ids", "a batch holds tasks of one partition")
            vnode = self._view.vnodes[min(groups)]
            newest_ms = now_ms + 2 * self._view.parameters.skew_ms + FUTURE_MS_MAX
            self._floor.ms = max(self._floor.ms, min(newest_ms, ids.time_of(max(task_ids))))
            closed = vnode.replica.watermark.closed_to(task_ids)
            late = vnode.replica.lacking(closed) if closed else []
            if late:
                old += late
                rows = [row for row in zip(task_ids, payloads, strict=True) if row[0] not in late]
                task_ids, payloads = [row[0] for row in rows], [row[1] for row in rows]
            if task_ids and vnode.takes_writes:
                refused += vnode.replica.store_tasks(now_ms, batch.header, task_ids, payloads)
        unkept = self._ownership.without(unkept, old) if old else unkept
        return m.Kept(message.request, b"".join(refused), unkept, cohorts, b"".join(old))

    def _append(self, now_ms: int, peer: str, message: m.Append) -> m.Kept:
        entries = message.entries.unpack("entries")
        unkept, cohorts = self._ownership.standings(message.eras)
        vnode = self._ownership.vnode_of(message.id)
        if shut(vnode.replica, [message.id]):
            return m.Kept(message.request, b"", self._ownership.without(unkept, [message.id]), cohorts, message.id)
        if not vnode.takes_writes:
            return m.Kept(message.request, b"", unkept, cohorts)
        said = _checkpoint_of(message)
        word = Word.KNOWN if said is None else judged(vnode.replica, now_ms, message.id, said)
        if word in (Word.OVER, Word.UNSURE):
            fenced = message.id if word is Word.OVER else b""
            return m.Kept(message.request, b"", self._ownership.without(unkept, [message.id]), cohorts,
                          fenced=fenced)
        is_kept = word is not Word.BOUND and vnode.replica.append(message.id, message.token, message.seq, entries)
        if is_kept and said is not None:
            join_checkpoint(vnode.replica, message.id, said.encode())
        return m.Kept(message.request, b"" if is_kept else message.id, unkept, cohorts)

    def _complete(self, now_ms: int, peer: str, message: m.Complete) -> m.Kept:
        _check_dated(message)
        task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
        results = message.results.unpack("results")
        unkept, cohorts = self._ownership.standings(message.eras)
        old: list[bytes] = []
        for partition, indexes in self._ownership.group(message.ids).items():
            vnode = self._view.vnodes[partition]
            done = columns.pick(task_ids, indexes)
            over = shut(vnode.replica, done)
            if over:
                old += [task_id for task_id, history in over.items()
                        if history is None or not history.is_completed]
                indexes = [index for index in indexes if task_ids[index] not in over]
                done = columns.pick(task_ids, indexes)
            if done and vnode.takes_writes:
                by = columns.pick(tokens, indexes)
                vnode.replica.finish(now_ms, done, by, message.at_ms)
                if results:
                    vnode.replica.note_outcomes(RESULT_SEQ, done, by, columns.pick(results, indexes))
        return m.Kept(message.request, b"", self._ownership.without(unkept, old), cohorts, b"".join(old))

    def _cancel(self, now_ms: int, peer: str, message: m.Cancel) -> m.Kept:
        _check_dated(message)
        unkept, cohorts = self._ownership.standings(message.eras)
        old: list[bytes] = []
        for task_id in ids.split(message.ids):
            vnode = self._ownership.vnode_of(task_id)
            if shut(vnode.replica, [task_id]):
                old.append(task_id)
            elif vnode.takes_writes:
                vnode.replica.mark(now_ms, [Mark(task_id, CANCELLED, message.at_ms)])
        return m.Kept(message.request, b"", self._ownership.without(unkept, old), cohorts, b"".join(old))

    def _note(self, now_ms: int, peer: str, message: m.Note) -> m.Kept:
        unkept, cohorts = self._ownership.standings(message.eras)
        for (token, seq), task_ids in alike(message.ids, message.tokens, message.seqs).items():
            for partition, noted in ids.by_partition(task_ids, self._view.parameters.partitions).items():
                vnode = self._view.vnodes[partition]
                if vnode.takes_writes:
                    vnode.replica.note(now_ms, token, seq, noted)
        return m.Kept(message.request, b"", unkept, cohorts)

    def _mend(self, now_ms: int, peer: str, message: m.Mend) -> m.Kept:
        """As ``_repair``, but its sender waits for it. What conflicts stays as it is, and one is shown."""
        unkept, cohorts = self._ownership.standings(message.eras)
        rows = list({row.id: row for row in message.tasks}.values())
        for partition, indexes in self._ownership.group(b"".join([row.id for row in rows])).items():
            vnode = self._view.vnodes[partition]
            if vnode.takes_writes:
                merge_rows(vnode.replica, now_ms, self._view.parameters.partitions,
                           [rows[index] for index in indexes])
        return m.Kept(message.request, b"", unkept, cohorts)

    def _repair(self, now_ms: int, peer: str, message: m.Repair) -> None:
        vnode = self._ownership.vnode(message.partition)
        if vnode.takes_writes:
            merge_rows(vnode.replica, now_ms, self._view.parameters.partitions, message.tasks)
            if gains := self._view.audited.get(message.partition):
                gains.gain([row.id for row in message.tasks])


def _checkpoint_of(message: m.Append) -> Checkpoint | None:
    """What a holder says, if it says something."""
    return next((Checkpoint(message.token, message.number, message.at_ms, data)
                 for data in message.checkpoint.unpack("checkpoint")), None)


def _check_dated(message: m.Complete | m.Cancel) -> None:
    """Refuse a message without a time: clients leave it to their coordinator, and the coordinator must have set
    it."""
    if not message.at_ms:
        raise Malformed(f"{type(message).__name__}.at_ms", "no coordinator has said when")
