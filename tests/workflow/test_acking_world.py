"""Whatever becomes of acks, workers and feeders: every root comes to its end, and nothing is emitted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from workflow.acking_queue import Violation
from workflow.acking_world import World

SEEDS = 40
KEPT = (487, 3025, 3636, 4618)
"""Plays that broke something once."""
BULK = 2_000
OFTEN = (
    "a worker dies while it runs", "a worker dies between completion and emission",
    "a worker dies between emission and ack", "a completion comes after its lease", "a completion is hidden",
    "completed twice", "claimed again while a completion is hidden", "a reader meets what was hidden",
    "another completion turns out to be the earliest", "a holder leaves a segment to the feeder",
    "a holder emits though there were others",
    "children are enqueued in part", "children are enqueued by the dead", "children are emitted by the feeder",
    "a child is enqueued again", "a root is enqueued again", "roots are stored in part", "acks are lost",
    "acks are repeated", "a feeder dies", "a feeder dies between two effects",
    "a feeder goes on from a checkpoint", "a feeder goes on behind another's back",
    "a former feeder's checkpoint is fenced", "a segment is dead", "a dead segment is tried again",
    "all roots are done",
)
RARE = (
    "it emits something else, and children are there", "exhausted again by a later life", "a root fails",
    "acks of an exhausted input are cancelled",
    "registers are forgotten", "a segment is decided on", "a decision is gone on with by a later life",
)


def play(seed: int) -> tuple[str, Counter[str]]:
    """What was broken, and what was met."""
    world = World(seed)
    try:
        world.run()
    except Violation as violation:
        return f"seed {seed}: {violation}; {world.play}", world.met
    return "", world.met


def check(played: Iterable[tuple[str, Counter[str]]], wanted: Iterable[str]) -> None:
    """Nothing was broken, and all that is wanted was met."""
    met: Counter[str] = Counter()
    broken = []
    for problem, some in played:
        met += some
        if problem:
            broken.append(problem)
    assert not broken, "\n".join(broken)
    assert not [each for each in wanted if not met[each]]


def test_roots_come_to_their_end_whatever_dies_or_is_lost() -> None:
    check(map(play, (*range(SEEDS), *KEPT)), OFTEN)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_plays_keep_every_promise(share: range) -> None:
    seeds = range(SEEDS, SEEDS + BULK)[share.start::share.step]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        check(pool.map(play, seeds, chunksize=20), OFTEN + RARE if share.step == 1 else OFTEN)
