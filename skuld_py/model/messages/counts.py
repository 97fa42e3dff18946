"""How a node that is asked for counts asks all others (see ``node.reads.counts``)."""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.client import CountRow
from skuld_py.model.messages.message import Message


@attrs.frozen
class Sum(Message):
    """Counts of a queue, or of all (``""``) behind ``after``, over the partitions that you lead. With
    ``partitions``: each of these that you vote for is counted by itself. ``turn`` comes back with the answer."""

    is_promise = False
    request: int = fields.number()
    turn: int = fields.number()
    queue: str = fields.name(is_optional=True)
    after: str = fields.name(is_optional=True)
    partitions: bytes = fields.partitions(default=b"")


@attrs.frozen
class Summed(Message):
    """``partitions``: those for which the answering node votes; ``led``: those that it leads. Rows of a sum have
    ``partition`` 0. There are more queues behind ``upto``, unless it is empty."""

    request: int = fields.number()
    turn: int = fields.number()
    partitions: bytes = fields.partitions()
    led: bytes = fields.partitions()
    rows: tuple[CountRow, ...] = fields.rows(CountRow, 100_000)
    upto: str = fields.name(is_optional=True)
