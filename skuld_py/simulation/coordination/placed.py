"""Members whose placement is decided aside, compared after each step with playing the log in order.

Their replica must be that of its position, as every member's; their placement what the nodes of its own version
give, however far that lags behind; and what their nodes are told must fit together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

import attrs

from skuld_py.cluster.log.commands import Command
from skuld_py.cluster.log.commands.footprints import FOOTPRINTS, footprint
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.news import nodes_of
from skuld_py.cluster.placement import Placement, place
from skuld_py.cluster.scale.derivation import scheme_of
from skuld_py.cluster.scale.versions import Scheme
from skuld_py.config.scaling import Scaling
from skuld_py.model.events import NodesChanged
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.zookeeper.reference import same
from skuld_py.simulation.world.zookeeper.registry import Registry

PARTITIONS = 8


def scheme(scaling: Scaling, commands: Mapping[str, type[Command]]) -> Scheme | None:
    """What a member derives; commands of the harness alone read and write nothing."""
    found = scheme_of(scaling, PARTITIONS)
    own = {kind: footprint("", "") for kind in commands if kind not in FOOTPRINTS}
    return None if found is None else attrs.evolve(found, commands=commands, footprints={**FOOTPRINTS, **own})


class Onlooker:
    """Looks at processes; what is wrong goes to the registry's violations, what was met to ``stats``."""

    def __init__(self, registry: Registry, stats: Counter[str]) -> None:
        self._registry = registry
        self._stats = stats
        self._seen: dict[str, Replica] = {}

    def look(self, process: Process, told: NodesChanged | None) -> None:
        """After a turn, in which the node was last told this of the nodes."""
        machine, reference, name = process.membership, self._registry.log.reference, process.name
        if machine is None or machine.scheme is None:
            return
        replica, placement = machine.replica, machine.placement
        is_new, self._seen[name] = self._seen.get(name) is not replica, replica
        if is_new and not same(replica, reference.at(replica.version)):
            self._violate(f"{name} has another replica at {replica.version}")
        if placement is not None:
            version, lists = placement
            self._stats["entries ahead of the placement"] += is_new and version < replica.version
            if lists != right(reference.at(version)):
                self._violate(f"{name} has another placement at {version}")
        if told is not None and told.placement != _right(told.nodes, told.replicas):
            self._violate(f"the node {name} was told a placement of other nodes")

    def lacks(self, process: Process, told: NodesChanged | None) -> list[str]:
        """What the node is still to be told."""
        machine, newest = process.membership, self._registry.replica
        if machine is None:
            return []
        expected = nodes_of(newest)
        if machine.scheme is not None:
            expected = attrs.evolve(expected, placement=right(newest))
        return [] if told == expected else [f"{process.name} was told {told}"]

    def _violate(self, sentence: str) -> None:
        self._registry.violations.append(sentence)


def right(replica: Replica) -> Placement:
    """The placement that the nodes of a replica give."""
    return _right(tuple(placed(replica)), replica.replicas)


@cache
def _right(nodes: tuple[str, ...], replicas: int) -> Placement:
    return place(nodes, PARTITIONS, replicas)
