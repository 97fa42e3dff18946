"""How tasks come to be, and how many copies of them there are."""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.message import ROLE_CLIENT, Message, TaskBatch


@attrs.frozen
class Enqueue(Message):
    """Store tasks on the owners of their partitions; answer at ``w`` copies (0: a majority)."""

    roles = ROLE_CLIENT
    request: int = fields.number()
    w: int = fields.number(0, 9)
    batches: tuple[TaskBatch, ...] = fields.rows(TaskBatch)


@attrs.frozen
class Acked(Message):
    """``copies`` fsynced copies exist, of the least copied task.

    ``duplicates``: which tasks of an enqueue, counted over all its batches, existed already under their unique
    names, with the same content. ``ended``: which tasks of a ``Cancel`` had been completed, so that it changes
    nothing of them; a node of an older release names none.
    """

    request: int = fields.number()
    copies: int = fields.number()
    duplicates: bytes = fields.u64s(default=b"")
    ended: bytes = fields.u64s(default=b"", since=3)
