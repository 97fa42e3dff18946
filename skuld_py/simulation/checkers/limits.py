"""C19: what a limited queue gives, judged by what workers held and by when leaders granted.

A limit is *firm* from its acknowledgement by every node that there is until a change above it is asked for. In
that time every claim that is asked for and told counts: the holds that were under way when it was told, its own
among them, are no more than the limit, whichever nodes led meanwhile. (A task that an earlier holder completes
late is over: a holder that has not heard of that does not count.) And in no window of that time do leaders grant
more than the rate gives in it, and the burst.

Source of the rate's rule: a bucket that begins full at the begin of the span never runs dry.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterator

import attrs

from skuld_py.model import messages as m
from skuld_py.model.setting import LIMITS
from skuld_py.simulation.checkers.evidence import LOSSES, Evidence, Finding, Told, completions_of, judge
from skuld_py.simulation.checkers.settings import is_everywhere, puts_of, rank
from skuld_py.simulation.history import Hold
from skuld_py.simulation.notes import Note, What

CLOCKS = 1.001
"""A clock is fast by at most this factor; and it shows whole milliseconds."""
ROUNDING_MS = 2


@attrs.frozen
class Firm:
    """Limits of a queue, and from when to when they surely hold."""

    queue: str
    limits: dict[str, int]
    start_ms: int
    stop_ms: int


def limits_are_kept(evidence: Evidence) -> Finding:
    """[C19] No more of a limited queue is held at once than its limit, nor granted in any time than its rate and
    its burst allow."""
    spans = [] if evidence.struck(LOSSES) else list(_firm(evidence))
    at_once = [(span, told) for span in spans if span.limits.get("concurrency") for told in evidence.told
               if _queue_of(told) == span.queue and span.start_ms <= told.operation.invoked_ms
               and told.operation.done_ms <= span.stop_ms]
    granted = [(span, _grants(evidence, span)) for span in spans if span.limits.get("rate")]
    count = len(at_once) + sum(len(notes) for _, notes in granted)

    def broken() -> Iterator[str]:
        yield from _held_too_many(evidence, at_once)
        for span, notes in granted:
            yield from _granted_too_many(evidence, span, notes)
    return judge("C19 limits are kept", count, broken())


def _queue_of(told: Told) -> str:
    assert isinstance(told.operation.message, m.Claim)
    return told.operation.message.queue


def _firm(evidence: Evidence) -> Iterator[Firm]:
    for (kind, queue), puts in puts_of(evidence).items():
        for put in puts if kind == LIMITS else ():
            if is_everywhere(evidence, put) and rank(put)[2]:
                stop_ms = min((other.invoked_ms for other in puts if rank(other) > rank(put)),
                              default=evidence.end_ms + 1)
                yield Firm(queue, json.loads(rank(put)[2]), put.done_ms, stop_ms)


def _held_too_many(evidence: Evidence, at_once: list[tuple[Firm, Told]]) -> Iterator[str]:
    queues = {(told.task, told.token): _queue_of(told) for told in evidence.told}
    by_queue: dict[str, list[Hold]] = {}
    for hold in _unless_over(evidence):
        queue = queues.get((hold.task, hold.token), "")
        if hold.stop_ms - evidence.skew_excess_ms > hold.start_ms:
            by_queue.setdefault(queue, []).append(hold)
    held = {queue: _counts(holds, evidence.skew_excess_ms) for queue, holds in by_queue.items()}
    for span, told in at_once:
        count = held.get(span.queue, {}).get((told.task, told.token), 0)
        if count > span.limits["concurrency"]:
            yield f"{count} are held of {span.queue}, {span.limits['concurrency']} may: {told.operation}"


def _unless_over(evidence: Evidence) -> Iterator[Hold]:
    """The holds, each until another holder of its task completes it, as far as that is asked for earlier."""
    asked: dict[bytes, list[tuple[int, int]]] = {}
    for operation in evidence.history.of(m.Complete):
        for task_id, token in completions_of(operation):
            asked.setdefault(task_id, []).append((operation.invoked_ms, token))
    for hold in evidence.history.holds:
        over = [at_ms for at_ms, token in asked.get(hold.task, []) if token != hold.token]
        yield attrs.evolve(hold, stop_ms=min([hold.stop_ms, *over]))


def _counts(holds: list[Hold], excess_ms: int) -> dict[tuple[bytes, int], int]:
    """How many are held when each begins, itself and those of the same moment included."""
    stops: list[int] = []
    counts: dict[tuple[bytes, int], int] = {}
    rest = sorted(holds, key=lambda hold: hold.start_ms)
    for hold in rest:
        insort(stops, hold.stop_ms - excess_ms)
        del stops[: bisect_left(stops, hold.start_ms + 1)]
        counts[hold.task, hold.token] = len(stops)
    return counts


def _grants(evidence: Evidence, span: Firm) -> list[Note]:
    return [note for note in evidence.noted(What.PICKED)
            if note.queue == span.queue and span.start_ms <= note.time_ms < span.stop_ms]


def _granted_too_many(evidence: Evidence, span: Firm, notes: list[Note]) -> Iterator[str]:
    rate, burst = span.limits["rate"] / span.limits["window_ms"], span.limits["burst"]
    spare = rate * (ROUNDING_MS + evidence.skew_excess_ms)
    level, last_ms = float(burst), span.start_ms
    for note in notes:
        level = min(burst, level + rate * CLOCKS * (note.time_ms - last_ms)) - note.amount
        last_ms = note.time_ms
        if level < -spare - 1e-6:
            yield f"{note.amount} too many of {span.queue}, {span.limits}: {note}"
