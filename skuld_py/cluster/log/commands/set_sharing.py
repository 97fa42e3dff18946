"""``set-sharing``: from here on live workflows share the slots of the cluster in this way.

In the log, since all members must share alike, and so that it may change while workflows run: what a slot runs it
goes on to run, and what it claims next follows. Rejected: a parameter of the cluster, which is fixed when it is
made.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, one_of
from skuld_py.workflow.scheduling.demand import Sharing


@attrs.frozen
class SetSharing(Command):
    """``sharing``: greedy, balanced or percentage."""

    kind = "set-sharing"
    since = WORKFLOWS_SINCE

    sharing: str = attrs.field(validator=one_of(*(each.value for each in Sharing)))

    def apply(self, replica: Replica, position: int) -> Replica:
        """Share in this way."""
        return replica if replica.sharing == self.sharing else attrs.evolve(replica, sharing=self.sharing)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """How slots are shared."""
        return {} if old is new else {"sharing": self.sharing}
