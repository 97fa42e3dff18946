"""A task as readers see it: an immutable body joined with a history that only grows, and its logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from skuld_py.model.asides import SILENCE, Aside
from skuld_py.model.body import DEFAULT_RETRY, Body, Retry
from skuld_py.model.checkpoint import SLOT, Checkpoint
from skuld_py.model.cuts import WHOLE
from skuld_py.model.history import (
    DEP_FAILED,
    DEP_UNKNOWN,
    EXHAUSTED,
    EXPIRED,
    FAILED,
    PERMANENT,
    RELEASED,
    SNOOZED,
    TOO_MANY_CLAIMS,
    History,
)
from skuld_py.model.ids import TaskId, time_of
from skuld_py.model.notes import MET, unmet
from skuld_py.model.outcomes import ERROR_SEQ, LOG_SEQS, RESULT_SEQ, result_of
from skuld_py.model.state import State, due_of, state_of

ENDINGS = {0: "", RELEASED: "released", SNOOZED: "snoozed", FAILED: "failed"}
DEATHS = {0: "", EXHAUSTED: "exhausted", EXPIRED: "expired", DEP_FAILED: "dep_failed", DEP_UNKNOWN: "dep_unknown",
          TOO_MANY_CLAIMS: "too_many_claims", PERMANENT: "permanent"}
"""Why a task is dead, as readers see it."""
_EVER_MS = 1 << 64


@attrs.frozen
class LogEntry:
    """Numbered note of a claim: ``seq`` from 0, contiguous, immutable."""

    token: int
    seq: int
    data: bytes


@attrs.frozen
class ClaimView:
    """A claim as readers see it. ``log`` is the contiguous prefix of its log; if that ``is_cut``, the oldest
    ``left_out`` entries are not shown.

    ``outcome``: completed, failed, snoozed or released; empty while it is held, and for ever if it lapsed.
    ``is_released``: its holder ended it otherwise than by completing; the task was to wait until ``until_ms``.
    """

    token: int
    holder: str
    start_ms: int
    end_ms: int
    is_released: bool
    completed_ms: int | None
    log: tuple[bytes, ...] = ()
    outcome: str = ""
    until_ms: int | None = None
    error: bytes | None = None
    left_out: int = 0
    result: bytes | None = attrs.field(default=None, eq=False, repr=False)
    """What is stored of what it completed the task with, though another completion may stand."""

    @property
    def is_cut(self) -> bool:
        """Whether its log is longer than what is shown of it; ``Client.log`` gives all of it."""
        return self.left_out > 0


@attrs.frozen
class Task:
    """A task as readers see it. ``headers`` are what its producer gave besides the payload.

    ``result`` is that of the claim that completed it, or, where that gave none, of the newest one that gave one
    when it completed the task as well; a client makes of what is stored what was returned. ``error`` is that of
    the newest one that failed with one. ``state``, a word of ``model.state`` in lower case, is where it stood by
    the clock of the node that was asked. ``due_ms``: not to be claimed before, 0 for at once. ``death``: why it is
    dead as soon as no claim is held. ``deps``: the tasks that it waits for, or waited for. ``blocked_by``, while
    it is blocked: those of them that it still waits for, and those of its key whose turn it is. ``made_ms``: when
    it was asked for, if it has a unique name. ``seq``: how many facts this view shows (claims and how they ended,
    log entries, a completion); it never falls. ``attempts``: how many have failed or lapsed since it was last
    revived; that of its newest claim counts once it has failed, or another one was granted. ``checkpoint``: how
    far the newest claim that said so has come; a list of tasks shows none. ``outputs``: what the completion says
    it wrote, each a ``calls.outputs.Written``. ``key``: tasks of one are worked on one after another. ``died_ms``:
    when it died of one of ``deps``, if nodes noted that; an archived one as the archive says.
    """

    id: bytes
    queue: str
    priority: int
    payload: bytes
    claims: tuple[ClaimView, ...] = ()
    completed_ms: int | None = None
    completed_token: int | None = None
    not_before_ms: int | None = None
    expires_ms: int | None = None
    retry: Retry = DEFAULT_RETRY
    headers: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    cancelled_ms: int | None = None
    result: Any = attrs.field(default=None, hash=False)
    error: bytes | None = None
    state: str = ""
    due_ms: int = 0
    death: str = ""
    seq: int = 0
    deps: tuple[TaskId, ...] = ()
    blocked_by: tuple[TaskId, ...] = ()
    made_ms: int = 0
    attempts: int = attrs.field(default=0, eq=False)
    checkpoint: Checkpoint | None = None
    outputs: tuple[Any, ...] = ()
    key: str = ""
    died_ms: int | None = None

    @property
    def enqueued_ms(self) -> int:
        """When it was asked for: by its id, unless it has a unique name, whose id is as old as its window."""
        return self.made_ms or time_of(self.id)

    @property
    def is_completed(self) -> bool:
        """Whether any claim completed it."""
        return self.completed_ms is not None

    @property
    def is_cut(self) -> bool:
        """Whether entries are left out of its log: the oldest, of the oldest claims first."""
        return any(claim.is_cut for claim in self.claims)


def view(task_id: bytes, record: bytes, history: History, entries: list[LogEntry], now_ms: int = 0,
         aside: Aside = SILENCE) -> Task:
    """A task for readers, from its replicated parts and where it stands; if no coordinator said that, by what is
    known here at ``now_ms``."""
    body = Body.decode(record)
    header = body.header
    logs = contiguous(entries, aside.cuts)
    outcomes = {(entry.token, entry.seq): entry.data for entry in entries if entry.seq >= LOG_SEQS}
    done_ms, done_token = history.completion.value or (None, None)
    claims = tuple(
        ClaimView(token, claim.holder, claim.start_ms, claim.end.value, bool(claim.kind),
                  done_ms if done_token == token else None, logs.get(token, ()),
                  "completed" if done_token == token else ENDINGS[claim.kind], claim.until_ms or None,
                  outcomes.get((token, ERROR_SEQ)), aside.cuts.get(token, 0), outcomes.get((token, RESULT_SEQ)))
        for token, claim in sorted(history.claims.entries.items()))
    errors = [claim.error for claim in claims if claim.error is not None]
    missing = unmet(len(body.deps), header.policy, [entry.seq for entry in entries if entry.token == MET])
    standing = state_of(history, body, now_ms, 0, bool(missing)) if aside.standing is None else aside.standing
    blocked_by = [*(body.deps[index] for index in missing), *aside.behind] if standing is State.BLOCKED else []
    return Task(task_id, header.queue, header.priority, body.payload, claims, done_ms, done_token,
                body.not_before_ms or None, body.expires_ms or None, header.retry, dict(header.headers),
                history.cancelled.value[0] if history.cancelled.value else None,
                result_of(history.completion.value, outcomes), errors[-1] if errors else None,
                standing.name.lower(), due_of(history, body),
                DEATHS[history.death(header.retry.max_attempts, _EVER_MS)],
                history.facts + len(entries) + sum(aside.cuts.values()),
                tuple(map(TaskId, body.deps)), tuple(map(TaskId, dict.fromkeys(blocked_by))), body.made_ms,
                history.attempts(0), _checkpoint_in(entries), key=body.key,
                died_ms=history.death_ms or None if standing is State.DEAD else None)


def _checkpoint_in(entries: Iterable[LogEntry]) -> Checkpoint | None:
    return next((Checkpoint.decode(entry.data) for entry in entries if (entry.token, entry.seq) == SLOT), None)


def contiguous(entries: list[LogEntry], cuts: Mapping[int, int] = WHOLE) -> dict[int, tuple[bytes, ...]]:
    """Log entries by token, behind what is left out and up to the first gap; results and errors are none."""
    logs: dict[int, list[bytes]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.token, entry.seq)):
        log = logs.setdefault(entry.token, [])
        if entry.seq == cuts.get(entry.token, 0) + len(log):
            log.append(entry.data)
    return {token: tuple(log) for token, log in logs.items()}
