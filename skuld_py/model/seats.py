"""The seats of workflows, as nodes tell them to workers: what a slot works on, and by what fence it claims."""

from __future__ import annotations

import attrs

SEATED = "workflows"
"""The tag of slots whose workers take seats."""
CLAIMS = "claims-"
"""Begins the tag that says how many claims a slot stands for."""
INPUT, FUNCTION, OUTPUT = 0, 1, 2
"""Kinds of steps, as the coordination log orders them: of an input the feeder's task is claimed; of an output the
one that seals it, too."""


@attrs.frozen
class Seat:
    """``count`` slots serve a step. ``kind`` is a number in ``KINDS``; ``fence`` what their claims show."""

    workflow: str
    step: str
    kind: int
    count: int
    fence: int


@attrs.frozen
class Seats:
    """What a node knows as of a position of the coordination log. ``here``: its own seats, by the tags of the
    slots that take them. ``fences`` by live workflow; ``starved``: those without seats, and why."""

    position: int = -1
    here: tuple[tuple[tuple[str, ...], tuple[Seat, ...]], ...] = ()
    fences: dict[str, int] = attrs.field(factory=dict)
    starved: dict[str, str] = attrs.field(factory=dict)
