"""Joining several replicas' answers into one, for readers. Nothing here touches a store."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from skuld_py.model.body import stands_over
from skuld_py.model.columns import Column
from skuld_py.model.history import decode_history
from skuld_py.model.messages import TaskRow
from skuld_py.model.outcomes import entries_of, join_entries, with_entries


def merge_task_rows(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """One row per task, in id order: any body, the joined history, all log entries."""
    merged: dict[bytes, TaskRow] = {}
    for row in rows:
        mine = merged.get(row.id)
        merged[row.id] = row if mine is None or mine == row else _join(mine, row)
    return [merged[task_id] for task_id in sorted(merged)]


def _join(a: TaskRow, b: TaskRow) -> TaskRow:
    entries = join_entries(entries_of(a), entries_of(b))
    return with_entries(attrs.evolve(a, body=_join_bodies(a.body, b.body),
                                     history=join_histories(a.history, b.history)), entries)


def _join_bodies(a: Column, b: Column) -> Column:
    """Either body; of two under one unique name the one that stands."""
    if a == b or not len(b):
        return a
    return b if not len(a) or stands_over(*b.unpack(), *a.unpack()) else a


def join_errors(a: bytes, b: bytes) -> bytes:
    """Of two last errors with their tokens that of the newer claim; of two of one claim the smaller stands."""
    if not a or not b:
        return a or b
    return min(a, b) if a[:8] == b[:8] else max(a, b)


def join_histories(a: bytes, b: bytes) -> bytes:
    """The join of two encoded histories, ``b""`` being the empty one."""
    if a == b or not b:
        return a
    return b if not a else decode_history(a).merge(decode_history(b)).encode()
