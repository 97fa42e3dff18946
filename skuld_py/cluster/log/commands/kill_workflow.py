"""``kill-workflow``: somebody, or a step's failure, ends a workflow before it is complete.

One that has ended stays as it is. An id that nobody knows is refused, and may be submitted afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.of_workflow import OfWorkflow
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import State, Workflow, is_reason


@attrs.frozen
class KillWorkflow(OfWorkflow):
    """``reason``: for people."""

    kind = "kill-workflow"

    reason: str = attrs.field(default="", validator=is_reason)

    def change(self, known: Workflow, position: int) -> Workflow:
        """End it."""
        return known.ended(State.KILLED, position, self.reason)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The workflow, and why it was ended."""
        if old is new:
            return {}
        why = {"reason": self.reason} if self.reason else {}
        return {"workflow": self.workflow, "state": "killed", **why}
