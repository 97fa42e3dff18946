"""``seal-output``: an output of a workflow is whole and closed. The last one completes the workflow.

Written by the worker whose claim it was to seal, after it has published the output. It counts only once all
inputs are exhausted: before that nobody may seal. Of a workflow that has ended, or said again, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, State, is_step, is_workflow


@attrs.frozen
class SealOutput(Command):
    """``step`` is an output."""

    kind = "seal-output"
    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)
    step: str = attrs.field(validator=is_step)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Note it, or complete the workflow."""
        known = replica.workflows.get(self.workflow)
        if known is None:
            raise Inapplicable(f"there is no workflow {self.workflow}")
        if not known.is_live:
            return replica
        if self.step not in known.outputs:
            raise Inapplicable(f"workflow {self.workflow} has no output {self.step}")
        if not known.is_sealing:
            raise Inapplicable(f"input {known.open_inputs[0]} of workflow {self.workflow} is not exhausted; no"
                               " output is sealed before all inputs are")
        if self.step in known.sealed:
            return replica
        made = attrs.evolve(known, sealed=(*known.sealed, self.step), since=position)
        if not made.open_outputs:
            made = known.ended(State.COMPLETED, position)
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The output, and whether that was the last."""
        if old is new:
            return {}
        made = new.workflows[self.workflow]
        state = {"open outputs": str(len(made.open_outputs))} if made.is_live else {"state": "completed"}
        return {"workflow": self.workflow, "sealed": self.step, **state}
