"""Task ids: 160 bits, k-ordered, made by the client before it enqueues.

Layout, big-endian: ``time_ms u64 | lane bit, seq 31 | nonce u32 | route u32``. Ids sort by time, so the
oldest task of a priority is the smallest key; the nonce tells processes apart; the route alone
decides the partition (``route & (partitions - 1)``), so a batch can be sent to one cohort.

Tasks with an ordering key have the lane bit, and the route is a hash of queue and key. So all of a key are in one
partition, and its order needs no table of keys. Keys of equal route are told apart there, by 32 more bits of the
hash (``lane_tag``), which follow from the body: an id has no room for them.

A task with a unique name has an id made of the name (``named_id``), from any node the same, so a second call for
the name asks for the same task, without a lock. Its time is the beginning of the name's window; the body tells how
old the task is. With a key its route is that of the key, so a name is of one key.

Text form is base32hex without padding, 32 characters, which sorts like the bytes.

Invariant of ``IdMint``: ids of one mint rise strictly, laned ones and others each among themselves,
whatever the clock does, and start above ``floor_ms``, the highest id time the cluster has seen, so they
also rise over restarts.

Source: the Flake ids of Skuld's README ("160-bit Flake ID"). Its host hash and pid are replaced
by the nonce and the route: the first leaked hardware addresses, the second gave no placement.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Sequence
from functools import lru_cache

from skuld_py.errors import Malformed, Refused
from skuld_py.model import columns

ID_BYTES = 20
TEXT_CHARS = 32
NAMED_MAX = 5
SEQ_END = 1 << 31
LANE = 1 << 31
TIME_END = 1 << 63
TAG_BYTES = 4
_DIGITS = bytes(b"0123456789abcdefghijklmnopqrstuv"[number & 31] for number in range(256))
_HALVINGS = ((20, 12, b"\0\0\0\0\0\x0f\xff\xff"), (10, 6, b"\0\0\x03\xff"), (5, 3, b"\0\x1f"))
"""How 40 bits come apart into eight times 5: how many bits each half has, by how much the upper one moves, and
the lower half of each."""
_TAIL = struct.Struct(">II")


class TaskId(bytes):
    """20 bytes; prints as its text form. ``is_duplicate``: whether an enqueue found the task there already;
    ``copies``: on how many disks it was when the enqueue was answered, 0 for an id that no enqueue gave."""

    is_duplicate = False
    copies = 0

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"TaskId({to_text(self)!r})"


class DuplicateId(TaskId):
    """The id of a task that was there already, by its unique name."""

    is_duplicate = True


class IdMint:
    """Makes ids. Time, nonce and route come from outside: the same calls give the same ids."""

    def __init__(self, nonce: int, floor_ms: int = 0) -> None:
        self._nonce = nonce
        self._time_ms = floor_ms
        self._seq = -1 if not floor_ms else SEQ_END - 1

    @property
    def time_ms(self) -> int:
        """The time of its newest id; the next one is not older."""
        return self._time_ms

    def raise_floor(self, floor_ms: int) -> None:
        """Make every later id newer than ``floor_ms``."""
        if floor_ms > self._time_ms:
            self._time_ms, self._seq = floor_ms, SEQ_END - 1

    def mint(self, now_ms: int, count: int, route: int, is_laned: bool = False) -> list[bytes]:
        """``count`` rising ids of one route (u32), laned or not. They are taken before anything is called: a
        signal's handler, which may take some too, can run only in a call."""
        if now_ms > self._time_ms:
            self._time_ms, self._seq = now_ms, -1
        if self._seq + count >= SEQ_END:
            self._time_ms, self._seq = self._time_ms + 1, -1
        first = self._seq + 1 + (LANE if is_laned else 0)
        self._seq += count
        time_ms = self._time_ms
        tail = _TAIL.pack(self._nonce, route)
        head = time_ms.to_bytes(8, "big")
        return columns.wrap(columns.split(struct.pack(f">{count}I", *range(first, first + count)), 4), head, tail)


def time_of(task_id: bytes) -> int:
    """Milliseconds since 1970 at which the id was made."""
    return int.from_bytes(task_id[:8], "big")


def newest_ms(blob: bytes) -> int:
    """The time of the newest of a column of ids."""
    return time_of(max(split(blob)))


def partition_of(task_id: bytes, partitions: int) -> int:
    """The partition of an id; ``partitions`` is a power of two."""
    return int.from_bytes(task_id[16:20], "big") & (partitions - 1)


def route_of(task_id: bytes) -> int:
    """The route of an id, u32."""
    return int.from_bytes(task_id[16:20], "big")


def lane_route(queue: str, key: str) -> int:
    """The route that tasks of an ordering key have."""
    return int.from_bytes(_hash(queue, key)[:4], "big")


