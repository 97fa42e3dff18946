"""One run: members start, faults strike, all is healed, and everything must come to rest as it should.

A seed decides everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs

from skuld_py.cluster.log.commands import RetireNode, SetReplicas
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.member.membership import Membership
from skuld_py.simulation.coordination.faults import Faults
from skuld_py.simulation.coordination.flows import Flows
from skuld_py.simulation.coordination.options import Options, draw
from skuld_py.simulation.coordination.placed import Onlooker
from skuld_py.simulation.coordination.stage import Stage, World
from skuld_py.simulation.coordination.verdict import final, lacks
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import stream
from skuld_py.simulation.world.zookeeper.reference import DAMAGE

REST_MS = 240_000
"""How long coming to rest may take."""
LOOK_MS = 250
COPIES, COPIES_MAX = (0, 0, 1, 4), 4
"""How often the number of copies may change in a storm, and up to how many."""
ENTRIES_MAX = 1_500
"""More is a livelock."""
GROWTH_SLACK = 25
"""Entries that may be appended while a collection is on its way."""
DRIVE_LEGS = 8
"""Between two entries of an operator there is time for this many legs to ZooKeeper."""
DAMAGED_MIN = 3
"""Among fewer members it cannot be told whose replica is damaged."""
VIOLATIONS_MAX = 8
TRACE_LINES = 120


@attrs.frozen
class Verdict:
    """How a run ended."""

    seed: int
    options: Options
    violations: tuple[str, ...]
    last_lines: tuple[str, ...]
    hash: str
    stats: Counter[str]

    @property
    def passed(self) -> bool:
        """Whether all held."""
        return not self.violations


class Run:
    """The parts of a run, by name, for ``play`` and for tests that stage one by hand."""

    def __init__(self, seed: int, world: World | None = None, options: Options | None = None,
                 listener: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.options = options or draw(stream(seed, "options"))
        self.trace = Trace(listener)
        self.stage = Stage(seed, self.options, world or World(), self.trace)
        self.scheduler, self.registry = self.stage.scheduler, self.stage.registry
        self.stats = self.stage.stats
        self.faults = Faults(stream(seed, "faults"), self.stage, self.stats)
        self._flows = Flows(stream(seed, "workflows"), self.stage, self.stats)
        self._starts = stream(seed, "starts")
        self._damages = stream(seed, "damages")
        self._copies, self._resized = stream(seed, "copies"), 0
        self._damaged: list[Membership] = []
        self._onlooker = Onlooker(self.registry, self.stats)
        self.stage.look = self._look

    def _look(self, process: Process) -> None:
        self._onlooker.look(process, self.stage.listeners[process.name].told_nodes)

    @property
    def processes(self) -> list[Process]:
        """All processes, by name."""
        return [*self.stage.processes.values()]

    @property
    def violations(self) -> list[str]:
        """What was found so far."""
        return self.registry.violations

    def violate(self, sentence: str) -> None:
        """Note what must not be."""
        self.violations.append(sentence)

    # -- the course ----------------------------------------------------------------------------

    def play(self) -> None:
        """All of it; what a machine raises is a violation, too."""
        try:
            self._play()
        except Exception as problem:
            self.violate(f"raised: {problem!r}")

    def _play(self) -> None:
        for process in self.processes:
            self.scheduler.at(self._starts.randint(0, self.options.spread_ms), self.stage.start, process)
        for _ in range(self.options.rounds):
            self._storm()
            if not self.rest():
                return
        if self.options.drives and self.stage.live:
            self._drive()

    def _storm(self) -> None:
        begin_ms = self.scheduler.now_ms
        self.registry.options, self.stage.network.weather = self.options.registry, self.options.weather
        for _ in range(self.options.faults):
            self.scheduler.at(begin_ms + self._starts.randint(0, self.options.faults_ms), self.faults.strike)
        for _ in range(self.options.flows):
            self.scheduler.at(begin_ms + self._starts.randint(0, self.options.faults_ms), self._flows.write)
        for _ in range(self._copies.choice(COPIES)):
            self.scheduler.at(begin_ms + self._copies.randint(0, self.options.faults_ms), self._resize)
        if self.options.is_damaged:
            self.scheduler.at(begin_ms + self._damages.randint(0, self.options.faults_ms), self._damage)
        until_ms = begin_ms + self.options.faults_ms
        while self.scheduler.now_ms < until_ms and not self._is_hopeless():
            self.scheduler.run(min(until_ms, self.scheduler.now_ms + LOOK_MS))

    def _resize(self) -> None:
        """An operator wants more copies, or fewer, or more than there are nodes."""
        self._resized += 1
        self.registry.put_entry(Entry("operator.copies", self._resized,
                                      SetReplicas(self._copies.randint(1, COPIES_MAX))).encode())

    def _damage(self) -> None:
        """A member's replica is no longer what the log makes of it, as by a fault of its memory."""
        machines = (process.membership for process in self.stage.live)
        live = [machine for machine in machines if machine is not None and machine.is_in]
        if len(live) >= DAMAGED_MIN:
            machine = self._damages.choice(live)
            reader = machine._reader
            reader.replica = attrs.evolve(reader.replica, left={**reader.replica.left, DAMAGE: 0})
            self._damaged.append(machine)
            self.stats["replicas damaged"] += 1

    def _mend(self) -> None:
        """Let the log grow until the damaged member has noticed it, if it lives."""
        for machine in [*self._damaged]:
            is_alive = any(process.membership is machine for process in self.stage.live)
            if not is_alive or DAMAGE not in machine.replica.left:
                self._damaged.remove(machine)
                self.stats["replicas built anew"] += is_alive
        if self._damaged:
            self._put_nothing("operator.mend", self.registry.log.end)

    def _put_nothing(self, writer: str, seq: int) -> None:
        """An entry that changes nothing but the list of failures."""
        self.registry.put_entry(Entry(writer, seq, RetireNode("none", bool(seq % 2))).encode())

    def rest(self) -> bool:
        """End all faults and wait until nothing is missing; whether it came to that."""
        self.faults.heal()
        until_ms, settled = self.scheduler.now_ms + REST_MS, 0
        while settled < 3:
            if self._is_hopeless():
                return False
            if self.scheduler.now_ms >= until_ms:
                damaged = [f"{machine.me} is damaged" for machine in self._damaged]
                for line in [*self._lacks(), *damaged][:VIOLATIONS_MAX]:
                    self.violate(f"no rest: {line}")
                return False
            self.scheduler.run(self.scheduler.now_ms + LOOK_MS)
            self._mend()
            settled = 0 if self.faults.is_busy or self._damaged or self._lacks() else settled + 1
        self.violations.extend(final(self.stage))
        return not self.violations

    def _lacks(self) -> list[str]:
        lacking = lacks(self.stage)
        for process in self.stage.live:
            lacking += self._onlooker.lacks(process, self.stage.listeners[process.name].told_nodes)
        return lacking

    def _is_hopeless(self) -> bool:
        if self.registry.log.end > ENTRIES_MAX:
            self.violate(f"no rest: more than {ENTRIES_MAX} entries")
        return bool(self.violations)

    def _drive(self) -> None:
        """Let the log grow, and see that it is cut."""
        settings, pace_ms = self.options.settings, DRIVE_LEGS * (1 + self.options.registry.leg_ms)
        most = 0
        for number in range(settings.length_max * 3 + settings.grace):
            self._put_nothing("operator.drive", number)
            self.scheduler.run(self.scheduler.now_ms + pace_ms)
            most = max(most, len(self.registry.log.entries) if number > 2 * settings.length_max else 0)
        unread_ms = max(each.silence_ms if each.sharing else 0 for each in self.options.scaling)
        bound = settings.length_max + settings.grace + GROWTH_SLACK + 2 * unread_ms // pace_ms
        if most > bound:
            self.violate(f"the log has {most} entries, more than {bound}")
        self.rest()

    def verdict(self) -> Verdict:
        """What came of it."""
        stats = self.stats + self.registry.counts + self.registry.log.reference.counts
        stats.update(entries=self.registry.log.end, actions=self.scheduler.actions, lives=self.stage.lives)
        stats["virtual ms"] = self.scheduler.now_ms
        return Verdict(self.seed, self.options, tuple(self.violations[:VIOLATIONS_MAX]),
                       tuple(self.trace.last(TRACE_LINES)) if self.violations else (), self.trace.hash, stats)


def run(seed: int, world: World | None = None, listener: Callable[[str], None] | None = None) -> Verdict:
    """Play a seed."""
    course = Run(seed, world, listener=listener)
    course.play()
    return course.verdict()
