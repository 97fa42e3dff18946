"""Tasks as rows of the archive, and back.

Invariant: nothing that a client sees of a task is lost: ``task_of`` gives the task that ``row_of`` took. Times are
milliseconds since 1970, as everywhere; ``day`` is that of the id, in UTC. So it follows from the id alone, and a
search for an id looks into one day.

``queue`` and ``day`` are names of directories. A queue's name fits one as it stands (``model.names``), and no name
is one that Spark takes for something else, above all for null; so a name that does not fit is refused here.

A result is text, JSON or bytes, as ``result_type`` says, so that SQL can read it; null in files of older releases,
whose results have no type. A checkpoint is as it was stored (``calls.results``). What a task wrote is JSON, as in
its completion (``calls.outputs``); null where that is nothing.

Rejected: times as timestamps, which Spark reads in the session's time zone; a row for each claim, which makes many
rows of an atomic one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from skuld_py.calls.outputs import packed, unpacked
from skuld_py.calls.results import decode_result, joined, parted
from skuld_py.model.body import Retry
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.ids import from_text, time_of, to_text
from skuld_py.model.names import check_name
from skuld_py.model.task import ClaimView, Task

Row = tuple[Any, ...]

_CLAIM = ("struct<token: bigint, holder: string, start_ms: bigint, end_ms: bigint, is_released: boolean,"
          " outcome: string, until_ms: bigint, error: binary>")
_CHECKPOINT = "struct<token: bigint, number: bigint, at_ms: bigint, data: binary>"
_LOG = "struct<token: bigint, seq: bigint, entry: binary>"
_RETRY = ("struct<max_attempts: bigint, backoff_ms: bigint, factor_percent: bigint, backoff_max_ms: bigint,"
          " jitter_percent: bigint>")
COLUMNS = {
    "id": "string", "queue": "string", "day": "string", "priority": "int", "state": "string", "death": "string",
    "enqueued_ms": "bigint", "ended_ms": "bigint", "attempts": "int", "payload": "binary", "result": "binary",
    "error": "binary", "headers": "map<string, string>", "claims": f"array<{_CLAIM}>", "logs": f"array<{_LOG}>",
    "completed_ms": "bigint", "completed_token": "bigint", "cancelled_ms": "bigint", "not_before_ms": "bigint",
    "expires_ms": "bigint", "due_ms": "bigint", "retry": _RETRY, "deps": "array<string>", "seq": "bigint",
    "result_type": "string", "checkpoint": _CHECKPOINT, "outputs": "string",
}
"""What a file of the archive has, with Spark's types. New ones go to the end: older files show null there."""
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
STORED_SCHEMA = f"{SCHEMA}, batch string"
"""With the column that the directory of a batch gives."""
PARTITIONED_BY = ("queue", "day")

_NO_ATTEMPTS = ("released", "snoozed")
_CLAIM_BYTES = 100
_TASK_BYTES = 500


def row_of(task: Task) -> Row:
    """The row, in the order of ``COLUMNS``."""
    logs = [(claim.token, seq, entry) for claim in task.claims for seq, entry in enumerate(claim.log)]
    result_type, content = parted(task.result)
    result = None if result_type is None else content
    return (to_text(task.id), check_name("queue", task.queue), day_of_id(task.id), task.priority, task.state,
            task.death, task.enqueued_ms, ended_ms(task), attempts_of(task), task.payload, result, task.error,
            dict(task.headers), [_claim_row(claim) for claim in task.claims], logs, task.completed_ms,
            task.completed_token, task.cancelled_ms, task.not_before_ms, task.expires_ms, task.due_ms,
            attrs.astuple(task.retry), [to_text(dep) for dep in task.deps], task.seq, result_type,
            _checkpoint_row(task.checkpoint),
            packed(task.outputs, with_files=True).decode() if task.outputs else None)


