"""What a feeder hears, and what it wants done. Values of roots never come here: its shell holds those."""

from __future__ import annotations

from enum import Enum

import attrs

from skuld_py.workflow.acking.acks import Acks


class Policy(Enum):
    """What becomes of a segment that is dead: it is tried again, or the workflow is killed."""

    RESTART = "restart"
    KILL = "kill"


# -- events ------------------------------------------------------------------------------------------


@attrs.frozen
class Resumed:
    """The feeder's task is claimed: the first event, with its checkpoint, None without one."""

    checkpoint: object


@attrs.frozen
class Drawn:
    """Values from ``first`` on were drawn, and the shell holds them. ``is_last``: the source has no more, for
    ever. None, and not the last: for now it has no more. They begin at an ``offset`` of a ``part`` of the source;
    ``cursor``, at most 4 KiB, is what it wants to be told when the next are drawn."""

    first: int
    count: int
    is_last: bool
    part: int = 0
    offset: int = 0
    cursor: bytes = b""


@attrs.frozen
class Kept:
    """The checkpoint is stored by a majority."""


@attrs.frozen
class Stored:
    """The roots of a batch are stored. ``refused``: the numbers of those that are older than what is kept."""

    first: int
    refused: tuple[int, ...] = ()


@attrs.frozen
class Acked:
    """Workers told of segments."""

    acks: Acks


@attrs.frozen
class Try:
    """A claim of a segment that was completed: its token, when it began, and how many segments it would emit; None
    when it has no result that can be read."""

    token: int
    start_ms: int
    emitted: int | None


class Standing(Enum):
    """Where a segment's task stands. Dead ones are cancelled or out of attempts."""

    ABSENT = "absent"
    OPEN = "open"
    DEAD = "dead"
    DONE = "done"


@attrs.frozen
class Sight:
    """A segment's task, as a majority shows it. ``tries``: all claims of one that is done; the first is the one
    whose completion stands. ``step``: whose segment it is."""

    segment: bytes
    standing: Standing
    step: str = ""
    tries: tuple[Try, ...] = ()


@attrs.frozen
class Audited:
    """What the last ``Audit`` found, in its order."""

    sights: tuple[Sight, ...]


@attrs.frozen
class Repaired:
    """The segments that a completion emits are stored. ``is_done``: all that were wanted; ``is_late``: some are
    older than what is kept, and are taken no more."""

    root: bytes
    parent: bytes
    token: int
    is_done: bool = True
    is_late: bool = False


@attrs.frozen
class Unrevived:
    """A dead segment cannot be tried again."""

    root: bytes
    segment: bytes
    step: str


@attrs.frozen
class Exhausted:
    """The coordination log says that the input is exhausted."""


@attrs.frozen
class Ticked:
    """Time has passed."""


Event = (Resumed | Drawn | Kept | Stored | Acked | Audited | Repaired | Unrevived | Exhausted | Ticked)


# -- effects -----------------------------------------------------------------------------------------


@attrs.frozen
class Draw:
    """Draw up to ``count`` values from where the source's ``cursor`` says, empty at first; the first of them is
    the root numbered ``first``. ``is_again``: exactly as many, from this offset of this part on, where they were
    drawn before."""

    first: int
    count: int
    cursor: bytes = b""
    is_again: bool = False
    part: int = 0
    offset: int = 0


@attrs.frozen
class Keep:
    """Store a checkpoint. There is one at a time."""

    checkpoint: bytes


@attrs.frozen
class Store:
    """Enqueue roots of a batch by their numbers, under the ids that follow from them and ``time_ms``; the values
    are needed no more afterwards."""

    first: int
    time_ms: int
    numbers: tuple[int, ...]


@attrs.frozen
class Audit:
    """Read where segments stand. There is one at a time."""

    segments: tuple[bytes, ...]


@attrs.frozen
class Repair:
    """Read what a claim's completion of ``parent`` emits, and enqueue those of these numbers; None: all."""

    root: bytes
    parent: bytes
    token: int
    numbers: tuple[int, ...] | None = None


@attrs.frozen
class Revive:
    """Let a dead segment be tried again."""

    root: bytes
    segment: bytes
    step: str


@attrs.frozen
class Fail:
    """A root has failed, and nothing follows: the workflow is to be killed. ``cause``: dead, too_large (of more
    segments than one root may have), too_old (ended tasks are kept for less long than it takes), source (which
    gave other values than before), result (that says nothing of what it emits)."""

    root: bytes
    segment: bytes
    step: str
    cause: str = "dead"


@attrs.frozen
class Exhaust:
    """Write into the coordination log that the input is exhausted."""


@attrs.frozen
class Done:
    """Complete the feeder's task."""

    completed: int


Effect = Draw | Keep | Store | Audit | Repair | Revive | Fail | Exhaust | Done
