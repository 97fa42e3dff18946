"""Ended tasks, made without a cluster: any that a client may be shown, and plain ones."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from skuld_py.model.body import DEFAULT_RETRY, Retry
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.ids import IdMint, TaskId
from skuld_py.model.task import ClaimView, Task

DAY_MS = 86_400_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2
NAMES = ("q", "007", "1e3", "null", "NULL", "2026-11-22", "a.b_c-d", "inf", "true", "0", "0x1F", "q" * 200)
"""What may be a queue's name, and looks like something else."""

_TIMES = st.integers(0, 1 << 42)
_MAYBE_TIMES = st.none() | _TIMES
_BYTES = st.binary(max_size=40)
_MAYBE_BYTES = st.none() | _BYTES
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_IDS = st.builds(lambda at_ms, tail: TaskId(at_ms.to_bytes(8, "big") + tail), _TIMES,
                 st.binary(min_size=12, max_size=12))
_CLAIMS = st.builds(
    ClaimView, st.integers(1, (1 << 63) - 1), st.sampled_from(["w", "host:7"]), _TIMES, _TIMES, st.booleans(),
    st.none(), st.lists(_BYTES, max_size=3).map(tuple),
    st.sampled_from(["", "completed", "failed", "snoozed", "released"]), _MAYBE_TIMES, _MAYBE_BYTES)
_CHECKPOINTS = st.builds(Checkpoint, st.integers(1 << 32, (1 << 63) - 1), st.integers(0, (1 << 32) - 1), _TIMES,
                         st.binary(max_size=9))
_RETRIES = st.builds(Retry, st.integers(1, 1000), st.integers(0, (1 << 32) - 1))


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any; whoever completed it is one of its claims, or unknown."""
    claims = draw(st.lists(_CLAIMS, max_size=3, unique_by=lambda claim: claim.token))
    claims = sorted(claims, key=lambda claim: claim.token)
    done_ms = draw(_MAYBE_TIMES)
    token = draw(st.sampled_from([*(claim.token for claim in claims), 1 << 40])) if done_ms is not None else None
    views = tuple(attrs.evolve(claim, completed_ms=done_ms if claim.token == token else None) for claim in claims)
    return Task(
        draw(_IDS), draw(st.sampled_from(NAMES)), draw(st.integers(-(1 << 31), (1 << 31) - 1)), draw(_BYTES),
        views, done_ms, token, draw(_MAYBE_TIMES), draw(_MAYBE_TIMES), draw(_RETRIES),
        draw(st.dictionaries(_TEXTS, _TEXTS, max_size=3)), draw(_MAYBE_TIMES), draw(_MAYBE_BYTES),
        draw(_MAYBE_BYTES), draw(st.sampled_from(["completed", "cancelled", "dead"])), draw(_TIMES),
        draw(st.sampled_from(["", "exhausted", "expired"])), draw(st.integers(0, 1 << 40)),
        draw(st.lists(_IDS, max_size=2).map(tuple)), checkpoint=draw(st.none() | _CHECKPOINTS))


def plain(number: int, queue: str = "q", *, at_ms: int = NOON_MS, state: str = "completed",
          payload: bytes | None = None) -> Task:
    """The ``number``-th task of a time: one claim with two entries, and a result if it was completed."""
    task_id = TaskId(IdMint(7).mint(at_ms, number + 1, number)[-1])
    is_done = state == "completed"
    claim = ClaimView(5, "w", at_ms + 1, at_ms + 9, not is_done, at_ms + 5 if is_done else None,
                      (b"begun", b"\xff\x00"), "completed" if is_done else "failed", None,
                      None if is_done else b"it broke")
    return Task(task_id, queue, 1, b"payload %d" % number if payload is None else payload, (claim,),
                claim.completed_ms, 5 if is_done else None, None, None, DEFAULT_RETRY, {"trace": "a b"},
                at_ms + 6 if state == "cancelled" else None, b"result" if is_done else None, claim.error, state, 0,
                "exhausted" if state == "dead" else "", 4,
                checkpoint=Checkpoint(1 << 32, 3, at_ms, b"half way", b"half way"))
