"""A task's body: what was enqueued. Immutable; the same id with another body is a conflict.

Record: ``header length u16 | header | payload``. The header holds what decides order (queue, priority) and is
shared by all tasks of a batch, so it is checked once per batch.
"""

from __future__ import annotations

import struct

import attrs

HEADER = struct.Struct(">iB")
PRIORITY_MIN, PRIORITY_MAX = -(1 << 31), (1 << 31) - 1


@attrs.frozen
class Header:
    """What decides a task's place: ``queue``, and ``priority`` (i32, higher first)."""

    queue: str
    priority: int = 0

    def encode(self) -> bytes:
        """The canonical bytes."""
        queue = self.queue.encode()
        return HEADER.pack(self.priority, len(queue)) + queue

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Parse; raises ``ValueError`` on anything that ``encode`` does not give."""
        if len(raw) < HEADER.size:
            raise ValueError("header is too short")
        priority, size = HEADER.unpack_from(raw)
        if len(raw) != HEADER.size + size:
            raise ValueError("header has a wrong length")
        return cls(raw[HEADER.size :].decode("ascii"), priority)


def encode_body(header: bytes, payload: bytes) -> bytes:
    """The body record."""
    return len(header).to_bytes(2, "big") + header + payload


def decode_body(record: bytes) -> tuple[Header, bytes]:
    """Header and payload of a body record."""
    size = int.from_bytes(record[:2], "big")
    return Header.decode(record[2 : 2 + size]), record[2 + size :]
