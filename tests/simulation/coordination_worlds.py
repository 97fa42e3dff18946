"""Clusters with one rule of the coordination log broken, which the harness must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

from skuld_py.cluster.log.commands import (
    COMMANDS,
    AcceptJoin,
    Command,
    Gc,
    KillWorkflow,
    Leave,
    NotifyJoin,
    PrepareJoin,
    SealOutput,
)
from skuld_py.cluster.log.commands.admission import less
from skuld_py.cluster.log.play import Played, Player, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import State
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.member.reader import Reader
from skuld_py.cluster.member.watched import watched
from skuld_py.model import coordination as c
from skuld_py.simulation.coordination.poison import Poison
from skuld_py.simulation.coordination.stage import World
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import Connection

HIDDEN = "pulse hidden by a server that is behind"
KNOWN: Mapping[str, type[Command]] = {**COMMANDS, Poison.kind: Poison}


# -- watches by deltas, as in Onyx -------------------------------------------------------------------


@attrs.define
class Deltas:
    """Watches changed by what single entries bring, one of them remembered; nothing is ever computed anew."""

    player: Player
    machine: Membership | None = None
    life: str = ""
    open: dict[str, None] = attrs.field(factory=dict)
    remembered: str = ""
    observer: str = ""
    """Whom a joiner polls until it is notified."""

    def play(self, replica: Replica, position: int, raw: bytes) -> Played:
        played = self.player(replica, position, raw)
        assert self.machine is not None
        if self.machine.me != self.life:
            self.life, self.remembered, self.observer = self.machine.me, "", ""
            self.open.clear()
        if played.entry is not None and played.diff:
            self.fire(self.life, played.entry.command, replica, played.replica)
        return played

    def fire(self, me: str, command: Command, old: Replica, new: Replica) -> None:
        match command:
            case PrepareJoin(joiner) if joiner in new.joins.observers:
                if new.joins.observers[joiner] == me:
                    self.open[joiner], self.remembered = None, joiner
                elif joiner == me:
                    self.observer = new.joins.observers[me]
            case NotifyJoin(joiner) if joiner == me:
                self.replace(new.ring.after(new.joins.observers[me]))
                self.observer = ""
            case AcceptJoin(observer, _) if observer == me:
                self.open.pop(old.ring.after(me), None)
            case Leave(member):
                watcher = old.ring.watchers.get(member)
                if watcher == me and new.ring.after(me) != me:
                    self.replace(new.ring.after(me))

    def replace(self, member: str) -> None:
        self.open.pop(self.remembered, None)
        self.open[member], self.remembered = None, member

    def watches(self, replica: Replica, me: str) -> tuple[str, ...]:
        if me in replica.aborted:
            return watched(replica, me)  # Onyx asks after one that is taken, too
        return tuple(name for name in dict.fromkeys((*self.open, self.observer)) if name and name != me)


def by_deltas(*arguments: Any, player: Player, **named: Any) -> Membership:
    deltas = Deltas(player)
    deltas.machine = Membership(*arguments, player=deltas.play, watches=deltas.watches, **named)
    return deltas.machine


# -- watches computed, but wrongly -------------------------------------------------------------------


def watching(watches: Callable[[Replica, str], tuple[str, ...]]) -> World:
    return World(membership=partial(Membership, watches=watches))


def without_observer(replica: Replica, me: str) -> tuple[str, ...]:
    """A joiner does not watch who is to let it in."""
    return tuple(name for name in watched(replica, me) if name != replica.joins.observers.get(me))


def without_joiner(replica: Replica, me: str) -> tuple[str, ...]:
    """An observer does not watch its joiner."""
    return tuple(name for name in watched(replica, me) if name != replica.joins.joiner_of(me))


def without_taken(replica: Replica, me: str) -> tuple[str, ...]:
    """A joiner that found no observer watches nobody."""
    return () if me in replica.aborted else watched(replica, me)


# -- shells that forget ------------------------------------------------------------------------------


class NoRearm(Registry):
    """After a break the watches are not armed again."""

    def _go_on(self, connection: Connection) -> None:
        watched, connection.wishes.watched = connection.wishes.watched, ()
        super()._go_on(connection)
        connection.wishes.watched = watched


class NoExistenceCheck(Registry):
    """A watch is armed without looking whether there is anything to watch."""

    def _check_pulses(self, connection: Connection) -> None:
        connection.wishes.armed |= dict.fromkeys(connection.wishes.watched)


class Believing(Registry):
    """A server that is behind is believed when it knows of no pulse."""

    def _check_pulses(self, connection: Connection) -> None:
        wishes, before = connection.wishes, self.counts[HIDDEN]
        unknown = [life for life in wishes.watched if life not in wishes.armed]
        super()._check_pulses(connection)
        if self.counts[HIDDEN] > before:
            for life in unknown:
                self._tell(connection, c.PulseGone(life))


# -- commands and playing ----------------------------------------------------------------------------


@attrs.frozen
class KeepingLeave(Leave):
    """The join whose observer dies goes on."""

    def apply(self, replica: Replica, position: int) -> Replica:
        made = super().apply(replica, position)
        joiner = replica.joins.joiner_of(self.member)
        if made is replica or not joiner:
            return made
        return attrs.evolve(made, joins=replica.joins, joiners=replica.joiners, aborted=less(made.aborted, joiner))


@attrs.frozen
class OnyxSeal(SealOutput):
    """No guard, as in Onyx: of a workflow that has ended, or whose inputs are open, it counts as well."""

    def apply(self, replica: Replica, position: int) -> Replica:
        known = replica.workflows.get(self.workflow)
        if known is None or self.step in known.sealed:
            return replica
        made = attrs.evolve(known, sealed=(*known.sealed, self.step), since=position)
        return attrs.evolve(replica, workflows={**replica.workflows, self.workflow: made})


@attrs.frozen
class OnyxKill(KillWorkflow):
    """What is complete is killed all the same, as in Onyx."""

    def apply(self, replica: Replica, position: int) -> Replica:
        known = replica.workflows.get(self.workflow)
        if known is None or known.state == State.KILLED.value:
            return replica
        return attrs.evolve(replica, workflows={
            **replica.workflows, self.workflow: known.ended(State.KILLED, position)})


@attrs.frozen
class OnyxGc(Gc):
    """All that has ended is forgotten at once, and what lives with it."""

    def apply(self, replica: Replica, position: int) -> Replica:
        return attrs.evolve(super().apply(replica, position), workflows={})


def without_numbers(replica: Replica, position: int, raw: bytes, commands: Mapping[str, type[Command]]) -> Played:
    """Entries that come twice are applied twice."""
    return play(attrs.evolve(replica, writers={}), position, raw, commands)


def raising(replica: Replica, position: int, raw: bytes, commands: Mapping[str, type[Command]]) -> Played:
    """An entry that fails is applied halfway by whoever has an odd number of members' letters in mind."""
    played = play(replica, position, raw, commands)
    if played.reason == "ValueError":
        return attrs.evolve(played, replica=attrs.evolve(played.replica, aborted={"half": position}))
    return played


