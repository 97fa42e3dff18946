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

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

import attrs

from skuld_py.calls.outputs import packed, unpacked
from skuld_py.calls.payloads import decode_call, function_of
from skuld_py.calls.results import decode_outputs, decode_result, joined, parted
from skuld_py.client.archiving import Record
from skuld_py.errors import Refused
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_INSTEAD,
    ON_FAILURE_WAIT,
    Body,
    Header,
    Retry,
)
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.history import EMPTY_HISTORY, EXHAUSTED, TIME_MS_MAX, History
from skuld_py.model.ids import TaskId, from_text, time_of, to_text, to_texts
from skuld_py.model.names import check_name
from skuld_py.model.outcomes import FIRST_TOKEN, RESULT_SEQ
from skuld_py.model.prelude import TIME_MS_MAX as CALENDAR_MS_MAX
from skuld_py.model.task import DEATHS, ClaimView, LogEntry, Task, view

Row = tuple[Any, ...]


class Store(Protocol):
    """What writes rows."""

    def begin(self) -> None:
        """A run begins."""

    def write(self, batch: str, rows: Sequence[Row]) -> int:
        """Write rows; returns when they are durable. How many were not there before, as far as that is known."""

    def settled(self, ids: bytes) -> None:
        """These tasks are deleted."""

    def end(self, is_whole: bool, are_gone: Callable[[Sequence[str]], bool]) -> None:
        """A run is over; all that was to be archived is, or not. ``are_gone``: of some tasks the nodes have
        none."""


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
    "enqueued": "timestamp", "ended": "timestamp", "key": "string", "unique_name": "string",
    "on_dep_failure": "string", "function": "string", "arguments": "string", "cluster": "string",
    "schema_version": "int", "digest": "string",
}
"""What a file of the archive has, with Spark's types. New ones go to the end: older files show null there."""
_PAYLOAD, _RESULT, _CLAIMS, _LOGS, _ENDED = map(
    [*COLUMNS].index, ("payload", "result", "claims", "logs", "ended_ms"))
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
STORED_SCHEMA = f"{SCHEMA}, batch string"
"""With the column that the directory of a batch gives."""
PARTITIONED_BY = ("queue", "day")

SCHEMA_VERSION = 2
"""Of a row. Those of releases before 0.2 have none, and none of the columns from ``enqueued`` on."""
ON_FAILURE = {ON_FAILURE_WAIT: "wait", ON_FAILURE_FAIL: "fail", ON_FAILURE_IGNORE: "ignore",
              ON_FAILURE_INSTEAD: "instead"}
_CALLS = (b"\x94", b"\x95")
_HISTORY = struct.Struct(">QQQQQQBB")
_ONE_CLAIM = _HISTORY.size
_NO_ATTEMPTS = ("released", "snoozed")
DEP_FAILED = "dep_failed"
_OF_OTHERS = (DEP_FAILED, "dep_unknown")
_NOTHING: list[Any] = []
_NO_CALL: Row = (None, None)
_NO_OUTCOME: Row = (None, None, None)
DAY_MS = 86_400_000
_CLAIM_BYTES = 100
_TASK_BYTES = 500


def row_of(task: Task, body: Body | None = None, cluster: str = "", digest: int = 0) -> Row:
    """The row, in the order of ``COLUMNS``; timestamps are milliseconds here. Of the body is what a task does not
    show."""
    logs = [(claim.token, seq, entry) for claim in task.claims for seq, entry in enumerate(claim.log)]
    result_type, content = parted(task.result)
    result = None if result_type is None else content
    return (to_text(task.id), check_name("queue", task.queue), day_of_id(task.id), task.priority, task.state,
            task.death, task.enqueued_ms, ended_ms(task), attempts_of(task), task.payload, result, task.error,
            dict(task.headers), [_claim_row(claim) for claim in task.claims], logs, task.completed_ms,
            task.completed_token, task.cancelled_ms, task.not_before_ms, task.expires_ms, task.due_ms,
            _retry_row(task.retry), [to_text(dep) for dep in task.deps], task.seq, result_type,
            _checkpoint_row(task.checkpoint),
            packed(task.outputs, with_files=True).decode() if task.outputs else None, task.enqueued_ms,
            ended_ms(task), *_options_of(body), *_call_of(task.payload), cluster, SCHEMA_VERSION, f"{digest:016x}")


