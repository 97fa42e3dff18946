"""``retire-node``: an operator takes a node out of the placement, alive or dead, or puts it back.

No partition is placed on it any more; it hands on what it has. It stays known until it is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable, is_node
from skuld_py.cluster.log.replica import Replica


def placed(replica: Replica) -> list[str]:
    """The nodes that partitions are placed on, by name."""
    return sorted(name for name, place in replica.nodes.items() if not place.is_leaving)


def check_enough(replica: Replica, node: str) -> None:
    """``Inapplicable`` when too few nodes would be left to hold every copy."""
    left = [name for name in placed(replica) if name != node]
    if len(left) < replica.replicas:
        raise Inapplicable(f"without {node} there are {len(left)} nodes for {replica.replicas} copies of each"
                           " task; start another one first")


@attrs.frozen
class RetireNode(Command):
    """``is_leaving`` false takes it back."""

    kind = "retire-node"

    node: str = attrs.field(validator=is_node)
    is_leaving: bool = True

    def apply(self, replica: Replica, position: int) -> Replica:
        """Mark it."""
        place = replica.nodes.get(self.node)
        if place is None:
            raise Inapplicable(f"there is no node {self.node}")
        if place.is_leaving == self.is_leaving:
            return replica
        if self.is_leaving:
            check_enough(replica, self.node)
        marked = attrs.evolve(place, is_leaving=self.is_leaving)
        return attrs.evolve(replica, nodes={**replica.nodes, self.node: marked})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The node, and what it is now."""
        return {} if old is new else {"node": self.node, "state": "leaving" if self.is_leaving else "placed"}
