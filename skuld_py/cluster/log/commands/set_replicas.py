"""``set-replicas``: from here on the cluster keeps so many copies of each task.

A cluster is created with a number, which stays what it was: all members begin to play the log by it. This changes
it in the log, so that all place by the same number from the same entry on. More copies than there are nodes placed
would place nothing, so they are refused; nodes come first.

What follows are ordinary moves (``partition.leadership.evaluator``): new owners fill and get votes in an election
of old and new voters together; where owners become fewer, voters go one at a time.

Members of releases that do not know the command play it alike, as one that cannot be read, until the rules say
that there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import REPLICAS_MAX
from skuld_py.errors import Malformed

REPLICAS_SINCE = 4
"""From these rules on the number of copies may change."""


def _is_count(command: Any, field: Any, value: int) -> None:
    if type(value) is not int or not 1 <= value <= REPLICAS_MAX:
        raise Malformed(f"{type(command).__name__}.{field.name}", f"is not in 1..{REPLICAS_MAX}")


@attrs.frozen
class SetReplicas(Command):
    """``replicas``: copies of each task, at most as many as nodes are placed."""

    kind = "set-replicas"
    since = REPLICAS_SINCE

    replicas: int = attrs.field(validator=_is_count)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Keep so many."""
        nodes = placed(replica)
        if len(nodes) < self.replicas:
            raise Inapplicable(f"there are {len(nodes)} nodes for {self.replicas} copies of each task; start"
                               " others first")
        return replica if replica.replicas == self.replicas else attrs.evolve(replica, replicas=self.replicas)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """How many copies are kept."""
        return {} if old is new else {"replicas": str(self.replicas)}
