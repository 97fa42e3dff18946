"""What strikes a cluster: deaths of one, two neighbours, all; breaks, pauses, strange entries, operators.

Which of them strikes, and which process it hits, is drawn for each strike. ``heal`` ends all of it: connections
come back, those that stand still go on, and some of the dead are started again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import attrs

from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    Command,
    Leave,
    NotifyJoin,
    PrepareJoin,
    RetireNode,
    SetRules,
)
from skuld_py.cluster.log.entries import Entry
from skuld_py.config import RULES
from skuld_py.model.document import Member
from skuld_py.simulation.coordination.poison import poisoned
from skuld_py.simulation.coordination.stage import Stage
from skuld_py.simulation.hearing import Hearing
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.zookeeper.sessions import Connection

KINDS = {"crash": 4, "crash two neighbours": 2, "crash a joiner and its observer": 2, "restart a joiner": 3,
         "crash all": 1, "start": 4,
         "break": 3, "lose the session": 3, "pause": 2, "slots": 3, "poison": 2, "strange entry": 3,
         "operator leaves somebody": 1, "remove a pulse": 1, "retire": 1, "depart": 1,
         "raise the rules": 1}


@attrs.define
class Faults:
    """``stats`` counts what struck."""

    random: Random
    stage: Stage
    stats: Counter[str]
    departing: list[Process] = attrs.field(factory=list)
    _seq: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether a process is still on its way out."""
        self._bury()
        return bool(self.departing)

    def _bury(self) -> None:
        for process in [*self.departing]:
            if process.membership is None or process.membership.is_out:
                self.departing.remove(process)
                process.crash()

    def strike(self) -> None:
        """One fault."""
        self._bury()
        kind = self.random.choices([*KINDS], [*KINDS.values()])[0]
        self.stats[f"fault {kind}"] += 1
        getattr(self, "_" + kind.replace(" ", "_"))()

    def _one(self) -> Process | None:
        live = self.stage.live
        return self.random.choice(live) if live else None

    def _of(self, member: str) -> Process | None:
        return next((each for each in self.stage.live if each.membership and each.membership.me == member), None)

    def _later(self, most_ms: int, start: Callable[[], None]) -> None:
        self.stage.scheduler.after(self.random.randint(1, most_ms), start)

    def _start_one(self, process: Process) -> Callable[[], None]:
        return partial(self.stage.start, process)

    def _down(self, *processes: Process | None) -> None:
        for process in processes:
            if process is not None and process not in self.departing:
                process.crash()
                if self.random.random() < 0.6:
                    self._later(5_000, self._start_one(process))

    # -- deaths --------------------------------------------------------------------------------

    def _crash(self) -> None:
        self._down(self._one())

    def _crash_two_neighbours(self) -> None:
        pairs = self.stage.registry.replica.ring.pairs
        if pairs:
            watcher = self.random.choice([*pairs])
            self._down(self._of(watcher), self._of(pairs[watcher]))

    def _crash_a_joiner_and_its_observer(self) -> None:
        replica = self.stage.registry.replica
        observers = replica.joins.observers
        if observers:
            joiner = self.random.choice([*observers])
            observer = observers[joiner]
            three = [self._of(joiner), self._of(observer), self._of(replica.ring.after(observer))]
            self._down(*self.random.sample(three, self.random.randint(1, 3)))

    def _restart_a_joiner(self) -> None:
        """Twice, the second time perhaps after it has asked to be let in; while some are slow to do that."""
        process, scheduler = self._one(), self.stage.scheduler
        if process is not None and process not in self.departing:
            again_ms = self.random.randint(1, 1_000)
            for other in self.stage.live:
                if self.random.random() < 0.5 and other.connection is not None:
                    other.connection.appends_slowly_until_ms = scheduler.now_ms + again_ms
            for at_ms in (0, again_ms):
                scheduler.after(at_ms, process.crash)
                scheduler.after(at_ms + self.random.randint(1, 200), self._start_one(process))

    def _crash_all(self) -> None:
        self._down(*self.stage.live)

    def _start(self) -> None:
        self._start_one(self.random.choice([*self.stage.processes.values()]))()

    def _depart(self) -> None:
        process, now_ms = self._one(), self.stage.scheduler.now_ms
        if process is not None and isinstance(process.machine, Hearing) and process not in self.departing:
            self.departing.append(process)
            self.stage.act(process, process.machine.depart(process.clock.read(now_ms)))

    # -- connections ---------------------------------------------------------------------------

    def _cut(self, most_ms: int) -> Connection | None:
        process = self._one()
        if process is None or process.connection is None:
            return None
        self.stage.cut_registry(process.name)
        self._later(most_ms, partial(self.stage.mend_registry, process.name))
        return process.connection

    def _break(self) -> None:
        self._cut(2_000)

    def _lose_the_session(self) -> None:
        connection = self._cut(8_000)
        if connection is not None:
            self._later(2_000, partial(self.stage.registry.expire, connection))

    def _pause(self) -> None:
        if (process := self._one()) is not None:
            self.stage.pause(process.name)
            self._later(6_000, partial(self.stage.resume, process.name))

    def _remove_a_pulse(self) -> None:
        log = self.stage.registry.log
        if log.pulses:
            log.drop_pulse(self.random.choice([*log.pulses]))

    # -- entries -------------------------------------------------------------------------------

    def _slots(self) -> None:
        process = self._one()
        if process is not None and process.membership is not None:
            slots = {f"{process.name}.slot{number}": self.random.choice([(), ("gpu",), ("gpu", "big")])
                     for number in range(3) if self.random.random() < 0.5}
            now_ms = process.clock.read(self.stage.scheduler.now_ms)
            self.stage.act(process, process.membership.set_slots(now_ms, slots))

    def _poison(self) -> None:
        self._seq += 1
        self.stage.registry.put_entry(poisoned(self.random, self._seq))

    def write(self, command: Command) -> None:
        """An operator's entry."""
        self._seq += 1
        self.stage.registry.put_entry(Entry("operator", self._seq, command).encode())

    def _strange_entry(self) -> None:
        """A step of a join that was not asked for: of a life that is in, has left, or never was."""
        newest = self.stage.registry.replica
        known = [*newest.members, *newest.joiners, *newest.left, "n99~1"]
        one, other = self.random.choice(known), self.random.choice(known)
        node = one.partition("~")[0]
        self.write(self.random.choice([NotifyJoin(one), AcceptJoin(other, one), AbortJoin(one),
                                       PrepareJoin(one, Member(node, "127.0.0.1", 1, "boot"))]))

    def _operator_leaves_somebody(self) -> None:
        members = self.stage.registry.replica.members
        if members:
            self.write(Leave(self.random.choice([*members])))

    def _retire(self) -> None:
        nodes = self.stage.registry.replica.nodes
        if nodes:
            self.write(RetireNode(self.random.choice([*nodes]), self.random.random() < 0.5))

    def _raise_the_rules(self) -> None:
        self.write(SetRules(RULES))

    # -- the end -------------------------------------------------------------------------------

    def heal(self) -> None:
        """Bring all connections back, and start some of the dead again; at least one in most runs."""
        stage = self.stage
        stage.registry.options = stage.options.calm
        stage.network.weather = attrs.evolve(stage.options.weather, loss=0.0, repeat=0.0)
        for name, process in stage.processes.items():
            stage.resume(name)
            stage.mend_registry(name)
            if self.random.random() < 0.6:
                stage.start(process)
        if not stage.live and self.random.random() < 0.9:
            self._start()
