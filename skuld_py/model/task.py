"""A task as readers see it: an immutable body joined with a history that only grows, and its logs."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.model.body import DEFAULT_RETRY, Body, Retry
from skuld_py.model.history import History


@attrs.frozen
class LogEntry:
    """Numbered note of a claim: ``seq`` from 0, contiguous, immutable."""

    token: int
    seq: int
    data: bytes


@attrs.frozen
class ClaimView:
    """A claim as readers see it. ``log`` is its contiguous prefix."""

    token: int
    holder: str
    start_ms: int
    end_ms: int
    is_released: bool
    completed_ms: int | None
    log: tuple[bytes, ...] = ()


@attrs.frozen
class Task:
    """A task as readers see it. ``headers`` are what its producer gave besides the payload."""

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

    @property
    def is_completed(self) -> bool:
        """Whether any claim completed it."""
        return self.completed_ms is not None


def view(task_id: bytes, record: bytes, history: History, entries: list[LogEntry]) -> Task:
    """A task for readers, from its replicated parts."""
    body = Body.decode(record)
    header = body.header
    logs = contiguous(entries)
    done = history.completion.value
    claims = tuple(
        ClaimView(token, claim.holder, claim.start_ms, claim.end.value, bool(claim.kind),
                  done[0] if done and done[1] == token else None, logs.get(token, ()))
        for token, claim in sorted(history.claims.entries.items()))
    return Task(task_id, header.queue, header.priority, body.payload, claims, done[0] if done else None,
                done[1] if done else None, body.not_before_ms or None, body.expires_ms or None, header.retry,
                dict(header.headers))


def contiguous(entries: list[LogEntry]) -> dict[int, tuple[bytes, ...]]:
    """Log entries by token, cut at the first gap."""
    logs: dict[int, list[bytes]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.token, entry.seq)):
        log = logs.setdefault(entry.token, [])
        if entry.seq == len(log):
            log.append(entry.data)
    return {token: tuple(log) for token, log in logs.items()}
