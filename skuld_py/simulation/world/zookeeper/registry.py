"""The whole ZooKeeper of a cluster: what processes ask of it, and what operators and the harness do and see there.

Questions of others (which nodes are placed, which live) are answered from the log's reference replica and from the
pulses.
"""

from __future__ import annotations

from random import Random

import attrs

from skuld_py.cluster.log.commands import Command, RetireNode
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Player, play
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.model.coordination import CoordinationEffect
from skuld_py.model.events import ReadDocument, SwapDocument
from skuld_py.model.registration import Registration
from skuld_py.node.life.rebuilding import Rebuilt
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper.coordination import Coordination
from skuld_py.simulation.world.zookeeper.reference import Reference
from skuld_py.simulation.world.zookeeper.sessions import Connection, RegistryOptions

RETRY_MS = 100
"""How soon an operator that found ZooKeeper out of order tries again."""


class Registry(Coordination):
    """``base``: the replica before the first entry; ``player`` plays entries. ``violations``: what was wrong with
    the log, or with what was asked of it."""

    def __init__(self, scheduler: Scheduler, random: Random, options: RegistryOptions,
                 base: Replica | None = None, player: Player = play, partitions: int = 1) -> None:
        self.violations: list[str] = []
        self.joined_ms: list[int] = []
        """When processes became members."""
        self._operations = 0
        reference = Reference(base or Replica(), player, self.violations.append)
        super().__init__(reference, partitions, scheduler, random, options)

    # -- what processes ask ----------------------------------------------------------------------

    def request(self, connection: Connection, effect: ReadDocument | SwapDocument | CoordinationEffect,
                is_stale: bool = False) -> None:
        """A process's request leaves. ``is_stale``: it has not been told that its session is lost."""
        if isinstance(effect, ReadDocument):
            self._ask(connection, self._read_document, effect)
        elif isinstance(effect, SwapDocument):
            self._ask(connection, self._swap, effect)
        else:
            self._wish(connection, effect, is_stale)

    # -- what is asked beside --------------------------------------------------------------------

    @property
    def replica(self) -> Replica:
        """As of the newest entry."""
        return self.log.reference.newest

    @property
    def nodes(self) -> tuple[str, ...]:
        """Those that partitions are placed on now."""
        return tuple(placed(self.replica))

    def is_member(self, name: str) -> bool:
        """Whether a pulse of a node stands."""
        return any(pulse.node == name for pulse in self.log.pulses.values())

    def registration(self, name: str) -> Registration | None:
        """What is registered under a node's name."""
        return self.registrations.get(name)

    def put_entry(self, raw: bytes) -> int:
        """An entry stands; processes that wait for it are told, once their servers know."""
        members = self.replica.members
        position = super().put_entry(raw)
        if self.replica.members is not members and self.replica.members.keys() - members.keys():
            self.joined_ms.append(self._scheduler.now_ms)
        return position

    # -- what operators do -----------------------------------------------------------------------

    def found(self, names: tuple[str, ...]) -> None:
        """Let there be a cluster of these nodes, all of them down, whose log was collected before."""
        for name in names:
            self.registrations.make(name)
        base = self.log.reference.base
        self.log.begin(attrs.evolve(base, version=0, nodes={name: Place(since=0) for name in names}))

    def restore(self, made: Rebuilt) -> None:
        """Everything was lost, and this is written, while no process runs; what was in buffers is lost, too."""
        self._buffered.clear()
        for session in [*self._open]:
            del self._open[session]
        self.put_back(made.documents)
        self.registrations.restore(made.registrations)
        self.log.restore(made.origin)

    def operate(self, command: Command) -> bool:
        """An operator's entry; False while ZooKeeper takes none."""
        if self._is_serving:
            self._operations += 1
            self.put_entry(Entry(f"operator~{self._operations}", 0, command).encode())
        return self._is_serving

    def set_leaving(self, name: str, is_leaving: bool) -> None:
        """An operator takes a node out: it owns nothing from now on, but its data are not forgotten; or puts it
        back in."""
        if not self.operate(RetireNode(name, is_leaving)):
            self._scheduler.after(RETRY_MS, self.set_leaving, name, is_leaving)
