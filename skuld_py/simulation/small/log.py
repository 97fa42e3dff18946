"""The coordination log in the small: members come, die and lose sessions, and what they ask of ZooKeeper goes
wrong in named ways. A server lags, an entry is lost or made twice, what a former life asked for is done in the
next one.

It is a run of ``simulation.coordination`` without chance; a deviation makes certain, once, what is only probable
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import attrs

from skuld_py.cluster.member.settings import LogSettings
from skuld_py.model import coordination as c
from skuld_py.simulation.coordination.options import Options
from skuld_py.simulation.coordination.play import Run
from skuld_py.simulation.coordination.stage import Stage, World
from skuld_py.simulation.small.script import Choices, Script
from skuld_py.simulation.small.verdict import Verdict
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import STILL
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import Connection, RegistryOptions
from skuld_py.simulation.world.zookeeper.wishes import Wanted

RULE = "X coordination log"
CERTAIN = 2.0
"""Of a probability: above all draws."""
MEMBERS = 4
STRIKE_MS, BACK_MS, REBORN_MS, LATE_MS, STORY_MS = 1_500, 2_500, 60, 500, 4_000
SETTINGS = LogSettings(batch=3, wait_ms=500, back_off_ms=50, repeat_ms=1_000, length_max=8, grace=0,
                       takeover_ms=1_000, forget_ms=None)
USUAL = RegistryOptions(session_ms=1_500, leg_ms=3, watch_ms=3, late_ms=LATE_MS)
APPENDS: Mapping[str, RegistryOptions] = {
    "done in doubt": attrs.evolve(USUAL, doubt=CERTAIN), "twice": attrs.evolve(USUAL, doubled=CERTAIN),
    "behind a gap": attrs.evolve(USUAL, skipped=CERTAIN)}
"""Ways of an append, each with the ZooKeeper in which it is certain."""
LOST, REBORN = "lost in doubt", "in a former life"
LAGS = ("behind",)
TURNS = ("crash", "lose the session")


Choose = Callable[[tuple[str, ...], str, str], str]


class Deviating(Registry):
    """A ZooKeeper in which something goes wrong where a script says so. ``choose``: the way to go of these, by a
    process, in what it does; ``befall``: how a process is struck."""

    def __init__(self, choose: Choose, befall: Callable[[str, str], None], *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._choose = choose
        self._befall = befall

    def _append(self, connection: Connection, effect: c.Append, wanted: Wanted) -> None:
        name, act = connection.member.name, partial(super()._append, connection, effect, wanted)
        way = self._choose((LOST, *APPENDS, REBORN, *TURNS), name, "append")
        if way == LOST:
            self._fail_later(connection, c.AppendUncertain(effect.seq), wanted)
        elif way in APPENDS:
            usual, self.options = self.options, APPENDS[way]
            act()
            self.options = usual
        else:
            act()
            if way == REBORN:
                self._scheduler.after(LATE_MS, self.put_entry, effect.raw)
            if way:
                self._befall(way, name)

    def _read_entries(self, connection: Connection, effect: c.ReadEntries, wanted: Wanted, is_last: bool) -> None:
        act = partial(super()._read_entries, connection, effect, wanted, is_last)
        self._look_behind(connection, "read", act)

    def _check_pulses(self, connection: Connection) -> None:
        self._look_behind(connection, "look at pulses", partial(super()._check_pulses, connection))

    def _look_behind(self, connection: Connection, what: str, act: Callable[[], None]) -> None:
        name = connection.member.name
        self.lag(name, LATE_MS * bool(self._choose(LAGS, name, what)))
        act()
        self.lag(name, 0)


def _crash(stage: Stage, process: Process) -> None:
    process.crash()
    stage.scheduler.at(BACK_MS, stage.start, process)


def _break_off(stage: Stage, process: Process, back_ms: int) -> None:
    """Its connection breaks, and its session ends before it is back."""
    if process.connection is not None:
        stage.cut_registry(process.name)
        stage.registry.expire(process.connection)
        stage.scheduler.after(back_ms, stage.mend_registry, process.name)


def _pause(stage: Stage, process: Process) -> None:
    stage.pause(process.name)
    stage.scheduler.at(BACK_MS, stage.resume, process.name)


STRIKES: Mapping[str, Callable[[Stage, Process], None]] = {
    "logjoin": lambda stage, process: None,
    "logcrash": _crash,
    "logsession": partial(_break_off, back_ms=BACK_MS - STRIKE_MS),
    "logpause": _pause}
"""What befalls the first member, by scenario."""
PAIRS = tuple(f"{name}:log" for name in STRIKES)


class Story(Run):
    """A run with a script."""

    def __init__(self, script: Script, listener: Callable[[str], None] | None, choices: Choices | None) -> None:
        self.choices = choices or Choices(script.numbers)
        options = Options(MEMBERS, SETTINGS, USUAL, spread_ms=300, faults_ms=STORY_MS)
        world = World(registry=partial(Deviating, self._choose, self._befall))
        super().__init__(STILL, world, options, listener)
        strike = STRIKES[script.pair.partition(":")[0]]
        self.scheduler.at(STRIKE_MS, strike, self.stage, self.processes[0])

    def _choose(self, ways: tuple[str, ...], name: str, what: str) -> str:
        way = self.choices.at(ways, self.scheduler.now_ms, name, what)
        if way:
            self.stage.note("script", way, name, what)
        return way

    def _befall(self, way: str, name: str) -> None:
        process = self.stage.processes[name]
        if way == TURNS[1]:
            self.scheduler.after(0, _break_off, self.stage, process, REBORN_MS)
        else:
            self.scheduler.after(0, process.crash)
            self.scheduler.after(REBORN_MS, self.stage.start, process)


def run(script: Script, listener: Callable[[str], None] | None = None, choices: Choices | None = None) -> Verdict:
    """Play a script."""
    story = Story(script, listener, choices)
    story.play()
    told = story.verdict()
    return Verdict(script, story.choices.count, {RULE: told.violations} if told.violations else {},
                   tuple(story.choices.taken), Counter(), told.hash, told.last_lines)
