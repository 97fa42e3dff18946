"""What of a feeder outlives its claim: how far it has drawn, which roots are under way, what it has decided.

A *batch* is roots that were drawn together: its first number, how many, the time in their ids, where in the source
they begin, and a bit for each that is done. It is durable before the first of its roots is enqueued, so any later
life enqueues the same ids. A *decision* is the token whose children a segment has, where more than one claim could
have completed it. It is durable before the first of them is enqueued, and dropped when all of them are stored:
from then on they show it.

Invariant: it fits a task's checkpoint, 64 KiB, whatever the feeder does: ``Book.room`` is asked before a
batch is added, and ``DECISIONS_MAX`` bounds the decisions.

Where the source goes on behind all batches is its own business: a *cursor*, a few bytes that it gives with each
batch and gets with each draw. A batch begins in one of its parts, at an offset; so a batch can be drawn again.

Form: ``skF 01 | is_drained u8 | next u64 | completed u64 | 0 u64 | batches u16 | decisions u16 | size u16 |
cursor`` of that size, then for each batch ``first u64 | count u16 | time_ms u64 | part u16 | offset u64 | bits``,
and for each decision ``segment | token u64``. Where there is 0, earlier releases count roots that ended without
segments that were dead, and there are none.
"""

from __future__ import annotations

import struct

import attrs

from skuld_py.errors import Malformed
from skuld_py.model.ids import ID_BYTES

BATCH_MAX = 1_000
"""Roots that are drawn together."""
BATCHES_MAX = 1_000
WINDOW_MAX = 100_000
"""Roots of all batches that are not done as a whole."""
DECISIONS_MAX, DECISIONS_SPARE = 512, 100
"""Spare ones are for the oldest root, so that those of others never keep it from coming to its end."""
CURSOR_BYTES_MAX = 4_096
PARTS_MAX = 1 << 16
_HEAD = struct.Struct(">4sBQQQHHH")
_BATCH = struct.Struct(">QHQHQ")
_DECISION = struct.Struct(f">{ID_BYTES}sQ")
_MAGIC = b"skF\x01"


@attrs.define
class Batch:
    """Roots drawn together, from an offset of a part of the source on. ``done``: a bit for each, of which ``left``
    are 0."""

    first: int
    count: int
    time_ms: int
    done: int = 0
    part: int = 0
    offset: int = 0
    left: int = attrs.field(default=attrs.Factory(
        lambda self: self.count - self.done.bit_count(), takes_self=True))

    def undone(self) -> list[int]:
        """The numbers of those that are not done."""
        return [self.first + index for index in range(self.count) if not self.done >> index & 1]

    def finish(self, number: int) -> None:
        """One is done, which was not."""
        self.done |= 1 << number - self.first
        self.left -= 1


@attrs.define
class Book:
    """All that outlives a feeder. ``next``: the number of the first root that was never drawn. ``batches`` by
    their first numbers, which rise. ``completed`` counts roots that are done. ``cursor``: where the source goes
    on."""

    next: int = 0
    is_drained: bool = False
    completed: int = 0
    cursor: bytes = b""
    batches: dict[int, Batch] = attrs.field(factory=dict)
    decisions: dict[bytes, int] = attrs.field(factory=dict)
    window: int = attrs.field(default=attrs.Factory(
        lambda self: sum(batch.count for batch in self.batches.values()), takes_self=True))

    @property
    def room(self) -> int:
        """How many roots may be drawn, by what a checkpoint holds."""
        return min(BATCH_MAX, WINDOW_MAX - self.window) if len(self.batches) < BATCHES_MAX else 0

    @property
    def pending(self) -> int:
        """How many roots were drawn and are not done."""
        return self.next - self.completed

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to draw or to follow."""
        return self.is_drained and not self.batches

    def add(self, count: int, time_ms: int, part: int = 0, offset: int = 0) -> Batch:
        """The next roots, drawn."""
        batch = self.batches[self.next] = Batch(self.next, count, time_ms, part=part, offset=offset)
        self.next += count
        self.window += count
        return batch

    def finish(self, batch: Batch, number: int) -> None:
        """A root is done."""
        batch.finish(number)
        self.completed += 1
        if not batch.left:
            del self.batches[batch.first]
            self.window -= batch.count

    def encode(self) -> bytes:
        """As a checkpoint."""
        head = _HEAD.pack(_MAGIC, self.is_drained, self.next, self.completed, 0, len(self.batches),
                          len(self.decisions), len(self.cursor)) + self.cursor
        batches = [_BATCH.pack(batch.first, batch.count, batch.time_ms, batch.part, batch.offset)
                   + batch.done.to_bytes(-(-batch.count // 8), "big") for batch in self.batches.values()]
        return b"".join((head, *batches, *(_DECISION.pack(*each) for each in self.decisions.items())))

    @classmethod
    def decode(cls, data: object) -> Book:
        """Of a checkpoint, None for none; anything else is ``Malformed``."""
        if data is None:
            return cls()
        if not isinstance(data, bytes) or len(data) < _HEAD.size or not data.startswith(_MAGIC):
            raise Malformed("checkpoint", "it is no feeder's")
        _, is_drained, next_, completed, zero, batches, decisions, size = _HEAD.unpack_from(data)
        if (is_drained > 1 or zero or batches > BATCHES_MAX or decisions > DECISIONS_MAX + DECISIONS_SPARE
                or size > CURSOR_BYTES_MAX):
            raise Malformed("checkpoint", "a number is out of its range")
        cursor = data[_HEAD.size : _HEAD.size + size]
        found, at = _batches(data, _HEAD.size + size, batches, next_)
        if len(data) != at + decisions * _DECISION.size:
            raise Malformed("checkpoint", "its length does not fit")
        decided = dict(_DECISION.unpack_from(data, at + index * _DECISION.size) for index in range(decisions))
        return cls(next_, bool(is_drained), completed, cursor, found, decided)


def _batches(data: bytes, at: int, count: int, end: int) -> tuple[dict[int, Batch], int]:
    """The batches, which rise up to ``end``, and where what follows them begins."""
    found, least = dict[int, Batch](), 0
    for _ in range(count):
        if at + _BATCH.size > len(data):
            raise Malformed("checkpoint", "it is cut short")
        first, roots, time_ms, part, offset = _BATCH.unpack_from(data, at)
        at += _BATCH.size
        bits = int.from_bytes(data[at : at + -(-roots // 8)], "big")
        at += -(-roots // 8)
        if not least <= first <= first + roots <= end or not 0 < roots <= BATCH_MAX or bits >> roots:
            raise Malformed("checkpoint", "its batches do not fit")
        found[first], least = Batch(first, roots, time_ms, bits, part, offset), first + roots
    return found, at


def roots_said(book: Book) -> str:
    """How far a feeder is, in words."""
    if book.is_drained and not book.next:
        return "no roots: the source is empty"
    end = ", and the source has no more" if book.is_drained else ""
    roots = f"{book.next:,} root" + "s" * (book.next != 1)
    return f"{roots} drawn, {book.completed:,} complete, {book.pending:,} under way{end}"
