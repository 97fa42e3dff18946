"""``submit-workflow``: a workflow lives from here on; its steps count where slots are shared out.

The definition is with a task, ``plan``, that stood before this entry; ``digest`` is the definition's. Submitted
again under its id with the same digest nothing changes, whatever became of it; another digest is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import (
    LIVE_MAX,
    STRANDS_SINCE,
    WEIGHT_MAX,
    WORKFLOWS_SINCE,
    StepRow,
    Workflow,
    are_steps,
    has_strands,
    is_digest,
    is_percentage,
    is_plan,
    is_spreading,
    is_workflow,
    live,
)


@attrs.frozen
class SubmitWorkflow(Command):
    """``steps`` in topological order. ``percentage`` of all slots, where workflows share them by that."""

    kind = "submit-workflow"
    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)
    digest: str = attrs.field(validator=is_digest)
    plan: str = attrs.field(validator=is_plan)
    steps: tuple[StepRow, ...] = attrs.field(validator=are_steps)
    spreading: str = attrs.field(default="balanced", validator=is_spreading)
    percentage: int = attrs.field(default=0, validator=is_percentage)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Let it live, unless it is known."""
        known = replica.workflows.get(self.workflow)
        if known is not None and known.digest != self.digest:
            raise Inapplicable(f"workflow {self.workflow} was submitted with another definition, digest"
                               f" {known.digest[:16]}; give this one another id")
        if known is not None:
            return replica
        made = Workflow(self.digest, self.plan, since=position, submitted=position, spreading=self.spreading,
                        percentage=self.percentage, steps=self.steps,
                        is_split=replica.rules >= STRANDS_SINCE and has_strands(self.steps))
        living = live(replica.workflows)
        if len(living) >= LIVE_MAX:
            raise Inapplicable(f"{LIVE_MAX} workflows live already; kill one, or wait until one is complete")
        if made.weight + sum(each.weight for each in living.values()) > WEIGHT_MAX:
            raise Inapplicable(f"the live workflows have too many steps and tags together, more than {WEIGHT_MAX}"
                               " bytes; kill one, or wait until one is complete")
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The workflow, and how many steps it has."""
        return {} if old is new else {"workflow": self.workflow, "state": "live", "steps": str(len(self.steps))}
