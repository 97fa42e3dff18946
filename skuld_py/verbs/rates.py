"""How many tasks of a queue come and are done in a second, by two counts of it.

Rates are differences of counts that nodes gave at about the same time, so they say what goes on, not what went on:
an idle queue has 0, and one that was not seen before counts from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.verbs.options import STATES

_DONE = STATES.index("completed")


def rates(now: Sequence[int], before: Sequence[int] | None, span_s: float) -> tuple[float | None, float | None]:
    """Enqueued and completed in a second, by counts in the order of ``STATES``; None without a span."""
    past = before or [0] * len(STATES)
    return _per_s(sum(now) - sum(past), span_s), _per_s(now[_DONE] - past[_DONE], span_s)


def _per_s(count: int, span_s: float) -> float | None:
    return round(max(0, count) / span_s, 1) if span_s > 0 else None
