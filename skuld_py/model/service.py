"""How much a partition does for its clients, as nodes see it: all of it, storing alone, or nothing.

A task is stored by a majority of a partition's voters, whoever leads, and by as many copies as a majority of its
owners is; before there are voters its owners count. Claims are granted by its leader with such a majority, and
only by one whose clock is right, not before every claim is over that voters who were given up may have granted,
and not behind a horizon that has passed. A voter that fills again records neither.
A view may be seconds old, and a leader that has just died is in it still. What bars a leader from granting only
those know who keep its partition. A partition that looks well from outside, and of which none of them has told, is
``UNKNOWN``: see ``overview``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum

from skuld_py.model import messages as m

DOUBTED = ("outside", "far", "disagreed")
"""Verdicts on a clock by which a node grants nothing."""


class Service(StrEnum):
    """Worst last."""

    FULL = "full"
    UNKNOWN = "unknown"
    ENQUEUE_ONLY = "enqueue-only"
    UNAVAILABLE = "unavailable"


ORDER = tuple(Service)


def service_of(row: m.PartitionRow, nodes: Mapping[str, m.NodeRow], is_barred: bool = False,
               filling: Collection[str] = ()) -> Service:
    """What a partition does. ``is_barred``: its leader may grant nothing now, by its document. ``filling``: nodes
    that have lost their memory of it."""
    voters = row.cohort or row.owners
    able = [name for name in dict.fromkeys((*voters, *row.owners))
            if name in nodes and nodes[name].is_live and name not in filling]
    if sum(name in able for name in voters) < _majority(voters) or len(able) < _majority(row.owners):
        return Service.UNAVAILABLE
    leader = nodes.get(row.leader)
    grants = leader is not None and leader.is_live and leader.clock not in DOUBTED
    return Service.FULL if grants and not is_barred else Service.ENQUEUE_ONLY


def services_of(described: m.Described, untold: Collection[int] = ()) -> dict[int, Service]:
    """What each partition does, by its number. ``untold``: those of which nobody told who keeps them."""
    nodes = {node.name: node for node in described.nodes}
    barred = {row.partition for row in described.held if bars(row)}
    filling: dict[int, list[str]] = {}
    for move in described.moves:
        if move.role == "suspect" and not move.is_done:
            filling.setdefault(move.partition, []).append(move.node)
    found = {row.partition: service_of(row, nodes, row.partition in barred, filling.get(row.partition, ()))
             for row in described.partitions}
    return {partition: Service.UNKNOWN if service is Service.FULL and partition in untold else service
            for partition, service in found.items()}


def _majority(names: Collection[str]) -> int:
    return len(names) // 2 + 1


def bars(row: m.HeldRow) -> bool:
    """Whether a leader may grant nothing for it. A loss and a barrier bar until their time, which is 0 once it is
    over; a horizon from then on."""
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
