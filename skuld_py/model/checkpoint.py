"""A task's checkpoint: one slot, in which the newest claim's newest word stands of how far the task is.

Record: ``token u64 | number u32 | at_ms u64 | data``. It is kept as a log entry under a token and a number that no
claim and no note has (``SLOT``). So it is compared, exchanged, handed over and dropped with its task as the rest
of a log is, and counts into the same digests. But it stands in front of the log, and what cuts a log leaves it.

Law: the slot is a maximum, by token, number, time and data, in this order. Records are big-endian, so the larger
record is the larger checkpoint, and a join compares two byte strings. A later claim's checkpoint stands over an
earlier one's, and within a claim the higher number. A holder binds a number to its data: a copy refuses another
one (``partition.data.checkpoints``), and if two copies have heard two things all the same, they agree on one.

Rejected: a slot for each claim (a task that is claimed a thousand times would keep a thousand); entries of the log
(the oldest are cut, and a reader has to look through all of them); a place in the history, which the hot path
reads and patches; the newest by the clock, for clocks differ and a zombie's may be ahead.
"""

from __future__ import annotations

import struct
from typing import Any

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model.bounds import MOMENT_MS_MAX, U63_MAX
from skuld_py.model.history import TOKEN_COUNTER_BITS

SLOT = (0, 0)
"""Token and number under which it is kept. Notes have the tokens from 1 on, and claims those from 2^32 on."""
BYTES_MAX = DEFAULT_LIMITS.entry_bytes
"""64 KiB, as a log entry: it is written once a second to all copies, and shown by each read of its task. What is
larger is data, for a file of which the checkpoint has the path."""
_HEAD = struct.Struct(">QIQ")
_FIRST_TOKEN = 1 << TOKEN_COUNTER_BITS


@attrs.frozen(order=True)
class Checkpoint:
    """How far a task is: by which claim, which word of it, and when it was said, by the holder's clock.

    ``data`` is stored as a result is (``calls.results``); to readers it is the ``value`` that was given.
    """

    token: int
    number: int
    at_ms: int
    data: bytes
    value: Any = attrs.field(default=None, eq=False, hash=False)

    def merge(self, other: Checkpoint) -> Checkpoint:
        """The newer."""
        return max(self, other)

    def encode(self) -> bytes:
        """The record."""
        return _HEAD.pack(self.token, self.number, self.at_ms) + self.data

    @classmethod
    def decode(cls, record: bytes) -> Checkpoint:
        """Of a record; raises ``ValueError`` when it is none."""
        if not _HEAD.size <= len(record) <= _HEAD.size + BYTES_MAX:
            raise ValueError(f"a checkpoint of {len(record)} bytes is none")
        token, number, at_ms = _HEAD.unpack_from(record)
        if not _FIRST_TOKEN <= token <= U63_MAX or at_ms > MOMENT_MS_MAX:
            raise ValueError("a checkpoint's token, or its time, is none")
        return cls(token, number, at_ms, record[_HEAD.size :])


def newer(one: bytes, other: bytes) -> bytes:
    """The join of two records."""
    return max(one, other)
