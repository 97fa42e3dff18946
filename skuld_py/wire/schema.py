"""Readers and writers of records, compiled once from what ``model.fields`` says of each field.

A kind is either a value, checked by a function of it, or several, read by a function of the stream.
Reading makes a record or raises ``Fault`` with its path; the path is put together only when there is a
fault. Writing checks nothing: what a node writes came out of a reader or out of its own machine.

Rejected: code generated as text, which would be faster and could not be read; and one class per kind.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.model.bounds import U32_MAX, U63_MAX
from skuld_py.model.columns import Column, unpack_u64
from skuld_py.model.fields import (
    Blob,
    Eras,
    Kind,
    Name,
    Names,
    Number,
    Numbers,
    Partition,
    Partitions,
    Rows,
    Strings,
    Text,
    Truth,
)
from skuld_py.model.names import LIFE, NAME, WIDE_NAME
from skuld_py.wire.rules import RULES
from skuld_py.wire.stream import FOREIGN, IS_SCALAR, NO_SCALAR, Fault, Reader, Writer, explain

Check = Callable[[Any], Any]
Read = Callable[[Reader], Any]
Write = Callable[[Any, Writer], Any]
ReadFields = Callable[[Reader, list[Any], int], Any]

LONGEST_NAME = 256
"""Longer than any grammar of names allows; so the names whose check is kept are short."""
NAMES_KEPT = 1_000
"""Names whose check is kept: most messages name one cluster, and a few nodes and queues."""
_FITS = {grammar: lru_cache(NAMES_KEPT)(grammar.fullmatch) for grammar in (NAME, WIDE_NAME, LIFE)}
SEVERAL = (Strings, Rows, Names)
EMPTY_COLUMN = Column()


# -- one value -------------------------------------------------------------------------------------


def _check_number(kind: Number) -> Check:
    low, high = kind.low, kind.high

    def check(value: Any) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        raise Fault(f"{_shown(value)} is no int in {low}..{high}")

    return check


def _check_truth(value: Any) -> Any:
    if type(value) is bool:
        return value
    raise Fault(f"{_shown(value)} is no bool")


def check_name(kind: Name) -> Check:
    """Checks a name by one of the grammars."""
    fits, is_optional = _FITS[LIFE if kind.is_life else WIDE_NAME if kind.is_wide else NAME], kind.is_optional

    def check(value: Any) -> Any:
        if type(value) is str and len(value) <= LONGEST_NAME and (fits(value) or (is_optional and not value)):
            return value
        raise Fault(f"{_shown(value)} is no name")

    return check


def _check_text(kind: Text) -> Check:
    chars_max = kind.chars_max

    def check(value: Any) -> Any:
        if type(value) is not str:
            raise Fault(f"{_shown(value)} is no string")
        if len(value) > chars_max:
            raise Fault(f"has {len(value)} characters, more than {chars_max}")
        return value

    return check


def _check_blob(unit: int, bytes_max: int) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not bytes:
            raise Fault(f"{_shown(value)} is no byte string")
        if len(value) > bytes_max:
            raise Fault(f"has {len(value)} bytes, more than {bytes_max}")
        if len(value) % unit:
            raise Fault(f"has {len(value)} bytes, no multiple of {unit}")
        return value

    return check


def _check_numbers(count_max: int, high: int) -> Check:
    check_blob = _check_blob(8, 8 * count_max)

    def check(value: Any) -> Any:
        if high == U63_MAX and check_blob(value)[::8].isascii():
            return value  # the common case, by the highest bits alone
        highest = max(unpack_u64(check_blob(value)), default=0)
        if highest > high:
            raise Fault(f"has {highest}, which is more than {high}")
        return value

    return check


def _check_eras(count_max: int, partitions: int) -> Check:
    check_blob = _check_blob(16, 16 * count_max)

    def check(value: Any) -> Any:
        numbers = unpack_u64(check_blob(value))
        if max(numbers[::2], default=0) >= partitions:
            raise Fault(f"has partition {max(numbers[::2])}, which is no int in 0..{partitions - 1}")
        if max(numbers[1::2], default=0) > U32_MAX:
            raise Fault(f"has era {max(numbers[1::2])}, which is more than {U32_MAX}")
        return value

    return check


def _shown(value: object) -> str:
    """The value that was found, for an error; of bytes, which may be a payload, only that they are bytes."""
    return "a byte string" if isinstance(value, bytes) else repr(value)[:80]


# -- several values --------------------------------------------------------------------------------


def _read_strings(kind: Strings) -> Read:
    check_lengths = _check_blob(4, 4 * kind.count_max)

    def read(reader: Reader) -> Column:
        if reader.array() != 2:
            raise Fault("is not [lengths, frame]")
        lengths = check_lengths(reader.scalar())
        data = reader.frame(reader.scalar())
        if not lengths and not data:
            return EMPTY_COLUMN
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


def _read_names(kind: Names) -> Read:
    check = check_name(Name(is_wide=True))
    return _read_several(lambda reader: check(reader.scalar()), kind.count_max)


def _write_rows(kind: Rows, version: int) -> Write:
    dump = dump_of(kind.of, version)

    def write(rows: tuple[Any, ...], writer: Writer) -> list[Any]:
        writer.items += len(rows)
        return [dump(row, writer) for row in rows]

    return write


def _write_names(names: tuple[str, ...], writer: Writer) -> tuple[str, ...]:
    writer.items += len(names)
    return names


def _write_column(column: Column, writer: Writer) -> tuple[bytes, int]:
    return writer.column(column)


# -- by kind ---------------------------------------------------------------------------------------


def _take_of(kind: Kind, partitions: int) -> Check | Read:
    """The check of a single value; for a kind of ``SEVERAL``, what reads it."""
    match kind:
        case Number():
            return _check_number(kind)
        case Partition():
            return _check_number(Number(0, partitions - 1))
        case Truth():
            return _check_truth
        case Name():
            return check_name(kind)
        case Text():
            return _check_text(kind)
        case Blob(unit, bytes_max):
            return _check_blob(unit, bytes_max)
        case Numbers(count_max, high):
            return _check_numbers(count_max, high)
        case Partitions(count_max):
            return _check_numbers(count_max, partitions - 1)
        case Eras(count_max):
            return _check_eras(count_max, partitions)
        case Strings():
            return _read_strings(kind)
        case Rows(of, count_max):
            return _read_several(record_of(of, partitions).read, count_max)
        case Names():
            return _read_names(kind)


def _write_of(kind: Kind, version: int) -> Write | None:
    """None when msgpack takes the value as it is."""
    match kind:
        case Strings():
            return _write_column
        case Rows():
            return _write_rows(kind, version)
        case Names():
            return _write_names
        case _:
            return None


# -- records ---------------------------------------------------------------------------------------


@attrs.frozen
class Record:
    """How one attrs class is read: an array of its fields, in the order of their declaration.

    ``read_fields`` reads so many fields, and appends to the list it is given as it goes, so that a caller knows
    what was read before a fault. ``least``: fields that always travel; late ones behind them do not while they
    have their defaults.
    """

    names: tuple[str, ...]
    least: int
    read_fields: ReadFields

    def read(self, reader: Reader) -> Any:
        """The next value, a record."""
        count = reader.array()
        self.check_count(count)
        return self.read_fields(reader, [], count)

    def check_count(self, count: int) -> None:
        """As many fields as there are, but for late ones."""
        if not self.least <= count <= len(self.names):
            raise Fault(f"has {count} fields, not {len(self.names)}")


def record_of(of: type, partitions: int) -> Record:
    """Compile a class, and the rows in it, for reading in clusters with this number of partitions. All fields that
    this program knows are read, whatever protocol the sender named: who leaves late ones off means their defaults.
    """
    names = tuple(field.name for field in attrs.fields(of))
    kinds: tuple[Kind, ...] = tuple(field.metadata["kind"] for field in attrs.fields(of))
    columns: tuple[str, ...] = getattr(of, "columns", ())
    units = [(name, at, _unit(kind))
             for at, (name, kind) in enumerate(zip(names, kinds, strict=True)) if name in columns]
    least = sum(not field.metadata["since"] for field in attrs.fields(of))
    return Record(names, least, _read_fields(of, names, kinds, units, partitions))


def dump_of(of: type, version: int) -> Write:
    """Compile what a class, and the rows in it, is written by for receivers of this protocol: without the fields
    that came later, and without late ones at the end that have their defaults."""
    known = [field for field in attrs.fields(of) if field.metadata["since"] <= version]
    vital = [(field.name, field.default) for field in attrs.fields(of)
             if field.metadata["since"] > version and field.metadata["is_vital"]]
    writes = [(at, write) for at, field in enumerate(known)
              if (write := _write_of(field.metadata["kind"], version)) is not None]
    late = [field.default for field in known if field.metadata["since"]]
    names = [field.name for field in known]
    dump = _dump_used(names, writes, late[::-1]) if late else _dump(names, writes)
    if getattr(of, "grew_with", 0) > version:
        dump = _dump_shrunk(dump, version)
    return _dump_unless(of.__name__, vital, dump, version) if vital else dump


def _dump_shrunk(dump: Write, version: int) -> Write:
    """The same without what stands in older fields, and who speaks this protocol would take for damage."""
    return lambda record, writer: dump(record.as_known_to(version), writer)


def _dump_unless(name: str, vital: Sequence[tuple[str, Any]], dump: Write, version: int) -> Write:
    """The same, but refused where a field that the receiver does not know says what must not get lost."""
    def dump_or_refuse(record: Any, writer: Writer) -> Any:
        for field, default in vital:
            if getattr(record, field) != default:
                raise unsupported(f"{name}.{field}", version)
        return dump(record, writer)

    return dump_or_refuse


def unsupported(what: str, version: int) -> Refused:
    """The receiver's protocol has no such message or field."""
    return Refused("unsupported", f"{what}: the receiver speaks protocol {version}, which has no such thing;"
                   " upgrade the cluster's nodes, then raise its rules ('skuld cluster rules')", protocol=version)


