"""The tasks of an archive that has a manifest, without Spark: for look-ups, counts and lists.

Which files are read, and often how many rows they have, is known from the manifest. Rows come in the order of
their ids though the files of a day overlap: a file is read when its first id is due, and files that lie side by
side are merged. Before compaction these may be thousands, more than a process may have open; so a file is open
only while a row group is read. Of each file the fewer rows are held the more lie side by side, as where each batch
has a task that took long to end; the others are read again when they are due. One id is looked for among the ids
alone of each file that may have it, until it is found.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skuld_py.archive.arrow_files import BOUNDED, FAILURES, SCHEMA, reading, said, sound, todays
from skuld_py.archive.filters import Condition, Filters
from skuld_py.archive.live import Live, has_only
from skuld_py.archive.manifest import File
from skuld_py.errors import Refused

_RECORDS = frozenset(field.name for field in SCHEMA if pa.types.is_struct(field.type) or (
    pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)))
ROWS_AT_ONCE = 1_000
ROW_BYTES = 4_000
"""What a row takes besides, in Python."""
HELD_BYTES = 24 << 20
"""Of rows of one file that is merged with no other; of more files each has a part of it, or a row."""


class ArrowHistory:
    """The tasks of live files that are asked for."""

    def __init__(self, found: Live, filters: Filters) -> None:
        self._root = found.root
        self._files = sorted(found.files, key=lambda file: file.first_id)
        self._filters = filters
        conditions = list(filters.conditions())
        self._wanted = reduce(and_, map(_expression, conditions)) if conditions else None
        self._asked = list(dict.fromkeys(["id", *(name for name, _, _ in conditions)]))
        self._beside = 1
        """How many files are merged."""

    def count(self) -> int:
        """How many; files all of whose rows are wanted are not opened."""
        with _reading():
            return sum(file.rows if has_only(file, self._filters) else sum(
                table.num_rows for _, table in self._tables(file, self._asked)) for file in self._files)

    def rows(self, limit: int | None = None, columns: Sequence[str] = ()) -> Iterator[Mapping[str, Any]]:
        """The rows in the order of their ids, which is that of their making."""
        names = list(dict.fromkeys([*columns, *self._asked])) if columns else SCHEMA.names
        given = self._merged(names) if self._filters.id is None else self._only(names)
        with _reading():
            for number, row in enumerate(given):
                if limit is not None and number >= limit:
                    return
                yield row

    def _only(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The row of one id, which is in one file: what lies behind is not looked into."""
        yield from islice((row for file in self._files for row in self._rows(file, columns)), 1)

    def _merged(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        heap: list[tuple[str, int, Mapping[str, Any], Iterator[Mapping[str, Any]]]] = []
        for number, file in enumerate([*self._files, None]):
            while heap and (file is None or heap[0][0] < file.first_id):
                _, at, row, others = heapq.heappop(heap)
                yield row
                self._push(heap, at, others)
            if file is not None:
                self._push(heap, number, self._rows(file, columns))

    def _push(self, heap: list[Any], number: int, rows: Iterator[Mapping[str, Any]]) -> None:
        self._beside = len(heap) + 1
        if (row := next(rows, None)) is not None:
            heapq.heappush(heap, (row["id"], number, row, rows))

    def _rows(self, file: File, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        number = start = 0
        while (found := next(self._tables(file, columns, number), None)) is not None:
            number, table = found
            held = _first_of(table.slice(start), HELD_BYTES // self._beside)
            is_whole = held.num_rows == table.num_rows
            start += held.num_rows
            if start == table.num_rows:
                number, start = number + 1, 0
            with reading(self._root / file.path):
                parts = held.to_batches(max_chunksize=ROWS_AT_ONCE) if is_whole else [held.to_pylist()]
            del found, table, held
            for part in parts:
                with reading(self._root / file.path):
                    rows = part if isinstance(part, list) else part.to_pylist()
                for row in rows:
                    yield {name: _tuples(value) if name in _RECORDS else value for name, value in row.items()}

    def _tables(self, file: File, columns: Sequence[str], number: int = 0) -> Iterator[tuple[int, pa.Table]]:
        """Row group by row group from this one on, those alone that have the id; each with its number."""
        task_id = None if self._filters.id is None else str(self._filters.id)
        path, count = self._root / file.path, number + 1
        while number < count:
            with reading(path), pq.ParquetFile(path) as opened:
                count = opened.num_row_groups
                while number < count and task_id is not None and _lacks(opened, number, task_id):
                    number += 1
                table = _group(opened, number, columns) if number < count else None
            number += 1
            if table is not None:
                yield number - 1, table if self._wanted is None else table.filter(self._wanted)


def _group(opened: pq.ParquetFile, number: int, columns: Sequence[str]) -> pa.Table:
    there = [name for name in columns if name in opened.schema_arrow.names]
    found = opened.read_row_group(number, columns=there)
    return todays(sound(found, *(name for name in BOUNDED if name in columns)), columns)


def _lacks(opened: pq.ParquetFile, number: int, task_id: str) -> bool:
    """Whether a row group has no task of this id: by its statistics, or else by its ids, which are little beside
    payloads and claims; where many files overlap statistics exclude none."""
    bounds = opened.metadata.row_group(number).column(0).statistics
    if bounds is not None and bounds.has_min_max and not bounds.min <= task_id <= bounds.max:
        return True
    ids = opened.read_row_group(number, columns=["id"], use_threads=False).column("id")
    return not pc.any(pc.equal(ids, task_id)).as_py()


def _first_of(table: pa.Table, room: int) -> pa.Table:
    """As many of the first rows as there is room for, all or a half of them, or of these; at least one."""
    while table.num_rows > 1 and table.nbytes + ROW_BYTES * min(table.num_rows, ROWS_AT_ONCE) > room:
        table = table.slice(0, table.num_rows // 2)
    return table


def _tuples(value: Any) -> Any:
    """Records as tuples, as Spark gives them."""
    if isinstance(value, dict):
        return tuple(value.values())
    return [tuple(each.values()) for each in value] if isinstance(value, list) else value


def _expression(condition: Condition) -> Any:
    name, comparison, value = condition
    field = pc.field(name)
    match comparison:
        case "=":
            return field == value
        case ">=":
            return field >= value
        case "<":
            return field < value
        case "<=":
            return field <= value
        case _:
            return field.isin(list(value) if isinstance(value, tuple) else [value])


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise Refused("not_read", f"root: {said(error)}") from None
