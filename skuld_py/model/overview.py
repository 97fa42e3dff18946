"""The cluster as several of its nodes see it: who is asked besides the first, and what comes of it.

A node knows what is held of a partition, and what bars its leader from granting, only of those that it keeps.
Where nodes are more than copies, others are asked too: live ones that vote in partitions of which nobody has told
yet, the one that votes in most of them first. Each is asked once at most, and nobody where the first keeps all.

Invariant: of a partition nothing is taken for known that no voter of it has told. A node is a voter if it takes
itself for one as well: one that was voted out, or has not read its documents yet, holds nothing to tell. Where
none did it is ``untold``, whatever it looks like from outside; who did not answer is named with the reason. A
node without a session with ZooKeeper cannot say that a horizon is over, so it tells nothing, unless the first has
none either.

Rejected: to ask a partition's leader, which is a request for each partition; and to have the leaders gossip what
bars them, since one that is silent would look as one that has nothing to tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from skuld_py.model import messages as m

EACH_S, SILENCE_S, TOTAL_S = 2.0, 5.0, 30.0
"""For how long one node is asked, how long all that do not answer are waited for, and how long all takes at most:
who answers takes no time from the others."""
CONNECTED = "connected"


@attrs.frozen
class Overview:
    """``described``: as the first sees it, with what is held of all partitions of which anybody told. ``silent``:
    live nodes that did not tell, and why. ``untold``: the partitions of which no voter told."""

    described: m.Described
    silent: Mapping[str, str] = attrs.field(factory=dict)
    untold: frozenset[int] = frozenset()


def keepers_of(row: m.PartitionRow) -> tuple[str, ...]:
    """Who can tell of a partition."""
    return row.cohort or row.owners


def untold_by(described: m.Described) -> frozenset[int]:
    """The partitions of which a node alone cannot tell."""
    return frozenset(row.partition for row in described.partitions if described.node not in keepers_of(row))


class Canvass:
    """Whom to ask next, and what was told so far. The first has told already."""

    def __init__(self, first: m.Described) -> None:
        self._first = first
        self._held = _by_partition(first.held)
        self._asked = {first.node}
        self._silent: dict[str, str] = {}
        self._unaware: dict[int, str] = {}
        """Who is held for a voter of a partition and does not know it: no news where another tells."""
        open_rows = untold_by(first)
        self._rows = {row.partition: row for row in first.partitions}
        self._keepers = {row.partition: keepers_of(row) for row in first.partitions if row.partition in open_rows}

    def wanted(self) -> str:
        """The node to ask next; nothing if there is none."""
        counts = Counter(name for keepers in self._keepers.values() for name in keepers)
        able = [node for node in self._first.nodes if node.is_live and counts[node.name]
                and node.name not in self._asked]
        best = min(able, key=lambda node: (node.is_silent, -counts[node.name], node.name), default=None)
        return "" if best is None else best.name

    def hear(self, name: str, told: m.Described) -> None:
        """A node has answered; it must be the one that was asked."""
        if told.node != name:
            self.miss(name, f"is another node by now, {told.node}")
        elif told.session != CONNECTED and self._first.session == CONNECTED:
            self.miss(name, f"has no session with ZooKeeper ({told.session})")
        else:
            self._asked.add(name)
            held, seen = _by_partition(told.held), {row.partition: row for row in told.partitions}
            for partition in [each for each, keepers in self._keepers.items() if name in keepers]:
                if not _can_tell(name, self._rows[partition], seen.get(partition)):
                    self._unaware[partition] = name
                    continue
                del self._keepers[partition]
                self._held[partition] = held.get(partition, [])

    def miss(self, name: str, why: str) -> None:
        """A node does not tell."""
        self._asked.add(name)
        self._silent[name] = why

    def overview(self) -> Overview:
        """What came of it."""
        held = tuple(row for _, rows in sorted(self._held.items()) for row in rows)
        silent = {name: f"does not know that it votes in partition {partition}"
                  for partition, name in sorted(self._unaware.items(), reverse=True) if partition in self._keepers}
        return Overview(attrs.evolve(self._first, held=held), {**silent, **self._silent}, frozenset(self._keepers))


def _can_tell(name: str, known: m.PartitionRow, seen: m.PartitionRow | None) -> bool:
    """Whether a node keeps a partition by its own account too. Where the first has read who votes, the other must
    have read it as well: owners alone are known before any document is."""
    return seen is not None and name in (seen.cohort if known.cohort else keepers_of(seen))


def _by_partition(rows: Iterable[m.HeldRow]) -> dict[int, list[m.HeldRow]]:
    found: dict[int, list[m.HeldRow]] = {}
    for row in rows:
        found.setdefault(row.partition, []).append(row)
    return found