# -- machines ----------------------------------------------------------------------------------------


class NoJump(Reader):
    """Who is behind the origin goes on where the entries begin."""

    def adopt(self, position: int, text: str) -> bool:
        return not self.has_begun and super().adopt(position, text)


class Waiting(Reader):
    """Who is behind the origin waits for its next entry, as in Onyx."""

    def on_entries(self, now_ms: int, event: c.EntriesRead) -> Any:
        if event.is_missing:
            event = attrs.evolve(event, entries=(), is_missing=False)
        return super().on_entries(now_ms, event)


def reading(reader: type[Reader]) -> World:
    def make(*arguments: Any, **named: Any) -> Membership:
        machine = Membership(*arguments, **named)
        machine._reader = reader(machine.settings, machine.base, machine.player)
        return machine
    return World(membership=make)


class Stubborn(Membership):
    """It does not notice that it has left."""

    def _live(self, now_ms: int) -> None:
        if not self.me:
            super()._live(now_ms)


class Hasty(Membership):
    """Appends before its pulse stands."""

    def _begin_life(self, now_ms: int) -> None:
        super()._begin_life(now_ms)
        self._has_pulse = True


class Forgetful(Membership):
    """It owes only what the entries say that it reads, not what the replica says."""

    def _want(self, wishes: Any) -> None:
        super()._want(wish for wish in wishes if not isinstance(wish, NotifyJoin | AcceptJoin))


BROKEN: dict[str, World] = {
    "watches by deltas": World(membership=by_deltas),
    "a joiner does not watch its observer": watching(without_observer),
    "an observer does not watch its joiner": watching(without_joiner),
    "who finds no observer watches nobody": watching(without_taken),
    "no watch armed again after a break": World(registry=NoRearm),
    "no existence check": World(registry=NoExistenceCheck),
    "no abort when the observer dies": World(commands={**KNOWN, "leave": KeepingLeave}),
    "numbers of entries not checked": World(player=without_numbers),
    "no jump to the origin": reading(NoJump),
    "waiting for a collected entry": reading(Waiting),
    "its own leave not noticed": World(membership=Stubborn),
    "appends before the pulse stands": World(membership=Hasty),
    "what was jumped over not made good": World(membership=Forgetful),
    "seals without guards": World(commands={**KNOWN, "seal-output": OnyxSeal}),
    "what is complete is killed": World(commands={**KNOWN, "kill-workflow": OnyxKill}),
    "what lives is collected": World(commands={**KNOWN, "gc": OnyxGc}),
    "an entry that fails leaves something": World(player=raising),
}
