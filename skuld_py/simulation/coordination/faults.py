"""What strikes a cluster: deaths of one, two neighbours, all; breaks, pauses, strange entries, operators.

Which of them is drawn for each strike, and whom it hits. ``heal`` ends all of it: connections come back, those
that stand still go on, and some of the dead are started again.
"""

from __future__ import annotations

from collections import Counter
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
from skuld_py.cluster.log.replica import RULES
from skuld_py.model.document import Member
from skuld_py.simulation.coordination.ensemble import Ensemble
from skuld_py.simulation.coordination.poison import poisoned
from skuld_py.simulation.coordination.shell import Shell
from skuld_py.simulation.world.scheduler import Scheduler

KINDS = {"crash": 4, "crash two neighbours": 2, "crash a joiner and its observer": 2, "restart a joiner": 3,
         "crash all": 1, "start": 4,
         "break": 3, "lose the session": 3, "pause": 2, "slots": 3, "poison": 2, "strange entry": 3,
         "operator leaves somebody": 1, "remove a pulse": 1, "retire": 1, "depart": 1,
         "raise the rules": 1}


@attrs.define
class Faults:
    """``stats`` counts what struck."""

    random: Random
    shells: list[Shell]
    ensemble: Ensemble
    scheduler: Scheduler
    stats: Counter[str]
    departing: list[Shell] = attrs.field(factory=list)
    _seq: int = 0

    @property
    def live(self) -> list[Shell]:
        """The processes that run."""
        return [shell for shell in self.shells if shell.machine is not None]

    @property
    def is_busy(self) -> bool:
        """Whether somebody is still on its way out, or a dead session has not ended."""
        self._bury()
        return bool(self.departing)

    def _bury(self) -> None:
        for shell in [*self.departing]:
            if shell.machine is None or shell.machine.is_out:
                self.departing.remove(shell)
                shell.crash()

    def strike(self) -> None:
        """One fault."""
        self._bury()
        kind = self.random.choices([*KINDS], [*KINDS.values()])[0]
        self.stats[f"fault {kind}"] += 1
        getattr(self, "_" + kind.replace(" ", "_"))()

    def _one(self) -> Shell | None:
        live = self.live
        return self.random.choice(live) if live else None

    def _of(self, member: str) -> Shell | None:
        return next((shell for shell in self.live if shell.machine and shell.machine.me == member), None)

    def _down(self, *shells: Shell | None) -> None:
        for shell in shells:
            if shell is not None and shell not in self.departing:
                shell.crash()
                if self.random.random() < 0.6:
                    self.scheduler.after(self.random.randint(1, 5_000), shell.start)

    # -- deaths --------------------------------------------------------------------------------

    def _crash(self) -> None:
        self._down(self._one())

    def _crash_two_neighbours(self) -> None:
        pairs = self.ensemble.newest.ring.pairs
        if pairs:
            watcher = self.random.choice([*pairs])
            self._down(self._of(watcher), self._of(pairs[watcher]))

    def _crash_a_joiner_and_its_observer(self) -> None:
        observers = self.ensemble.newest.joins.observers
        if observers:
            joiner = self.random.choice([*observers])
            both = [self._of(joiner), self._of(observers[joiner]),
                    self._of(self.ensemble.newest.ring.after(observers[joiner]))]
            self._down(*self.random.sample(both, self.random.randint(1, 3)))

    def _restart_a_joiner(self) -> None:
        """Twice, the second time perhaps after it has asked to be let in; while some are slow to do that."""
        shell = self._one()
        if shell is not None and shell not in self.departing:
            again_ms = self.random.randint(1, 1_000)
            for other in self.live:
                if self.random.random() < 0.5:
                    other.appends_slowly_until_ms = self.scheduler.now_ms + again_ms
            for at_ms in (0, again_ms):
                self.scheduler.after(at_ms, shell.crash)
                self.scheduler.after(at_ms + self.random.randint(1, 200), shell.start)

    def _crash_all(self) -> None:
        self._down(*self.live)

    def _start(self) -> None:
        self.random.choice(self.shells).start()

    def _depart(self) -> None:
        shell = self._one()
        if shell is not None and shell.machine is not None and shell not in self.departing:
            self.departing.append(shell)
            shell.act(shell.machine.depart(self.scheduler.now_ms))

    # -- connections ---------------------------------------------------------------------------

    def _break(self) -> None:
        if (shell := self._one()) is not None:
            shell.break_off(self.random.randint(1, 2_000), is_end=False)

    def _lose_the_session(self) -> None:
        if (shell := self._one()) is not None:
            shell.break_off(self.random.randint(1, 8_000), is_end=True)

    def _pause(self) -> None:
        if (shell := self._one()) is not None:
            shell.pause(self.random.randint(1, 6_000))

    def _remove_a_pulse(self) -> None:
        if self.ensemble.pulses:
            self.ensemble.drop_pulse(self.random.choice([*self.ensemble.pulses]))

    # -- entries -------------------------------------------------------------------------------

    def _slots(self) -> None:
        shell = self._one()
        if shell is not None and shell.machine is not None:
            slots = {f"{shell.node}.slot{number}": self.random.choice([(), ("gpu",), ("gpu", "big")])
                     for number in range(3) if self.random.random() < 0.5}
            shell.act(shell.machine.set_slots(self.scheduler.now_ms, slots))

    def _poison(self) -> None:
        self._seq += 1
        self.ensemble.append(poisoned(self.random, self._seq), "poisoner")

    def _write(self, command: Command) -> None:
        self._seq += 1
        self.ensemble.append(Entry("operator", self._seq, command).encode(), "operator")

    def _strange_entry(self) -> None:
        """A step of a join that nobody asked for: of somebody that lives, has left, or never was."""
        newest = self.ensemble.newest
        known = [*newest.members, *newest.joiners, *newest.left, "n99~1"]
        one, other = self.random.choice(known), self.random.choice(known)
        node = one.partition("~")[0]
        self._write(self.random.choice([NotifyJoin(one), AcceptJoin(other, one), AbortJoin(one),
                                        PrepareJoin(one, Member(node, "127.0.0.1", 1, "boot"))]))

    def _operator_leaves_somebody(self) -> None:
        if self.ensemble.newest.members:
            self._write(Leave(self.random.choice([*self.ensemble.newest.members])))

    def _retire(self) -> None:
        if self.ensemble.newest.nodes:
            self._write(RetireNode(self.random.choice([*self.ensemble.newest.nodes]), self.random.random() < 0.5))

    def _raise_the_rules(self) -> None:
        self._write(SetRules(RULES))

    # -- the end -------------------------------------------------------------------------------

    def heal(self) -> None:
        """Start some of the dead again; at least one in most runs. The rest comes back by itself."""
        for shell in self.shells:
            if shell.machine is None and self.random.random() < 0.6:
                shell.start()
        if not self.live and self.random.random() < 0.9:
            self.random.choice(self.shells).start()
