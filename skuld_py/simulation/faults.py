"""Faults as data: each with a number, a start, a stop and its victims, drawn from the seed before the run.

Any number may overlap. A schedule is a value, so that a failing run can be played again with fewer of
them: whatever a fault draws while it goes on comes from a stream that its own number names.

All but those of the disk leave alone what was committed, so every promise must survive every combination of
them, all nodes dying at once included.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs

from skuld_py.simulation.network import Link, between, bridge, halves, one_way, ring

PROCESS = ("crash", "crash before commit", "crash after commit", "disk full", "blackout", "pause",
           "long pause", "new leader crash", "clock step")
NETWORK = ("halves", "isolate", "one way", "bridge", "ring", "flap", "clog", "storm", "reset", "replay", "slow")
REGISTRY = ("registry cut", "registry freeze", "registry quorum", "registry move", "registry lag",
            "registry choke", "expire")
DISK = ("wipe", "roll back", "corrupt")
"""Faults that destroy what was committed; the atlas says whether they may."""
CHURN = ("leave",)
"""An operator takes a node out, as long as enough are left, and mostly puts it back."""
FAULTS = PROCESS + NETWORK + REGISTRY + DISK + CHURN

DURATIONS_MS = (30, 200, 1_000, 3_000)
LONG_MS = (2_000, 8_000)
"""Pauses and cuts that outlast leases and sessions."""
_LONG = ("long pause", "leave", "roll back", "flap", "registry lag", "slow")


@attrs.frozen
class Fault:
    """One disturbance: what, when, and whom. ``number`` is its place in the schedule as drawn."""

    number: int
    kind: str
    start_ms: int
    stop_ms: int
    targets: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return f"#{self.number} {self.kind} {self.start_ms}..{self.stop_ms} ms {'+'.join(self.targets)}".rstrip()


def draw_faults(random: Random, kinds: Sequence[str], every_ms: int, nodes: Sequence[str],
                end_ms: int) -> list[Fault]:
    """A schedule for the whole safety phase."""
    faults: list[Fault] = []
    at_ms = random.expovariate(1 / every_ms)
    while kinds and at_ms < end_ms:
        faults.append(_draw(random, len(faults), random.choice(kinds), int(at_ms), nodes))
        at_ms += random.expovariate(1 / every_ms)
    return faults


def _draw(random: Random, number: int, kind: str, start_ms: int, nodes: Sequence[str]) -> Fault:
    target = random.choice(nodes)
    duration_ms = (random.randint(*LONG_MS) if kind in _LONG
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
