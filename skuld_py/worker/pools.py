"""Names of Spark's scheduling pools for the tasks that run: no two of them share one.

Spark shares its slots fairly between pools, and serves the jobs within a pool first come, first served. So a pool
for all tasks of a queue lets a long job keep a short one waiting for its whole length.

Rejected: a pool named by the claim. Spark never forgets a pool and goes through all of them each time it looks for
work, so a worker would get slower with every task it has done. Here a name is used again once its task is over;
there are as many as tasks ever ran at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count


class Pools:
    """Lends names, from any thread."""

    def __init__(self) -> None:
        self._lent: set[int] = set()
        self._lock = threading.Lock()

    @contextmanager
    def lent(self) -> Iterator[str]:
        """A pool's name that nobody else has for the length of the block."""
        with self._lock:
            number = next(number for number in count(1) if number not in self._lent)
            self._lent.add(number)
        try:
            yield f"task-{number}"
        finally:
            with self._lock:
                self._lent.discard(number)
