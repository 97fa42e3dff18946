"""Members whose placement is decided aside, compared after each step with playing the log in order.

Their replica must be that of its position, as everybody's; their placement what the nodes of its own version give,
however far that lags behind; and what their nodes are told must fit together.
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
from skuld_py.config import Scaling
from skuld_py.simulation.coordination.ensemble import Ensemble
from skuld_py.simulation.coordination.process import Process
from skuld_py.simulation.coordination.verdict import same

PARTITIONS = 8


def scheme(scaling: Scaling, commands: Mapping[str, type[Command]]) -> Scheme | None:
    """What a member derives; commands of the harness alone read and write nothing."""
    found = scheme_of(scaling, PARTITIONS)
    own = {kind: footprint("", "") for kind in commands if kind not in FOOTPRINTS}
    return None if found is None else attrs.evolve(found, commands=commands, footprints={**FOOTPRINTS, **own})


class Onlooker:
    """Looks at processes; what is wrong goes to the ensemble's violations, what was met to ``stats``."""

    def __init__(self, ensemble: Ensemble, stats: Counter[str]) -> None:
        self._ensemble = ensemble
        self._stats = stats
        self._seen: dict[str, Replica] = {}

    def look(self, process: Process) -> None:
        """After a step."""
        machine = process.machine
        if machine is None or machine.scheme is None:
            return
        replica, placement, node = machine.replica, machine.placement, process.node
        is_new, self._seen[node] = self._seen.get(node) is not replica, replica
        if is_new and not same(replica, self._at(replica.version)):
            self._violate(f"{node} has another replica at {replica.version}")
        if placement is not None:
            version, lists = placement
            self._stats["entries ahead of the placement"] += is_new and version < replica.version
            if lists != right(self._at(version)):
                self._violate(f"{node} has another placement at {version}")
        news = process.told_nodes
        if news is not None and news.placement != _right(news.nodes, replica.replicas):
            self._violate(f"the node {node} was told a placement of other nodes")

    def lacks(self, process: Process) -> list[str]:
        """What the node is still to be told."""
        machine, newest = process.machine, self._ensemble.newest
        if machine is None:
            return []
        expected = nodes_of(newest)
        if machine.scheme is not None:
            expected = attrs.evolve(expected, placement=right(newest))
        return [] if process.told_nodes == expected else [f"{process.node} was told {process.told_nodes}"]

    def _at(self, version: int) -> Replica:
        """The replica of that position, or of the last one before it that was given to an entry."""
        while version >= 0 and version not in self._ensemble.reference:
            version -= 1
        return self._ensemble.reference[version] if version >= 0 else self._ensemble.base

    def _violate(self, sentence: str) -> None:
        self._ensemble.violations.append(sentence)


def right(replica: Replica) -> Placement:
    """The placement that the nodes of a replica give."""
    return _right(tuple(placed(replica)), replica.replicas)


@cache
def _right(nodes: tuple[str, ...], replicas: int) -> Placement:
    return place(nodes, PARTITIONS, replicas)
