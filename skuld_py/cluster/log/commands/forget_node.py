"""``forget-node``: a node that is down will not come back; nothing is placed on it any more.

Written by an operator, or by the member whose turn it is once the node has been down for the grace period. What it
held is filled from the others; should it come back, it is placed anew and fills.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.admission import less
from skuld_py.cluster.log.commands.command import Command, Inapplicable, is_node
from skuld_py.cluster.log.commands.retire_node import check_enough
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class ForgetNode(Command):
    """A node that lives cannot be forgotten, and copies must have a place to go."""

    kind = "forget-node"

    node: str = attrs.field(validator=is_node)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Take the node out, unless it lives or copies need it as a place."""
        place = replica.nodes.get(self.node)
        if place is None:
            return replica
        if place.member:
            raise Inapplicable(f"node {self.node} lives; stop it first")
        if not place.is_leaving:
            check_enough(replica, self.node)
        return attrs.evolve(replica, nodes=less(replica.nodes, self.node))

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The node that was forgotten."""
        return {} if old is new else {"node": self.node, "state": "forgotten"}
