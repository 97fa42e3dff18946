"""Quotas: how many tasks of the queues whose names begin alike may be open, that is, have not ended.

The node that is asked to enqueue counts, in the copies that it keeps, and takes the partitions that it does not
keep to hold as much as those that it does. It counts again only now and then, and adds what it has let in since.
So a quota costs an enqueue no message and hardly any time, and is kept nearly: it may be exceeded by what other
nodes let in between two counts, and, where there are more nodes than copies, by how unlike partitions are. A node
that keeps nothing lets all in.

A turn reads ``ROWS`` rows of counts at most, so a count of very many queues takes several. Meanwhile the last one
holds, and before the first, what was found so far; what is let in meanwhile is added to what is found, and may be
counted twice until the next count.

A request that is repeated, because its answer was lost, is refused nothing that it has stored: tasks that the
copies here have already are neither wanted nor let in. That costs one seek for each partition of a request that
enters queues with a quota.

What ends makes room when the node next counts. Only clients' tasks are held against quotas: what schedules enqueue
is bounded by them, and a workflow that could not go on would keep what it has open for ever.

Rejected: loans from one node, as limits of claims have. An enqueue needs no leader, and must not begin to need
one; and a quota is there against running over, not to be met to a task.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.errors import Refused
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.names import QUEUES_OF_WORKFLOWS
from skuld_py.model.state import OPEN
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.partition.vnode import Vnode

FRESH_MS = 1_000
"""A count holds for as long, and a millisecond more for each row that it read: with very many queues a node counts
for a small part of its time only."""
ROWS = 2_000
"""Counts of a queue in a partition that one turn reads: some milliseconds."""


@attrs.define
class Count:
    """How many tasks are open, as counted last, and let in since it was begun; until when that holds."""

    tasks: int
    until_ms: int


@attrs.define
class Walk:
    """A count under way: the partitions left, behind which queue it goes on in the first of them; what it found,
    and what was let in since it began."""

    left: list[Vnode]
    kept: int
    after: str = ""
    rows: int = 0
    found: int = 0
    let_in: int = 0


class Quotas(Duty):
    """What one node lets in."""

    due_ms = NEVER_MS

    def __init__(self, view: View) -> None:
        self._view = view
        self._counts: dict[str, Count] = {}
        self._walks: dict[str, Walk] = {}
        self._budget = ROWS
        """Rows that this turn may still read."""

    def check(self, now_ms: int, batches: Sequence[m.TaskBatch]) -> None:
        """Let these tasks in, all of them; or ``Refused``, naming the quota, if they would be too many."""
        quotas = self._view.settings.quotas
        wanted = self._wanted(batches)
        known = {prefix: self._known(now_ms, prefix) for prefix in wanted}
        for prefix, count in wanted.items():
            tasks, most = known[prefix], quotas[prefix]
            if tasks + count > most:
                raise Refused("quota_full", f"queue: of the queues that begin with {prefix} about {tasks} tasks"
                              f" are open, and {most} may be; let some end, cancel what nobody wants ('skuld"
                              f" purge'), or raise the quota ('skuld quota {prefix} --open NUMBER')", quota=most,
                              open=tasks)
        for prefix, count in wanted.items():
            if prefix in self._counts:
                self._counts[prefix].tasks += count
            if prefix in self._walks:
                self._walks[prefix].let_in += count

    def _wanted(self, batches: Sequence[m.TaskBatch]) -> dict[str, int]:
        """How many tasks of each quota these are, without those that are stored here already."""
        quotas = self._view.settings.quotas
        beginnings = tuple(quotas)
        wanted: dict[str, int] = {}
        for batch in batches:
            queue = Header.decode(batch.header).queue
            if queue.startswith(beginnings) and not queue.startswith(QUEUES_OF_WORKFLOWS):
                count = self._lacking(batch.ids)
                for prefix in [prefix for prefix in quotas if queue.startswith(prefix)] if count else ():
                    wanted[prefix] = wanted.get(prefix, 0) + count
        return wanted

    def _lacking(self, blob: bytes) -> int:
        task_ids, vnodes = ids.split(blob), self._view.vnodes
        return sum(len(vnodes[partition].replica.lacking([task_ids[index] for index in indexes]))
                   for partition, indexes in ids.group(blob, self._view.parameters.partitions).items())

    def look(self, now_ms: int) -> None:
        """Go on with the counts that are under way, in the rows of the next turn."""
        quotas = self._view.settings.quotas
        self._counts = {prefix: count for prefix, count in self._counts.items() if prefix in quotas}
        self._walks = {prefix: walk for prefix, walk in self._walks.items() if prefix in quotas}
        for prefix in [*self._walks]:
            self._go_on(now_ms, prefix)
        self._budget = ROWS
        self.due_ms = now_ms if self._walks else NEVER_MS

    def _known(self, now_ms: int, prefix: str) -> int:
        """How many tasks are open, as far as is known."""
        count = self._counts.get(prefix)
        if (count is None or now_ms >= count.until_ms) and prefix not in self._walks:
            kept = [vnode for vnode in self._view.vnodes if self._view.me.name in vnode.standing.cohort]
            self._walks[prefix] = Walk(kept, len(kept))
            self._go_on(now_ms, prefix)
            self.hasten(now_ms)
            count = self._counts.get(prefix)
        if count is not None:
            return count.tasks
        walk = self._walks[prefix]
        return self._in_all(walk) + walk.let_in

    def _go_on(self, now_ms: int, prefix: str) -> None:
        """Count as much as the turn has rows for."""
        walk = self._walks[prefix]
        while walk.left and self._budget > 0:
            limit = self._budget
            rows = walk.left[0].replica.filing.tally.beginning(prefix, walk.after, limit)
            self._budget -= max(1, len(rows))
            walk.rows += len(rows)
            walk.found += sum(row[state] for queue, row in rows if not queue.startswith(QUEUES_OF_WORKFLOWS)
                              for state in OPEN)
            walk.after = rows[-1][0] if len(rows) == limit else ""
            if not walk.after:
                walk.left.pop(0)
        if not walk.left:
            del self._walks[prefix]
            self._counts[prefix] = Count(self._in_all(walk) + walk.let_in, now_ms + FRESH_MS + walk.rows)

    def _in_all(self, walk: Walk) -> int:
        """What was found, in the measure of all partitions."""
        return walk.found * len(self._view.vnodes) // walk.kept if walk.kept else 0
