"""``exhaust-input``: an input of a workflow has no more to bring, and all that it brought is complete.

Of a workflow that has ended, or said again, it changes nothing. After the last input's the outputs are to be
sealed; the answer to that entry shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Inapplicable
from skuld_py.cluster.log.commands.of_workflow import OfWorkflow
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import Workflow, is_step


@attrs.frozen
class ExhaustInput(OfWorkflow):
    """``step`` is an input."""

    kind = "exhaust-input"

    step: str = attrs.field(validator=is_step)

    def change(self, known: Workflow, position: int) -> Workflow:
        """Note it."""
        if self.step not in known.inputs:
            raise Inapplicable(f"workflow {self.workflow} has no input {self.step}")
        if self.step in known.exhausted:
            return known
        return attrs.evolve(known, exhausted=(*known.exhausted, self.step), since=position)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The input, and how many others are open."""
        if old is new:
            return {}
        open_inputs = new.workflows[self.workflow].open_inputs
        return {"workflow": self.workflow, "exhausted": self.step, "open inputs": str(len(open_inputs))}
