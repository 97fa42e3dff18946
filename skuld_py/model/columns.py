"""Columns: many byte strings as two, so that a batch costs a message and not a loop.

A ``Column`` is the lengths (u32 each, big-endian) and the concatenation. Lengths travel inside the
message, the data as a raw frame of its own, never inside msgpack.

Strings of one length are cut out of a text, and prefixes are put before them, by one call for all of them: a
Python loop over a batch costs three times as much, and the strings themselves are most of the rest.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

import attrs

from skuld_py.errors import Malformed

T = TypeVar("T")


@attrs.frozen
class Column:
    """``len(self)`` byte strings; ``unpack`` gives them back."""

    lengths: bytes = b""
    data: bytes = b""

    def __len__(self) -> int:
        return len(self.lengths) // 4

    def unpack(self, field: str = "column") -> list[bytes]:
        """The strings; raises ``Malformed`` when the lengths do not add up to the data."""
        lengths = struct.unpack(f">{len(self)}I", self.lengths)
        if lengths and lengths.count(lengths[0]) == len(lengths) and lengths[0] * len(lengths) == len(self.data):
            return _cut(self.data, lengths[0], len(lengths)) if len(lengths) > 1 else [self.data]
        ends = list(accumulate(lengths, initial=0))
        if ends[-1] != len(self.data):
            raise Malformed(field, f"lengths add up to {ends[-1]} bytes, not to {len(self.data)}")
        data = self.data
        return [data[start:end] for start, end in pairwise(ends)]


def pack(values: Sequence[bytes]) -> Column:
    """Values as a column."""
    return Column(struct.pack(f">{len(values)}I", *map(len, values)), b"".join(values))


def split(blob: bytes, size: int) -> list[bytes]:
    """The strings of ``size`` bytes each that a text is made of; raises ``Malformed`` when it is not."""
    if len(blob) % size:
        raise Malformed("column", f"{len(blob)} bytes are no whole number of strings of {size}")
    return _cut(blob, size, len(blob) // size)


def wrap(values: Sequence[bytes], before: bytes = b"", after: bytes = b"") -> list[bytes]:
    """Each of the values, which must all be of one length, between two others."""
    if len(values) < 2:
        return [before + value + after for value in values]
    return split(before + (after + before).join(values) + after, len(before) + len(values[0]) + len(after))


def pick(values: Sequence[T], indexes: Sequence[int]) -> Sequence[T]:
    """The values at rising indexes; most often these are all."""
    return values if len(indexes) == len(values) else [values[index] for index in indexes]


def fitting(sizes: Iterable[int], room: int) -> int:
    """How many of the first sizes sum up to at most ``room``; at least one, if there is any."""
    sums = list(accumulate(sizes))
    return bisect_right(sums, room) or min(1, len(sums))


def _cut(blob: bytes, size: int, count: int) -> list[bytes]:
    """Cut without the cache of formats: they come from outside, and to make one takes half as long as to use
    it."""
    return list(struct.Struct(f"{size}s" * count).unpack(blob))


def xor(one: bytes, other: bytes) -> bytes:
    """The bits in which two texts of one length differ."""
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


def pack_u64(values: Sequence[int]) -> bytes:
    """Numbers as 8 bytes each."""
    return struct.pack(f">{len(values)}Q", *values)


def unpack_u64(blob: bytes) -> tuple[int, ...]:
    """The numbers of ``pack_u64``."""
    return struct.unpack(f">{len(blob) // 8}Q", blob)
