"""How the leader of a queue's home partition lends what the queue's limits allow (see ``node.limits.lender``).

Each message names the version of the limits it goes by: a node that knows other limits does not answer, or does
not use what it is lent.
"""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.limiting import RATE_MAX
from skuld_py.model.messages.message import Message


@attrs.frozen
class Borrow(Message):
    """Let me grant ``want`` claims of the queue, on partitions that I lead in these epochs."""

    is_promise = False
    columns = ("partitions", "epochs")
    request: int = fields.number()
    queue: str = fields.name()
    version: int = fields.number(1)
    want: int = fields.number(1, RATE_MAX)
    partitions: bytes = fields.partitions()
    epochs: bytes = fields.epochs()


@attrs.frozen
class Lent(Message):
    """Grant ``count`` claims now, by your clock not later than ``until_ms``. Less than was wanted: ask again in
    ``retry_ms``, or when told ``Freed``."""

    is_promise = False
    request: int = fields.number()
    version: int = fields.number()
    count: int = fields.number(0, RATE_MAX)
    until_ms: int = fields.moment()
    retry_ms: int = fields.number()


@attrs.frozen
class Reckon(Message):
    """How many claims of the queue are held on the partitions that you lead? Tell me also when that falls."""

    is_promise = False
    request: int = fields.number()
    queue: str = fields.name()
    version: int = fields.number(1)


@attrs.frozen
class Reckoned(Message):
    """The claims held (``used``), by partition, in these epochs. ``open``: the loan that was asked for and is not
    settled yet, or 0.

    It leaves after the commit: what it says has ended must not be held again after a crash.
    """

    columns = ("partitions", "epochs", "used")
    request: int = fields.number()
    partitions: bytes = fields.partitions()
    epochs: bytes = fields.epochs()
    used: bytes = fields.u64s(PARTITIONS_MAX)
    open: int = fields.number()


@attrs.frozen
class Spent(Message):
    """``used`` claims of the loan ``request`` were granted; no more will be."""

    is_promise = False
    request: int = fields.number()
    queue: str = fields.name()
    used: int = fields.number(0, RATE_MAX)


@attrs.frozen
class Freed(Message):
    """Claims of the queue have ended: from a leader to the home, and from there to leaders that were lent too
    few."""

    is_promise = False
    queue: str = fields.name()