def row_of_record(record: Record, text: str, cluster: str, digest: int) -> Row:
    """The same of a task's records; ``text`` is that of its id. Most tasks were completed by their only claim,
    which noted nothing: their rows are made without the task. Raises ``ValueError`` when a record is damaged."""
    task_id, raw, history, entries = record
    size = 2 + int.from_bytes(raw[:2], "big")
    shared = _shared_by(raw[2:size])
    if (shared is None or len(entries) > 1 or len(history) < _ONE_CLAIM
            or len(history) != _ONE_CLAIM + history[_ONE_CLAIM - 1]):
        return _odd_row_of(record, cluster, digest)
    done_ms, done_token, _, token, start_ms, end_ms, kind, _ = _HISTORY.unpack_from(history)
    if done_token != token or kind or token < FIRST_TOKEN or not done_ms or (
            entries and tuple(entries[0][:2]) != (token, RESULT_SEQ)):
        return _odd_row_of(record, cluster, digest)
    result_type, content, outputs = _outcome_of(entries[0][2]) if entries else _NO_OUTCOME
    queue, priority, death, headers, retry = shared
    at_ms, payload = int.from_bytes(task_id[:8], "big"), raw[size:]
    claim = (token, history[_ONE_CLAIM:].decode(), start_ms, end_ms, False, "completed", None, None)
    return (text, queue, _day(at_ms // DAY_MS), priority, "completed", death, at_ms, done_ms, 1, payload, content,
            None, headers, [claim], _NOTHING, done_ms, token, None, None, None, 0, retry, _NOTHING,
            2 + len(entries), result_type, None, outputs, at_ms, done_ms, None, None, None,
            *(_call_of(payload) if payload[:1] in _CALLS else _NO_CALL), cluster, SCHEMA_VERSION, f"{digest:016x}")


@lru_cache(maxsize=64)
def _shared_by(header: bytes) -> Row | None:
    """What rows of tasks with one header share: queue, priority, death, headers, retry; None where a task is more
    than its header and its payload."""
    known = Header.decode(header)
    if known.prelude:
        return None
    return (check_name("queue", known.queue), known.priority,
            DEATHS[EXHAUSTED] if known.retry.max_attempts == 1 else "", dict(known.headers),
            _retry_row(known.retry))


def _outcome_of(stored: bytes) -> Row:
    """The type of a result, its content, and the outputs."""
    if not stored:
        return _NO_OUTCOME
    result_type, content = parted(decode_result(stored))
    outputs = decode_outputs(stored)
    return (result_type, None if result_type is None else content,
            packed(outputs, with_files=True).decode() if outputs else None)


def _retry_row(retry: Retry) -> Row:
    return (retry.max_attempts, retry.backoff_ms, retry.factor_percent, retry.backoff_max_ms, retry.jitter_percent)


def _odd_row_of(record: Record, cluster: str, digest: int) -> Row:
    """Its state is that with which it ended: where it stands when all its leases are over, whatever a clock says
    of them here."""
    task_id, raw, history, entries = record
    seen = view(TaskId(task_id), raw, History.decode(history) if history else EMPTY_HISTORY,
                [LogEntry(*entry) for entry in entries], TIME_MS_MAX)
    if seen.result is not None:
        seen = attrs.evolve(seen, result=decode_result(seen.result), outputs=decode_outputs(seen.result))
    return row_of(seen, Body.decode(raw), cluster, digest)


def _options_of(body: Body | None) -> Row:
    if body is None:
        return None, None, None
    return body.key or None, body.unique or None, ON_FAILURE.get(body.header.policy)


def _call_of(payload: bytes) -> tuple[str | None, str | None]:
    """The function that a payload calls, and the arguments as JSON: a list, and behind it an object if some have
    names. Neither of a payload that is no call; no arguments where they are no JSON."""
    function = function_of(payload) if payload[:1] in _CALLS else None
    if function is None:
        return None, None
    try:
        call = decode_call(payload)
        word, content = parted([call.args, call.kwargs] if call.kwargs else [call.args])
    except (Refused, ValueError):
        return function, None
    return function, content.decode() if word == "json" else None


def _as_they_are(rows: Sequence[Row]) -> Sequence[Row]:
    return rows


class Rows:
    """Makes rows of the records that an archiver is given, for a store. ``cluster`` stands in each. ``dated`` adds
    ends that records do not show (``causes``)."""

    def __init__(self, store: Store, cluster: str,
                 dated: Callable[[Sequence[Row]], Sequence[Row]] = _as_they_are) -> None:
        self._store = store
        self._dated = dated
        self._cluster = cluster
        self.begin, self.settled, self.end = store.begin, store.settled, store.end

    def write(self, batch: str, given: Sequence[tuple[Record, int]]) -> int:
        """Write rows; returns when they are durable, how many were new. ``Refused`` when they cannot be."""
        cluster = self._cluster
        texts = to_texts(b"".join(record[0] for record, _ in given))
        try:
            rows = [row_of_record(record, text, cluster, digest)
                    for (record, digest), text in zip(given, texts, strict=True)]
        except ValueError as error:
            raise Refused("not_written", f"a record cannot be read: {error}") from None
        rows = list(self._dated(rows))
        if max((row[_ENDED] or 0 for row in rows), default=0) > CALENDAR_MS_MAX:
            raise Refused("not_written", "a record cannot be read: it ended behind the year 9999")
        try:
            return self._store.write(batch, rows)
        except OverflowError as error:
            raise Refused("not_written", f"a record cannot be read: {error}") from None


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
                outputs=unpacked(row["outputs"].encode()) if row["outputs"] else (), key=row["key"] or "",
                died_ms=row["ended_ms"] if row["death"] in _OF_OTHERS and row["state"] == "dead" else None)


