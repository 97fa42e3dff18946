"""How fast queues go: between two looks of anybody at the counts, some seconds apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.verbs.options import STATES
from skuld_py.verbs.rates import rates

LEAST_S, MOST_S = 2.0, 60.0
"""Between the looks that are compared: counts of nodes are not of one moment, and old ones do not say what goes
on."""
QUEUES_MAX = 10_000
"""Of one look; of more, no rates are known."""

Counts = Mapping[str, Sequence[int]]


@attrs.frozen
class Pace:
    """Tasks in a second; None where there was no look before."""

    enqueued: float | None
    completed: float | None


class Rates:
    """Those of one gateway, whoever looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Counts]] = deque(maxlen=int(MOST_S / LEAST_S) + 1)

    def of(self, queues: Sequence[Mapping[str, Any]], now_s: float | None = None) -> dict[str, Pace]:
        """The pace of each queue, by this look at their depths and one before; empty at the first."""
        now_s = steady_s() if now_s is None else now_s
        now = {row["queue"]: [row[state] for state in STATES] for row in queues[:QUEUES_MAX]}
        before = next(((at_s, counts) for at_s, counts in reversed(self._looks)
                       if LEAST_S <= now_s - at_s <= MOST_S), None)
        if not self._looks or now_s - self._looks[-1][0] >= LEAST_S:
            self._looks.append((now_s, now))
        if before is None:
            return {}
        at_s, counts = before
        return {queue: Pace(*rates(row, counts.get(queue), now_s - at_s)) for queue, row in now.items()}
