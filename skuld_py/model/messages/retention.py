"""How a leader and all replicas of a partition agree on what is collected, and how an archiver gets it before it
goes (see ``node.retention``)."""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.messages.client import TaskRow
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message


@attrs.frozen
class Ebb(Message):
    """Take no new tasks with ids up to a time. With a ``life``, the one that ``Ebbed`` told: take nothing at all
    up to then, for all replicas were found equal below it."""

    is_promise = False
    request: int = fields.number()
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    upto_ms: int = fields.moment()
    life: int = fields.number(default=0)


@attrs.frozen
class Ebbed(Message):
    """Done, durably; or refused: a newer epoch is ``promised``, or this copy is not to be counted on. ``life``: 0
    where nothing of the partition is kept."""

    request: int = fields.number()
    is_accepted: bool = fields.truth()
    promised: int = fields.epoch(0)
    life: int = fields.number()


@attrs.frozen
class Collect(Message):
    """Delete these tasks, each of this digest, that had ended by ``upto_ms``; or, a trial, say which you would.
    ``is_archived``: they are archived, or will be before they are deleted."""

    is_promise = False
    columns = ("ids", "digests")
    request: int = fields.number()
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    upto_ms: int = fields.moment()
    is_trial: bool = fields.truth()
    is_archived: bool = fields.truth()
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()


@attrs.frozen
class Collected(Message):
    """Which ones not, by index; all are refused by a copy that is not sealed up to then."""

    request: int = fields.number()
    is_accepted: bool = fields.truth()
    kept: bytes = fields.u64s()


@attrs.frozen
class Offer(Message):
    """Ask for the page of a partition that waits to be archived; to a node, then to the leader."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    partition: int = fields.number(0, PARTITIONS_MAX - 1)


@attrs.frozen
class Offered(Message):
    """A page: ids with digests, and their records. The logs of those ``cut`` are longer than what stands here.
    Without ids: a page may follow (``is_under_way``), and collection waits for the nodes ``awaited``."""

    columns = ("ids", "digests")
    request: int = fields.number()
    epoch: int = fields.epoch(0)
    is_under_way: bool = fields.truth()
    awaited: tuple[str, ...] = fields.names(1_000)
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()
    cut: bytes = fields.ids()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)


@attrs.frozen
class Discard(Message):
    """All tasks of the page that was offered are archived, durably: delete them; to a node, then to the leader."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "digests")
    request: int = fields.number()
    partition: int = fields.number(0, PARTITIONS_MAX - 1)
    epoch: int = fields.epoch()
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()


@attrs.frozen
class Discarded(Message):
    """``count`` tasks are deleted; none, and ``is_current`` is false, when the page is not on offer any more."""

    request: int = fields.number()
    is_current: bool = fields.truth()
    count: int = fields.number()
