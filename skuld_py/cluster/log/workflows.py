"""What the log knows of a workflow: that it lives, with which steps, how far it is; or how it ended.

Its definition is not here: that is the payload of a task, whose id and digest stand in the submission. The rows
of steps are what slots are shared out by, and what tells when it is complete: every input exhausted, then every
output sealed. A row's kind is ``output`` for each step that has no further ones, whatever it does.

A workflow is in exactly one ``State``, and only a live one changes. Once it has ended the steps go, and a
tombstone stays through two collections of the log, so that what is late or comes again still meets it.

An input has one feeder, or several: each draws a *strand* of it, its own parts of the source. It is exhausted when
the last of its strands is; ``drained`` are those that are, of inputs that are not.

A *life* of a workflow begins with its submission, and ``life`` is the time in its plan task's id. What is said of
a workflow may name the life that is meant: of another one, which had the same id and was forgotten, it changes
nothing. What names none (0), as entries did that were written before, is about whichever lives.

Bounds: ``LIVE_MAX`` live workflows of ``STEPS_MAX`` steps each, and of all together ``WEIGHT_MAX`` bytes, so that
the replica's text (the origin, and what joiners fetch) stays at some MiB; a tombstone has ``REASON_CHARS_MAX``
characters and three short names.

The grammar of names is that of definitions, and written down here once more: what an entry may say must not change
with what a later release lets definitions say.

Rejected: lists of live, completed and killed ids, as Onyx has them: there a late entry put one id into two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

from skuld_py.cluster.log.canonical import SPARSE
from skuld_py.errors import Malformed
from skuld_py.model.ids import from_text, time_of

WORKFLOWS_SINCE, STRANDS_SINCE = 3, 4
"""From these rules on there are workflows; and inputs with several strands, and entries that name a life."""
LIVE_MAX = 1_000
STEPS_MAX = 256
WEIGHT_MAX = 4 << 20
REASON_CHARS_MAX = 250
TAGS_MAX = 32
STRANDS_MAX = 64
"""Feeders of an input."""
UNBOUNDED = 1 << 30
"""As many slots as there are."""
WORKFLOW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
STEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_STRAND = re.compile(rf"{STEP_NAME.pattern}:(0|[1-9][0-9]?)", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{16,128}", re.ASCII)
_PLAN = re.compile(r"[0-9a-v]{32}", re.ASCII)
_REASON = re.compile("[ -~\u00a0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]{0,250}")
"""At most ``REASON_CHARS_MAX`` characters: no control characters, none that turn the direction of writing."""
INPUT, FUNCTION, OUTPUT = "input", "function", "output"
KINDS = (INPUT, FUNCTION, OUTPUT)
FLUXES = ("continue", "kill", "recover")
SPREADINGS = ("balanced", "percentage", "colocated")
_ROW_BYTES = 120


class State(Enum):
    """Where a workflow is in its life."""

    LIVE = "live"
    COMPLETED = "completed"
    KILLED = "killed"


def matches(grammar: re.Pattern[str], what: str) -> Any:
    """A validator: the text is ``what``."""
    def check(owner: Any, field: Any, value: str) -> None:
        if not grammar.fullmatch(value):
            raise Malformed(f"{type(owner).__name__}.{field.name}", f"is no {what}")
    return check


def within(least: int, most: int) -> Any:
    """A validator: the number is in that range."""
    def check(owner: Any, field: Any, value: int) -> None:
        if not least <= value <= most:
            raise Malformed(f"{type(owner).__name__}.{field.name}", f"is {value}, not in {least}..{most}")
    return check


def one_of(*words: str) -> Any:
    """A validator: the text is one of these."""
    def check(owner: Any, field: Any, value: str) -> None:
        if value not in words:
            raise Malformed(f"{type(owner).__name__}.{field.name}", f"is none of {', '.join(words)}")
    return check


is_workflow = matches(WORKFLOW_NAME, "name of a workflow")
is_step = matches(STEP_NAME, "name of a step")
is_digest = matches(_DIGEST, "digest")
is_plan = matches(_PLAN, "task id")
is_reason = matches(_REASON, f"reason of at most {REASON_CHARS_MAX} printable characters")
is_spreading = one_of(*SPREADINGS)
is_percentage = within(0, 100)
is_life = within(0, 1 << 62)
is_strand = within(0, STRANDS_MAX - 1)


def _are_tags(owner: Any, field: Any, value: tuple[str, ...]) -> None:
    if len(value) > TAGS_MAX or not all(map(_TAG.fullmatch, value)):
        raise Malformed(f"{type(owner).__name__}.{field.name}", f"are no tags, or more than {TAGS_MAX}")


def _are_strands(owner: Any, field: Any, value: tuple[str, ...]) -> None:
    if not all(_STRAND.fullmatch(each) and int(each.partition(":")[2]) < STRANDS_MAX for each in value):
        raise Malformed(f"{type(owner).__name__}.{field.name}", f"are no steps with numbers below {STRANDS_MAX}")


def _are_names(owner: Any, field: Any, value: tuple[str, ...]) -> None:
    """Validate names of steps, each once."""
    if len(value) > STEPS_MAX or len({*value}) < len(value) or not all(map(STEP_NAME.fullmatch, value)):
        raise Malformed(f"{type(owner).__name__}.{field.name}",
                        f"are no names of steps, or one twice, or more than {STEPS_MAX}")


@attrs.frozen
class StepRow:
    """A step, as slots are given to it: at least and at most so many, only such with all ``tags``, ``percentage``
    of its workflow's where these are spread by that. ``flux``: what it wants when slots come and go."""

    name: str = attrs.field(validator=is_step)
    kind: str = attrs.field(validator=one_of(*KINDS))
    least: int = attrs.field(default=1, validator=within(1, UNBOUNDED))
    most: int = attrs.field(default=UNBOUNDED, validator=within(1, UNBOUNDED))
    tags: tuple[str, ...] = attrs.field(default=(), validator=_are_tags)
    percentage: int = attrs.field(default=0, validator=is_percentage)
    flux: str = attrs.field(default="continue", validator=one_of(*FLUXES))

    def __attrs_post_init__(self) -> None:
        if self.least > self.most:
            raise Malformed("StepRow.least", f"is {self.least}, more than the most, {self.most}")

    @property
    def strands(self) -> int:
        """Of an input into how many strands it is split: as many as it has slots at most. One, where that is no
        number of feeders."""
        return self.most if self.most <= STRANDS_MAX else 1


