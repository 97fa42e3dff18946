"""Direct join at scale: joiners knock at members, which stitch in all that knock together with one entry.

A joiner learns of members from the oldest entry left in the log that lets a joiner in, or else from a listing of
the pulses. It asks one of them at random whose pulse stands, and another one after a refusal or a silence, ever
more slowly; after some failures the three phases remain. Where the log is empty there is no member to ask. With
transfer it then takes over the replica of the member that let it in, through that one's network link; others that
were let in by the same entry share that.

Source of the parameters and the rules: ``cluster/scale/direct_join.py``, ``cluster/scale/transfer.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from skuld_py.cluster.log.commands import Command, JoinDirect, Joining
from skuld_py.config.scaling import Scaling
from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.coordination.scale.costs import Costs, Counts
from skuld_py.simulation.coordination.scale.ensemble import Ensemble
from skuld_py.simulation.coordination.scale.log import Log
from skuld_py.simulation.coordination.scale.process import Process

LOOKS = 4
"""Reads in search of a member: of the log's state, of an entry there or the listing, again, and of one pulse."""
NAMED = 8
"""An entry says so much more of a member than its name."""


class Household(Protocol):
    """What the greeting needs of the whole."""

    def find(self, name: str) -> Process | None:
        """The living process of an id."""
        ...

    def want(self, process: Process, command: Command) -> None:
        """A process appends something."""
        ...

    def join_by_log(self, process: Process) -> None:
        """The three phases."""
        ...

    def take_over(self, process: Process, position: int) -> None:
        """A process has the replica as of a position."""
        ...


class Greeting:
    """Both sides: joiners that knock and members that open."""

    def __init__(self, agenda: Agenda, costs: Costs, scaling: Scaling, counts: Counts, ensemble: Ensemble,
                 log: Log, household: Household, keep: int, rng: Random) -> None:
        self._agenda, self._costs, self._scaling, self._counts = agenda, costs, scaling, counts
        self._ensemble, self._log, self._household, self._keep, self._rng = ensemble, log, household, keep, rng
        self._names: tuple[str, ...] = ()
        self._listed = -1.0

    # -- who knocks ----------------------------------------------------------------------------------

    def knock(self, process: Process) -> None:
        """Look for a member and ask it."""
        if self._log.end == 0:
            self._ensemble.read(2, 0, self._begin_log, process)
        else:
            contacts = self._log.contacts(self._keep)
            known = len(contacts or self._ensemble.pulses) * self._costs.name_bytes * (NAMED if contacts else 1)
            self._ensemble.read(LOOKS, known, self._ask_somebody, process)

    def _begin_log(self, process: Process) -> None:
        """The log was empty when this one looked: it is for it to begin it."""
        if process.is_alive:
            self._household.join_by_log(process)

    def _ask_somebody(self, process: Process) -> None:
        if not self._is_outside(process):
            return
        names = self._log.contacts(self._keep) or self._listing()
        name = names[self._rng.randrange(len(names))] if names else ""
        process.asked += 1
        if name not in self._ensemble.pulses:
            self._fail(process)
            return
        self._send(0)
        self._agenda.after(self._costs.one_way_ms + self._costs.message_ms, self._asked, process, name)
        self._agenda.after(self._scaling.knock_ms, self._heard_nothing, process, process.asked)

    def _listing(self) -> Sequence[str]:
        if self._listed != self._agenda.now:
            self._names, self._listed = tuple(self._ensemble.pulses), self._agenda.now
        return self._names

    def _heard_nothing(self, process: Process, asked: int) -> None:
        if asked == process.asked and self._is_outside(process) and not process.is_welcome:
            self._fail(process)

    def _refused(self, process: Process, asked: int) -> None:
        if asked == process.asked and self._is_outside(process):
            self._fail(process)

    def _fail(self, process: Process) -> None:
        process.asked += 1
        process.failures += 1
        if process.failures >= self._scaling.knocks:
            self._household.join_by_log(process)
        else:
            pause = self._scaling.knock_pause_ms << (process.failures - 1)
            self._agenda.after(self._rng.uniform(0, pause), self._again, process)

    def _again(self, process: Process) -> None:
        if self._is_outside(process):
            self.knock(process)

    def _is_outside(self, process: Process) -> bool:
        return process.is_alive and not process.is_in and process.id not in self._log.replica.members

    def _send(self, size: int) -> None:
        self._counts.messages += 1
        self._counts.member_bytes += self._costs.message_bytes + size

    # -- who opens -----------------------------------------------------------------------------------

    def _asked(self, joiner: Process, name: str) -> None:
        host = self._household.find(name)
        if host is None:
            return  # it has died: the joiner hears nothing
        if not host.is_in or len(host.callers) >= self._scaling.greet_waiting:
            self._send(0)
            way = self._costs.one_way_ms + self._costs.message_ms
            self._agenda.after(way, self._refused, joiner, joiner.asked)
            return
        host.callers.append(joiner)
        if not host.is_greeting:
            host.is_greeting = True
            self._agenda.after(self._scaling.gather_ms, self._propose, host)

    def _propose(self, host: Process) -> None:
        if not host.is_alive:
            return
        host.callers = [each for each in host.callers if self._is_outside(each)]
        several = host.callers[: self._scaling.greet_joiners]
        host.is_greeting = bool(several)
        if several:
            joiners = tuple(Joining(each.id, each.info) for each in several)
            self._household.want(host, JoinDirect(host.id, self._log.replica.ring.after(host.id), joiners))

    def played(self, host: Process, command: JoinDirect) -> None:
        """A member has played its own entry: it tells the joiners that are in, and writes again for those that are
        not."""
        members = self._log.replica.members
        inside = {each.id: each for each in host.callers if each.id in members}
        host.callers = [each for each in host.callers if each.id not in inside]
        for each in inside.values():
            self._send(0)
            each.is_welcome = True
            self._agenda.after(self._costs.one_way_ms + self._costs.message_ms, self._welcomed, each, host)
        self._propose(host)

    def _welcomed(self, process: Process, host: Process) -> None:
        if process.is_alive and process.awaits_replica:
            process.awaits_replica = False
            self._lend(process, host)

    # -- transfer ------------------------------------------------------------------------------------

    def _lend(self, process: Process, host: Process) -> None:
        """The host's text goes out behind what it sends already; each has one made for those of one entry."""
        version, size = self._log.replica.version, self._log.text_bytes()
        start = max(self._agenda.now, host.uplink_free)
        if host.text_version < 0 or process.id not in self._log.replica_at(host.text_version).members:
            start += size / 1_000 * self._costs.text_ms_per_kb
            host.text_version = version
        host.uplink_free = start + size * self._costs.member_byte_ms
        self._send(size)
        done = host.uplink_free + 2 * self._costs.one_way_ms + size / 1_000 * self._costs.parse_ms_per_kb
        self._agenda.at(done, self._household.take_over, process, host.text_version + 1)
