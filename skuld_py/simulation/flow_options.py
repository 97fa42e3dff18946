"""Workflows in a run, drawn from its seed: how much is done about them, and how soon slots are told.

The usual times between a worker's report and the entry that counts its slots are those of a fleet that starts; a
run would be over before seats change hands.
"""

from __future__ import annotations

from random import Random

import attrs

SHARE = 0.25
"""Of the runs in which workflows run, on workers that take seats."""


@attrs.frozen
class FlowOptions:
    """``every_ms``: mean time between what is done about workflows; the rest is of ``node.workers.capacity``."""

    every_ms: int
    quiet_ms: int
    patience_ms: int
    pause_ms: int


def draw_flows(random: Random) -> FlowOptions | None:
    """The options of a seed, if it has workflows."""
    drawn = FlowOptions(random.choice((150, 400)), random.choice((50, 500)), random.choice((500, 2_000)),
                        random.choice((50, 1_000)))
    return drawn if random.random() < SHARE else None
