"""All scenarios, in the order they are run."""

from __future__ import annotations

from collections.abc import Callable

from faults import hard, restored, rounds, scenarios
from faults.world import Scenario, World
from machines.town import Shape

FIVE, ALL_HOLD_ALL = Shape(nodes=5), Shape(nodes=5, replicas=5)
WITH_DISKS = Shape(has_disks=True)


def _scenario(name: str, play: Callable[[World], None], **options: object) -> Scenario:
    summary = (play.__doc__ or "").strip().partition("\n")[0]
    return Scenario(name, summary, play, **options)  # type: ignore[arg-type]


ALL = (
    _scenario("kill", scenarios.kill, is_quick=True, tests=("D6",)),
    _scenario("pause", scenarios.pause, is_quick=True),
    _scenario("halves", scenarios.halves, shape=FIVE, is_quick=True),
    _scenario("ring", scenarios.ring, shape=ALL_HOLD_ALL, is_quick=True),
    _scenario("zookeeper-freeze", scenarios.zookeeper_freeze, is_quick=True),
    _scenario("power-cut", hard.power_cut, shape=WITH_DISKS, is_quick=True, tests=("D7",)),
    _scenario("wiped", hard.wiped, is_quick=True, tests=("D8",)),
    _scenario("old-copy", restored.old_copy, is_quick=True, tests=("D8", *restored.RULES)),
    _scenario("full-disk", hard.full_disk, shape=WITH_DISKS, is_quick=True),
    _scenario("wiped-alone", hard.wiped_alone, tests=("D8",)),
    _scenario("one-way", scenarios.one_way, elects=False),
    _scenario("bridge", scenarios.bridge, shape=ALL_HOLD_ALL),
    _scenario("no-zookeeper", scenarios.no_registry),
    _scenario("expiry", scenarios.expiry),
    _scenario("zookeeper-kill", scenarios.zookeeper_kill, elects=False),
    _scenario("rolling", scenarios.rolling),
    _scenario("flapping", scenarios.flapping, elects=False),
    _scenario("clocks", hard.clocks),
    _scenario("clock-ahead", hard.clock_ahead),
    _scenario("failing-fsync", hard.failing_fsync, programs=("strace",)),
    _scenario("pause-kill", hard.pause_kill, shape=WITH_DISKS, tests=("D7",)),
    _scenario("part-kill", hard.part_kill, shape=WITH_DISKS, tests=("D7",)),
    _scenario("ipv6", rounds.replaced, shape=Shape(nodes=5, ipv6=True), tests=("D8",)),
    _scenario("rounds", rounds.rounds, shape=Shape(nodes=5, has_disks=True), tests=("D6", "D8")),
)
SHORTEST = _scenario("one-kill", scenarios.one_kill, tests=("D6",))
"""What shows that fault runs run."""
BY_NAME = {scenario.name: scenario for scenario in (*ALL, SHORTEST)}
