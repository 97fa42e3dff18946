"""What a test says of time on a machine that may stand still for seconds."""

from __future__ import annotations

from collections.abc import Callable


def in_time(limit_s: float, attempt: Callable[[], float], tries: int = 3) -> None:
    """An attempt, which says how many seconds it took, takes less: the first one, or one of a few. What is slow by
    rule is so each time; a machine that stands still for a moment is not."""
    took_s: list[float] = []
    while not took_s or (took_s[-1] >= limit_s and len(took_s) < tries):
        took_s.append(attempt())
    assert took_s[-1] < limit_s, f"it took {took_s}, less than {limit_s} are expected"