def _made_ms(row: Mapping[str, Any]) -> int:
    enqueued_ms: int = row["enqueued_ms"]
    return 0 if enqueued_ms == time_of(from_text(row["id"])) else enqueued_ms


def day_of(at_ms: int) -> str:
    """``2026-11-22``, in UTC."""
    return _day(at_ms // DAY_MS)


@lru_cache(maxsize=1_024)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * 86_400, UTC).date().isoformat()


def day_of_id(task_id: bytes) -> str:
    """The day in whose directories a task stands."""
    return day_of(time_of(task_id))


def ended_ms(task: Task) -> int | None:
    """When it was completed or cancelled, died of another task, or failed for the last time. Of what died of
    something else it is when it expired, or when its last lease ended. None when it never had one, and died of
    another task when nobody noted that: then what it died of may tell it (``causes``)."""
    if task.completed_ms is not None or task.cancelled_ms is not None:
        return task.cancelled_ms if task.completed_ms is None else task.completed_ms
    if task.died_ms:
        return task.died_ms
    if task.death == "expired":
        return task.expires_ms
    newest = max(task.claims, key=lambda claim: claim.token, default=None)
    return None if newest is None else _over_ms(newest)


def _over_ms(claim: ClaimView) -> int:
    """When it failed, if no attempt was left then: there is no pause. Else no later than the end of what its
    holder said, and of its lease."""
    if claim.outcome in ("failed", "snoozed") and claim.until_ms:
        return min(claim.end_ms, claim.until_ms)
    return claim.end_ms


def attempts_of(task: Task) -> int:
    """Its claims that count as attempts: those that completed it, failed, or ended without a word."""
    return sum(claim.outcome not in _NO_ATTEMPTS for claim in task.claims)


def size_of(row: Row) -> int:
    """About how many bytes a row takes."""
    logs = sum(len(entry) + _CLAIM_BYTES for _, _, entry in row[_LOGS])
    return (_TASK_BYTES + len(row[_PAYLOAD]) + len(row[_RESULT] or b"") + logs
            + sum(len(claim[-1] or b"") + _CLAIM_BYTES for claim in row[_CLAIMS]))


def size_of_record(record: Record) -> int:
    """About how many bytes a task takes, by its records."""
    size, entries = _TASK_BYTES + len(record[1]) + len(record[2]), record[3]
    return size + sum(len(entry[2]) + _CLAIM_BYTES for entry in entries) if entries else size


def batch_name(now_ms: int, nonce: int) -> str:
    """A name for what is written together; names sort by time. ``nonce`` tells apart batches that are written at
    once."""
    moment = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%S")
    return f"{moment}.{now_ms % 1000:03d}Z-{nonce:08x}"


class BatchNames:
    """Names for what one process writes: each sorts behind the one before, and so is another, whatever the clock
    does. A name that came again would replace a file that is live."""

    def __init__(self, now_ms: Callable[[], int], nonce: int) -> None:
        self._now_ms = now_ms
        self._nonce = nonce
        self._last_ms = 0

    def __call__(self) -> str:
        """The next."""
        self._last_ms = max(self._last_ms + 1, self._now_ms())
        return batch_name(self._last_ms, self._nonce)


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
