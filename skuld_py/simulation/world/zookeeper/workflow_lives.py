"""What a workflow may go through, entry by entry: it lives, its inputs are exhausted, its outputs sealed, it ends.

Each is looked at as it was before an entry and as it is after; so nothing here knows how commands decide, and a
guard that one of them lacks is seen by what it lets through.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.cluster.log.commands import Command, ExhaustInput, Gc, KillWorkflow, SealOutput, SubmitWorkflow
from skuld_py.cluster.log.play import Played
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import State, Workflow
from skuld_py.model.ids import from_text, time_of

_KEPT = ("digest", "plan", "submitted", "spreading", "percentage", "steps")


def strays(old: Replica, played: Played) -> Iterator[str]:
    """What was not right of what the entry made of this replica."""
    new = played.replica
    command = played.entry.command if played.entry is not None else None
    if old.workflows is new.workflows:
        return
    for name in dict.fromkeys((*old.workflows, *new.workflows)):
        before, after = old.workflows.get(name), new.workflows.get(name)
        if before != after and (wrong := _step(before, after, new.version, command)):
            yield f"workflow {name} {wrong}: {before} became {after}"
    kept = [name for name in old.workflows if name in new.workflows]
    if [name for name in new.workflows if name in old.workflows] != kept:
        yield "workflows are in another order"


def _step(before: Workflow | None, after: Workflow | None, at: int, command: Command | None) -> str:
    if after is None:
        is_over = before is not None and not before.is_live and isinstance(command, Gc)
        return "" if is_over else "is gone before it has ended, or without a collection"
    if after.since != at:
        return "changed without saying where"
    if isinstance(command, ExhaustInput | SealOutput | KillWorkflow) and command.life not in (
            0, time_of(from_text((before or after).plan))):
        return "was changed by what is about another life of it"
    if before is None:
        has_begun = after.exhausted or after.drained or after.sealed
        is_new = isinstance(command, SubmitWorkflow) and after.is_live and not has_begun
        return "" if is_new else "begins in the middle"
    if not before.is_live:
        return "changed after it had ended"
    if after.is_live:
        return _went_on(before, after, command)
    if after.steps or any(getattr(before, name) != getattr(after, name) for name in _KEPT[:3]):
        return "left another tombstone"
    if after.state == State.KILLED.value:
        return "" if isinstance(command, KillWorkflow) else "was killed by nobody"
    is_whole = isinstance(command, SealOutput) and before.open_outputs == (command.step,) and before.is_sealing
    return "" if is_whole else "is complete before all was exhausted and sealed"


def _went_on(before: Workflow, after: Workflow, command: Command | None) -> str:
    if any(getattr(before, name) != getattr(after, name) for name in _KEPT):
        return "is another one under the same id"
    exhausted, sealed = set(after.exhausted), set(after.sealed)
    if len(exhausted) < len(after.exhausted) or len(sealed) < len(after.sealed):
        return "was exhausted or sealed twice"
    if isinstance(command, ExhaustInput):
        return _exhausted(before, after, command)
    if after.drained != before.drained:
        return "has lost count of its strands"
    if isinstance(command, SealOutput):
        grown = after.sealed == (*before.sealed, command.step) and after.exhausted == before.exhausted
        if before.open_inputs:
            return "was sealed before its inputs were exhausted"
        return "" if grown and command.step in before.open_outputs else "was sealed where it has no output"
    return "changed by an entry that is not about it"


def _exhausted(before: Workflow, after: Workflow, command: ExhaustInput) -> str:
    """A strand at a time; the last one exhausts the input."""
    if after.sealed != before.sealed or command.step not in before.open_inputs:
        return "was exhausted where it has no input"
    row = next(each for each in before.steps if each.name == command.step)
    said = {f"{command.step}:{strand}" for strand in range(before.strands(row.name))}
    known = said & {*before.drained}
    if f"{command.step}:{command.strand}" not in said - known:
        return "was exhausted where it has no strand, or twice"
    is_last = len(known) == len(said) - 1
    if after.exhausted != ((*before.exhausted, command.step) if is_last else before.exhausted):
        return "is exhausted before the last of its strands, or not by that"
    left = {*before.drained} - said if is_last else {*before.drained} | {f"{command.step}:{command.strand}"}
    return "" if len(after.drained) == len(left) and {*after.drained} == left else "has lost count of its strands"
