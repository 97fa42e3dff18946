"""What ``skuld top`` shows: counts of one look at a cluster, and rates between it and the look before.

Rates are those of ``verbs.rates``; on the first look there are none. Pure: the terminal and the clock are
``top``'s.
"""

from __future__ import annotations

from typing import Any

import attrs

from skuld_py.cli import situation
from skuld_py.cli.running import Running
from skuld_py.cli.situation import Situation
from skuld_py.verbs.rates import rates


@attrs.frozen
class Look:
    """The situation, and when it was seen: ``at_s`` by a steady clock, ``at_ms`` since 1970."""

    at_s: float
    at_ms: int
    situation: Situation
    running: tuple[Running, ...] = ()


@attrs.frozen
class QueueRow:
    """A queue: what is in it, and how many tasks come and are done in a second; None on the first look."""

    queue: str
    waiting: int
    claimed: int
    completed: int
    scheduled: int
    blocked: int
    cancelled: int
    dead: int
    enqueued_per_s: float | None
    completed_per_s: float | None


def queue_rows(now: Look, before: Look | None) -> list[QueueRow]:
    """Queues, those with most to do first."""
    old = {row.queue: row for row in before.situation.depths} if before is not None else {}
    span_s = now.at_s - before.at_s if before is not None and not before.situation.doubt else 0.0
    made = []
    for row in now.situation.depths:
        past = old.get(row.queue)
        pace = rates(row.counts, past.counts if past else None, span_s)
        made.append(QueueRow(row.queue, row.waiting, row.claimed, row.completed, row.scheduled, row.blocked,
                             row.cancelled, row.dead, *pace))
    return sorted(made, key=lambda row: (-row.waiting - row.claimed, row.queue))


def document(now: Look, before: Look | None) -> dict[str, Any]:
    """A look as JSON has it: as of ``skuld status``, with rates and what runs."""
    return {"at_ms": now.at_ms, **situation.document(now.situation),
            "running": [{name: value for name, value in attrs.asdict(row).items() if name != "progress"}
                        for row in now.running],
            "queues": None if now.situation.doubt else [attrs.asdict(row) for row in queue_rows(now, before)]}
