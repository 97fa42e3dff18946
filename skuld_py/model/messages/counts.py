"""Counts by queue and state: asked for by clients, and how a node that is asked asks all others (see
``node.reads.counts``)."""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.bounds import U32_MAX
from skuld_py.model.messages.message import ROLE_CLIENT, Message


@attrs.frozen
class Count(Message):
    """Counts of a queue, or of all (``""``)."""

    roles = ROLE_CLIENT
    is_reading = True
    is_promise = False
    request: int = fields.number()
    queue: str = fields.name(is_optional=True)


@attrs.frozen
class CountRow:
    """Counts of one queue by state, in the order of ``model.state``; in one partition, or summed over several."""

    partition: int = fields.partition()
    queue: str = fields.name()
    waiting: int = fields.number(-U32_MAX)
    claimed: int = fields.number(-U32_MAX)
    completed: int = fields.number(-U32_MAX)
    scheduled: int = fields.number(-U32_MAX)
    blocked: int = fields.number(-U32_MAX)
    cancelled: int = fields.number(-U32_MAX)
    dead: int = fields.number(-U32_MAX)

    @property
    def counts(self) -> tuple[int, ...]:
        """By state."""
        return (self.waiting, self.claimed, self.completed, self.scheduled, self.blocked, self.cancelled,
                self.dead)


@attrs.frozen
class Counted(Message):
    """Rows are sums over all partitions. ``partitions`` and ``led`` are empty."""

    request: int = fields.number()
    partitions: bytes = fields.partitions()
    led: bytes = fields.partitions()
    rows: tuple[CountRow, ...] = fields.rows(CountRow, 100_000)


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
