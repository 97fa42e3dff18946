"""The entries of nodes (``nodes/NAME``): what a data directory is judged by, and the newest life of a node.

Kept as ``runtime.zookeeper.presence`` keeps them, and swept up as ``runtime.zookeeper.entry_sweep`` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from skuld_py.model.document import Document
from skuld_py.model.registration import Registration
from skuld_py.simulation.world.zookeeper.sessions import Connection


class Registrations:
    """By the node's name."""

    def __init__(self) -> None:
        self._entries: dict[str, Registration] = {}

    def get(self, name: str) -> Registration | None:
        """What is registered under a name."""
        return self._entries.get(name)

    def make(self, name: str) -> None:
        """An entry of a node that has never started."""
        self._entries[name] = Registration()

    def restore(self, entries: Mapping[str, Registration]) -> None:
        """All are lost, but for these."""
        self._entries = dict(entries)

    def keep(self, connection: Connection) -> None:
        """Have a node's entry say the start that this connection is of."""
        member = connection.member
        known = self._entries.get(member.name, Registration())
        self._entries[member.name] = attrs.evolve(
            known, host=member.host, port=member.port, incarnation=member.incarnation, starts=connection.starts,
            boot=member.boot)

    def name_life(self, name: str, life: str) -> str:
        """Have an entry name the newest life; gives the one that it named before."""
        known = self._entries.get(name, Registration())
        self._entries[name] = attrs.evolve(known, life=life)
        return known.life if known.life != life else ""

    def sweep(self, placed: Collection[str], pulses: Collection[str], documents: Iterable[Document]) -> int:
        """Remove the entries of nodes that are not placed, do not live, and whose vote no partition needs; none
        while a partition has no voters. Says how many."""
        found = [name for name, entry in self._entries.items() if name not in placed and entry.life not in pulses]
        for document in documents:
            if not document.seats:
                return 0
            needed = (document.leader, *document.cohort, *document.learners)
            found = [name for name in found if name not in needed]
        for name in found:
            del self._entries[name]
        return len(found)
