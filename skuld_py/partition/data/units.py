"""Units: the pieces in which two replicas compare, ask for and send what they hold.

The key of a unit is a task's id (20 bytes: its body and history), or id, token and block (32 bytes: up to
256 log entries of one token). So a log of any length travels in pieces of bounded size, and one entry
more does not send the whole log again.

Reading stops where a message would be full: at a number of units, of records, or of bytes. Between the
leaves that were chosen it seeks, so what it costs follows what is read and not what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import xor

import attrs

from skuld_py.config import Limits
from skuld_py.errors import Malformed
from skuld_py.model.ids import ID_BYTES, time_of
from skuld_py.model.store import Store
from skuld_py.partition.data import merkle
from skuld_py.partition.data.records import TABLES, Record, records
from skuld_py.partition.data.tables import end_of

BLOCK_BITS = 8
BLOCK_KEY_BYTES = ID_BYTES + 12
RECORDS_PER_ROW = 4
"""Records that a page may read for each unit that it may hold; a block counts up to 256."""
READ_AHEAD = 16
"""Units read together: enough to spare most look-ups their cost, few enough if each is a megabyte."""
_TIME_END = 1 << 64


def unit_of(key: bytes) -> bytes:
    """The unit that a record belongs to."""
    if len(key) == ID_BYTES:
        return key
    return key[:-4] + (int.from_bytes(key[-4:], "big") >> BLOCK_BITS).to_bytes(4, "big")


def bounds_of(unit: bytes) -> tuple[bytes, bytes]:
    """The keys of a unit's records: first, and just behind the last."""
    if len(unit) == ID_BYTES:
        return unit, unit + b"\0"
    first = int.from_bytes(unit[-4:], "big") << BLOCK_BITS
    last = first | (1 << BLOCK_BITS) - 1
    return unit[:-4] + first.to_bytes(4, "big"), unit[:-4] + last.to_bytes(4, "big") + b"\0"


def check_units(field: str, units: Sequence[bytes], after: bytes = b"", upto: bytes = b"") -> None:
    """Check that a peer's units and bounds are well-formed, and rise from ``after`` to ``upto``; else
    ``Malformed``."""
    last = b""
    for unit in [after] * bool(after) + list(units):
        if unit <= last or not _is_unit(unit):
            raise Malformed(field, "is no rising list of units")
        last = unit
    if upto and (upto < last or upto <= after or not _is_unit(upto)):
        raise Malformed(field, "goes beyond its end")


def _is_unit(key: bytes) -> bool:
    return len(key) == ID_BYTES or (len(key) == BLOCK_KEY_BYTES and not key[-4])


@attrs.define
class Page:
    """Digests of units in order; complete up to ``upto``, or to the end when that is empty."""

    digests: dict[bytes, int]
    upto: bytes


def read_page(store: Store, prefix: bytes, leaves: int, after: bytes, upto: bytes, limits: Limits) -> Page:
    """Digests of the units of some leaves in ``after < unit <= upto`` (empty: from the start, to the end)."""
    start = bounds_of(after)[1] if after else b""
    stop = bounds_of(upto)[1] if upto else end_of(b"")
    page = Page({}, upto)
    count = size = 0
    last = b""
    chosen = _selected(store, prefix, leaves, start, stop)
    for unit, group in groupby(chosen, lambda record: unit_of(record[0])):
        if (len(page.digests) >= limits.page_rows or count >= RECORDS_PER_ROW * limits.page_rows
                or size >= limits.page_bytes):
            page.upto = last
            break
        digest = 0
        for key, _, value in group:
            digest ^= merkle.digest_of(prefix + key, value)
            count += 1
            size += len(key) + len(value)
        page.digests[unit] = digest
        last = unit
    return page


def _selected(store: Store, prefix: bytes, leaves: int, start: bytes, stop: bytes) -> Iterator[Record]:
    """Records of the chosen leaves. What lies between them is jumped over, one seek for each stretch."""
    while True:
        first = min((key for rank in range(len(TABLES)) for key, _, _ in _first(store, rank, prefix, start, stop)),
                    default=None)
        if first is None:
            return
        low, high = merkle.next_stretch(leaves, time_of(first))
        if low >= _TIME_END:
            return
        begin = max(start, low.to_bytes(8, "big"))
        end = min(stop, high.to_bytes(8, "big")) if high < _TIME_END else stop
        yield from records(store, prefix, begin, end)
        start = end
        if start >= stop:
            return


def _first(store: Store, rank: int, prefix: bytes, start: bytes, stop: bytes) -> list[Record]:
    return [(key[2:], rank, value) for key, value in store.scan(TABLES[rank], prefix + start, prefix + stop, 1)]


@attrs.frozen
class Unit:
    """A unit's records and their digest; no records have the digest 0."""

    key: bytes
    records: Sequence[Record]
    digest: int

    @property
    def size(self) -> int:
        """Bytes of its records; those of notes are all key."""
        return sum(len(key) + len(value) for key, _, value in self.records)


def read_units(store: Store, prefix: bytes, keys: Sequence[bytes]) -> Iterator[Unit]:
    """All of these units, in order; a few are read ahead, so write to the store only after the last was taken."""
    for first in range(0, len(keys), READ_AHEAD):
        chunk = keys[first : first + READ_AHEAD]
        tasks = [prefix + key for key in chunk if len(key) == ID_BYTES]
        found = [store.get_many(table, tasks) if tasks else {} for table in TABLES[:2]]
        for key in chunk:
            if len(key) == ID_BYTES:
                read = [(key, rank, rows[prefix + key]) for rank, rows in enumerate(found) if prefix + key in rows]
            else:
                read = list(records(store, prefix, *bounds_of(key)))
            digests = [merkle.digest_of(prefix + name, value) for name, _, value in read]
            yield Unit(key, read, reduce(xor, digests, 0))
