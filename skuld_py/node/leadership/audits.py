"""Whether a new leader has all that the leader before it had, and what it lacked.

A new leader is compared with the voters of the leadership before: whatever was acknowledged is at a majority of
them, so once it was compared with a majority, this node among them, all that was acknowledged is here. What it
fetched by that it lacked, and people are told of which tasks. What a minority alone knew is among that; no promise
is broken then.

As long as too few of those voters are there, nobody knows what the leader lacks. That is told in the status, with
the names of those that are missing, and whether the two leaders began with other records: the document holds the
root of the hash tree of each (``Floor.digest``). That is for people alone, and decides nothing.

The comparison is one that each new leader begins anyway. Rejected: to spare it a leader that began with the same
root as the one before (who missed all that was written in that leadership begins with the same); to compare before
the election (a partition without a leader meanwhile).
"""

from __future__ import annotations

import attrs

from skuld_py.model.document import Document
from skuld_py.model.ids import to_text
from skuld_py.model.remarks import Kind, Remark, partition_said
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.exchange import NAMED, Pass, Progress
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.vnode import Vnode

PURSUE_MS = 5_000
"""So often those are asked that were not compared yet."""
PATIENCE_MS = 60_000
"""After this time people are told who is missing."""


@attrs.define
class _Audit:
    """One leadership, held against ``before``. Exchanges from the one numbered ``first`` on count."""

    epoch: int
    before: Document
    since_ms: int
    first: int
    next_ms: int = 0
    through: dict[str, None] = attrs.field(factory=dict)
    gains: Progress = attrs.field(factory=Progress)


class Audits(Duty):
    """The audits of one node, of the partitions that it leads."""

    def __init__(self, operations: Operations, exchanges: Exchanges) -> None:
        self._view = operations.view
        self._exchanges = exchanges
        exchanges.on_pass.append(self._on_pass)
        self._open: dict[int, _Audit] = {}
        self._passed: dict[int, int] = {}
        """Partition -> the epoch whose leader, this node, lacks nothing."""
        self._changed = operations.view.bulletin.subscribe()
        self.due_ms = NEVER_MS
        self.news = (self._changed,)

    def lacking(self, partition: int, now_ms: int) -> str:
        """Whom a leader has waited for too long, for people; nothing if all is well."""
        audit = self._open.get(partition)
        if audit is None or now_ms - audit.since_ms < PATIENCE_MS:
            return ""
        absent = ", ".join(name for name in audit.before.cohort
                           if name != self._view.me.name and name not in audit.through)
        before = audit.before
        roots = {before.floor.digest, self._view.vnodes[partition].election.document.floor.digest}
        records = ", and with other records than the leader now" if len(roots) > 1 and 0 not in roots else ""
        return f"{absent} of epoch {before.epoch}, whose leader began with {before.floor.claims:,} claims{records}"

    def look(self, now_ms: int) -> None:
        """Begin with what is newly led; ask anew where an answer is missing."""
        for partition in self._changed:
            self._note(now_ms, self._view.vnodes[partition])
        self._changed.clear()
        for partition, audit in self._open.items():
            if now_ms >= audit.next_ms:
                audit.next_ms = now_ms + PURSUE_MS
                for name in audit.before.cohort:
                    if name != self._view.me.name and name in self._view.live and name not in audit.through:
                        self._exchanges.pursue(partition, name)
        self.due_ms = min((audit.next_ms for audit in self._open.values()), default=NEVER_MS)

    def _note(self, now_ms: int, vnode: Vnode) -> None:
        partition, known = vnode.partition, self._open.get(vnode.partition)
        if not vnode.is_leading:
            if vnode.election.is_idle:
                self._close(partition)
            return
        if vnode.epoch in (known.epoch if known is not None else 0, self._passed.get(partition, 0)):
            return
        before = vnode.election.before
        is_own = (before.leader, before.boot) == (self._view.me.name, self._view.me.boot)
        if is_own and known is not None and known.epoch == before.epoch:
            known.epoch = vnode.epoch
            return
        self._close(partition)
        if vnode.election.is_forced or (is_own and self._passed.get(partition) == before.epoch):
            self._passed[partition] = vnode.epoch
            return
        audit = self._open[partition] = _Audit(vnode.epoch, before, now_ms, self._exchanges.begun + 1)
        self._view.audited[partition] = audit.gains
        self._end_if_through(partition, audit)

    def _on_pass(self, now_ms: int, ended: Pass) -> None:
        audit = self._open.get(ended.partition)
        if audit is None or ended.serial < audit.first or ended.peer not in audit.before.cohort:
            return
        audit.through[ended.peer] = None
        audit.gains.gained += ended.progress.gained
        audit.gains.named.update(ended.progress.named)
        self._end_if_through(ended.partition, audit)

    def _close(self, partition: int) -> None:
        self._open.pop(partition, None)
        self._view.audited.pop(partition, None)

    def _end_if_through(self, partition: int, audit: _Audit) -> None:
        if not has_majority(audit.before.cohort, [self._view.me.name, *audit.through]):
            return
        self._close(partition)
        self._passed[partition] = audit.epoch
        gains = audit.gains
        if gains.gained:
            named = ", ".join(to_text(task_id) for task_id in [*gains.named][:NAMED])
            about = partition_said(partition, audit.epoch)
            self._view.bulletin.remark(Remark(
                Kind.LACKED, f"{about}, something of {gains.gained:,} records, the first of {named}"))