def task_of(row: Mapping[str, Any]) -> Task:
    """The task of a row, by names of columns; its state is that with which it ended."""
    logs: dict[int, list[bytes]] = {}
    for token, _, entry in sorted(row["logs"], key=lambda each: (each[0], each[1])):
        logs.setdefault(token, []).append(bytes(entry))
    claims = tuple(_claim_of(claim, tuple(logs.get(claim[0], ())), row) for claim in row["claims"])
    return Task(from_text(row["id"]), row["queue"], row["priority"], bytes(row["payload"]), claims,
                row["completed_ms"], row["completed_token"], row["not_before_ms"], row["expires_ms"],
                Retry(*row["retry"]), dict(row["headers"]), row["cancelled_ms"],
                joined(row["result_type"], _bytes(row["result"])), _bytes(row["error"]), row["state"],
                row["due_ms"], row["death"], row["seq"],
                tuple(map(from_text, row["deps"])), made_ms=_made_ms(row),
                checkpoint=_checkpoint_of(row["checkpoint"]),
                outputs=unpacked(row["outputs"].encode()) if row["outputs"] else ())


def _made_ms(row: Mapping[str, Any]) -> int:
    enqueued_ms: int = row["enqueued_ms"]
    return 0 if enqueued_ms == time_of(from_text(row["id"])) else enqueued_ms


def day_of(at_ms: int) -> str:
    """``2026-11-22``, in UTC."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).date().isoformat()


def day_of_id(task_id: bytes) -> str:
    """The day in whose directories a task stands."""
    return day_of(time_of(task_id))


def ended_ms(task: Task) -> int | None:
    """When it was completed or cancelled. When one died is not noted: here it is when it expired, or when its last
    lease ended; None when it never had one."""
    if task.completed_ms is not None or task.cancelled_ms is not None:
        return task.cancelled_ms if task.completed_ms is None else task.completed_ms
    if task.death == "expired":
        return task.expires_ms
    return max((claim.end_ms for claim in task.claims), default=None)


def attempts_of(task: Task) -> int:
    """Its claims that count as attempts: those that completed it, failed, or ended without a word."""
    return sum(claim.outcome not in _NO_ATTEMPTS for claim in task.claims)


def size_of(task: Task) -> int:
    """About how many bytes a task takes."""
    noted = sum(len(entry) + _CLAIM_BYTES for claim in task.claims for entry in claim.log)
    outcomes = len(parted(task.result)[1]) + sum(len(claim.error or b"") for claim in task.claims)
    noted += 0 if task.checkpoint is None else len(task.checkpoint.data)
    return _TASK_BYTES + len(task.payload) + noted + outcomes + _CLAIM_BYTES * len(task.claims)


def batch_name(now_ms: int, nonce: int) -> str:
    """A name for what is written together; names sort by time. ``nonce`` tells apart batches that are written at
    once."""
    moment = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%S")
    return f"{moment}.{now_ms % 1000:03d}Z-{nonce:08x}"


def _claim_row(claim: ClaimView) -> Row:
    return (claim.token, claim.holder, claim.start_ms, claim.end_ms, claim.is_released, claim.outcome,
            claim.until_ms, claim.error)


def _claim_of(claim: Sequence[Any], log: tuple[bytes, ...], row: Mapping[str, Any]) -> ClaimView:
    token, holder, start_ms, end_ms, is_released, outcome, until_ms, error = claim
    completed_ms = row["completed_ms"] if token == row["completed_token"] else None
    return ClaimView(token, holder, start_ms, end_ms, is_released, completed_ms, log, outcome, until_ms,
                     _bytes(error))


def _checkpoint_row(found: Checkpoint | None) -> Row | None:
    return None if found is None else (found.token, found.number, found.at_ms, found.data)


def _checkpoint_of(row: Sequence[Any] | None) -> Checkpoint | None:
    if row is None:
        return None
    token, number, at_ms, data = row
    return Checkpoint(token, number, at_ms, bytes(data), decode_result(data))


def _bytes(data: bytes | bytearray | None) -> bytes | None:
    return None if data is None else bytes(data)
