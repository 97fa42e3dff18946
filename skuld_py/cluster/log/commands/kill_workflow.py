"""``kill-workflow``: somebody, or a step's failure, ends a workflow before it is complete.

One that has ended stays as it is. An id that nobody knows is refused, and may be submitted afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, State, is_reason, is_workflow


@attrs.frozen
class KillWorkflow(Command):
    """``reason``: for people."""

    kind = "kill-workflow"
    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)
    reason: str = attrs.field(default="", validator=is_reason)

    def apply(self, replica: Replica, position: int) -> Replica:
        """End it, if it lives."""
        known = replica.workflows.get(self.workflow)
        if known is None:
            raise Inapplicable(f"there is no workflow {self.workflow}")
        if not known.is_live:
            return replica
        ended = known.ended(State.KILLED, position, self.reason)
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: ended})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The workflow, and why it was ended."""
        if old is new:
            return {}
        why = {"reason": self.reason} if self.reason else {}
        return {"workflow": self.workflow, "state": "killed", **why}