def lane_tag(queue: str, key: str) -> bytes:
    """32 bits that tell an ordering key from others whose tasks have the same route."""
    return _hash(queue, key)[4 : 4 + TAG_BYTES]


def is_laned(task_id: bytes) -> bool:
    """Whether its task has an ordering key."""
    return task_id[8] >= 0x80


def any_laned(blob: bytes) -> bool:
    """Whether any id of a column is laned, seen in one stride over it."""
    return max(blob[8::ID_BYTES], default=0) >= 0x80


def named_id(queue: str, name: str, slot_ms: int, key: str) -> bytes:
    """The id of a task with a unique name, in the window that begins at ``slot_ms``; ``key`` may be empty."""
    digest = _hash(queue, name, str(slot_ms), key)
    seq = int.from_bytes(digest[:4], "big") | LANE if key else int.from_bytes(digest[:4], "big") & ~LANE
    route = lane_route(queue, key).to_bytes(4, "big") if key else digest[8:12]
    return slot_ms.to_bytes(8, "big") + seq.to_bytes(4, "big") + digest[4:8] + route


def _hash(*parts: str) -> bytes:
    """Of texts; their lengths are hashed too, so that none can be read as two."""
    data = b"".join(len(raw).to_bytes(2, "big") + raw for raw in (part.encode() for part in parts))
    return hashlib.blake2b(data, digest_size=12).digest()


def split(blob: bytes) -> list[bytes]:
    """A column of ids back into ids; raises ``Malformed`` unless its length is a multiple of an id's."""
    if len(blob) in (0, ID_BYTES):
        return [blob] if blob else []
    if len(blob) % ID_BYTES:
        raise Malformed("ids", f"{len(blob)} bytes are no whole number of ids of {ID_BYTES}")
    return columns.split(blob, ID_BYTES)


def partitions_of(blob: bytes, partitions: int) -> Sequence[int]:
    """The partition of each id of a column, from a stride or two over it; there are at most 2^16 partitions."""
    mask, low = partitions - 1, blob[ID_BYTES - 1 :: ID_BYTES]
    if mask <= 0xFF:
        return low.translate(_masked(mask))
    return [(high << 8 | each) & mask for high, each in zip(blob[ID_BYTES - 2 :: ID_BYTES], low, strict=True)]


def group(blob: bytes, partitions: int) -> dict[int, Sequence[int]]:
    """Indexes of a column of ids by partition; a batch of one partition, the common case, is seen as such."""
    numbers = partitions_of(blob, partitions)
    if numbers and numbers.count(numbers[0]) == len(numbers):
        return {numbers[0]: range(len(numbers))}
    groups: dict[int, list[int]] = {}
    for index, partition in enumerate(numbers):
        groups.setdefault(partition, []).append(index)
    return dict(groups)


def by_partition(task_ids: Sequence[bytes], partitions: int) -> dict[int, list[bytes]]:
    """Ids by partition, each in their order."""
    return {partition: [task_ids[index] for index in indexes]
            for partition, indexes in group(b"".join(task_ids), partitions).items()}


@lru_cache(8)
def _masked(mask: int) -> bytes:
    return bytes(number & mask for number in range(256))


def to_text(task_id: bytes) -> str:
    """32 characters of base32hex, lower case."""
    return base64.b32hexencode(task_id).decode().lower()


def to_texts(blob: bytes) -> list[str]:
    """The same of a column of ids, in a few passes over one long number: an eighth of the time."""
    groups = len(split(blob)) * (ID_BYTES // 5)
    spread = bytearray(8 * groups)
    for at in range(5):
        spread[3 + at :: 8] = blob[at::5]
    bits = int.from_bytes(spread, "big")
    for size, shift, lower in _HALVINGS:
        mask = int.from_bytes(lower * (8 * groups // len(lower)), "big")
        bits = (bits & mask) | (bits & mask << size) << shift
    texts = bits.to_bytes(8 * groups, "big").translate(_DIGITS).decode()
    return [texts[start : start + TEXT_CHARS] for start in range(0, len(texts), TEXT_CHARS)]


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


def none_said(task_ids: Sequence[bytes], field: str = "ids") -> str:
    """That there are no such tasks: of all verbs in the same words. The first ``NAMED_MAX`` are named."""
    listed = ", ".join(map(to_text, task_ids[:NAMED_MAX]))
    more = f" and {len(task_ids) - NAMED_MAX:,} more" if len(task_ids) > NAMED_MAX else ""
    was, be = ("it was", "is") if len(task_ids) == 1 else ("they were", "are")
    return f"{field}: no task {listed}{more}: {was} never enqueued, or {be} collected"
