"""The cluster as one node sees it, for people and their tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.model import messages as m
from skuld_py.model.client_messages import AWAITED_MAX, PAUSED_MAX
from skuld_py.node.household import Household
from skuld_py.node.timekeeping import Agreement


def described(node: Household, request: int, session: str, clocks: Agreement,
              moves: tuple[m.MoveRow, ...], collections: tuple[m.CollectionRow, ...]) -> m.Described:
    """Nodes, partitions, what moves, what is paused, and what is collected."""
    owners = [node.owners(vnode.partition) for vnode in node.vnodes]
    leaders = [node.leader_of(vnode.partition) for vnode in node.vnodes]
    nodes = tuple(m.NodeRow(name, name in node.live, leaders.count(name),
                            sum(1 for placed in owners if name in placed), clocks.verdict(name).value,
                            clocks.offset_ms(name), clocks.error_ms(name))
                  for name in sorted({*node.nodes, *node.live}))
    partitions = tuple(m.PartitionRow(vnode.partition, max(vnode.leader_epoch, vnode.promise.epoch),
                                      leaders[vnode.partition], owners[vnode.partition], vnode.standing.cohort)
                       for vnode in node.vnodes)
    return m.Described(request, node.me.name, session, nodes, partitions, moves,
                       tuple(node.settings.paused[:PAUSED_MAX]), collections)


def collection(node: Household, awaited: Callable[[int], Sequence[str]]) -> tuple[m.CollectionRow, ...]:
    """What this node collects, a row; none where everything is kept. Of the partitions that it leads only: all
    replicas delete the same tasks, so every one of them would count these again."""
    if not node.retention.keep_ms:
        return ()
    led = [vnode for vnode in node.vnodes if vnode.is_leading]
    watermarks = [vnode.replica.watermark for vnode in led]
    seals = [watermark.sealed_ms for watermark in watermarks if watermark.sealed_ms]
    names = sorted({name for vnode in led for name in awaited(vnode.partition)})
    return (m.CollectionRow(node.me.name, sum(watermark.collected for watermark in watermarks),
                            min(seals, default=0), tuple(names[:AWAITED_MAX])),)
