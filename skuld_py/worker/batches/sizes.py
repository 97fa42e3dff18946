"""How many tasks of a batched function go into one Spark job, by how long its items took lately.

A job costs a price of its own, some 30 ms, and each item its time, shared by the parts that run side by side. A
size is so chosen that a job is predicted to take ``GOAL_S``, or a quarter of the lease where that is less: so it
stays well below half the lease, and a task of another function waits for a slot no longer than that.

What is predicted may be wrong, so a part begins no item after ``budget_s`` (``part``): the wall time of a job is
bounded by that and one item, whatever items do. Items that it did not come to wait again.

* Of a function that is not known yet, or only by a few items, at most ``FIRST`` go into one job.
* A job has as many parts as Spark runs at once, but none with less work than ``PART_S``: a part costs some 20 ms.
* An item's time rises at once with a slow job and falls slowly with quick ones.
* No job has more than ``BATCH_MAX`` items, as many as one request claims or completes; larger ones would wait for
  their claims for longer than they would save.

Rejected: the wall time by the number of items. The price of a job is then taken for that of its items, and a queue
that had a task now and then never gets a large job when many come.
"""

from __future__ import annotations

from math import ceil

from skuld_py.config import DEFAULT_LIMITS

BATCH_MAX = DEFAULT_LIMITS.batch_tasks
BYTES_MAX = 16 << 20
"""Payloads of one job, and results of each part of it: they go through the driver at once."""
FIRST = 100
GOAL_S = 1.0
PART_S = 0.02
LEASE_SHARE = 4
NEWS = 0.2
"""How much a quick job counts beside those before it."""
_LEAST_S = 1e-7


class Sizes:
    """Of one batched function, at most ``most`` a job."""

    def __init__(self, most: int, lease_s: float) -> None:
        self._most = most
        self.budget_s = lease_s / LEASE_SHARE
        self._goal_s = min(GOAL_S, self.budget_s)
        self._seen = 0
        self._each_s = self._price_s = 0.0
        self._parts = 1

    @property
    def limit(self) -> int:
        """At most so many in the next job; at least 1."""
        if not self._seen:
            return min(self._most, FIRST)
        room_s = max(self._goal_s - self._price_s, self._goal_s / 2)
        fitting = max(1, int(room_s * self._parts / max(self._each_s, _LEAST_S)))
        return min(self._most, fitting, FIRST if self._seen < FIRST else fitting)

    def parts(self, count: int) -> int:
        """At most so many parts for so many items."""
        return max(1, min(count, ceil(count * self._each_s / PART_S))) if self._seen else count

    def note(self, count: int, wall_s: float, busy_s: float, parts: int) -> None:
        """A job with so many items took ``wall_s``; the items took ``busy_s`` together, in ``parts`` at once."""
        if not count:
            return
        each_s, price_s = busy_s / count, max(0.0, wall_s - busy_s / parts)
        if self._seen:
            each_s = max(each_s, self._each_s + NEWS * (each_s - self._each_s))
            price_s = self._price_s + NEWS * (price_s - self._price_s)
        self._each_s, self._price_s, self._parts = each_s, price_s, parts
        self._seen += count
