"""What is said of a workflow that must be known: it counts while that lives, and once.

Of a workflow that has ended it changes nothing, and neither does what was said before: so entries may come late,
and again. Nor does what names another life of the workflow: a worker that was asleep since before an id was
forgotten and submitted again speaks of the former. Of one that nobody knows it is refused.
"""

from __future__ import annotations

import attrs

from skuld_py.cluster.log.canonical import SPARSE
from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import STRANDS_SINCE, WORKFLOWS_SINCE, Workflow, is_life, is_workflow


@attrs.frozen
class OfWorkflow(Command):
    """``workflow``: its id. ``life``: which of all of this id is meant; 0, as in entries that were written before
    there was this field: whichever lives."""

    since = WORKFLOWS_SINCE

    workflow: str = attrs.field(validator=is_workflow)
    life: int = attrs.field(default=0, kw_only=True, validator=is_life,
                            metadata={**SPARSE, "since": STRANDS_SINCE})

    def is_of(self, known: Workflow) -> bool:
        """Whether it is about this one of all of its id."""
        return self.life in (0, known.life)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Change the workflow, if it lives."""
        known = replica.workflows.get(self.workflow)
        if known is None:
            raise Inapplicable(f"there is no workflow {self.workflow}")
        made = self.change(known, position) if known.is_live and self.is_of(known) else known
        if made is known:
            return replica
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})

    def change(self, known: Workflow, position: int) -> Workflow:
        """What a live one becomes; the same, if there is nothing to change. Raises ``Inapplicable``."""
        raise NotImplementedError
