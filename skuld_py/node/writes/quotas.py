"""Quotas: how many tasks of the queues whose names begin alike may be open, that is, have not ended.

The node that is asked to enqueue counts, in the copies that it keeps, and takes the partitions that it does not
keep to hold as much as those that it does. It counts again only now and then, and adds what it has let in since.
So a quota costs an enqueue no message and hardly any time, and is kept nearly: it may be exceeded by what other
nodes let in between two counts, and, where there are more nodes than copies, by how unlike partitions are. A node
that keeps nothing lets all in.

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
from skuld_py.model.state import State
from skuld_py.node.knowledge.view import View

FRESH_MS = 1_000
"""A count holds for as long, and a millisecond more for each row that it read: with very many queues a node counts
for a small part of its time only."""
OPEN = (State.WAITING, State.CLAIMED, State.SCHEDULED, State.BLOCKED)


@attrs.define
class Count:
    """How many tasks are open, as counted last, and let in since; until when that holds."""

    tasks: int
    until_ms: int


class Quotas:
    """What one node lets in."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._counts: dict[str, Count] = {}

    def check(self, now_ms: int, batches: Sequence[m.TaskBatch]) -> None:
        """Let these tasks in, all of them; or ``Refused``, naming the quota, if they would be too many."""
        quotas = self._view.settings.quotas
        self._counts = {prefix: count for prefix, count in self._counts.items() if prefix in quotas}
        sizes: dict[str, int] = {}
        for batch in batches:
            queue = Header.decode(batch.header).queue
            if not queue.startswith(QUEUES_OF_WORKFLOWS):
                sizes[queue] = sizes.get(queue, 0) + len(batch.ids) // ids.ID_BYTES
        wanted = {prefix: count for prefix in quotas
                  if (count := sum(size for queue, size in sizes.items() if queue.startswith(prefix)))}
        counts = {prefix: self._count(now_ms, prefix) for prefix in wanted}
        for prefix, count in wanted.items():
            known, most = counts[prefix].tasks, quotas[prefix]
            if known + count > most:
                raise Refused("quota_full", f"queue: of the queues that begin with {prefix} about {known} tasks"
                              f" are open, and {most} may be; let some end, cancel what nobody wants ('skuld"
                              f" purge'), or raise the quota ('skuld quota {prefix}')", quota=most, open=known)
        for prefix, count in wanted.items():
            counts[prefix].tasks += count

    def _count(self, now_ms: int, prefix: str) -> Count:
        known = self._counts.get(prefix)
        if known is None or now_ms >= known.until_ms:
            known = self._counts[prefix] = self._counted(now_ms, prefix)
        return known

    def _counted(self, now_ms: int, prefix: str) -> Count:
        view, tasks, rows = self._view, 0, 0
        kept = [vnode for vnode in view.vnodes if view.me.name in vnode.standing.cohort]
        for vnode in kept:
            for queue, row in vnode.replica.filing.tally.beginning(prefix):
                rows += 1
                if not queue.startswith(QUEUES_OF_WORKFLOWS):
                    tasks += sum([row[state] for state in OPEN])
        in_all = tasks * len(view.vnodes) // len(kept) if kept else 0
        return Count(in_all, now_ms + FRESH_MS + rows)
