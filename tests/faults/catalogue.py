"""All scenarios, in the order they are run."""

from __future__ import annotations

from collections.abc import Callable

from faults import hard, restored, scenarios
from faults.world import Scenario, World


def _scenario(name: str, play: Callable[[World], None], **shape: object) -> Scenario:
    summary = (play.__doc__ or "").strip().partition("\n")[0]
    return Scenario(name, summary, play, **shape)  # type: ignore[arg-type]


ALL = (
    _scenario("kill", scenarios.kill, is_quick=True, tests=("D6",)),
    _scenario("pause", scenarios.pause, is_quick=True),
    _scenario("halves", scenarios.halves, nodes=5, is_quick=True),
    _scenario("ring", scenarios.ring, nodes=5, replicas=5, is_quick=True),
    _scenario("zookeeper-freeze", scenarios.zookeeper_freeze, is_quick=True),
    _scenario("power-cut", hard.power_cut, has_disks=True, is_quick=True, tests=("D7",)),
    _scenario("wiped", hard.wiped, is_quick=True, tests=("D8",)),
    _scenario("old-copy", restored.old_copy, is_quick=True, tests=("D8", *restored.RULES)),
    _scenario("full-disk", hard.full_disk, has_disks=True, is_quick=True),
    _scenario("wiped-alone", hard.wiped_alone, tests=("D8",)),
    _scenario("one-way", scenarios.one_way, elects=False),
    _scenario("bridge", scenarios.bridge, nodes=5, replicas=5),
    _scenario("no-zookeeper", scenarios.no_registry),
    _scenario("expiry", scenarios.expiry),
    _scenario("zookeeper-kill", scenarios.zookeeper_kill, elects=False),
    _scenario("rolling", scenarios.rolling),
    _scenario("flapping", scenarios.flapping, elects=False),
    _scenario("clocks", hard.clocks),
    _scenario("clock-ahead", hard.clock_ahead),
    _scenario("failing-fsync", hard.failing_fsync, programs=("strace",)),
    _scenario("pause-kill", hard.pause_kill, has_disks=True, tests=("D7",)),
    _scenario("part-kill", hard.part_kill, has_disks=True, tests=("D7",)),
)
BY_NAME = {scenario.name: scenario for scenario in ALL}
