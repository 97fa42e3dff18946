"""Which copies of this node a peer's request means, and whether they count.

A message about a partition that this node does not own is still served, since ownership may have moved while it
travelled; what it stores is found by the exchange.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.knowledge.view import View
from skuld_py.partition.vnode import Vnode


class Ownership:
    """The partitions of one node, as peers name them."""

    def __init__(self, view: View) -> None:
        self._view = view

    def vnode(self, partition: int) -> Vnode:
        """The vnode of a partition that a peer names."""
        if not 0 <= partition < self._view.parameters.partitions:
            raise Malformed("partition", f"{partition} does not exist")
        return self._view.vnodes[partition]

    def vnode_of(self, task_id: bytes) -> Vnode:
        """The vnode of a task."""
        return self._view.vnodes[ids.partition_of(task_id, self._view.parameters.partitions)]

    def group(self, task_ids: bytes) -> dict[int, Sequence[int]]:
        """Indexes of a column of ids by partition."""
        return ids.group(task_ids, self._view.parameters.partitions)

    def without(self, unkept: bytes, old: Sequence[bytes]) -> bytes:
        """The partitions not to be counted, with those of tasks that were too old."""
        if not old:
            return unkept
        return columns.pack_u64(list(dict.fromkeys([*columns.unpack_u64(unkept), *self.group(b"".join(old))])))

    def standings(self, eras: bytes) -> tuple[bytes, tuple[m.CohortRow, ...]]:
        """For the partitions asked about: which the sender must not count here, and which voters count besides."""
        numbers = columns.unpack_u64(eras)
        uncounted, cohorts = [], []
        for partition, era in zip(numbers[::2], numbers[1::2], strict=True):
            vnode = self.vnode(partition)
            if not vnode.is_counted or not vnode.takes_writes:
                uncounted.append(partition)
            if vnode.standing.pending or vnode.standing.era > era:
                cohorts += vnode.cohorts_for(era)
        return columns.pack_u64(uncounted) if uncounted else b"", tuple(cohorts)

    def owned(self) -> list[Vnode]:
        """Partitions that this node can speak for."""
        return [vnode for vnode in self._view.vnodes
                if vnode.is_counted and self._view.me.name in vnode.standing.cohort]
