"""Faults as data: each with a number, a start, a stop and its victims, drawn from the seed before the run.

Any number may overlap. A schedule is a value, so that a failing run can be played again with fewer of
them: whatever a fault draws while it goes on comes from a stream that its own number names. Kinds that were
added later have schedules apart, so that those of the others stay what they were (``options`` says why).

All faults but those of the disk leave committed records alone, so every promise must survive every combination of
them, even all nodes dying at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs

from skuld_py.simulation.world.lateness import Link
from skuld_py.simulation.world.network import between, bridge, halves, one_way, ring
from skuld_py.simulation.world.scheduler import stream

PROCESS = ("crash", "crash before commit", "crash after commit", "disk full", "blackout", "pause",
           "long pause", "new leader crash", "clock step")
NETWORK = ("halves", "isolate", "one way", "bridge", "ring", "flap", "clog", "storm", "reset", "replay", "slow")
REGISTRY = ("registry cut", "registry freeze", "registry quorum", "registry move", "registry lag",
            "registry choke", "expire")
DISK = ("wipe", "roll back", "corrupt")
"""Faults that destroy what was committed; the atlas says whether they may."""
CHURN = ("leave",)
"""An operator takes a node out, as long as enough are left, and mostly puts it back."""


@attrs.frozen
class Habit:
    """A kind of fault drawn apart: in which share of the runs it strikes, and how often in these."""

    kind: str
    share: float
    every_ms: int


APART = (Habit("old copy", 0.15, 2_000), Habit("hold up", 0.4, 2_500), Habit("voter damaged", 0.1, 2_000),
         Habit("registry scribble", 0.1, 1_000))
"""New kinds go to the end."""
AHEAD = Habit("clock ahead", 0.3, 5_000)
"""A node is ahead of all others for a while, by a moment or by an hour; one at a time, for of three two that are
wrong alike are a majority. Drawn where nothing is collected by the clock: what an hour does to a retention of
seconds says nothing."""
STOP = Habit("stop", 0.4, 3_000)
"""A node ends cleanly and comes back. Drawn after all others."""
VISIT = "visit"
"""A node that is not needed joins, ends cleanly soon after, and loses its disk."""
VISIT_EVERY_MS, VISITS_FROM_MS = 1_500, 4_000
"""None come before partitions have their first leaders: the first cohorts are those of the first placement."""
CLOCKS_MIN = 3
"""Among fewer clocks it cannot be told which is wrong."""
AHEAD_MS = (200, 1_500, 60_000, 3_600_000)
COPIES = ("old copy", "voter damaged")
"""Faults that put back what a disk held before, or damage it at a bad moment; as those of the disk."""
FAULTS = (*PROCESS, *NETWORK, *REGISTRY, *DISK, *CHURN, *(habit.kind for habit in APART), STOP.kind)

DURATIONS_MS = (30, 200, 1_000, 3_000)
LONG_MS = (2_000, 8_000)
"""Pauses and cuts that outlast leases and sessions."""
_LONG = ("long pause", "leave", "roll back", "old copy", "flap", "registry lag", "slow", "hold up",
         "voter damaged", AHEAD.kind)
VISIT_MS = (1_200, 2_500)


@attrs.frozen
class Fault:
    """One disturbance: its kind, its time, and its victims. ``number`` is its place in the schedule as drawn."""

    number: int
    kind: str
    start_ms: int
    stop_ms: int
    targets: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return f"#{self.number} {self.kind} {self.start_ms}..{self.stop_ms} ms {'+'.join(self.targets)}".rstrip()


def draw_schedule(seed: int, kinds: Sequence[str], every_ms: int, apart: Sequence[Habit], nodes: Sequence[str],
                  end_ms: int, visitors: Sequence[str] = ()) -> list[Fault]:
    """All faults of the safety phase; those of kinds drawn apart come last, whenever they strike."""
    faults = draw_faults(stream(seed, "faults"), kinds, every_ms, nodes, end_ms)
    for habit in apart:
        faults += draw_faults(stream(seed, f"faults {habit.kind}"), (habit.kind,), habit.every_ms, nodes, end_ms,
                              len(faults))
    if visitors:
        visits = draw_faults(stream(seed, f"faults {VISIT}"), (VISIT,), VISIT_EVERY_MS, visitors, end_ms,
                             len(faults))
        faults += [visit for visit in visits if visit.start_ms >= VISITS_FROM_MS]
    return faults


def draw_faults(random: Random, kinds: Sequence[str], every_ms: int, nodes: Sequence[str], end_ms: int,
                first: int = 0) -> list[Fault]:
    """One schedule, numbered from ``first`` on."""
    faults: list[Fault] = []
    at_ms = random.expovariate(1 / every_ms)
    while kinds and at_ms < end_ms:
        faults.append(_draw(random, first + len(faults), random.choice(kinds), int(at_ms), nodes))
        at_ms += random.expovariate(1 / every_ms)
    return faults


def _draw(random: Random, number: int, kind: str, start_ms: int, nodes: Sequence[str]) -> Fault:
    target = random.choice(nodes)
    duration_ms = (random.randint(*VISIT_MS) if kind == VISIT else random.randint(*LONG_MS) if kind in _LONG
                   else random.randint(1, random.choice(DURATIONS_MS)))
    targets = tuple(nodes) if kind == "blackout" else (target,)
    return Fault(number, kind, start_ms, start_ms + duration_ms, targets,
                 tuple(_draw_links(random, kind, target, nodes)))


def _draw_links(random: Random, kind: str, target: str, nodes: Sequence[str]) -> list[Link]:
    others = [name for name in nodes if name != target]
    if kind == "halves":
        return halves(random, nodes)
    if kind == "bridge":
        return bridge(random, nodes)
    if kind == "ring":
        return ring(random, nodes)
    if kind == "isolate":
        return between([target], others)
    if kind == "one way":
        return one_way([target], others) if random.random() < 0.5 else one_way(others, [target])
    if kind == "flap":
        return between([target], random.sample(others, random.randint(1, len(others)))) if others else []
    if kind == "clog" and others:
        return [(target, random.choice(others))]
    if kind == "reset":
        return one_way([target], others)
    return []
