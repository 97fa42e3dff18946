"""How clients write of workflows into the coordination log, read what it knows of them, and follow it.

Any node takes any of these. What was written is answered once the node has played it, with what became of it;
written again it changes nothing, so an answer that was lost is asked for again.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.message import ROLE_CLIENT, Message
from skuld_py.model.messages.reads import WAIT_MS_MAX

WORKFLOW_CHARS = 100
STEP_CHARS = 64
STEPS_MAX = 256
TAGS_MAX = 32
SLOTS_OF_STEP_MAX = 1 << 30
REASON_CHARS = 250
WORKFLOWS_ASKED_MAX = 100
WORKFLOWS_IN_PAGE = 500
ENTRIES_IN_PAGE = 500
CHANGES_MAX = 16


@attrs.frozen
class StepSpec:
    """A step of a workflow, as slots are given to it; ``kind`` is ``input``, ``function`` or ``output``."""

    name: str = fields.text(STEP_CHARS)
    kind: str = fields.text(16)
    least: int = fields.number(1, SLOTS_OF_STEP_MAX)
    most: int = fields.number(1, SLOTS_OF_STEP_MAX)
    tags: tuple[str, ...] = fields.names(TAGS_MAX)
    percentage: int = fields.number(0, 100)
    flux: str = fields.text(16)


@attrs.frozen
class WorkflowRow:
    """What the log knows of a workflow. ``since``: the position at which it came to be so; ``steps``,
    ``exhausted`` and ``sealed`` are a live one's, and the first only of one that was asked for by its id."""

    workflow: str = fields.text(WORKFLOW_CHARS)
    state: str = fields.text(16)
    digest: str = fields.text(128)
    plan: str = fields.text(32)
    submitted: int = fields.number()
    since: int = fields.number()
    spreading: str = fields.text(16)
    percentage: int = fields.number(0, 100)
    reason: str = fields.text(REASON_CHARS)
    steps: tuple[StepSpec, ...] = fields.rows(StepSpec, STEPS_MAX)
    exhausted: tuple[str, ...] = fields.names(STEPS_MAX)
    sealed: tuple[str, ...] = fields.names(STEPS_MAX)


@attrs.frozen
class Submit(Message):
    """Let a workflow live, whose definition is with the task ``plan``. Answered by ``Decreed``."""

    roles = ROLE_CLIENT
    since = 3
    request: int = fields.number()
    workflow: str = fields.text(WORKFLOW_CHARS)
    digest: str = fields.text(128)
    plan: str = fields.text(32)
    spreading: str = fields.text(16)
    percentage: int = fields.number(0, 100)
    steps: tuple[StepSpec, ...] = fields.rows(StepSpec, STEPS_MAX)


@attrs.frozen
class Kill(Message):
    """End a workflow before it is complete. Answered by ``Decreed``."""

    roles = ROLE_CLIENT
    since = 3
    request: int = fields.number()
    workflow: str = fields.text(WORKFLOW_CHARS)
    reason: str = fields.text(REASON_CHARS)
    life: int = fields.number(0, 1 << 62, default=0, since=3)
    """Which of all workflows of this id is meant: the time in its plan task's id. 0: whichever lives."""


@attrs.frozen
class Advance(Message):
    """An input of a workflow is exhausted, or (``is_seal``) an output sealed. Answered by ``Decreed``."""

    roles = ROLE_CLIENT
    since = 3
    request: int = fields.number()
    workflow: str = fields.text(WORKFLOW_CHARS)
    step: str = fields.text(STEP_CHARS)
    is_seal: bool = fields.truth()
    life: int = fields.number(0, 1 << 62, default=0, since=3)
    """As in ``Kill``."""
    strand: int = fields.number(0, 63, default=0, since=3)
    """Of an input the strand that has no more."""


@attrs.frozen
class Decreed(Message):
    """What became of it. ``outcome``: applied, unchanged or refused, then for ``reason``; ``position``: where it
    stands, or from where on it needed no entry; ``workflows``: the workflow since then, if it is known."""

    since = 3
    request: int = fields.number()
    outcome: str = fields.text(16)
    position: int = fields.number()
    reason: str = fields.text(REASON_CHARS)
    workflows: tuple[WorkflowRow, ...] = fields.rows(WorkflowRow, 1)


@attrs.frozen
class Survey(Message):
    """The workflows with these ids, or else all behind a place in their order, as of ``position`` at least; waits
    for that up to ``wait_ms``."""

    roles = ROLE_CLIENT
    is_reading = True
    since = 3
    request: int = fields.number()
    ids: tuple[str, ...] = fields.names(WORKFLOWS_ASKED_MAX)
    behind: int = fields.number()
    position: int = fields.number()
    wait_ms: int = fields.number(0, WAIT_MS_MAX)


@attrs.frozen
class Surveyed(Message):
    """As of ``version``, one more than the position of the last entry played. ``last``: the place of the last row,
    0 at the end."""

    since = 3
    request: int = fields.number()
    version: int = fields.number()
    last: int = fields.number()
    workflows: tuple[WorkflowRow, ...] = fields.rows(WorkflowRow, WORKFLOWS_IN_PAGE)


@attrs.frozen
class Follow(Message):
    """Entries of the coordination log from a position on, at most so many; waits up to ``wait_ms`` for one."""

    roles = ROLE_CLIENT
    is_reading = True
    since = 3
    request: int = fields.number()
    position: int = fields.number()
    entries: int = fields.number(1, ENTRIES_IN_PAGE)
    wait_ms: int = fields.number(0, WAIT_MS_MAX)


@attrs.frozen
class ChangeRow:
    """One thing that an entry changed: its name, and what it is now."""

    name: str = fields.text(32)
    value: str = fields.text(1_000)


@attrs.frozen
class EntryRow:
    """An entry that was played. ``time_ms``: when this node played it, 0 for one that it found when it began.
    ``kind`` and ``writer`` are empty of one that cannot be read."""

    position: int = fields.number()
    time_ms: int = fields.moment()
    kind: str = fields.text(32)
    writer: str = fields.text(230)
    outcome: str = fields.text(16)
    reason: str = fields.text(REASON_CHARS)
    changes: tuple[ChangeRow, ...] = fields.rows(ChangeRow, CHANGES_MAX)


@attrs.frozen
class Followed(Message):
    """``first``: the oldest entry that this node still has; those before it were collected, or it began behind
    them. ``next``: where to go on."""

    since = 3
    request: int = fields.number()
    first: int = fields.number()
    next: int = fields.number()
    entries: tuple[EntryRow, ...] = fields.rows(EntryRow, ENTRIES_IN_PAGE)
