"""Readers and writers of records, compiled once from what ``model.fields`` says of each field.

Reading makes a record or raises ``Fault`` with its path; the path is put together only when there is
a fault. Writing checks nothing: what a node writes came out of a reader or out of its own machine.

Rejected: one class per kind with read and write methods; closures cost one call less per value, and
values are what a large page is made of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import attrs

from skuld_py.model.columns import Column
from skuld_py.model.fields import Blob, Kind, Name, Names, Number, Rows, Strings, Text, Truth
from skuld_py.model.names import NAME, WIDE_NAME
from skuld_py.wire.rules import RULES
from skuld_py.wire.stream import Fault, Reader, Writer

Read = Callable[[Reader], Any]
Write = Callable[[Any, Writer], Any]
Measure = Callable[[Any], int]
ReadFields = Callable[[Reader, list[Any]], Any]


# -- kinds of fields -------------------------------------------------------------------------------


def _read_number(kind: Number) -> Read:
    low, high = kind.low, kind.high

    def read(reader: Reader) -> int:
        value = reader.scalar()
        if type(value) is not int or not low <= value <= high:
            raise Fault(f"{_shown(value)} is no int in {low}..{high}")
        return value

    return read


def _read_truth(reader: Reader) -> bool:
    value = reader.scalar()
    if type(value) is not bool:
        raise Fault(f"{_shown(value)} is no bool")
    return value


def read_name(kind: Name) -> Read:
    """Reads a name of one grammar."""
    fits, is_optional = (WIDE_NAME if kind.is_wide else NAME).fullmatch, kind.is_optional

    def read(reader: Reader) -> str:
        value = reader.scalar()
        if type(value) is not str or not (fits(value) or (is_optional and not value)):
            raise Fault(f"{_shown(value)} is no name")
        return value

    return read


def _read_text(kind: Text) -> Read:
    chars_max = kind.chars_max

    def read(reader: Reader) -> str:
        value = reader.scalar()
        if type(value) is not str:
            raise Fault(f"{_shown(value)} is no string")
        if len(value) > chars_max:
            raise Fault(f"has {len(value)} characters, more than {chars_max}")
        return value

    return read


def _read_blob(unit: int, bytes_max: int) -> Read:
    def read(reader: Reader) -> bytes:
        value = reader.scalar()
        if type(value) is not bytes:
            raise Fault(f"{_shown(value)} is no byte string")
        if len(value) > bytes_max:
            raise Fault(f"has {len(value)} bytes, more than {bytes_max}")
        if len(value) % unit:
            raise Fault(f"has {len(value)} bytes, no multiple of {unit}")
        return value

    return read


def _read_strings(kind: Strings) -> Read:
    read_lengths = _read_blob(4, 4 * kind.count_max)

    def read(reader: Reader) -> Column:
        if reader.array() != 2:
            raise Fault("is not [lengths, frame]")
        lengths = read_lengths(reader)
        data = reader.frame(reader.scalar())
        total = sum(struct.unpack(f">{len(lengths) // 4}I", lengths))
        if total != len(data):
            raise Fault(f"lengths add up to {total} bytes, not to {len(data)}")
        return Column(lengths, data)

    return read


def _read_several(read_one: Read, count_max: int) -> Read:
    def read(reader: Reader) -> tuple[Any, ...]:
        values: list[Any] = []
        count = reader.items(count_max)
        try:
            for _ in range(count):
                values.append(read_one(reader))
        except Fault as fault:
            raise fault.within(f"[{len(values)}]") from None
        return tuple(values)

    return read


def _write_rows(kind: Rows) -> Write:
    dump = record_of(kind.of).dump

    def write(rows: tuple[Any, ...], writer: Writer) -> list[Any]:
        writer.items += len(rows)
        return [dump(row, writer) for row in rows]

    return write


def _write_names(names: tuple[str, ...], writer: Writer) -> tuple[str, ...]:
    writer.items += len(names)
    return names


def _write_column(column: Column, writer: Writer) -> tuple[bytes, int]:
    return writer.column(column)


def _shown(value: object) -> str:
    """What was found; of bytes, which may be a payload, only that they are bytes."""
    return "a byte string" if isinstance(value, bytes) else repr(value)[:80]


def _reader_of(kind: Kind) -> Read:
    match kind:
        case Number():
            return _read_number(kind)
        case Truth():
            return _read_truth
        case Name():
            return read_name(kind)
        case Text():
            return _read_text(kind)
        case Blob(unit, bytes_max):
            return _read_blob(unit, bytes_max)
        case Strings():
            return _read_strings(kind)
        case Rows(of, count_max):
            return _read_several(record_of(of).read, count_max)
        case Names(count_max):
            return _read_several(read_name(Name(is_wide=True)), count_max)


def _writer_of(kind: Kind) -> Write | None:
    """None when msgpack takes the value as it is."""
    match kind:
        case Strings():
            return _write_column
        case Rows():
            return _write_rows(kind)
        case Names():
            return _write_names
        case _:
            return None


def _measure_of(kind: Kind) -> Measure:
    """How many things a column lists."""
    if isinstance(kind, Blob):
        unit = kind.unit
        return lambda value: len(value) // unit
    return len


# -- records ---------------------------------------------------------------------------------------


@attrs.frozen
class Record:
    """How one attrs class travels: as an array of its fields, in the order of their declaration.

    ``read_fields`` appends to the list it is given as it goes, so that a caller knows what was read
    before a fault; ``dump`` gives what ``read_fields`` reads.
    """

    names: tuple[str, ...]
    read_fields: ReadFields
    dump: Write

    def read(self, reader: Reader) -> Any:
        """The next value, a record."""
        count = reader.array()
        if count != len(self.names):
            raise Fault(f"has {count} fields, not {len(self.names)}")
        return self.read_fields(reader, [])


def record_of(of: type) -> Record:
    """Compile a class, and the rows in it."""
    names = tuple(field.name for field in attrs.fields(of))
    kinds: tuple[Kind, ...] = tuple(field.metadata["kind"] for field in attrs.fields(of))
    columns: tuple[str, ...] = getattr(of, "columns", ())
    measures = [(name, names.index(name), _measure_of(kinds[names.index(name)])) for name in columns]
    writes = [(at, write) for at, kind in enumerate(kinds) if (write := _writer_of(kind)) is not None]
    return Record(names, _read_fields(of, names, [_reader_of(kind) for kind in kinds], measures),
                  _dump(names, writes))


def _read_fields(of: type, names: Sequence[str], reads: Sequence[Read],
                 measures: Sequence[tuple[str, int, Measure]]) -> ReadFields:
    rule = RULES.get(of)

    def read_fields(reader: Reader, values: list[Any]) -> Any:
        try:
            for read in reads:
                values.append(read(reader))
        except Fault as fault:
            raise fault.within("." + names[len(values)]) from None
        if measures:
            _check_counts(measures, values)
        record = of(*values)
        if rule is not None:
            rule(record, reader.limits)
        return record

    return read_fields


def _check_counts(measures: Sequence[tuple[str, int, Measure]], values: Sequence[Any]) -> None:
    first, at, measure = measures[0]
    count = measure(values[at])
    for name, at, measure in measures[1:]:
        if measure(values[at]) != count:
            raise Fault(f"lists {measure(values[at])}, but {first} lists {count}", "." + name)


def _dump(names: Sequence[str], writes: Sequence[tuple[int, Write]]) -> Write:
    get = attrgetter(*names)

    def dump(record: Any, writer: Writer) -> Sequence[Any]:
        values = [get(record)] if len(names) == 1 else list(get(record))
        for at, write in writes:
            values[at] = write(values[at], writer)
        return values

    return dump
