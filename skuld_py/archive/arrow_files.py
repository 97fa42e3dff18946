"""Files of an archive, as Arrow writes and reads them.

All columns stand in the file, ``queue``, ``day`` and ``batch`` with them, so that nothing has to be read out of a
path. Rows stand in the order of their ids, with statistics, so that readers skip what they need not.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skuld_py.archive.manifest import File
from skuld_py.archive.rows import COLUMNS, Row
from skuld_py.errors import Refused

FAILURES = (OSError, pa.ArrowException)
OF_CONTENT = (ValueError, LookupError, TypeError, OverflowError)
"""With these Python meets bytes that no writer wrote."""
OWN_FAULTS = (EMFILE, ENFILE, ENOMEM)
MAKE_ROOM = "; make room there, and run it again"
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary(),
          "boolean": pa.bool_(), "timestamp": pa.timestamp("ms", "UTC")}
_NAMES = tuple(COLUMNS)
MAY_BE_NULL = ("ended_ms", "digest")
BOUNDED = ("id", "enqueued_ms", "ended_ms")
"""Columns that any release has written, and a manifest tells the bounds of."""

Table = TypeVar("Table", pa.Table, pa.RecordBatch)


class Unread(Refused):
    """A file cannot be read, which is named, with the remedy. ``is_gone``: it is not there."""

    def __init__(self, code: str, path: Path, problem: str, *, is_gone: bool = False) -> None:
        super().__init__(code, f"root: {path} {problem}", path=str(path))
        self.path = path
        self.is_gone = is_gone


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What fails is told of this file, but for want of memory or of open files, which is the process's own fault:
    what no disk says its bytes are to blame for. Nothing may be written meanwhile, and nothing done but to read
    and to look at what was read."""
    try:
        yield
    except FileNotFoundError:
        raise Unread("not_read", path, "is not there; if the archive was compacted meanwhile, ask again, or else"
                     " restore it from a copy of the archive", is_gone=True) from None
    except PermissionError:
        raise Unread("not_read", path, "cannot be read: Permission denied; let this user read it, and enter the"
                     " directories that it is in") from None
    except (*FAILURES, *OF_CONTENT) as error:
        number = getattr(error, "errno", None)
        if isinstance(error, MemoryError) or number in OWN_FAULTS:
            raise
        if number is not None:
            raise Unread("not_read", path, f"cannot be read: {os.strerror(number)}; mend its disk, its mount or"
                         " its path, or restore it from a copy of the archive") from None
        raise damaged(path, said(error)) from None


def sound(found: Table, *needed: str) -> Table:
    """What was read of a file, if its texts are texts and the columns that are needed are as they were written;
    raises what ``reading`` takes for damage."""
    found.validate(full=True)
    for name in needed:
        column = found.column(name)
        if column.type != SCHEMA.field(name).type or (column.null_count and name not in MAY_BE_NULL):
            raise pa.ArrowInvalid(f"its column {name} is not as it was written")
    return found


def damaged(path: Path, why: str) -> Unread:
    """What is said of a file whose bytes are not those that were written."""
    return Unread("damaged_file", path, f"is damaged: {why}; restore it from a copy of the archive")


@cache
def type_of(kind: str) -> Any:
    """Arrow's type for one of Spark's, by its text."""
    name, _, inner = kind.partition("<")
    inner = inner.removesuffix(">")
    match name:
        case "array":
            return pa.list_(type_of(inner))
        case "map":
            return pa.map_(*(type_of(each.strip()) for each in inner.split(",")))
        case "struct":
            return pa.struct([(field, type_of(of)) for field, _, of in (
                each.strip().partition(": ") for each in inner.split(","))])
        case _:
            return _TYPES[name]


SCHEMA = pa.schema([*((name, type_of(kind)) for name, kind in COLUMNS.items()), ("batch", pa.string())])


def table_of(rows: Sequence[Row], batch: str) -> pa.Table:
    """Rows as columns."""
    columns = dict(zip(_NAMES, zip(*rows, strict=True), strict=True))
    headers = columns["headers"]
    columns["headers"] = tuple([*each.items()] for each in headers) if any(headers) else ([],) * len(headers)
    arrays = [_array_of(columns[name], SCHEMA.field(name).type) for name in _NAMES]
    return pa.Table.from_arrays([*arrays, pa.repeat(pa.scalar(batch), len(rows))], schema=SCHEMA)


