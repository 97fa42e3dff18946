"""What a node's work costs in the model, what it leaves out, and how the costs are found.

A node does one thing at a time, as the real loop does: it takes what has come, steps its machine, sends, and waits
for its commit. Its processor pays for each such turn (``turn_ms``), for each message that it takes or sends
(``message_ms``), for each byte of these (``byte_ms``) and each task that is named in them (``row_ms``), and for
each commit (``commit_ms``); its disk for each commit (``disk_ms``).

The defaults were found by ``scripts/bench nodes``, which measures the processor time of real nodes and fits the
five to the counts of the same work in this world (``fitted``); it prints them, and with them what the model says
of the sizes that it was not fitted to.

Left out, so that real clusters do worse than the model: the bandwidth of networks and switches (each message takes
``wire_ms``, whatever is on its way), ZooKeeper (its answers take ``registry_ms``), the time of the clients, caches
and the kernel's work for thousands of connections, the growth of a store (a commit costs the same at any size),
failures and elections while tasks are counted. Left out, so that they do better: the threads of ZeroMQ, which work
beside the loop in a real node and count as its work here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from operator import mul

import attrs

from skuld_py.model import ids
from skuld_py.model import messages as m

UNASKED = (m.Gossip, m.PartialGossip)
PRICES = 5
"""How many costs are fitted."""


@attrs.frozen
class Costs:
    """Milliseconds of a node's time."""

    turn_ms: float = 0.164
    message_ms: float = 0.0
    """What this and bytes cost is in turns and tasks: the four go together, and one run cannot tell them apart."""
    byte_ms: float = 0.0
    row_ms: float = 0.00102
    commit_ms: float = 1.227
    disk_ms: float = 0.16
    wire_ms: float = 0.25
    """From one machine to another, or to a client."""
    registry_ms: float = 3.0

    @property
    def prices(self) -> tuple[float, float, float, float, float]:
        """What is fitted."""
        return self.turn_ms, self.message_ms, self.byte_ms, self.row_ms, self.commit_ms


@attrs.define
class Counts:
    """What a node, or all of them, did: ``messages`` and ``bytes`` taken and sent, and the tasks named in them
    (``rows``). ``unasked``: messages that no request caused (gossip), which are among the others."""

    turns: int = 0
    messages: int = 0
    bytes: int = 0
    rows: int = 0
    commits: int = 0
    unasked: int = 0

    def note(self, message: m.Message) -> None:
        """One was taken or sent."""
        self.messages += 1
        self.unasked += isinstance(message, UNASKED)
        for part in (message, *getattr(message, "batches", ())):
            self.rows += len(getattr(part, "ids", b"")) // ids.ID_BYTES

    @property
    def paid(self) -> tuple[int, int, int, int, int]:
        """What costs, in the order of the costs."""
        return self.turns, self.messages, self.bytes, self.rows, self.commits

    def busy_ms(self, costs: Costs) -> float:
        """Processor time."""
        return sum(count * cost for count, cost in zip(self.paid, costs.prices, strict=True))

    def since(self, before: Counts) -> Counts:
        """What came on top."""
        return Counts(*(now - was for now, was in zip(attrs.astuple(self), attrs.astuple(before), strict=True)))


@attrs.frozen
class Sample:
    """Work of which both are known: its counts here, and the processor time that real nodes took for it."""

    counts: Counts
    took_ms: float


def total(counts: Sequence[Counts]) -> Counts:
    """Those of several nodes together."""
    return Counts(*map(sum, zip(*map(attrs.astuple, counts), strict=True)))


def fitted(samples: Sequence[Sample], costs: Costs) -> Costs:
    """The costs with the five that make the least relative error over the samples, none of them negative.

    Of five unknowns there are 31 choices of those that are not zero; each is solved, and the best without a
    negative one is taken.
    """
    rows = [tuple(value / sample.took_ms for value in sample.counts.paid) for sample in samples]
    best, least = [0.0] * PRICES, float(len(samples))
    for size in range(1, PRICES + 1):
        for chosen in combinations(range(PRICES), size):
            found = _solved([[row[column] for column in chosen] for row in rows])
            if found is None or min(found) < 0:
                continue
            values = [dict(zip(chosen, found, strict=True)).get(column, 0.0)
                      for column in range(PRICES)]
            error = sum((sum(map(mul, row, values)) - 1) ** 2 for row in rows)
            if error < least - 1e-12:
                best, least = values, error
    return attrs.evolve(costs, turn_ms=best[0], message_ms=best[1], byte_ms=best[2], row_ms=best[3],
                        commit_ms=best[4])


def _solved(rows: Sequence[Sequence[float]]) -> list[float] | None:
    """The least squares of ``rows x = 1``; None where the columns depend on each other."""
    size = len(rows[0])
    matrix = [[sum(row[one] * row[other] for row in rows) for other in range(size)]
              + [sum(row[one] for row in rows)] for one in range(size)]
    for at in range(size):
        pivot = matrix[at][at]
        if pivot <= 1e-12 * max(abs(row[each]) for each, row in enumerate(matrix)):
            return None
        matrix[at] = [value / pivot for value in matrix[at]]
        for other in range(size):
            if other != at:
                factor = matrix[other][at]
                matrix[other] = [value - factor * base
                                 for value, base in zip(matrix[other], matrix[at], strict=True)]
    return [row[-1] for row in matrix]
