"""What is said of a workflow that must be known: it counts while that lives, and once.

Of a workflow that has ended it changes nothing, and neither does what was said before: so entries may come late,
and again. Of one that nobody knows it is refused.
"""

from __future__ import annotations

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, Workflow, is_workflow


@attrs.frozen
class OfWorkflow(Command):
    """``workflow``: its id."""

    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Change the workflow, if it lives."""
        known = replica.workflows.get(self.workflow)
        if known is None:
            raise Inapplicable(f"there is no workflow {self.workflow}")
        made = self.change(known, position) if known.is_live else known
        if made is known:
            return replica
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})

    def change(self, known: Workflow, position: int) -> Workflow:
        """What a live one becomes; the same, if there is nothing to change. Raises ``Inapplicable``."""
        raise NotImplementedError
