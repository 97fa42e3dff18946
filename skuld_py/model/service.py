"""How much a partition does for its clients, as one node sees it: all of it, storing alone, or nothing.

A task is stored by a majority of a partition's owners, whoever leads; claims are granted by its leader, and only
by one whose clock is right. A view may be seconds old, and a leader that has just died is in it still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from skuld_py.model import messages as m

DOUBTED = ("outside", "far")
"""Verdicts on a clock by which a node grants nothing."""


class Service(StrEnum):
    """Worst last."""

    FULL = "full"
    ENQUEUE_ONLY = "enqueue-only"
    UNAVAILABLE = "unavailable"


ORDER = tuple(Service)


def service_of(row: m.PartitionRow, nodes: Mapping[str, m.NodeRow]) -> Service:
    """What a partition does."""
    able = sum(name in nodes and nodes[name].is_live for name in row.owners)
    if able < len(row.owners) // 2 + 1:
        return Service.UNAVAILABLE
    leader = nodes.get(row.leader)
    grants = leader is not None and leader.is_live and leader.clock not in DOUBTED
    return Service.FULL if grants else Service.ENQUEUE_ONLY


def services_of(described: m.Described) -> dict[int, Service]:
    """What each partition does, by its number."""
    nodes = {node.name: node for node in described.nodes}
    return {row.partition: service_of(row, nodes) for row in described.partitions}


def worst(services: Mapping[int, Service]) -> Service:
    """What the cluster does for whoever may meet any partition; nothing, as long as none is placed."""
    return max(services.values(), key=ORDER.index, default=Service.UNAVAILABLE)


def tally(services: Mapping[int, Service]) -> dict[Service, int]:
    """How many partitions do what."""
    counts = Counter(services.values())
    return {service: counts[service] for service in ORDER}
