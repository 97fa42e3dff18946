"""Tasks as copies hold them, by id and by queue, state and time."""

from __future__ import annotations

from typing import ClassVar

import attrs

from skuld_py.config import DEFAULT_LIMITS, PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column, pack
from skuld_py.model.history import DEATH_TIME_RULES, undated
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message

ENTRIES_MAX = DEFAULT_LIMITS.log_entries + 2
"""Entries of a task in one answer: of its log, and a result and an error besides."""
KEY_CHARS_MAX = 255
"""Of an ordering key that is looked for: none has more."""

_SLOT_TOKEN, _SLOT_PROTOCOL = bytes(8), 3


def all_undated(histories: Column) -> Column:
    """Histories as they are sent to who speaks a protocol before ``DEATH_TIME_RULES``."""
    return pack([*map(undated, histories.unpack())])


@attrs.frozen
class CohortRow:
    """The voters that count for a partition, where the sender of a question and its receiver did not agree on
    them.

    A question names, per partition, the era of the cohort that its sender counts by (``eras``: partition,
    era, partition, era...). A receiver that knows a later era says so. One that has promised an epoch to a
    candidate with another cohort names that one too, with era 0: it may come to be. The sender then needs
    its quorum in all the cohorts named, so that what was acknowledged before a move is known after it.
    """

    partition: int = fields.partition()
    era: int = fields.epoch(0)
    cohort: tuple[str, ...] = fields.names()


@attrs.frozen
class Get(Message):
    """Tasks by id; to a node, then to the owners.

    ``least``: none, or for each task how many facts (``model.outcomes.facts_of``) an answer must show.
    ``is_bare``: without logs, results and errors.
    """

    roles = ROLE_CLIENT | ROLE_NODE
    is_reading = True
    is_promise = False
    request: int = fields.number()
    ids: bytes = fields.ids()
    eras: bytes = fields.eras(default=b"")
    least: bytes = fields.u64s(default=b"")
    is_bare: bool = fields.truth(default=False)


@attrs.frozen
class TaskRow:
    """A task's records on one replica; empty where it has none. Who speaks a protocol older than ``grew_with`` is
    not told when it died, and before protocol 3 is not sent its checkpoint (``model.checkpoint``), the entry with
    token 0, which stands first."""

    columns: ClassVar[tuple[str, ...]] = ("tokens", "seqs", "entries")
    grew_with: ClassVar[int] = DEATH_TIME_RULES
    id: bytes = fields.ids()
    body: Column = fields.strings(1)
    history: bytes = fields.blob()
    tokens: bytes = fields.tokens(ENTRIES_MAX)
    seqs: bytes = fields.u64s(ENTRIES_MAX)
    entries: Column = fields.strings(ENTRIES_MAX)

    def as_known_to(self, version: int) -> TaskRow:
        """The row as it is sent to who speaks this protocol."""
        history = undated(self.history)
        row = self if history is self.history else attrs.evolve(self, history=history)
        if version >= _SLOT_PROTOCOL or not self.tokens.startswith(_SLOT_TOKEN):
            return row
        size = int.from_bytes(self.entries.lengths[:4], "big")
        return attrs.evolve(row, tokens=self.tokens[8:], seqs=self.seqs[8:],
                            entries=Column(self.entries.lengths[4:], self.entries.data[size:]))


@attrs.frozen
class Got(Message):
    """The tasks that exist. The sender cannot speak for the partitions ``lacking``. ``asides``: none, or one for
    each task (``model.asides``); in answer to ``Interest`` the header of its body, or nothing."""

    request: int = fields.number()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    lacking: bytes = fields.partitions(default=b"")
    cohorts: tuple[CohortRow, ...] = fields.rows(CohortRow, PARTITIONS_MAX, default=())
    asides: Column = fields.strings(default=Column())


@attrs.frozen
class List(Message):
    """A page of tasks in id order, behind ``after``; of a queue, or of all.

    ``states``: a bit for each number of ``model.state``; 0 for any. ``since_ms`` and ``until_ms``: asked for then
    or later, and before (0: no bound); the body of a task with a unique name tells when, the id of others.
    ``place``: of all partitions (0), or of the one before this number. ``with_errors``: with the last errors of
    the tasks. ``key``: only those of this ordering key (empty: of any and of none). Who speaks an older protocol
    gives all, and whoever asks leaves the others out.
    """

    roles = ROLE_CLIENT | ROLE_NODE
    is_reading = True
    is_promise = False
    request: int = fields.number()
    queue: str = fields.name(is_optional=True)
    after: bytes = fields.blob(20, 20)
    limit: int = fields.number(1, 1_000)
    states: int = fields.number(0, 127, default=0)
    since_ms: int = fields.number(default=0)
    until_ms: int = fields.number(default=0)
    place: int = fields.number(0, PARTITIONS_MAX, default=0, since=3)
    with_errors: bool = fields.truth(default=False, since=3)
    key: str = fields.text(KEY_CHARS_MAX, default="", since=5)


@attrs.frozen
class Listed(Message):
    """The page, perhaps empty. ``upto``: complete up to this id (empty: to the end) on every partition named.

    ``errors``: none, or one for each task: the token of the newest claim that failed with an error, as u64, and
    the error; empty where there is none."""

    columns = ("ids", "bodies", "histories")
    grew_with: ClassVar[int] = DEATH_TIME_RULES
    request: int = fields.number()
    partitions: bytes = fields.partitions()
    upto: bytes = fields.blob(20, 20)
    ids: bytes = fields.ids()
    bodies: Column = fields.strings()
    histories: Column = fields.strings()
    errors: Column = fields.strings(default=Column(), since=3)

    def as_known_to(self, version: int) -> Listed:
        """The page as it is sent to who speaks an older protocol: it does not say when tasks died."""
        return attrs.evolve(self, histories=all_undated(self.histories))
