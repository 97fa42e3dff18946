"""Copies: tasks on their way to the owners of a partition, and comparing what two of them have."""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import Message, TaskBatch
from skuld_py.model.messages.tasks import CohortRow, TaskRow


@attrs.frozen
class Replicate(Message):
    """Keep these tasks. ``eras``: see ``CohortRow``."""

    is_promise = False
    request: int = fields.number()
    batches: tuple[TaskBatch, ...] = fields.rows(TaskBatch)
    eras: bytes = fields.eras(default=b"")


@attrs.frozen
class Kept(Message):
    """All are fsynced; except ``refused`` ids, which exist with other content, and ``unkept`` partitions, which
    the sender may no longer add to. ``cohorts``: see ``CohortRow``. ``old``: ids to which nothing is added any
    more; their partitions are unkept. So are those of ``fenced`` ids: the claim that spoke is over for good."""

    request: int = fields.number()
    refused: bytes = fields.ids()
    unkept: bytes = fields.partitions(default=b"")
    cohorts: tuple[CohortRow, ...] = fields.rows(CohortRow, PARTITIONS_MAX, default=())
    old: bytes = fields.ids(default=b"")
    fenced: bytes = fields.ids(default=b"", since=3)


@attrs.frozen
class Invite(Message):
    """Your copy of this partition may lack something: compare it with the other owners."""

    is_promise = False
    partition: int = fields.partition()


@attrs.frozen
class Probe(Message):
    """The sender's digests of nodes of its tree: the root; or what is under ``parents`` (level 1: the root;
    level 2: inner nodes). ``turn`` comes back with the answer, here and in the next two questions."""

    is_promise = False
    partition: int = fields.partition()
    turn: int = fields.number()
    level: int = fields.number(0, 2)
    parents: bytes = fields.u64s(64)
    digests: bytes = fields.u64s(4_096)


@attrs.frozen
class Probed(Message):
    """Which of these nodes differ at the receiver, by number in their level; none while it ``is_building``. Its
    watermarks: see ``partition.data.watermark``."""

    partition: int = fields.partition()
    turn: int = fields.number()
    is_building: bool = fields.truth()
    differing: bytes = fields.u64s(4_096)
    closed_ms: int = fields.moment(default=0)
    sealed_ms: int = fields.moment(default=0)


@attrs.frozen
class Compare(Message):
    """Digests of the sender's units behind ``after`` up to ``upto`` (empty: to the end), of some leaves."""

    is_promise = False
    columns = ("units", "digests")
    partition: int = fields.partition()
    turn: int = fields.number()
    leaves: bytes = fields.blob(1, 512)
    after: bytes = fields.blob(1, 32)
    upto: bytes = fields.blob(1, 32)
    units: Column = fields.strings()
    digests: bytes = fields.u64s()


@attrs.frozen
class Compared(Message):
    """Units in which the receiver of ``Compare`` differs or has more; covers up to ``upto``."""

    partition: int = fields.partition()
    turn: int = fields.number()
    upto: bytes = fields.blob(1, 32)
    units: Column = fields.strings(2_000)


@attrs.frozen
class Fetch(Message):
    """The sender has these digests of these units (0: nothing), and wants the units that differ. ``gone``: indexes
    of those whose tasks it has collected."""

    is_promise = False
    columns = ("units", "digests")
    partition: int = fields.partition()
    turn: int = fields.number()
    units: Column = fields.strings()
    digests: bytes = fields.u64s()
    gone: bytes = fields.u64s(default=b"")


@attrs.frozen
class Fetched(Message):
    """The receiver's digests of the first of these units, as many as an answer holds, and those that differ.
    ``gone``: as in ``Fetch``."""

    partition: int = fields.partition()
    turn: int = fields.number()
    digests: bytes = fields.u64s()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    gone: bytes = fields.u64s(default=b"")


@attrs.frozen
class Repair(Message):
    """Units in which the receiver was found to lack something."""

    is_promise = False
    partition: int = fields.partition()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
