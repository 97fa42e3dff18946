"""Questions to the keepers of several partitions, a number of which must answer in each cohort.

While voters change, the answers say so (``CohortRow``), and then copies are counted, or a majority of answers, in
every cohort that may hold the next leader's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from skuld_py.model import columns
from skuld_py.model.messages import CohortRow, Message
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.leadership.quorum import has_majority, majority
from skuld_py.partition.leadership.standing import Names, Standing

Make = Callable[[int, list[int]], Message]
"""The message of an operation (its number) about some of its partitions."""


@attrs.define
class Need:
    """The cohorts in which the copies (or answers) of a partition are counted, and the nodes that have one."""

    era: int
    cohort: Names
    others: dict[Names, None]
    have: dict[str, None] = attrs.field(factory=dict)

    @property
    def groups(self) -> list[Names]:
        """The cohorts in each of which a quorum is needed."""
        return [self.cohort, *self.others]

    def learn(self, row: CohortRow) -> None:
        """Count in one more cohort: a pending one, or one of a later era, until the document confirms it."""
        if not row.era or row.era > self.era:
            self.others[row.cohort] = None

    def follow(self, standing: Standing) -> None:
        """Count by the cohorts that the document has confirmed meanwhile."""
        if standing.era > self.era:
            self.era, self.cohort = standing.era, standing.cohort

    def copies(self, wanted: int, is_majority: bool = False) -> int:
        """How many copies every group has at least. For one with fewer members than are ``wanted``, once a
        majority of it has one, those of others count. ``is_majority``: and of one in which a majority is more than
        that, as many as are lacking count the less."""
        return min([len(self.have) if 0 < len(group) < wanted and has_majority(group, self.have) else
                    sum(map(self.have.__contains__, group)) - (
                        majority(len(group)) - wanted if is_majority and len(group) >= 2 * wanted else 0)
                    for group in self.groups])

    def is_met(self) -> bool:
        """Whether a majority of each group is there."""
        return all(has_majority(group, self.have) for group in self.groups)


class QuorumOperation(Operation):
    """Asks the keepers of several partitions, and more of them as it learns which voters count."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, partitions: Iterable[int],
                 make: Make) -> None:
        super().__init__(operations, origin, now_ms)
        self.needs: dict[int, Need] = {}
        for partition in partitions:
            standing = operations.view.vnodes[partition].standing
            others = dict.fromkeys(standing.groups[1:])
            self.needs[partition] = Need(standing.era, standing.cohort, others)
        self.asked: dict[str, list[int]] = {}
        self._make = make

    def begin(self, now_ms: int) -> None:
        """Send to all keepers; those known to be down are owed."""
        for partition in self.needs:
            for name in self.view.vnodes[partition].keepers:
                self.asked.setdefault(name, []).append(partition)
        messages: dict[str, Message] = {}
        made: dict[tuple[int, ...], Message] = {}
        for name, partitions in self.asked.items():
            if name in self.view.live:
                about = tuple(partitions)
                messages[name] = made[about] = made.get(about) or self._make(self.request, partitions)
            else:
                self.owe(name)
        self.ask(now_ms, messages)

    def count(self, now_ms: int, peer: str, without: bytes, rows: Iterable[CohortRow]) -> None:
        """Note an answer for what the peer was asked, ``without`` some partitions; learn which voters count."""
        excepted = columns.unpack_u64(without) if without else ()
        for partition in self.asked[peer]:
            self.needs[partition].follow(self.view.vnodes[partition].standing)
            if partition not in excepted:
                self.needs[partition].have[peer] = None
        self.learn(now_ms, rows)

    def uncount(self, peer: str, partitions: bytes) -> None:
        """The peer's answer does not count for these partitions any more."""
        for partition in columns.unpack_u64(partitions):
            if partition in self.needs:
                self.needs[partition].have.pop(peer, None)

    def learn(self, now_ms: int, rows: Iterable[CohortRow]) -> None:
        """Learn which voters count besides, and ask those too."""
        for row in rows:
            if row.partition in self.needs and self.view.believes(row):
                self.needs[row.partition].learn(row)
                self._ask_more(now_ms, row)

    def _ask_more(self, now_ms: int, row: CohortRow) -> None:
        for name in row.cohort:
            partitions = self.asked.setdefault(name, [])
            if row.partition not in partitions:
                partitions.append(row.partition)
                if name in self.view.live:
                    message = self.pending[name] = self._make(self.request, partitions)
                    self.outbox.send(name, message)

    def owe(self, peer: str) -> None:
        """A peer has not answered; reads owe nothing."""


def eras_of(view: View, partitions: Iterable[int]) -> bytes:
    """Partition and era of each cohort that this node counts by, as a column."""
    numbers = list[int]()
    for partition in partitions:
        numbers += partition, view.vnodes[partition].standing.era
    return columns.pack_u64(numbers)
