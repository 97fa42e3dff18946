"""What a node says of itself to the people who run it: which partitions it leads, whom it sees, what it doubts.

The machines log nothing, so that they stay functions of (now, event). They hand remarks to a callback
(``Bulletin.remark``), and the shell decides what becomes a line (``runtime.chronicle``). A remark is never read by
a machine.

Invariant: the reasons of a kind are few, so that remarks which differ only in what they are about can be told
together: 4,096 elections at a start are a few lines.

Rejected: remarks as effects, which the simulators and every recorded script would have to carry although nothing
follows from them; a list that the shell empties, which grows wherever there is no shell.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import attrs


class Kind(Enum):
    """What a remark says; the value is its name for programs."""

    JOINED = "joined"
    LEFT = "left"
    SESSION = "session"
    ELECTED = "elected"
    DEPOSED = "deposed"
    MAJORITY_LOST = "majority_lost"
    MAJORITY_REGAINED = "majority_regained"
    FILL_BEGUN = "fill_begun"
    FILL_DONE = "fill_done"
    CLOCK = "clock"
    DOUBT = "doubt"
    LOSS = "loss"
    PUT_BACK = "put_back"
    LACKED = "lacked"


@attrs.frozen
class Remark:
    """One thing that happened. ``about``: a partition or a node; ``why``: one of the few reasons of its kind."""

    kind: Kind
    about: str = ""
    why: str = ""


Remarks = Callable[[Remark], None]
"""Takes a remark; touches no machine."""


def unheard(_: Remark) -> None:
    """Nobody listens."""


def partition_said(partition: int, epoch: int = 0) -> str:
    """A partition, and in which epoch."""
    return f"partition {partition} (epoch {epoch})" if epoch else f"partition {partition}"


@attrs.define
class Counts:
    """What a node has done since its start, as plain numbers that any thread may read. One addition for each
    request, election or comparison; none for a task."""

    granted: int = 0
    vetoed: int = 0
    """Claims that a follower objected to."""
    elected: int = 0
    deposed: int = 0
    differences: int = 0
    """Rows that exchanges fetched from other copies, or gave to them."""
