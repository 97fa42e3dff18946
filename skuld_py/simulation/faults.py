"""The nemesis: faults as data, each with a start and a stop, drawn from the seed before the run.

Any number may overlap. No fault destroys what was committed, so every promise must survive every
combination, all nodes dying at once included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import attrs

from skuld_py.simulation.network import Link, Network, Weather, between, bridge, halves, one_way
from skuld_py.simulation.process import CrashPoint, Process
from skuld_py.simulation.registry import Registry
from skuld_py.simulation.scheduler import Scheduler

DURATIONS_MS = (30, 200, 1_000, 3_000)
RESTART_SPREAD_MS = 500
_CRASH_POINTS = {"crash before commit": CrashPoint.BEFORE_COMMIT,
                 "crash after commit": CrashPoint.AFTER_COMMIT}
_PARTITIONS = ("halves", "isolate", "one way", "bridge")


@attrs.frozen
class Fault:
    """One disturbance: what, when, and whom."""

    kind: str
    start_ms: int
    stop_ms: int
    targets: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


class Victim(Protocol):
    """What a nemesis may lay hands on."""

    scheduler: Scheduler
    network: Network
    registry: Registry
    processes: dict[str, Process]

    def restart(self, name: str) -> None:
        """Start a node that is down."""

    def pause(self, name: str) -> None:
        """Stop a node's process."""

    def resume(self, name: str) -> None:
        """Let it go on."""

    def cut_registry(self, name: str) -> None:
        """Part a node from the registry."""

    def mend_registry(self, name: str) -> None:
        """Join them again."""

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""


def draw_faults(random: Random, kinds: Sequence[str], every_ms: int, nodes: Sequence[str],
                end_ms: int) -> list[Fault]:
    """A schedule for the whole safety phase."""
    faults: list[Fault] = []
    at_ms = random.expovariate(1 / every_ms)
    while kinds and at_ms < end_ms:
        start_ms = int(at_ms)
        duration_ms = random.randint(1, random.choice(DURATIONS_MS))
        faults.append(_draw(random, random.choice(kinds), start_ms, start_ms + duration_ms, nodes))
        at_ms += random.expovariate(1 / every_ms)
    return faults


def _draw(random: Random, kind: str, start_ms: int, stop_ms: int, nodes: Sequence[str]) -> Fault:
    target = random.choice(nodes)
    others = [name for name in nodes if name != target]
    links: list[Link] = []
    if kind == "halves":
        links = halves(random, nodes)
    elif kind == "bridge":
        links = bridge(random, nodes)
    elif kind == "isolate":
        links = between([target], others)
    elif kind == "one way":
        links = one_way([target], others) if random.random() < 0.5 else one_way(others, [target])
    elif kind == "clog" and others:
        links = [(target, random.choice(others))]
    targets = tuple(nodes) if kind == "blackout" else (target,)
    return Fault(kind, start_ms, stop_ms, targets, tuple(links))


class Nemesis:
    """Carries a schedule out."""

    def __init__(self, victim: Victim, random: Random, faults: Sequence[Fault], calm: Weather) -> None:
        self.counts: Counter[str] = Counter()
        self.faults = faults
        self._victim = victim
        self._random = random
        self._calm = calm
        self._is_over = False
        self._starts: dict[str, Callable[[Fault], None]] = {
            "crash": self._crash, "blackout": self._crash, "pause": self._pause, "clog": self._clog,
            "storm": self._storm, "registry cut": self._cut_registry, "registry freeze": self._freeze,
            "expire": self._expire,
            **dict.fromkeys(_CRASH_POINTS, self._arm_crash), **dict.fromkeys(_PARTITIONS, self._part),
        }

    def begin(self) -> None:
        """Plan all of it."""
        for fault in self.faults:
            self._victim.scheduler.at(fault.start_ms, self._start, fault)

    def _start(self, fault: Fault) -> None:
        if not self._is_over:
            self.counts[fault.kind] += 1
            self._victim.note("nemesis", fault.kind, "+".join(fault.targets), f"until {fault.stop_ms}")
            self._starts[fault.kind](fault)

    def _stop_later(self, fault: Fault, action: Callable[..., None], *arguments: object) -> None:
        self._victim.scheduler.at(fault.stop_ms, self._stop, action, arguments)

    def _stop(self, action: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if not self._is_over:
            action(*arguments)

    def _crash(self, fault: Fault) -> None:
        for name in fault.targets:
            self._victim.processes[name].crash()
            spread_ms = self._random.randint(0, RESTART_SPREAD_MS) if len(fault.targets) > 1 else 0
            self._victim.scheduler.at(fault.stop_ms + spread_ms, self._stop, self._victim.restart, (name,))

    def _arm_crash(self, fault: Fault) -> None:
        process = self._victim.processes[fault.targets[0]]
        if not process.is_up:
            return
        process.crash_point = _CRASH_POINTS[fault.kind]
        downtime_ms = fault.stop_ms - fault.start_ms
        process.on_crash = lambda: self._victim.scheduler.after(
            downtime_ms, self._stop, self._victim.restart, (process.name,))

    def _pause(self, fault: Fault) -> None:
        self._victim.pause(fault.targets[0])
        self._stop_later(fault, self._victim.resume, fault.targets[0])

    def _part(self, fault: Fault) -> None:
        self._victim.network.cut(fault.links)
        self._stop_later(fault, self._victim.network.mend, fault.links)

    def _clog(self, fault: Fault) -> None:
        for link in fault.links:
            self._victim.network.clog(link, fault.stop_ms)

    def _storm(self, fault: Fault) -> None:
        self._victim.network.weather = attrs.evolve(self._calm, loss=0.4, repeat=0.3)
        self._stop_later(fault, self._calm_down)

    def _calm_down(self) -> None:
        self._victim.network.weather = self._calm

    def _cut_registry(self, fault: Fault) -> None:
        self._victim.cut_registry(fault.targets[0])
        self._stop_later(fault, self._victim.mend_registry, fault.targets[0])

    def _freeze(self, fault: Fault) -> None:
        if not self._victim.registry.is_frozen:
            self._victim.registry.freeze()
            self._stop_later(fault, self._victim.registry.thaw)

    def _expire(self, fault: Fault) -> None:
        connection = self._victim.processes[fault.targets[0]].connection
        if connection is not None:
            self._victim.registry.expire(connection)

    def end(self) -> None:
        """Heal everything: every node up and running, every link whole, every message arriving."""
        self._is_over = True
        victim = self._victim
        victim.note("nemesis", "heal")
        victim.network.mend_all()
        victim.network.weather = attrs.evolve(self._calm, loss=0.0, repeat=0.0, tail=0.0)
        if victim.registry.is_frozen:
            victim.registry.thaw()
        for name, process in victim.processes.items():
            process.crash_point = None
            victim.mend_registry(name)
            if process.is_paused:
                victim.resume(name)
            victim.restart(name)
