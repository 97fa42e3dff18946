"""``seal-output``: an output of a workflow is whole and closed. The last one completes the workflow.

Written by the worker whose claim it was to seal, after it has published the output. It counts only once all
inputs are exhausted: before that nobody may seal. Of a workflow that has ended, or said again, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Inapplicable
from skuld_py.cluster.log.commands.of_workflow import OfWorkflow
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import State, Workflow, is_step


@attrs.frozen
class SealOutput(OfWorkflow):
    """``step`` is an output."""

    kind = "seal-output"

    step: str = attrs.field(validator=is_step)

    def change(self, known: Workflow, position: int) -> Workflow:
        """Note it, or complete the workflow."""
        if self.step not in known.outputs:
            raise Inapplicable(f"workflow {self.workflow} has no output {self.step}")
        if not known.is_sealing:
            raise Inapplicable(f"input {known.open_inputs[0]} of workflow {self.workflow} is not exhausted; no"
                               " output is sealed before all inputs are")
        if self.step in known.sealed:
            return known
        made = attrs.evolve(known, sealed=(*known.sealed, self.step), since=position)
        return made if made.open_outputs else known.ended(State.COMPLETED, position)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The output, and whether that was the last."""
        if old is new:
            return {}
        made = new.workflows[self.workflow]
        state = {"open outputs": str(len(made.open_outputs))} if made.is_live else {"state": "completed"}
        return {"workflow": self.workflow, "sealed": self.step, **state}
