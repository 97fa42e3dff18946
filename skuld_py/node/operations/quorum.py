"""Questions to the keepers of several partitions, of which a number in each cohort must answer.

While voters change, the answers say so (``CohortRow``), and then copies are counted, or a majority of answers, in
every cohort that may hold the next leader's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from skuld_py.model import columns
from skuld_py.model.messages import CohortRow, Message
from skuld_py.node.operations.operation import Host, Operation, Origin
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.leadership.standing import Names, Standing

Make = Callable[[int, list[int]], Message]
"""The message of an operation (its number) about some of its partitions."""


@attrs.define
class Need:
    """In which cohorts of a partition copies, or answers, are counted; and whose there are."""

    era: int
    cohort: Names
    others: dict[Names, None]
    have: dict[str, None] = attrs.field(factory=dict)

    @property
    def groups(self) -> list[Names]:
        """All of them."""
        return [self.cohort, *self.others]

    def learn(self, row: CohortRow) -> None:
        """A pending cohort counts besides, and so does one of a later era, until the document confirms it."""
        if not row.era or row.era > self.era:
            self.others[row.cohort] = None

    def follow(self, standing: Standing) -> None:
        """What the document has confirmed meanwhile takes the place of ours."""
        if standing.era > self.era:
            self.era, self.cohort = standing.era, standing.cohort

    def copies(self) -> int:
        """The number in every group."""
        return min([sum(map(self.have.__contains__, group)) for group in self.groups])

    def is_met(self) -> bool:
        """Whether a majority of each group is there."""
        return all(has_majority(group, self.have) for group in self.groups)


class QuorumOperation(Operation):
    """Asks the keepers of several partitions, and more of them as it learns who counts."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, partitions: Iterable[int], make: Make) -> None:
        super().__init__(host, origin, now_ms)
        self.needs: dict[int, Need] = {}
        for partition in partitions:
            standing = host.vnodes[partition].standing
            others = dict.fromkeys(standing.groups[1:])
            self.needs[partition] = Need(standing.era, standing.cohort, others)
        self.asked: dict[str, list[int]] = {}
        self._make = make

    def begin(self, now_ms: int) -> None:
        """Send to all keepers; those known to be down are owed."""
        for partition in self.needs:
            for name in self.host.vnodes[partition].keepers:
                self.asked.setdefault(name, []).append(partition)
        messages: dict[str, Message] = {}
        made: dict[tuple[int, ...], Message] = {}
        for name, partitions in self.asked.items():
            if name in self.host.live:
                about = tuple(partitions)
                messages[name] = made[about] = made.get(about) or self._make(self.request, partitions)
            else:
                self.owe(name)
        self.ask(now_ms, messages)

    def count(self, now_ms: int, peer: str, without: bytes, rows: Iterable[CohortRow]) -> None:
        """Note an answer for what the peer was asked, ``without`` some partitions; learn who counts."""
        excepted = columns.unpack_u64(without) if without else ()
        for partition in self.asked[peer]:
            self.needs[partition].follow(self.host.vnodes[partition].standing)
            if partition not in excepted:
                self.needs[partition].have[peer] = None
        self.learn(now_ms, rows)

    def uncount(self, peer: str, partitions: bytes) -> None:
        """What it said of these does not count any more."""
        for partition in columns.unpack_u64(partitions):
            if partition in self.needs:
                self.needs[partition].have.pop(peer, None)

    def learn(self, now_ms: int, rows: Iterable[CohortRow]) -> None:
        """Who counts besides; ask those too."""
        for row in rows:
            if row.partition in self.needs and self.host.learn(row):
                self.needs[row.partition].learn(row)
                self._ask_more(now_ms, row)

    def _ask_more(self, now_ms: int, row: CohortRow) -> None:
        for name in row.cohort:
            partitions = self.asked.setdefault(name, [])
            if row.partition not in partitions:
                partitions.append(row.partition)
                if name in self.host.live:
                    message = self.pending[name] = self._make(self.request, partitions)
                    self.host.send(name, message)

    def owe(self, peer: str) -> None:
        """A peer has not answered; reads owe nothing."""


def eras_of(host: Host, partitions: Iterable[int]) -> bytes:
    """By which cohorts this node counts."""
    numbers = list[int]()
    for partition in partitions:
        numbers += partition, host.vnodes[partition].standing.era
    return columns.pack_u64(numbers)
