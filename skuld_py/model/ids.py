"""Task ids: 160 bits, k-ordered, made by whoever enqueues, before the enqueue.

Layout, big-endian: ``time_ms u64 | seq u32 | nonce u32 | route u32``. Ids sort by time, so the
oldest task of a priority is the smallest key; the nonce tells processes apart; the route alone
decides the partition (``route & (partitions - 1)``), so a batch can be sent to one cohort.

Text form is base32hex without padding, 32 characters, which sorts like the bytes.

Invariant of ``IdMint``: ids of one mint rise strictly, whatever the clock does, and start above
``floor_ms``, the highest id time the cluster has seen, so they also rise over restarts.

Source: the Flake ids of Skuld's README ("160-bit Flake ID"). Its host hash and pid are replaced
by the nonce and the route: the first leaked hardware addresses, the second gave no placement.
"""

from __future__ import annotations

import base64
import struct

from skuld_py.errors import Malformed, Refused

ID_BYTES = 20
TEXT_CHARS = 32
SEQ_END = 1 << 32
TIME_END = 1 << 63
_TAIL = struct.Struct(">II")


class TaskId(bytes):
    """20 bytes; prints as its text form."""

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"TaskId({to_text(self)!r})"


class IdMint:
    """Makes ids; time, nonce and route come from outside, so that it stays a function of history."""

    def __init__(self, nonce: int, floor_ms: int = 0) -> None:
        self._nonce = nonce
        self._time_ms = floor_ms
        self._seq = -1 if not floor_ms else SEQ_END - 1

    def raise_floor(self, floor_ms: int) -> None:
        """Make every later id newer than ``floor_ms``."""
        if floor_ms > self._time_ms:
            self._time_ms, self._seq = floor_ms, SEQ_END - 1

    def mint(self, now_ms: int, count: int, route: int) -> list[bytes]:
        """``count`` ids, rising, of one route (u32)."""
        if now_ms > self._time_ms:
            self._time_ms, self._seq = now_ms, -1
        if self._seq + count >= SEQ_END:
            self._time_ms, self._seq = self._time_ms + 1, -1
        first = self._seq + 1
        self._seq += count
        tail = _TAIL.pack(self._nonce, route)
        head = self._time_ms.to_bytes(8, "big")
        return [head + seq.to_bytes(4, "big") + tail for seq in range(first, first + count)]


def time_of(task_id: bytes) -> int:
    """Milliseconds since 1970 at which the id was made."""
    return int.from_bytes(task_id[:8], "big")


def partition_of(task_id: bytes, partitions: int) -> int:
    """The partition of an id; ``partitions`` is a power of two."""
    return int.from_bytes(task_id[16:20], "big") & (partitions - 1)


def split(blob: bytes) -> list[bytes]:
    """A column of ids back into ids; raises ``Malformed`` unless its length is a multiple of an id's."""
    count, rest = divmod(len(blob), ID_BYTES)
    if rest:
        raise Malformed("ids", f"{len(blob)} bytes are no whole number of ids of {ID_BYTES}")
    return list(struct.unpack(f"{ID_BYTES}s" * count, blob))


def is_of_one_route(blob: bytes) -> bool:
    """Whether all ids of a column have the same route, seen in four strides over it."""
    count = len(blob) // ID_BYTES
    return all(blob[at::ID_BYTES] == blob[at : at + 1] * count for at in range(16, ID_BYTES))


def to_text(task_id: bytes) -> str:
    """32 characters of base32hex, lower case."""
    return base64.b32hexencode(task_id).decode().lower()


def from_text(text: str) -> TaskId:
    """Parse the text form; raises ``Refused`` that says what an id looks like."""
    try:
        raw = base64.b32hexdecode(text.upper())
    except ValueError:
        raw = b""
    if len(text) != TEXT_CHARS or len(raw) != ID_BYTES:
        raise Refused("bad_id", f"id: {text[:64]!r} is not a task id; one has {TEXT_CHARS} characters"
                      " of 0-9 and a-v, as enqueue printed it")
    return TaskId(raw)
