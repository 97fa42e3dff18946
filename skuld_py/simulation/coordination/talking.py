"""Mixes of the options of ``config.Scaling``, to be played under all the harness's faults beside what a seed
draws.

Here every run has the mix that is asked for, with times that fit those of the harness, so that each option is
met often; in some runs a part of the members does without, and in some every message between members is lost.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.config.scaling import Scaling
from skuld_py.simulation.coordination.options import Options, draw
from skuld_py.simulation.coordination.play import DAMAGED_MIN, ENTRIES_MAX, Run, Verdict
from skuld_py.simulation.coordination.stage import World
from skuld_py.simulation.log_options import QUICK
from skuld_py.simulation.world.scheduler import stream

MIXES: dict[str, Scaling] = {
    "direct": attrs.evolve(QUICK, direct_join=True),
    "transfer": attrs.evolve(QUICK, transfer=True),
    "sharing": attrs.evolve(QUICK, sharing=True),
    "damaged": attrs.evolve(QUICK, sharing=True),
    "versions": attrs.evolve(QUICK, versions=True),
    "schedulers": attrs.evolve(QUICK, schedulers=("n00", "n01")),
    "all": attrs.evolve(QUICK, direct_join=True, transfer=True, sharing=True, schedulers=("n00", "n01", "n02"),
                        versions=True),
}


def options_of(seed: int, mix: str) -> Options:
    """What the seed draws, with this mix."""
    options, random = draw(stream(seed, "options")), stream(seed, "mix")
    share = random.choice([1.0, 1.0, 0.6])
    scaling = tuple(MIXES[mix] if random.random() < share else QUICK for _ in range(options.members))
    dropped = random.choice([0.0, 0.0, 0.05, 0.3, 1.0])
    if mix == "damaged":  # it takes three to tell which; and no member may make an origin of it
        settings, members = attrs.evolve(options.settings, length_max=ENTRIES_MAX), options.members + DAMAGED_MIN
        options = attrs.evolve(options, members=members, settings=settings, drives=False, is_damaged=True)
        scaling = (MIXES[mix],) * members
    return attrs.evolve(options, scaling=scaling, weather=attrs.evolve(options.weather, loss=dropped))


def run(seed: int, mix: str, listener: Callable[[str], None] | None = None, world: World | None = None) -> Verdict:
    """Play a seed with a mix of options."""
    course = Run(seed, world or World(), options_of(seed, mix), listener)
    course.play()
    return course.verdict()