def _unit(kind: Kind) -> int:
    """The size of an item of a field, as ``len`` counts it."""
    if isinstance(kind, Numbers | Partitions):
        return 8
    return kind.unit if isinstance(kind, Blob) else 1


def _read_fields(of: type, names: Sequence[str], kinds: Sequence[Kind],
                 units: Sequence[tuple[str, int, int]], partitions: int) -> ReadFields:
    steps = [(isinstance(kind, SEVERAL), _take_of(kind, partitions)) for kind in kinds]
    rule = RULES.get(of.__name__)

    def read_fields(reader: Reader, values: list[Any], fields: int) -> Any:
        header, tell, unpack = reader.header, reader.tell, reader.unpack
        try:
            for is_several, take in steps if fields == len(steps) else steps[:fields]:
                if is_several:
                    values.append(take(reader))
                elif IS_SCALAR[header[tell()]]:
                    values.append(take(unpack()))
                else:
                    raise Fault(NO_SCALAR)
        except Fault as fault:
            raise fault.within("." + names[len(values)]) from None
        except FOREIGN as problem:
            raise explain(problem).within("." + names[len(values)]) from None
        if units:
            _check_counts(units, values)
        record = of(*values)
        if rule is not None:
            rule(record)
        return record

    return read_fields


def _check_counts(units: Sequence[tuple[str, int, int]], values: Sequence[Any]) -> None:
    """Fields of equal counts, each by name, place and size of one item."""
    first, first_at, first_unit = units[0]
    count = len(values[first_at]) // first_unit
    for name, at, unit in units:
        if len(values[at]) // unit != count:
            raise Fault(f"lists {len(values[at]) // unit}, but {first} lists {count}", "." + name)


def _dump(names: Sequence[str], writes: Sequence[tuple[int, Write]]) -> Write:
    get = attrgetter(*names)

    def dump(record: Any, writer: Writer) -> Sequence[Any]:
        values = [get(record)] if len(names) == 1 else list(get(record))
        for at, write in writes:
            values[at] = write(values[at], writer)
        return values

    return dump


def _dump_used(names: Sequence[str], writes: Sequence[tuple[int, Write]], defaults: Sequence[Any]) -> Write:
    """The same but for the last fields, from the end on, that have these values."""
    get = attrgetter(*names)

    def dump(record: Any, writer: Writer) -> Sequence[Any]:
        values = list(get(record))
        for default in defaults:
            if values[-1] != default:
                break
            values.pop()
        for at, write in writes:
            if at < len(values):
                values[at] = write(values[at], writer)
        return values

    return dump
