"""How claims and tasks end otherwise than by completion: failed, snoozed, released; cancelled; revived.

Only the leader ends a claim or revives a task: a node passes the question on. Any node cancels, as it completes:
by a mark on ``w`` copies, which is never taken back.
"""

from __future__ import annotations

from enum import IntEnum

import attrs

from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.history import FAILED, RELEASED
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message

DELAY_MS_MAX = 10 * 366 * 86_400_000


class Revival(IntEnum):
    """What became of a task that was to be revived. ``UNKNOWN``: its leader did not answer in time; ``TOO_OLD``:
    it died so long ago that it is being collected, or was claimed too often; ``EXPIRED``: it would die again
    at once."""

    UNKNOWN = 0
    REVIVED = 1
    NOT_DEAD = 2
    CANCELLED = 3
    NO_TASK = 4
    TOO_OLD = 5
    EXPIRED = 6


@attrs.frozen
class Conclude(Message):
    """End claims: ``kind`` 1 released, 2 snoozed, 3 failed; answered by ``Renewed``. From a client, with the
    claims' ``proofs``, or passed to a leader, without.

    Their tasks may be claimed again ``delay_ms`` later: at once when released; a negative delay is the pause
    that the task's retry policy makes after a failure. ``errors``: none, or one for each claim. ``is_final``:
    after this failure the task is dead, whatever attempts it has left; nodes of an older protocol are not told.
    """

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "tokens")
    request: int = fields.number()
    kind: int = fields.number(RELEASED, FAILED)
    delay_ms: int = fields.number(-1, DELAY_MS_MAX)
    ids: bytes = fields.ids()
    tokens: bytes = fields.tokens()
    errors: Column = fields.strings(default=Column())
    proofs: bytes = fields.proofs()
    is_final: bool = fields.truth(default=False, since=3)


@attrs.frozen
class Evict(Message):
    """Take claims from whoever holds them, without a proof: their tasks wait again at once. For operators;
    answered by ``Renewed``, as a release is."""

    roles = ROLE_CLIENT
    since = 3
    columns = ("ids", "tokens")
    request: int = fields.number()
    ids: bytes = fields.ids()
    tokens: bytes = fields.tokens()


@attrs.frozen
class Cancel(Message):
    """Let these tasks be claimed no more; to a node, then to the owners. ``at_ms`` is the coordinator's."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    w: int = fields.number(0, 9)
    at_ms: int = fields.moment()
    ids: bytes = fields.ids()
    eras: bytes = fields.eras(default=b"")


@attrs.frozen
class Revive(Message):
    """Let dead tasks begin anew, their attempts counted from 0. From a client, or passed to a leader."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    ids: bytes = fields.ids()


@attrs.frozen
class Revived(Message):
    """One ``Revival`` for each task asked for, as a byte."""

    request: int = fields.number()
    outcomes: bytes = fields.blob(1, 1_000)
