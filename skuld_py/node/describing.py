"""The cluster as one node sees it, for people and their tools."""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.model.client_messages import PAUSED_MAX
from skuld_py.node.household import Household
from skuld_py.node.timekeeping import Agreement


def described(node: Household, request: int, session: str, clocks: Agreement,
              moves: tuple[m.MoveRow, ...]) -> m.Described:
    """Nodes, partitions, what moves, and what is paused."""
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
                       tuple(node.settings.paused[:PAUSED_MAX]))
