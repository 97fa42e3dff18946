"""How many tasks a worker claims beyond those that it can run at once: as many as it is about to come to.

Tiny tasks end sooner than the cluster answers, so a worker that claims one for each that ended spends its time
waiting. Claimed ahead are those that the slots will have done in ``AHEAD_S``, by how long tasks took lately; of
tasks that take longer than that, none: another worker may be free for them.

A task that was claimed ahead and is not begun after ``PATIENCE_S``, since others took longer than was thought, is
given back, and it is learnt anew how long they take.
"""

from __future__ import annotations

AHEAD_S = 0.25
AHEAD_MAX = 200
PATIENCE_S = 2.0
NEWS = 0.1
"""How much the last task counts beside all before it."""


class Ahead:
    """Of one worker."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._mean_s: float | None = None

    @property
    def count(self) -> int:
        """How many tasks beyond the slots."""
        if self._mean_s is None:
            return 0
        return min(AHEAD_MAX, int(self._slots * AHEAD_S / max(self._mean_s, 1e-6)))

    def note(self, took_s: float) -> None:
        """A task took so long."""
        self._mean_s = took_s if self._mean_s is None else self._mean_s + NEWS * (took_s - self._mean_s)

    def forget(self) -> None:
        """It was thought wrong."""
        self._mean_s = None
