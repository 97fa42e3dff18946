"""How many tasks a worker claims beyond those that it can run at once: as many as it is about to come to.

Tiny tasks end sooner than the cluster answers, so a worker that claims one for each that ended spends its time
waiting. Claimed ahead are those that the slots will have done in ``AHEAD_S``, by how long tasks took lately; of
tasks that take longer than that, none: another worker may be free for them.

Of batched tasks (``batches``) are claimed ahead one batch that runs and one that waits for it, of the size that
fits now; each takes a fraction of the lease. A queue may hold other tasks between them. So no more are claimed
than bring as many of those as would be claimed without batches, by their share in what was claimed lately.

While Spark starts, tasks that wait for it hold no slot: as many others are claimed, up to ``slots`` more.

A task that was claimed ahead and is not begun after ``PATIENCE_S``, since others took longer than was thought, is
given back, and it is learnt anew how long they take. One of a batch waits for a quarter of the lease more: that
long the batch before it may begin items.
"""

from __future__ import annotations

AHEAD_S = 0.25
AHEAD_MAX = 200
PATIENCE_S = 2.0
NEWS = 0.1
"""How much the last task counts beside all before it."""
BATCHES = 2


class Ahead:
    """Of one worker."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._mean_s: float | None = None
        self._batch = 0
        self._others = 0.0
        """Of the tasks that were claimed lately, the share that is not batched."""
        self._has_claimed = False
        self._idle = 0

    @property
    def count(self) -> int:
        """How many tasks beyond the slots."""
        single = 0
        if self._mean_s is not None:
            single = min(AHEAD_MAX, int(self._slots * AHEAD_S / max(self._mean_s, 1e-6)))
        if not self._batch:
            return single + self._idle
        batched = int(min(BATCHES * self._batch, (self._slots + single) / max(self._others, 1e-6)))
        return max(single, batched) + self._idle

    def note(self, took_s: float) -> None:
        """A task took so long."""
        self._mean_s = took_s if self._mean_s is None else self._mean_s + NEWS * (took_s - self._mean_s)

    def note_claims(self, batched: int, others: int) -> None:
        """So many were claimed."""
        if count := batched + others:
            old = (1 - NEWS) ** count if self._has_claimed else 0.0
            self._others = old * self._others + (1 - old) * others / count
            self._has_claimed = True

    def note_batch(self, limit: int) -> None:
        """The next batch may have so many."""
        self._batch = limit

    def note_starting(self, count: int) -> None:
        """So many wait for Spark, which is starting; none once it has started."""
        self._idle = min(self._slots, count)

    def forget(self) -> None:
        """It was thought wrong."""
        self._mean_s = None
        self._batch = 0
