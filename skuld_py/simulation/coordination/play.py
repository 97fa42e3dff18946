"""One run: members start, faults strike, all is healed, and everything must come to rest as it should.

A seed decides everything. ``World`` says of what the members are made, so that a test can put something broken in
its place and see that it is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

import attrs

from skuld_py.cluster.log.commands import COMMANDS, Command, RetireNode
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Played, Player, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.membership import Membership
from skuld_py.model.document import Member
from skuld_py.model.events import Received
from skuld_py.model.messages.message import Message
from skuld_py.simulation.coordination.ensemble import Ensemble
from skuld_py.simulation.coordination.faults import Faults
from skuld_py.simulation.coordination.options import Options, draw
from skuld_py.simulation.coordination.placed import Onlooker, scheme
from skuld_py.simulation.coordination.poison import Poison
from skuld_py.simulation.coordination.shell import Shell
from skuld_py.simulation.coordination.verdict import final, lacks, same
from skuld_py.simulation.coordination.weather import Weather
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.scheduler import Scheduler, stream

REST_MS = 240_000
"""So long may it take to come to rest."""
LOOK_MS = 250
ENTRIES_MAX = 1_500
"""More is a livelock."""
GROWTH_SLACK = 25
"""Entries that may be appended while a collection is on its way."""
DAMAGE = "nobody~0"
"""Who has left by a replica that was damaged on purpose, and by no other."""
DAMAGED_MIN = 3
"""With fewer members nobody can tell whose replica it is."""
VIOLATIONS_MAX = 8
TRACE_LINES = 120


@attrs.frozen
class World:
    """What the cluster is made of. ``membership`` makes the machine of a process, given what plays its entries."""

    membership: Callable[..., Membership] = Membership
    shell: Callable[..., Shell] = Shell
    player: Callable[..., Played] = play
    commands: Mapping[str, type[Command]] = attrs.field(factory=lambda: {**COMMANDS, Poison.kind: Poison})


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
        self.seed, self.world = seed, world or World()
        self.options = options or draw(stream(seed, "options"))
        self.scheduler, self.trace = Scheduler(seed), Trace(listener)
        self.weather = attrs.evolve(self.options.weather)
        player = partial(self.world.player, commands=self.world.commands)
        base = Replica(replicas=2, rules=self.options.rules)
        self.ensemble = Ensemble(base, player, self.trace, lambda: self.scheduler.now_ms)
        self._player = player
        self._sessions = count(1)
        self._ids: Counter[str] = Counter()
        self._random = stream(seed, "shells")
        self.stats: Counter[str] = Counter()
        self._onlooker = Onlooker(self.ensemble, self.stats)
        self._damages = stream(seed, "damages")
        self._damaged: list[Membership] = []
        self.shells = [self._shell(f"n{number:02}") for number in range(self.options.members)]
        self.faults = Faults(stream(seed, "faults"), self.shells, self.ensemble, self.scheduler, self.stats)

    def _shell(self, node: str) -> Shell:
        return self.world.shell(node, self._machine, self.ensemble, self.scheduler, self.trace, self.weather,
                                stream(self.seed, node), self._post, self._onlooker.look,
                                sessions=partial(next, self._sessions), lags=stream(self.seed, f"{node} lags"))

    def _post(self, node: str, peer: str, message: Message) -> None:
        """A message between members: lost, or there after a while, or both late and twice."""
        shell = next((shell for shell in self.shells if shell.node == peer), None)
        self.stats["messages"] += 1
        for _ in range(1 + (self._random.random() < self.weather.doubled)):
            if shell is not None and self._random.random() >= self.weather.dropped:
                slow = self._random.random() < self.weather.slow
                delay_ms = self._random.randint(1, self.weather.slow_ms if slow else self.weather.delay_ms)
                self.scheduler.after(delay_ms, shell.tell, Received(node, message))

    def _machine(self, node: str) -> Membership:
        random = stream(self.seed, f"{node} {self._ids[node]}")

        def fresh_id() -> str:
            self._ids[node] += 1
            return f"{node}~{self._ids[node]}"
        scaling = self.options.scaling[int(node[1:]) % len(self.options.scaling)]
        return self.world.membership(
            Member(node, "127.0.0.1", 1, "boot"), fresh_id, lambda most_ms: random.randint(0, most_ms),
            self.options.settings, self.ensemble.base, player=self._compared(node), scaling=scaling,
            scheme=scheme(scaling, self.world.commands))

    def _compared(self, node: str) -> Player:
        """Plays, and compares each replica with the reference."""
        previous: Replica | None = None

        def played(replica: Replica, position: int, raw: bytes) -> Played:
            nonlocal previous
            result = self._player(replica, position, raw)
            self.stats["plays"] += 1
            self.stats["jumps"] += previous is not None and replica is not previous
            previous = result.replica
            if DAMAGE not in result.replica.left and not same(result.replica, self.ensemble.reference[position]):
                self.violate(f"{node} has another replica at {position}")
            return result
        return played

    def violate(self, sentence: str) -> None:
        """Note what must not be."""
        self.ensemble.violations.append(sentence)

    @property
    def violations(self) -> list[str]:
        """What was found so far."""
        return self.ensemble.violations

    # -- the course ----------------------------------------------------------------------------

    def play(self) -> None:
        """All of it."""
        for shell in self.shells:
            self.scheduler.at(self._random.randint(0, self.options.spread_ms), shell.start)
        for _ in range(self.options.rounds):
            self._storm()
            if not self.rest():
                return
        if self.options.drives and any(shell.machine for shell in self.shells):
            self._drive()

    def _storm(self) -> None:
        begin_ms = self.scheduler.now_ms
        for name, value in attrs.asdict(self.options.weather).items():
            setattr(self.weather, name, value)
        for _ in range(self.options.faults):
            self.scheduler.at(begin_ms + self._random.randint(0, self.options.faults_ms), self.faults.strike)
        if self.options.is_damaged:
            self.scheduler.at(begin_ms + self._damages.randint(0, self.options.faults_ms), self._damage)
        until_ms = begin_ms + self.options.faults_ms
        while self.scheduler.now_ms < until_ms and not self._is_hopeless():
            self.scheduler.run(min(until_ms, self.scheduler.now_ms + LOOK_MS))

    def _damage(self) -> None:
        """A member's replica is no longer what the log makes of it, as by a fault of its memory."""
        live = [shell.machine for shell in self.shells if shell.machine is not None and shell.machine.is_in]
        if len(live) >= DAMAGED_MIN:
            machine = self._damages.choice(live)
            reader = machine._reader
            reader.replica = attrs.evolve(reader.replica, left={**reader.replica.left, DAMAGE: 0})
            self._damaged.append(machine)
            self.stats["replicas damaged"] += 1

    def _mend(self) -> None:
        """Let the log grow until who is damaged has noticed it, if it lives."""
        for machine in [*self._damaged]:
            is_alive = any(shell.machine is machine for shell in self.shells)
            if not is_alive or DAMAGE not in machine.replica.left:
                self._damaged.remove(machine)
                self.stats["replicas built anew"] += is_alive
        if self._damaged:
            entry = Entry("operator.mend", self.ensemble.end, RetireNode("none", bool(self.ensemble.end % 2)))
            self.ensemble.append(entry.encode(), "operator")

    def rest(self) -> bool:
        """End all faults and wait until nothing is missing; whether it came to that."""
        for name, value in attrs.asdict(Weather(delay_ms=self.weather.delay_ms)).items():
            setattr(self.weather, name, value)
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
        self.violations.extend(final(self.shells, self.ensemble))
        return not self.violations

    def _lacks(self) -> list[str]:
        return [*lacks(self.shells, self.ensemble),
                *(line for shell in self.shells for line in self._onlooker.lacks(shell))]

    def _is_hopeless(self) -> bool:
        if self.ensemble.end > ENTRIES_MAX:
            self.violate(f"no rest: more than {ENTRIES_MAX} entries")
        return bool(self.violations)

    def _drive(self) -> None:
        """Let the log grow, and see that it is cut."""
        settings = self.options.settings
        most = 0
        for number in range(settings.length_max * 3 + settings.grace):
            entry = Entry("operator.drive", number, RetireNode("none", bool(number % 2)))
            self.ensemble.append(entry.encode(), "operator")
            self.scheduler.run(self.scheduler.now_ms + 4 * self.weather.delay_ms)
            most = max(most, len(self.ensemble.entries) if number > 2 * settings.length_max else 0)
        pace_ms = 4 * self.weather.delay_ms
        unread_ms = max(each.silence_ms if each.sharing else 0 for each in self.options.scaling)
        bound = settings.length_max + settings.grace + GROWTH_SLACK + 2 * unread_ms // pace_ms
        if most > bound:
            self.violate(f"the log has {most} entries, more than {bound}")
        self.rest()

    def verdict(self) -> Verdict:
        """What came of it."""
        stats = self.stats + self.ensemble.stats
        stats.update(entries=self.ensemble.end, actions=self.scheduler.actions,
                     collections=len({*self.ensemble.newest.collected}),
                     lives=sum(self._ids.values()))
        stats["virtual ms"] = self.scheduler.now_ms
        return Verdict(self.seed, self.options, tuple(self.violations[:VIOLATIONS_MAX]),
                       tuple(self.trace.last(TRACE_LINES)) if self.violations else (), self.trace.hash, stats)


def run(seed: int, world: World | None = None, listener: Callable[[str], None] | None = None) -> Verdict:
    """Play a seed."""
    course = Run(seed, world, listener=listener)
    course.play()
    return course.verdict()
