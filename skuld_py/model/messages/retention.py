"""How a leader and all replicas of a partition agree on what is collected, and how an archiver gets it before it
goes (see ``node.retention``)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.history import DEATH_TIME_RULES
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message
from skuld_py.model.messages.tasks import TaskRow, all_undated

PAGE_ENTRIES = 1 << 17
"""Entries of a page in columns: a leader counts each as 64 bytes of the page."""


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
    """Done, durably; or refused: a newer epoch is ``promised``, this copy is not to be counted on, or is to keep
    ended tasks for longer: up to ``allowed_ms`` they may go. ``life``: 0 where nothing of the partition is
    kept."""

    request: int = fields.number()
    is_accepted: bool = fields.truth()
    promised: int = fields.epoch(0)
    life: int = fields.number()
    allowed_ms: int = fields.moment(default=0, since=6)


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
    """Ask for a page of a partition that waits to be archived; to a node, then to the leader. ``in_columns``: the
    answer may have all that came with protocol 3. ``epoch``, ``after``: of the page before the one that is wanted;
    who knows no such fields gives the first page again. ``wanted_ms``: do not wait to collect up to this time.
    ``archiver``: a number that no other archiver has; 0 of who wants pages whoever else asks. ``leaves``: it wants
    no more, and no page now."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    partition: int = fields.number(0, PARTITIONS_MAX - 1)
    in_columns: bool = fields.truth(default=False, since=3)
    epoch: int = fields.epoch(0, default=0, since=3)
    after: int = fields.number(default=0, since=3)
    wanted_ms: int = fields.moment(default=0, since=3)
    archiver: int = fields.number(default=0, since=3)
    leaves: bool = fields.truth(default=False, since=3)


@attrs.frozen
class Offered(Message):
    """A page: ids with digests, and their records. The logs of those ``cut`` are longer than what stands here.
    Without ids: a page may follow (``is_under_way``), and collection waits for the nodes ``awaited``.

    Only in columns, and then without ``tasks``: of each id its body and its history, empty where there is none;
    ``counts``, unless there are no entries at all: how many of the entries are its own. ``number``: the page's;
    those of an epoch rise. ``due_ms``: what had ended by then may go by now. ``upto_ms``: what could go by then is
    gone. ``ended``: how many tasks of the partition have ended, young ones included. ``is_others``: another
    archiver is given the pages of the partition; then ``deleted`` rises with each that goes."""

    columns = ("ids", "digests")
    grew_with: ClassVar[int] = DEATH_TIME_RULES
    request: int = fields.number()
    epoch: int = fields.epoch(0)
    is_under_way: bool = fields.truth()
    awaited: tuple[str, ...] = fields.names(1_000)
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()
    cut: bytes = fields.ids()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    number: int = fields.number(default=0, since=3)
    due_ms: int = fields.moment(default=0, since=3)
    upto_ms: int = fields.moment(default=0, since=3)
    ended: int = fields.number(default=0, since=3)
    bodies: Column = fields.strings(default=Column(), since=3)
    histories: Column = fields.strings(default=Column(), since=3)
    counts: bytes = fields.u64s(default=b"", since=3)
    tokens: bytes = fields.tokens(PAGE_ENTRIES, default=b"", since=3)
    seqs: bytes = fields.u64s(PAGE_ENTRIES, default=b"", since=3)
    entries: Column = fields.strings(PAGE_ENTRIES, default=Column(), since=3)
    is_others: bool = fields.truth(default=False, since=3)
    deleted: int = fields.number(default=0, since=6)

    def as_known_to(self, version: int) -> Offered:
        """The page as it is sent to who speaks an older protocol: it does not say when tasks died."""
        return attrs.evolve(self, histories=all_undated(self.histories))


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
