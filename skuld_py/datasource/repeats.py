"""Ids by place, for writes that are not atomic: the row's number in its part of the write makes the task's id.

So an attempt that repeats a part stores the same tasks again, which is harmless, as long as its rows are the same
and come in the same order. If they are not, the id stands for other content, and the queue refuses it: the write
fails, and no row is lost in silence. (Rows that are equal but for their order pass unseen only where they are the
same tasks.)

An id has the time of the write's beginning, the row's number, a nonce that no other part of the write has, and a
route: that of its key, or one for each run of rows, so that a batch goes to one partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from skuld_py.datasource.gates import Write
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.ids import LANE, SEQ_END, TaskId, lane_route

RUN = 1_000
"""Rows in a row that have one route."""


class Namer:
    """Ids of the rows of one part."""

    def __init__(self, write: Write, queue: str, part: int) -> None:
        self._head = round(write.start_s * 1000).to_bytes(8, "big")
        self._nonce = (int(write.name[:8], 16) + part) % (1 << 32)
        self._seed = f"{write.name} {part} ".encode()
        self._queue = queue

    def ids(self, numbers: Sequence[int], keys: Sequence[str | None] | None) -> list[TaskId]:
        """The ids of rows by their numbers; ``keys`` are those of their tasks, if they have any."""
        if numbers and max(numbers) >= SEQ_END:
            raise Refused("too_many_rows", f"a partition has more than {SEQ_END} rows; repartition the frame")
        return [self._id(number, key) for number, key in zip(numbers, keys or [None] * len(numbers), strict=True)]

    def _id(self, number: int, key: str | None) -> TaskId:
        route = self._route(number // RUN) if key is None else lane_route(self._queue, key).to_bytes(4, "big")
        seq = number if key is None else number | LANE
        return TaskId(self._head + seq.to_bytes(4, "big") + self._nonce.to_bytes(4, "big") + route)

    def _route(self, run: int) -> bytes:
        return hashlib.blake2b(self._seed + str(run).encode(), digest_size=4).digest()


def explained(error: SkuldError, part: int) -> SkuldError:
    """What a conflict of ids means here."""
    if error.code != "conflict":
        return error
    return Refused("not_repeatable", f"atomic: partition {part} was written before with other rows, or in another"
                   " order; this input is not deterministic: leave option('atomic', 'false') out")
