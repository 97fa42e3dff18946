"""``exhaust-input``: an input of a workflow has no more to bring, and all that it brought is complete.

Of a workflow that has ended, or said again, it changes nothing. After the last input's the outputs are to be
sealed; the answer to that entry shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE, is_step, is_workflow


@attrs.frozen
class ExhaustInput(Command):
    """``step`` is an input."""

    kind = "exhaust-input"
    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)
    step: str = attrs.field(validator=is_step)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Note it."""
        known = replica.workflows.get(self.workflow)
        if known is None:
            raise Inapplicable(f"there is no workflow {self.workflow}")
        if not known.is_live:
            return replica
        if self.step not in known.inputs:
            raise Inapplicable(f"workflow {self.workflow} has no input {self.step}")
        if self.step in known.exhausted:
            return replica
        made = attrs.evolve(known, exhausted=(*known.exhausted, self.step), since=position)
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The input, and how many others are open."""
        if old is new:
            return {}
        open_inputs = new.workflows[self.workflow].open_inputs
        return {"workflow": self.workflow, "exhausted": self.step, "open inputs": str(len(open_inputs))}
