"""What a worker tells the feeder of the segments that it has completed: hints, in columns, many in a task.

A *sure* segment's holder emits by itself (``segments.is_sole``), and tells its ack. An *unsure* one is left to the
feeder. Losing, repeating or reordering them harms nothing; they may even come before what is emitted is enqueued.

Form: ``skA 01 | sure u32 | unsure u32 | sure roots | sure segments | acks u64 | unsure roots | unsure segments``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import attrs

from skuld_py.errors import Malformed, Refused
from skuld_py.model.columns import split
from skuld_py.model.ids import ID_BYTES

ACKS_MAX = 10_000
"""Segments that one message tells of."""
_HEAD = b"skA\x01"
_COUNTS = struct.Struct(">II")
_SURE, _UNSURE = 2 * ID_BYTES + 8, 2 * ID_BYTES
Ack = tuple[bytes, bytes, int]
"""Root, segment, and its ack."""
Hint = tuple[bytes, bytes]
"""Root and segment."""


@attrs.frozen
class Acks:
    """Acks of sure segments, and which others ended."""

    sure: tuple[Ack, ...] = ()
    unsure: tuple[Hint, ...] = ()

    def encode(self) -> bytes:
        """As a task's payload; ``Refused`` when there are too many."""
        count = len(self.sure) + len(self.unsure)
        if count > ACKS_MAX:
            raise Refused("too_many_acks", f"acks: {count} in one message, the limit is {ACKS_MAX}; send several",
                          field="acks")
        return b"".join((_HEAD, _COUNTS.pack(len(self.sure), len(self.unsure)),
                         *(root for root, _, _ in self.sure), *(segment for _, segment, _ in self.sure),
                         struct.pack(f">{len(self.sure)}Q", *(ack for _, _, ack in self.sure)),
                         *(root for root, _ in self.unsure), *(segment for _, segment in self.unsure)))

    @classmethod
    def decode(cls, data: bytes) -> Acks:
        """Of a payload; anything else is ``Malformed``."""
        if not data.startswith(_HEAD) or len(data) < len(_HEAD) + _COUNTS.size:
            raise Malformed("acks", "they are none")
        sure, unsure = _COUNTS.unpack_from(data, len(_HEAD))
        rest = data[len(_HEAD) + _COUNTS.size :]
        if sure + unsure > ACKS_MAX or len(rest) != sure * _SURE + unsure * _UNSURE:
            raise Malformed("acks", "their counts do not fit")
        parts = _cut(rest, (sure * ID_BYTES, sure * ID_BYTES, sure * 8, unsure * ID_BYTES, unsure * ID_BYTES))
        roots, segments, acks, others, ended = parts
        return cls(tuple(zip(split(roots, ID_BYTES), split(segments, ID_BYTES), struct.unpack(f">{sure}Q", acks),
                             strict=True)),
                   tuple(zip(split(others, ID_BYTES), split(ended, ID_BYTES), strict=True)))


def _cut(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
