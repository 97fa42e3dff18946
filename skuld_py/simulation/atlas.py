"""Which nodes may lose their memory: a majority of every cohort must stay whole.

Every promise of the project rests on what a majority has committed, so a run that destroys more proves only that
bytes can be destroyed. A node counts as hurt from the blow until it has started again, holds no unreadable record,
and is suspected of nothing: until then its copy may lack what was acknowledged. A node on an old copy of its data
counts as hurt until it has found that out by itself. Runs of the class "total loss" do without the atlas.

Source: the fault atlas of TigerBeetle's storage simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from skuld_py.cluster.placement import place
from skuld_py.config import Parameters
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.zookeeper.registry import Registry


class Atlas:
    """Knows which nodes are hurt."""

    def __init__(self, parameters: Parameters, processes: Mapping[str, Process], registry: Registry, *,
                 is_off: bool = False) -> None:
        self._is_off = is_off
        self._parameters = parameters
        self._processes = processes
        self._registry = registry
        self._hurt: dict[str, int] = {}
        """Nodes that were struck, and in which boot."""
        self._hidden: dict[str, dict[int, None]] = {}
        """Nodes on an old copy of their data, and the partitions for which they have not found that out."""

    def may_hurt(self, name: str) -> bool:
        """Whether every cohort keeps a majority of whole members without this one."""
        cohorts = [cohort for cohort in self._cohorts() if name in cohort]
        return self._is_off or all(self._has_majority_without(name, cohort) for cohort in cohorts)

    def note_hurt(self, name: str) -> None:
        """A node was struck."""
        self._hurt[name] = self._processes[name].boots

    def note_old_copy(self, name: str, partitions: Sequence[int]) -> None:
        """A node was given back what it had before; nothing but the documents of these partitions can tell it."""
        self.note_hurt(name)
        self._hidden[name] = dict.fromkeys(partitions)

    def look(self, name: str) -> None:
        """Note what a node may have found out."""
        if name in self._hidden:
            found = suspects(self._processes[name].store, self._parameters.partitions)
            self._hidden[name] = {partition: None for partition in self._hidden[name] if partition not in found}

    def is_hidden(self, name: str) -> bool:
        """Whether a node is on an old copy and does not know."""
        return bool(self._hidden.get(name))

    def is_hurt(self, name: str) -> bool:
        """Whether a node was struck and may still lack what it once had."""
        return name in self._hurt and not self.is_whole(name)

    def is_whole(self, name: str) -> bool:
        """Whether a node's copies can be relied on."""
        process = self._processes[name]
        if process.boots <= self._hurt.get(name, -1) or process.store.damaged() or self.is_hidden(name):
            return False
        return not suspects(process.store, self._parameters.partitions)

    def _cohorts(self) -> Iterator[Sequence[str]]:
        for _, document in self._registry.documents.values():
            yield document.cohort
        yield from place(self._registry.nodes, self._parameters.partitions, self._parameters.replicas)

    def _has_majority_without(self, name: str, cohort: Sequence[str]) -> bool:
        whole = [other for other in cohort if other != name and self.is_whole(other)]
        return 2 * len(whole) > len(cohort)
