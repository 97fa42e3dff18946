"""How many tasks there are, by queue and state: both sides of the question to every node.

Counts of a partition come from its leader, else from the copy that knows the most, and only if a majority of its
voters has answered. A leader adds up what it leads before it answers, so an answer is as long as there are queues,
not as there are partitions. Only partitions that none of the nodes that answered leads, or that two say they lead,
are asked for one by one, in a second round.

Many queues come in pages, by name: each node ends a page after so many rows of its tables, and all are counted up
to where the shortest page ends.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import add

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.reads.survey import FELL_SHORT, NOT_READY, groups_of, is_covered
from skuld_py.partition.data.tally import Tally
from skuld_py.partition.vnode import Vnode

ROWS_MAX = 20_000
"""Rows read for a page, which ends behind the queue that reaches them: some ten milliseconds."""
QUEUES_MAX = 100_000
"""Queues that one answer to a client holds."""
Row = tuple[str, int, tuple[int, ...]]
"""A queue, a partition, and its counts by state."""


# -- the answering side ----------------------------------------------------------------------------


def summed(owned: Sequence[Vnode], question: m.Sum) -> m.Summed:
    """The answer for the partitions that a node can speak for."""
    wanted = dict.fromkeys(columns.unpack_u64(question.partitions))
    led = [vnode for vnode in owned if vnode.is_leading]
    counted = [vnode for vnode in owned if vnode.partition in wanted] if wanted else led
    rows, upto = _page(counted, question)
    if not wanted:
        rows = [(queue, 0, counts) for queue, counts in sorted(_sums(rows).items())]
    return m.Summed(question.request, question.turn, columns.pack_u64([vnode.partition for vnode in owned]),
                    columns.pack_u64([vnode.partition for vnode in led]),
                    tuple(m.CountRow(partition, queue, *counts) for queue, partition, counts in rows), upto)


def _page(vnodes: Sequence[Vnode], question: m.Sum) -> tuple[list[Row], str]:
    if question.queue:
        counts = Tally.rows_of([vnode.replica.filing.tally for vnode in vnodes], question.queue.encode())
        return [(question.queue, vnode.partition, row) for vnode, row in zip(vnodes, counts, strict=True)
                if any(row)], ""
    rows: list[Row] = []
    for row in heapq.merge(*(_rows(vnode, question.after) for vnode in vnodes)):
        if len(rows) >= ROWS_MAX and row[0] != rows[-1][0]:
            return rows, rows[-1][0]
        rows.append(row)
    return rows, ""


def _rows(vnode: Vnode, after: str) -> Iterator[Row]:
    for queue, counts in vnode.replica.filing.tally.rows(after):
        yield queue, vnode.partition, counts


def _sums(rows: Iterable[Row]) -> dict[str, tuple[int, ...]]:
    sums: dict[str, tuple[int, ...]] = {}
    for queue, _, counts in rows:
        known = sums.get(queue)
        sums[queue] = counts if known is None else tuple(map(add, known, counts))
    return sums


# -- the asking side -------------------------------------------------------------------------------


class CountOperation(Operation):
    """Ask all live nodes, page by page."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.Count) -> None:
        super().__init__(operations, origin, now_ms)
        self._queue = question.queue
        self._after = ""
        self._turn = 0
        self._sums: dict[str, m.Summed] = {}
        """The answers of leaders, while others' partitions are asked for one by one."""
        self._rest: tuple[int, ...] = ()
        self._answers: dict[str, m.Summed] = {}
        self._counted: dict[str, tuple[int, ...]] = {}

    def begin(self, now_ms: int) -> None:
        """Ask."""
        if not groups_of(self.view):
            self.refuse(*NOT_READY)
            self.end()
            return
        self._ask(now_ms)

    def _ask(self, now_ms: int) -> None:
        self._turn += 1
        self._answers = {}
        self.deadline_ms = now_ms + self.view.timing.request_ms
        question = m.Sum(self.request, self._turn, self._queue, self._after, columns.pack_u64(self._rest))
        self.pending = {}
        self.ask(now_ms, dict.fromkeys(sorted(self.view.live), question))

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Note an answer."""
        if not isinstance(message, m.Summed) or message.turn != self._turn or peer not in self.pending:
            return
        del self.pending[peer]
        self._answers[peer] = message
        if not self.pending:
            self._go_on(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Some node is silent; perhaps the others cover everything."""
        self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> None:
        answered = {name: answer.partitions for name, answer in self._answers.items()}
        if not is_covered(groups_of(self.view), answered):
            self.refuse(*FELL_SHORT)
            self.end()
        elif self._rest:
            self._add(now_ms, [*self._sums.values()], self._best())
        else:
            self._take_sums(now_ms)

    def _take_sums(self, now_ms: int) -> None:
        """Use the sums of nodes whose partitions no other node says it leads."""
        led = {name: columns.unpack_u64(answer.led) for name, answer in self._answers.items()}
        leaders = Counter(partition for partitions in led.values() for partition in partitions)
        self._sums = {name: answer for name, answer in self._answers.items()
                      if all(leaders[partition] == 1 for partition in led[name])}
        known = {partition for name in self._sums for partition in led[name]}
        self._rest = tuple(partition for partition in range(self.view.parameters.partitions)
                           if partition not in known)
        if self._rest:
            self._ask(now_ms)
        else:
            self._add(now_ms, [*self._sums.values()], [])

    def _best(self) -> list[Row]:
        """For each partition asked for by itself, the leader's rows, or those with the highest counts."""
        best: dict[int, tuple[bool, int, list[Row]]] = {}
        for answer in self._answers.values():
            led = {*columns.unpack_u64(answer.led)}
            found: dict[int, list[Row]] = {}
            for row in answer.rows:
                found.setdefault(row.partition, []).append((row.queue, row.partition, row.counts))
            for partition, rows in found.items():
                rank = partition in led, sum(sum(counts) for _, _, counts in rows)
                if partition not in best or rank > best[partition][:2]:
                    best[partition] = *rank, rows
        return [row for _, (_, _, rows) in sorted(best.items()) for row in rows]

    def _add(self, now_ms: int, sums: Sequence[m.Summed], rows: Sequence[Row]) -> None:
        """A page is complete."""
        ends = [answer.upto for answer in (*sums, *self._answers.values()) if answer.upto]
        upto = min(ends, default="")
        told: list[Row] = [(row.queue, 0, row.counts) for answer in sums for row in answer.rows]
        self._counted.update(_sums((*told, *rows)))  # rows behind upto belong to the next page
        self._after, self._rest = upto, ()
        if len(self._counted) > QUEUES_MAX:
            self.refuse("too_many_queues", f"there are more than {QUEUES_MAX:,} queues; ask for one by its name")
            self.end()
        elif upto:
            self._ask(now_ms)
        else:
            self.answer(m.Counted(self.origin.request, b"", b"", tuple(
                m.CountRow(0, queue, *counts) for queue, counts in sorted(self._counted.items()) if any(counts))))
            self.end()


