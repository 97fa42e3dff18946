"""``exhaust-input``: an input of a workflow has no more to bring, and all that it brought is complete.

Of an input with several strands each is said to be exhausted, in any order; the last one exhausts the input.

Of a workflow that has ended, or said again, it changes nothing. After the last input's the outputs are to be
sealed; the answer to that entry shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.canonical import SPARSE
from skuld_py.cluster.log.commands.command import Inapplicable
from skuld_py.cluster.log.commands.of_workflow import OfWorkflow
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import STRANDS_SINCE, Workflow, is_step, is_strand, strand_name


@attrs.frozen
class ExhaustInput(OfWorkflow):
    """``step`` is an input, ``strand`` one of its strands: the first, of an input that has no others."""

    kind = "exhaust-input"

    step: str = attrs.field(validator=is_step)
    strand: int = attrs.field(default=0, validator=is_strand, metadata={**SPARSE, "since": STRANDS_SINCE})

    def change(self, known: Workflow, position: int) -> Workflow:
        """Note it."""
        if self.step not in known.inputs:
            raise Inapplicable(f"workflow {self.workflow} has no input {self.step}")
        if self.step in known.exhausted:
            return known
        strands = known.strands(self.step)
        if self.strand >= strands:
            raise Inapplicable(f"input {self.step} of workflow {self.workflow} has {strands} strands, and this is"
                               f" number {self.strand}")
        said = strand_name(self.step, self.strand)
        if said in known.drained:
            return known
        if known.open_strands(self.step) > 1:
            return attrs.evolve(known, drained=(*known.drained, said), since=position)
        others = tuple(each for each in known.drained if each.partition(":")[0] != self.step)
        return attrs.evolve(known, exhausted=(*known.exhausted, self.step), drained=others, since=position)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The input, and how many others are open; or the strand, and how many others of its input are."""
        if old is new:
            return {}
        known = new.workflows[self.workflow]
        if self.step not in known.exhausted:
            return {"workflow": self.workflow, "drained": strand_name(self.step, self.strand),
                    "open strands": str(known.open_strands(self.step))}
        open_inputs = known.open_inputs
        return {"workflow": self.workflow, "exhausted": self.step, "open inputs": str(len(open_inputs))}
