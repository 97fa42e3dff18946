"""Tasks made of rows: a batch of Arrow's columns becomes what ``enqueue_many`` takes.

Work is done by column; only the call of a function is encoded row by row. A value that is no payload, priority,
key or time is refused by its column, before anything of its batch is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.calls.payloads import call
from skuld_py.datasource.choices import WriteChoices
from skuld_py.errors import Refused
from skuld_py.model.body import PRIORITY_MAX, PRIORITY_MIN

if TYPE_CHECKING:
    import pyarrow

Column = list[Any]


@attrs.frozen
class Tasks:
    """Tasks of one priority. ``numbers``: which rows of the batch they are. The rest are columns, or None."""

    priority: int
    numbers: Sequence[int]
    payloads: list[bytes]
    keys: Column | None
    not_before: Column | None
    expires: Column | None

    def part(self, start: int, count: int) -> Tasks:
        """Some of them."""
        def cut(column: Any) -> Any:
            return None if column is None else column[start : start + count]
        return Tasks(self.priority, cut(self.numbers), cut(self.payloads), cut(self.keys), cut(self.not_before),
                     cut(self.expires))


def tasks_of(batch: pyarrow.RecordBatch, choices: WriteChoices) -> Iterator[Tasks]:
    """The tasks of a batch, in parts of at most ``choices.batch``, in the order of the rows but for priorities."""
    if not batch.num_rows:
        return
    payloads = _payloads(batch, choices)
    keys = None if choices.key is None else _keys(batch, choices.key)
    not_before, expires = (None if name is None else _times(batch, name)
                           for name in (choices.not_before, choices.expires))
    every = Tasks(0, range(batch.num_rows), payloads, keys, not_before, expires)
    for tasks in _by_priority(every, batch, choices.priority):
        for start in range(0, len(tasks.payloads), choices.batch):
            yield tasks.part(start, choices.batch)


def _by_priority(every: Tasks, batch: pyarrow.RecordBatch, priority: int | str) -> Iterator[Tasks]:
    if isinstance(priority, int):
        yield attrs.evolve(every, priority=priority)
        return
    rows: dict[int, list[int]] = {}
    for number, value in enumerate(_column(batch, priority)):
        if type(value) is not int or not PRIORITY_MIN <= value <= PRIORITY_MAX:
            raise _bad("priority", priority, value, "no int of 32 bits, signed")
        rows.setdefault(value, []).append(number)
    for value, numbers in rows.items():
        picked = [None if column is None else [column[number] for number in numbers]
                  for column in (every.payloads, every.keys, every.not_before, every.expires)]
        yield Tasks(value, numbers, picked[0] or [], *picked[1:])


def _payloads(batch: pyarrow.RecordBatch, choices: WriteChoices) -> list[bytes]:
    if choices.call is not None:
        return _calls(batch, choices.call, choices)
    assert choices.payload is not None
    values = _column(batch, choices.payload)
    kinds = {*map(type, values)}
    if kinds == {str}:
        return [value.encode() for value in values]
    if kinds != {bytes}:
        wrong = next((value for value in values if type(value) not in (bytes, str)), None)
        raise _bad("payload", choices.payload, wrong, "neither binary nor text; cast the column, or name a"
                   " function by option('call', ...)")
    return values


def _calls(batch: pyarrow.RecordBatch, name: str, choices: WriteChoices) -> list[bytes]:
    in_order = [_column(batch, column) for column in choices.args]
    by_name = [_column(batch, column) for _, column in choices.kwargs]
    parameters = [parameter for parameter, _ in choices.kwargs]
    count = batch.num_rows
    rows = zip(*in_order, strict=True) if in_order else [()] * count
    named = zip(*by_name, strict=True) if by_name else [()] * count
    return [call(name, *row, **dict(zip(parameters, values, strict=True)))
            for row, values in zip(rows, named, strict=True)]


def _keys(batch: pyarrow.RecordBatch, name: str) -> Column:
    keys = _column(batch, name)
    if not {*map(type, keys)} <= {str, type(None)}:
        raise _bad("key", name, next(key for key in keys if type(key) not in (str, type(None))), "no text")
    return keys


def _times(batch: pyarrow.RecordBatch, name: str) -> Column:
    """Moments, or seconds since 1970."""
    moments = _column(batch, name)
    for moment in moments:
        if isinstance(moment, str | bytes) or getattr(moment, "tzinfo", True) is None:
            raise _bad("not_before", name, moment, "no moment with a time zone; cast the column to timestamp")
    return moments


def _column(batch: pyarrow.RecordBatch, name: str) -> Column:
    column = batch.column(batch.schema.get_field_index(name))
    return list(column.to_pylist(maps_as_pydicts="strict"))


def _bad(option: str, name: str, value: object, problem: str) -> Refused:
    return Refused(f"bad_{option}", f"{option}: the column {name} holds {value!r:.60}, which is {problem}",
                   field=option)
