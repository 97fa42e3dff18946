"""Columns: many byte strings as two, so that a batch costs a message and not a loop.

A ``Column`` is the lengths (u32 each, big-endian) and the concatenation. Lengths travel inside the
message, the data as a raw frame of its own, never inside msgpack.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

import attrs

from skuld_py.errors import Malformed


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
        ends = list(accumulate(lengths, initial=0))
        if ends[-1] != len(self.data):
            raise Malformed(field, f"lengths add up to {ends[-1]} bytes, not to {len(self.data)}")
        data = self.data
        return [data[start:end] for start, end in pairwise(ends)]


def pack(values: Sequence[bytes]) -> Column:
    """Values as a column."""
    return Column(struct.pack(f">{len(values)}I", *map(len, values)), b"".join(values))


def pack_u64(values: Sequence[int]) -> bytes:
    """Numbers as 8 bytes each."""
    return struct.pack(f">{len(values)}Q", *values)


def unpack_u64(blob: bytes) -> tuple[int, ...]:
    """The numbers of ``pack_u64``."""
    return struct.unpack(f">{len(blob) // 8}Q", blob)
