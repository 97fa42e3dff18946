"""Claims between nodes: asked of a leader, granted by its cohort, and changed.

Everything that rests on leadership carries its epoch; a receiver that promised a newer one refuses.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.history import TOKEN_COUNTER_BITS
from skuld_py.model.messages.message import Message


@attrs.frozen
class Delegate(Message):
    """Claim from the partitions that the receiver leads, for another coordinator's client."""

    is_promise = False
    request: int = fields.number()
    queue: str = fields.name()
    count: int = fields.number(1, 1_000)
    lease_ms: int = fields.lease()
    holder: str = fields.wide_name()


@attrs.frozen
class Grant(Message):
    """The leader asks its cohort to record claims.

    It may leave before the leader's own commit: the leader counts its own record only with the answers,
    which come later, and a leader that crashes in between leads no more.
    """

    is_promise = False
    columns = ("ids", "priorities")
    request: int = fields.number()
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    first_token: int = fields.number(1 << TOKEN_COUNTER_BITS)
    start_ms: int = fields.moment()
    end_ms: int = fields.moment()
    holder: str = fields.wide_name()
    queue: str = fields.name()
    ids: bytes = fields.ids()
    priorities: bytes = fields.blob(4, 4_000)


@attrs.frozen
class Granted(Message):
    """Recorded and fsynced, except ``vetoed`` indexes; or refused whole, with the newer epoch.

    ``blockers``: tasks whose claims fill the lanes of vetoed ones, so that the leader can compare what is known.
    """

    request: int = fields.number()
    partition: int = fields.partition()
    promised: int = fields.epoch(0)
    is_accepted: bool = fields.truth()
    vetoed: bytes = fields.u64s()
    blockers: bytes = fields.ids(default=b"")


@attrs.frozen
class Amend(Message):
    """The leader renewed or ended claims, or revived tasks: for each task the part of its history that changed,
    with what must travel with it (``partition.data.change``), and where the task waits.

    It may leave early, like ``Grant``. ``tokens`` and ``errors``: none, or for each task the claim that failed,
    and why; an empty error is none.
    """

    is_promise = False
    columns = ("ids", "histories", "places")
    request: int = fields.number()
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()
    tokens: bytes = fields.tokens(default=b"")
    errors: Column = fields.strings(default=Column())


@attrs.frozen
class Amended(Message):
    """Recorded and fsynced, or refused with the newer epoch."""

    request: int = fields.number()
    partition: int = fields.partition()
    promised: int = fields.epoch(0)
    is_accepted: bool = fields.truth()
