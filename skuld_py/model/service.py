"""How much a partition does for its clients, as one node sees it: all of it, storing alone, or nothing.

A task is stored by a majority of a partition's owners, whoever leads; claims are granted by its leader, and only
by one whose clock is right, not before every claim is over that voters who were given up may have granted, and
not behind a horizon that has passed.
A view may be seconds old, and a leader that has just died is in it still. That nothing is granted yet is known of
the partitions that the node asked keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from skuld_py.model import messages as m

DOUBTED = ("outside", "far", "disagreed")
"""Verdicts on a clock by which a node grants nothing."""


class Service(StrEnum):
    """Worst last."""

    FULL = "full"
    ENQUEUE_ONLY = "enqueue-only"
    UNAVAILABLE = "unavailable"


ORDER = tuple(Service)


def service_of(row: m.PartitionRow, nodes: Mapping[str, m.NodeRow], is_barred: bool = False) -> Service:
    """What a partition does. ``is_barred``: its leader may grant nothing now, by its document."""
    able = sum(name in nodes and nodes[name].is_live for name in row.owners)
    if able < len(row.owners) // 2 + 1:
        return Service.UNAVAILABLE
    leader = nodes.get(row.leader)
    grants = leader is not None and leader.is_live and leader.clock not in DOUBTED
    return Service.FULL if grants and not is_barred else Service.ENQUEUE_ONLY


def services_of(described: m.Described) -> dict[int, Service]:
    """What each partition does, by its number."""
    nodes = {node.name: node for node in described.nodes}
    barred = {row.partition for row in described.held if _bars(row)}
    return {row.partition: service_of(row, nodes, row.partition in barred) for row in described.partitions}



def _bars(row: m.HeldRow) -> bool:
    """A loss and a barrier bar until their time, which is 0 once it is over; a horizon from then on."""
    if row.what == "horizon":
        return not row.until_ms
    return row.what in ("loss", "barrier") and row.until_ms > 0


def worst(services: Mapping[int, Service]) -> Service:
    """What the cluster does for whoever may meet any partition; nothing, as long as none is placed."""
    return max(services.values(), key=ORDER.index, default=Service.UNAVAILABLE)


def tally(services: Mapping[int, Service]) -> dict[Service, int]:
    """How many partitions do what."""
    counts = Counter(services.values())
    return {service: counts[service] for service in ORDER}
