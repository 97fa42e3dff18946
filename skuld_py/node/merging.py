"""Joining several replicas' answers into one, for readers. Nothing here touches a store."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add

from skuld_py.model import columns
from skuld_py.model.body import stands_over
from skuld_py.model.columns import Column
from skuld_py.model.history import decode_history
from skuld_py.model.messages import CountRow, TaskRow
from skuld_py.model.outcomes import entries_of, join_entries


def merge_task_rows(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """One row per task, in id order: any body, the joined history, all log entries."""
    merged: dict[bytes, TaskRow] = {}
    for row in rows:
        mine = merged.get(row.id)
        merged[row.id] = row if mine is None or mine == row else _join(mine, row)
    return [merged[task_id] for task_id in sorted(merged)]


def _join(a: TaskRow, b: TaskRow) -> TaskRow:
    entries = join_entries(entries_of(a), entries_of(b))
    keys = sorted(entries)
    return TaskRow(a.id, _join_bodies(a.body, b.body), join_histories(a.history, b.history),
                   columns.pack_u64([token for token, _ in keys]), columns.pack_u64([seq for _, seq in keys]),
                   columns.pack([entries[key] for key in keys]))


def _join_bodies(a: Column, b: Column) -> Column:
    """Either; of two of a unique name the one that stands."""
    if a == b or not len(b):
        return a
    return b if not len(a) or stands_over(*b.unpack(), *a.unpack()) else a


def join_histories(a: bytes, b: bytes) -> bytes:
    """The join of two encoded histories, ``b""`` being the empty one."""
    if a == b or not b:
        return a
    return b if not a else decode_history(a).merge(decode_history(b)).encode()


def sum_counts(rows: Iterable[CountRow]) -> list[CountRow]:
    """Rows summed over partitions, by queue name; ``partition`` is 0 and means nothing."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        known = sums.get(row.queue)
        sums[row.queue] = list(row.counts) if known is None else list(map(add, known, row.counts))
    return [CountRow(0, queue, *values) for queue, values in sorted(sums.items())]
