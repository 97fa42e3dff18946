"""Workflows and entries of the log in messages, and commands out of them."""

from __future__ import annotations

from skuld_py.cluster.log.commands import Command, ExhaustInput, KillWorkflow, SealOutput, SubmitWorkflow
from skuld_py.cluster.log.workflows import StepRow, Workflow
from skuld_py.cluster.member.playback import Happening
from skuld_py.model import messages as m

Asked = m.Submit | m.Kill | m.Advance


def command_of(message: Asked) -> Command:
    """What is to be written. Raises ``Malformed``."""
    match message:
        case m.Submit():
            steps = tuple(StepRow(each.name, each.kind, each.least, each.most, each.tags, each.percentage,
                                  each.flux) for each in message.steps)
            return SubmitWorkflow(message.workflow, message.digest, message.plan, steps, message.spreading,
                                  message.percentage)
        case m.Kill():
            return KillWorkflow(message.workflow, message.reason, life=message.life)
        case m.Advance():
            if message.is_seal:
                return SealOutput(message.workflow, message.step, life=message.life)
            return ExhaustInput(message.workflow, message.step, message.strand, life=message.life)


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
