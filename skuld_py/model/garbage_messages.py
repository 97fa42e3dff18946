"""How a leader and all replicas of a partition agree on what is collected (see ``node.collecting``)."""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.fields import U32_MAX
from skuld_py.model.message import Message


@attrs.frozen
class Ebb(Message):
    """Take no new tasks with ids up to a time. With a ``life``, the one that ``Ebbed`` told: take nothing at all
    up to then, for all replicas were found equal below it."""

    is_promise = False
    request: int = fields.number()
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    upto_ms: int = fields.number()
    life: int = fields.number(default=0)


@attrs.frozen
class Ebbed(Message):
    """Done, durably; or refused: a newer epoch is ``promised``, or this copy is not to be counted on. ``life``: 0
    where nothing of the partition is kept."""

    request: int = fields.number()
    is_accepted: bool = fields.truth()
    promised: int = fields.number()
    life: int = fields.number()


@attrs.frozen
class Collect(Message):
    """Delete these tasks, each of this digest, that had ended by ``upto_ms``; or, a trial, say which you would."""

    is_promise = False
    columns = ("ids", "digests")
    request: int = fields.number()
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    upto_ms: int = fields.number()
    is_trial: bool = fields.truth()
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()


@attrs.frozen
class Collected(Message):
    """Which ones not, by index; all are refused by a copy that is not sealed up to then."""

    request: int = fields.number()
    is_accepted: bool = fields.truth()
    kept: bytes = fields.u64s()


GARBAGE_MESSAGES: tuple[type[Message], ...] = (Ebb, Ebbed, Collect, Collected)
