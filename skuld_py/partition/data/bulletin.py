"""News of a node's partitions and settings, so that it need not look at all of them to find the few that matter.

* ``touched``: something was filed, so counts are to be staged when the turn ends;
* ``timed``: a lease, a pause or a task's life ends sooner than any of its partition did before;
* ``filled`` and ``freed``: tasks began to wait to be claimed, and claims have ended, by partition and queue;
* ``stirred``: tasks began to wait for others, or one that others wait for has ended;
* changes: of the leader, the voters, a promise, or whether a memory is in doubt. Each subscriber has a dict of its
  own, which it empties when it has looked;
* ``stock``: of each queue, in which partitions tasks wait;
* ``holders``: who holds the claims of queues that cap them for each holder;
* ``curious``: peers told of a leader that the document has not shown, so it is to be read;
* ``resumed``: queues of which claims may be granted again, or within other limits; ``rewidened``: queues whose
  keys may have another number of claims; ``rescheduled``: schedules that came, went or changed. The settings say
  so;
* rights: whether the registry answers, and whether this node may grant. Each subscriber has a dict of its own here
  too. The node says so;
* ``remark`` and ``counts``: what people are told (``model.remarks``). For the shell; no machine reads them.

Invariant: code that changes one of these says so here, in the same step. Saying it needlessly costs a look; an
unsaid change of a partition is found by the slow round over all of them (``Steward``).
"""

from __future__ import annotations

import attrs
from sortedcontainers import SortedDict

from skuld_py.model.remarks import Counts, Remarks, unheard
from skuld_py.partition.data.holders import Holders

Marks = dict[int, None]
"""Partitions, in the order in which they were marked first."""
Names = dict[str, None]
"""Queues or schedules, in the order in which something was said of them first."""


class Stock:
    """For each queue a number with a bit for each partition in which its tasks may wait.

    A bit may be set without need, never missing: a task that begins to wait sets its bit, and a look that finds
    nothing waiting takes it away. So a claim on an empty queue looks nowhere, and gossip names only queues with
    work, however many were used once. A name with tasks that wait takes some hundred bytes; the tasks take none.
    """

    def __init__(self) -> None:
        self._queues = SortedDict()

    def add(self, queue: bytes, partition: int) -> None:
        """A task waits."""
        known: int = self._queues.get(queue, 0)
        if not known >> partition & 1:
            self._queues[queue] = known | 1 << partition

    def discard(self, queue: bytes, partition: int) -> None:
        """No task waits in that partition, as a look has found."""
        known: int = self._queues.get(queue, 0)
        left = known & ~(1 << partition)
        if left:
            self._queues[queue] = left
        elif known:
            del self._queues[queue]

    def partitions(self, queue: bytes, among: int) -> list[int]:
        """Where tasks may wait, of the partitions whose bits are set in ``among``."""
        bits = self._queues.get(queue, 0) & among
        found = []
        while bits:
            lowest = bits & -bits
            found.append(lowest.bit_length() - 1)
            bits ^= lowest
        return found

    def queues(self, first: bytes, among: int) -> list[bytes]:
        """Queues with tasks in these partitions, by name: those from ``first`` on, then those before it."""
        names = [*self._queues.irange(first), *self._queues.irange(None, first, (True, False))]
        return [name for name in names if self._queues[name] & among]


@attrs.define
class Bulletin:
    """The bulletin of all partitions of a node. News outside a subscriber's own dict are taken off by the one duty
    they are for."""

    touched: Marks = attrs.field(factory=dict)
    timed: Marks = attrs.field(factory=dict)
    filled: dict[tuple[int, bytes], int] = attrs.field(factory=dict)
    """How many tasks."""
    freed: dict[tuple[int, bytes], None] = attrs.field(factory=dict)
    stirred: Marks = attrs.field(factory=dict)
    stock: Stock = attrs.field(factory=Stock)
    holders: Holders = attrs.field(factory=Holders)
    curious: Marks = attrs.field(factory=dict)
    resumed: Names = attrs.field(factory=dict)
    rewidened: Names = attrs.field(factory=dict)
    rescheduled: Names = attrs.field(factory=dict)
    remark: Remarks = attrs.field(default=unheard)
    counts: Counts = attrs.field(factory=Counts)
    _readers: list[Marks] = attrs.field(factory=list)
    _rights: list[Names] = attrs.field(factory=list)

    def stir(self, partition: int) -> None:
        """Tasks began to wait for others, or one that others wait for has ended."""
        self.stirred[partition] = None

    def subscribe(self) -> Marks:
        """A dict that gets each partition that changes from now on."""
        marks: Marks = {}
        self._readers.append(marks)
        return marks

    def subscribe_to_rights(self) -> Names:
        """A dict that is not empty once the node's rights have changed from now on."""
        names: Names = {}
        self._rights.append(names)
        return names

    def change_rights(self) -> None:
        """The rights of the node have changed."""
        for names in self._rights:
            names["rights"] = None

    def change(self, partition: int) -> None:
        """Something of a partition changed that its node acts by."""
        for marks in self._readers:
            marks[partition] = None
