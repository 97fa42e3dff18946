"""Where a task stands: one function of what is known of it and of the time.

The first of these that holds is the state: completed, claimed, cancelled, dead, blocked, scheduled, waiting. So a
completion wins over everything, however late it comes; a cancelled task whose claim still runs is claimed until
that ends; and a dead task may still be completed by a holder that works on it.

Time is an argument. Two nodes may see different states while their clocks differ, by at most the skew bound.
"""

from __future__ import annotations

from enum import IntEnum

from skuld_py.model.body import Body
from skuld_py.model.history import EXPIRED, RELEASED, ClaimRecord, History


class State(IntEnum):
    """Where a task stands, in the words that users see. The numbers are places in columns of counts, in stores
    too."""

    WAITING = 0
    CLAIMED = 1
    COMPLETED = 2
    SCHEDULED = 3
    BLOCKED = 4
    CANCELLED = 5
    DEAD = 6


OPEN = (State.WAITING, State.CLAIMED, State.SCHEDULED, State.BLOCKED)
"""Of what has not ended. Among these a task goes as time passes; out of them, by what somebody says,
or as the last claim of a task lapses, or the claim of a cancelled one."""


def state_of(history: History, body: Body, now_ms: int, skew_ms: int, is_blocked: bool = False) -> State:
    """The state at a time. A lease counts as held until its end is more than the skew bound ago. ``is_blocked``:
    whether the task waits for others: for those that it needs (``notes.unmet``), or before it of its key."""
    ended = end_of(history, body.header.retry.max_attempts, now_ms, skew_ms)
    if ended is not None:
        return ended
    if history.horizon_ms > now_ms - skew_ms and history.horizon_ms:
        return State.CLAIMED
    if is_blocked:
        return State.BLOCKED
    return State.SCHEDULED if due_of(history, body) > now_ms else State.WAITING


def end_of(history: History, max_attempts: int, now_ms: int, skew_ms: int) -> State | None:
    """How the task has ended; None while it has not. What is dead may be revived."""
    over_ms = now_ms - skew_ms
    if history.completion.value is not None:
        return State.COMPLETED
    if history.horizon_ms > over_ms and history.horizon_ms:
        return None
    if history.cancelled.value is not None:
        return State.CANCELLED
    return State.DEAD if history.death(max_attempts, over_ms) else None


def is_timeless(history: History, body: Body) -> bool:
    """Whether the state stays, at any time and whatever becomes of other tasks."""
    if history.completion.value is not None:
        return True
    if history.horizon_ms:
        return False
    is_over = history.cancelled.value is not None or history.death(body.header.retry.max_attempts, 0)
    return bool(is_over) or not (body.key or body.deps or due_of(history, body))


def due_of(history: History, body: Body) -> int:
    """When the task may be claimed; 0 for at once."""
    return max(body.not_before_ms, history.pause_until_ms)


def has_ended(history: History, body: Body | None, upto_ms: int) -> bool:
    """Whether a task was over by a time, for good unless it is revived. A task without a body by then gets none
    any more, so it is over with its last lease. A claim that failed, or was snoozed, was over before its lease
    was, and before the pause that followed; one that its holder ended, before the next was granted. So no task is
    kept for the rest of such a lease. Earlier releases take the longest of these leases: while nodes of both run
    a task is kept as long."""
    done = history.completion.value
    if done is not None:
        return done[0] <= upto_ms
    if body is None:
        return history.horizon_ms <= upto_ms
    newest = history.newest_token
    if any(_over_ms(claim) > upto_ms for token, claim in history.claims.entries.items()
           if token == newest or not claim.kind):
        return False
    if history.cancelled.value is not None:
        return history.cancelled.value[0] <= upto_ms
    reason = history.death(body.header.retry.max_attempts, upto_ms)
    return bool(reason) and (body.expires_ms if reason == EXPIRED else history.death_ms) <= upto_ms


def _over_ms(claim: ClaimRecord) -> int:
    """No later than this a claim had ended: by its lease's end, or by the end of the pause that its holder said.
    Of one that was released nobody notes when."""
    if claim.kind > RELEASED and claim.until_ms:
        return min(claim.end.value, claim.until_ms)
    return claim.end.value
