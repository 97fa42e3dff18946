"""Which nodes own which partitions: a pure function of the registered nodes.

Consistent hashing with bounded loads: each partition walks the ring from its own point and takes
the first nodes that are not full yet, so that a node's coming or going moves little while no node
owns more than its even share, rounded up. Who is first in a preference list stands first for
leader, so firsts are bounded in the same way. A plain ring over few partitions is 30 % uneven.

Liveness is no input: a node that is down keeps its partitions, and its restart moves no data.

Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2016. The ring
itself is ``uhashring``'s ketama.
"""

from __future__ import annotations

from collections.abc import Sequence

from uhashring import HashRing

Placement = tuple[tuple[str, ...], ...]


def place(nodes: Sequence[str], partitions: int, replicas: int) -> Placement:
    """Preference lists, one per partition; empty ones while fewer than ``replicas`` nodes exist."""
    if len(nodes) < replicas:
        return ((),) * partitions
    ring = HashRing(nodes=sorted(nodes), hash_fn="ketama")
    room = dict.fromkeys(sorted(nodes), -(-partitions * replicas // len(nodes)))
    firsts = dict.fromkeys(sorted(nodes), -(-partitions // len(nodes)))
    return tuple(_prefer(_walk(ring, partition, len(nodes)), room, firsts, replicas, partitions - partition)
                 for partition in range(partitions))


def _walk(ring: HashRing, partition: int, size: int) -> list[str]:
    found = ring.range(f"partition-{partition}", size=size, unique=True)
    return [item["nodename"] for item in found]


def _prefer(walk: list[str], room: dict[str, int], firsts: dict[str, int], replicas: int,
            left: int) -> tuple[str, ...]:
    """Take ``replicas`` owners off a walk; a node that needs all partitions left to fill up goes first."""
    starved = [name for name in walk if room[name] >= left]
    free = [name for name in walk if 0 < room[name] < left]
    owners = (starved + free + [name for name in walk if room[name] <= 0])[:replicas]
    first = next((name for name in owners if firsts[name] > 0), owners[0])
    firsts[first] -= 1
    for name in owners:
        room[name] -= 1
    return (first, *(name for name in owners if name != first))