def are_steps(owner: Any, field: Any, value: tuple[StepRow, ...]) -> None:
    """Validate the steps of a workflow: each name once, and somewhere to begin and to end."""
    where = f"{type(owner).__name__}.{field.name}"
    if not 1 <= len(value) <= STEPS_MAX:
        raise Malformed(where, f"are {len(value)}, not 1..{STEPS_MAX}")
    names = [step.name for step in value]
    if len({*names}) < len(names):
        raise Malformed(where, "name a step twice")
    kinds = [step.kind for step in value]
    if INPUT not in kinds or OUTPUT not in kinds:
        raise Malformed(where, "have no input or no output")


@attrs.frozen
class Workflow:
    """``digest`` and ``plan``: of its definition, and the id of the task that carries it. ``since`` is where it
    came to be what it is. ``steps``, ``exhausted`` (inputs) and ``sealed`` (outputs) are a live one's only,
    ``reason`` a killed one's; so are ``drained``, the strands that bring no more of inputs that still do."""

    digest: str
    plan: str
    state: str = attrs.field(default=State.LIVE.value, validator=one_of(*(each.value for each in State)))
    since: int = -1
    submitted: int = -1
    """Where it was submitted."""
    spreading: str = attrs.field(default=SPREADINGS[0], validator=is_spreading)
    percentage: int = attrs.field(default=0, validator=is_percentage)
    steps: tuple[StepRow, ...] = ()
    exhausted: tuple[str, ...] = attrs.field(default=(), validator=_are_names)
    sealed: tuple[str, ...] = attrs.field(default=(), validator=_are_names)
    reason: str = attrs.field(default="", validator=is_reason)
    drained: tuple[str, ...] = attrs.field(default=(), validator=_are_strands, metadata=SPARSE)
    is_split: bool = attrs.field(default=False, metadata=SPARSE)
    """Whether it was submitted under rules by which inputs have strands."""
    weight: int = attrs.field(default=attrs.Factory(lambda self: weight_of(self.steps), takes_self=True),
                              eq=False, repr=False)
    """About how many bytes its text has."""

    @property
    def is_live(self) -> bool:
        """Whether it may still change."""
        return self.state == State.LIVE.value

    @property
    def life(self) -> int:
        """Which of all workflows of its id it is: the time of its submission."""
        return time_of(from_text(self.plan)) if self.plan else 0

    def strands(self, step: str) -> int:
        """Into how many strands an input of a live one is split."""
        return next(each.strands for each in self.steps if each.name == step) if self.is_split else 1

    def open_strands(self, step: str) -> int:
        """How many strands of an input may still bring something."""
        if step in self.exhausted:
            return 0
        return self.strands(step) - sum(each.partition(":")[0] == step for each in self.drained)

    @property
    def inputs(self) -> tuple[str, ...]:
        """A live one's inputs."""
        return self._of(INPUT)

    @property
    def outputs(self) -> tuple[str, ...]:
        """A live one's outputs: what is sealed."""
        return self._of(OUTPUT)

    def _of(self, kind: str) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps if step.kind == kind)

    @property
    def open_inputs(self) -> tuple[str, ...]:
        """Inputs of a live one that may still bring something."""
        return tuple(name for name in self.inputs if name not in self.exhausted)

    @property
    def open_outputs(self) -> tuple[str, ...]:
        """Outputs of a live one that are not sealed."""
        return tuple(name for name in self.outputs if name not in self.sealed)

    @property
    def is_sealing(self) -> bool:
        """Whether nothing more comes in, so that the outputs are to be sealed."""
        return self.is_live and not self.open_inputs

    def ended(self, state: State, position: int, reason: str = "") -> Workflow:
        """Its tombstone."""
        return Workflow(self.digest, self.plan, state.value, position, self.submitted, reason=reason)


def has_strands(steps: tuple[StepRow, ...]) -> bool:
    """Whether an input of these steps is split."""
    return any(step.kind == INPUT and step.strands > 1 for step in steps)


def strand_name(step: str, strand: int) -> str:
    """A strand of an input, as ``drained`` names it. No step's name has a colon."""
    return f"{step}:{strand}"


Workflows = Mapping[str, Workflow]
"""By id, in the order of submission."""


def weight_of(steps: tuple[StepRow, ...]) -> int:
    """About how many bytes steps have as text."""
    return sum(_ROW_BYTES + len(step.name) + sum(len(tag) + 3 for tag in step.tags) for step in steps)


def live(workflows: Workflows) -> dict[str, Workflow]:
    """Those that live, in the order of submission."""
    return {name: each for name, each in workflows.items() if each.is_live}
