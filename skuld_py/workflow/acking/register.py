"""What a feeder knows of one root: the XOR of the acks of its segments, each counted once.

The sum begins as the root's own value. An ack is a segment's value and those of its children
(``segments.ack_of``), so each child is in the sum twice when all are heard, and the root too: it is zero. Before,
it is the XOR of different hashes of 63 bits, and not zero but by a chance of 2^-63 for each ack.

Invariant: one register for each segment. An ack of a segment that was heard changes nothing, wherever it comes
from. That is why a walk may fold in what acks have told, and a message may be heard twice. Plain XOR, as Onyx has
it, takes the second for an undoing. What was heard first stands: where a segment was counted as one that emits
nothing, and another completion turns out to be the earliest, that one's children are not emitted any more.
"""

from __future__ import annotations

from skuld_py.workflow.acking.checkpoint import Batch
from skuld_py.workflow.segments import value_of


class Root:
    """A root under way. ``heard_ms``: when something new was heard of it, or it was last looked after;
    ``audits``: how often since. ``looks``: rows of walks that are about it. ``is_forgotten``: it had to make room,
    and begins anew when it is looked after. ``is_over``: nothing more is to be done about it."""

    __slots__ = ("audits", "batch", "heard", "heard_ms", "id", "is_forgotten", "is_over", "looks", "number", "sum")

    def __init__(self, root: bytes, number: int, batch: Batch, now_ms: int) -> None:
        self.id = root
        self.number = number
        self.batch = batch
        self.sum = value_of(root)
        self.heard: dict[int, int] = {}
        self.heard_ms = now_ms
        self.audits = self.looks = 0
        self.is_forgotten = self.is_over = False

    def hear(self, segment: bytes, ack: int) -> bool:
        """Count an ack; whether it was news."""
        value = value_of(segment)
        if value in self.heard:
            return False
        self.heard[value] = ack
        self.sum ^= ack
        return True

    def disagrees(self, segment: bytes, ack: int) -> bool:
        """Whether a segment is counted with another ack."""
        return self.heard.get(value_of(segment), ack) != ack

    def has_heard(self, segment: bytes) -> bool:
        """Whether a segment is counted."""
        return value_of(segment) in self.heard

    @property
    def is_complete(self) -> bool:
        """Whether every segment of its tree is counted."""
        return not self.sum and bool(self.heard)

    def forget(self) -> int:
        """Begin anew, for want of room; how much it was."""
        count = len(self.heard)
        self.heard, self.sum, self.is_forgotten = {}, value_of(self.id), True
        return count