def _array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Most columns have one value alone. Python sees that sooner than Arrow looks at each value; but Arrow makes
    lists of nothing sooner than it repeats one."""
    first, count = values[0], len(values)
    if type(first) is not list and first == values[-1] and values.count(first) == count:
        return pa.repeat(pa.scalar(first, kind), count)
    return pa.array(values, kind)


def writer_of(path: Path, schema: pa.Schema = SCHEMA) -> pq.ParquetWriter:
    """Writes tables to a file, each a row group."""
    return pq.ParquetWriter(path, schema, compression="zstd")


def todays(table: pa.Table, names: Sequence[str], told: Mapping[str, str] | None = None) -> pa.Table:
    """These of today's columns, of what any release has written. ``told``: what is the same for all rows. What a
    release did not know is null, but for the two times, which it wrote as milliseconds alone."""
    found, columns = told or {}, []
    for field in (SCHEMA.field(name) for name in names):
        if field.name in found:
            columns.append(pa.repeat(pa.scalar(found[field.name]), table.num_rows))
        elif field.name in table.column_names:
            columns.append(table.column(field.name).cast(field.type))
        elif f"{field.name}_ms" in table.column_names and pa.types.is_timestamp(field.type):
            columns.append(table.column(f"{field.name}_ms").cast(field.type))
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=pa.schema([SCHEMA.field(name) for name in names]))


def has_more(path: Path) -> bool:
    """Whether a file has columns, or fields of a column's records, that this release does not know: Arrow makes
    one record of another without a word of what is left out."""
    with reading(path):
        return not set(_names_of(pq.read_schema(path))) <= set(_names_of(SCHEMA))


def _names_of(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Of columns, and of the fields of their records, as ``claims.token``."""
    for field in fields:
        yield f"{above}{field.name}"
        of = field.type.value_type if pa.types.is_list(field.type) else field.type
        if pa.types.is_struct(of):
            yield from _names_of(of, f"{above}{field.name}.")


def lacks_ends(path: Path) -> bool:
    """Whether a file has tasks of which nobody knows when they ended, or does not say."""
    with reading(path):
        found = pq.read_metadata(path)
        at = found.schema.names.index("ended_ms")
        told = [found.row_group(number).column(at).statistics for number in range(found.num_row_groups)]
        return any(each is None or each.null_count != 0 for each in told)


def bounds_of(table: pa.Table) -> dict[str, Any]:
    """What a manifest says of rows that are sorted by id; see ``File``."""
    enqueued, ended = (pc.min_max(table.column(name)) for name in ("enqueued_ms", "ended_ms"))
    ids = table.column("id")
    return {"rows": table.num_rows, "first_id": ids[0].as_py(), "last_id": ids[-1].as_py(),
            "first_enqueued_ms": enqueued["min"].as_py(), "last_enqueued_ms": enqueued["max"].as_py(),
            "first_ended_ms": ended["min"].as_py(), "last_ended_ms": ended["max"].as_py()}


def joined_bounds(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of both; ``other`` has the greater ids."""
    found = {"rows": one["rows"] + other["rows"], "first_id": one["first_id"], "last_id": other["last_id"]}
    for kind in ("enqueued", "ended"):
        for name, choose in ((f"first_{kind}_ms", min), (f"last_{kind}_ms", max)):
            known = [each[name] for each in (one, other) if each[name] is not None]
            found[name] = choose(known) if known else None
    return found


def written(table: pa.Table, draft: Path, path: str, day: str, *, is_open: bool = True) -> File:
    """Write rows of one queue, sorted by id, as a draft of the file at ``path``; what a manifest says of it."""
    with writer_of(draft) as writer:
        writer.write_table(table)
    return File(path=path, queue=table.column("queue")[0].as_py(), day=day, size=draft.stat().st_size,
                is_open=is_open, **bounds_of(table))


def digests_of(path: Path, among: Collection[str] = ()) -> list[tuple[str, str]]:
    """The id and the digest of each row, or of those alone that are among some."""
    wanted = ((pc.field("id") >= min(among)) & (pc.field("id") <= max(among))
              & pc.field("id").isin([*among])) if among else None
    with reading(path):
        names = ["id", "digest"]
        found = sound(pq.read_table(path, columns=names, filters=wanted, partitioning=None), *names)
        return list(zip(*(found.column(name).to_pylist() for name in names), strict=True))


def ids_by_groups(path: Path, first: int) -> Iterator[list[str]]:
    """The ids of each row group of a file, from one on."""
    with reading(path), pq.ParquetFile(path) as file:
        for number in range(first, file.num_row_groups):
            found = sound(file.read_row_group(number, columns=["id"], use_threads=False), "id")
            yield found.column("id").to_pylist()


def without(path: Path, ids: Sequence[str], draft: Path) -> dict[str, Any]:
    """Write the rows of a file, but for these, as a draft, in the columns that it has, a row group at a time: one
    that compaction has made may be larger than memory. What a manifest says of them; nothing when none is left."""
    gone, bounds = pa.array(ids, pa.string()), dict[str, Any]()
    with reading(path):
        schema = pq.read_schema(path)
    with writer_of(draft, schema) as writer:
        for found in _groups(path):
            left = found.filter(pc.invert(pc.is_in(found.column("id"), gone)))
            if left.num_rows:
                writer.write_table(left)
                bounds = joined_bounds(bounds, bounds_of(left)) if bounds else bounds_of(left)
    return bounds


def _groups(path: Path) -> Iterator[pa.Table]:
    """The rows of a file, a row group at a time."""
    with reading(path), pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield sound(file.read_row_group(number, use_threads=False), *BOUNDED)


def said(error: Exception) -> str:
    """Why Arrow or the disk failed, in a line; of a disk that is full, or closed to this user, what to do."""
    if isinstance(error, PermissionError) and error.filename:
        return f"Permission denied at {error.filename2 or error.filename}; let this user write there"
    words = getattr(error, "strerror", None) or str(error).partition("\n")[0].rstrip(".")
    return words + (MAKE_ROOM if getattr(error, "errno", None) in (ENOSPC, EDQUOT) else "")
