"""Workflows and entries of the log in messages, and commands out of them."""

from __future__ import annotations

from skuld_py.cluster.log.commands import Command, ExhaustInput, KillWorkflow, SealOutput, SubmitWorkflow
from skuld_py.cluster.log.workflows import STRANDS_SINCE, StepRow, Workflow, has_strands
from skuld_py.cluster.member.playback import Happening
from skuld_py.errors import Refused
from skuld_py.model import messages as m

Asked = m.Submit | m.Kill | m.Advance


def command_of(message: Asked, rules: int) -> Command:
    """What is to be written in a cluster that goes by these rules. Raises ``Malformed``, and ``Refused`` for what
    they do not have; no life is named where they have none."""
    if rules < STRANDS_SINCE:
        _check_old(message, rules)
    life = 0 if rules < STRANDS_SINCE or isinstance(message, m.Submit) else message.life
    match message:
        case m.Submit():
            steps = tuple(StepRow(each.name, each.kind, each.least, each.most, each.tags, each.percentage,
                                  each.flux) for each in message.steps)
            return SubmitWorkflow(message.workflow, message.digest, message.plan, steps, message.spreading,
                                  message.percentage)
        case m.Kill():
            return KillWorkflow(message.workflow, message.reason, life=life)
        case m.Advance():
            if message.is_seal:
                return SealOutput(message.workflow, message.step, life=life)
            return ExhaustInput(message.workflow, message.step, message.strand, life=life)


def _check_old(message: Asked, rules: int) -> None:
    if isinstance(message, m.Submit):
        inputs = [StepRow(each.name, each.kind, each.least, each.most) for each in message.steps]
        is_new = has_strands(tuple(inputs))
    else:
        is_new = isinstance(message, m.Advance) and message.strand > 0
    if is_new:
        raise Refused("old_rules", f"workflow {message.workflow}: this cluster goes by rules {rules}, and an input"
                      f" with several feeders needs rules {STRANDS_SINCE}; once all nodes know them, raise them"
                      " with 'skuld cluster rules NAME --raise', or let 'most' of its inputs be 1")


def row_of(name: str, workflow: Workflow, with_steps: bool = True) -> m.WorkflowRow:
    """A workflow as a message has it."""
    steps = tuple(m.StepSpec(each.name, each.kind, each.least, each.most, each.tags, each.percentage, each.flux)
                  for each in workflow.steps) if with_steps else ()
    return m.WorkflowRow(name, workflow.state, workflow.digest, workflow.plan, workflow.submitted, workflow.since,
                         workflow.spreading, workflow.percentage, workflow.reason, steps, workflow.exhausted,
                         workflow.sealed)


def entry_of(happening: Happening) -> m.EntryRow:
    """An entry as a message has it."""
    changes = tuple(m.ChangeRow(name, value) for name, value in happening.changes)
    return m.EntryRow(happening.position, happening.played_ms, happening.kind, happening.writer, happening.outcome,
                      happening.reason, changes)
