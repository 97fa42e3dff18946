"""Rows made of tasks, for SQL. Times are timestamps.

A result is what the archive has of it: its bytes, and in ``result_type`` whether they are text, JSON or bytes. A
query on the queue runs on the archive, too, where it asks for columns that both have. ``claim`` is the newest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import attrs

from skuld_py.archive.rows import ended_ms
from skuld_py.calls.payloads import function_of
from skuld_py.calls.results import parted
from skuld_py.client.waiting import End
from skuld_py.errors import Refused
from skuld_py.model.ids import to_text
from skuld_py.model.task import ClaimView, Task

Row = tuple[Any, ...]
ENDED = ("completed", "cancelled", "dead")
SCHEMA = (
    "id string, queue string, state string, death string, priority int, function string, enqueued timestamp,"
    " not_before timestamp, expires timestamp, due timestamp, started timestamp, ended timestamp, attempts int,"
    " claim struct<token: bigint, holder: string, start: timestamp, end: timestamp, outcome: string>,"
    " result binary, result_type string, error string, payload binary, headers map<string, string>")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Client(Protocol):
    """What is asked for results."""

    def ends(self, ids: Sequence[bytes]) -> list[End]:
        """How tasks have ended."""


def row_of(task: Task) -> Row:
    """The row, in the order of ``SCHEMA``."""
    newest = task.claims[-1] if task.claims else None
    word, content = parted(task.result)
    has_ended = task.state in ENDED
    return (to_text(task.id), task.queue, task.state, task.death or None, task.priority, function_of(task.payload),
            _time(task.enqueued_ms), _time(task.not_before_ms), _time(task.expires_ms), _time(task.due_ms),
            None if newest is None else _time(newest.start_ms), _time(ended_ms(task)) if has_ended else None,
            task.attempts, None if newest is None else _claim(newest), None if word is None else content, word,
            None if task.error is None else task.error.decode(errors="replace"), task.payload, dict(task.headers))


def rows_of(tasks: Sequence[Task], client: Client | None) -> Iterator[Row]:
    """Rows of a page; with results and errors of those that have ended, if a client is given."""
    wanted = [task.id for task in tasks if task.state in ENDED and task.claims] if client is not None else []
    found = _ends(client, wanted) if client is not None and wanted else []
    ends: dict[bytes, End] = {end.id: end for end in found}
    for task in tasks:
        end = ends.get(task.id)
        yield row_of(task if end is None else attrs.evolve(task, result=end.result, error=end.error))


def _ends(client: Client, ids: Sequence[bytes]) -> list[End]:
    """Of those that are still there: what is collected meanwhile is shown without."""
    try:
        return client.ends(ids)
    except Refused as refusal:
        if refusal.code != "no_such_task":
            raise
    half = len(ids) // 2
    return [] if not half else _ends(client, ids[:half]) + _ends(client, ids[half:])


def _claim(claim: ClaimView) -> Row:
    return (claim.token, claim.holder, _time(claim.start_ms), _time(claim.end_ms), claim.outcome or None)


def _time(at_ms: int | None) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=at_ms) if at_ms else None
