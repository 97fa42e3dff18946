"""Elections and gossip: votes, the claims that a new leader takes over, and what nodes say of leaderships.

Everything that rests on leadership carries its epoch; a receiver that promised a newer one refuses.
"""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.messages.descriptions import CollectionRow, MoveRow
from skuld_py.model.messages.message import Message

HEAD_BYTES = 24
"""The head of a queue: inverted priority (4 bytes), id (20). With a unique name, whose id is as old as its window,
the time at which it was asked for (8 bytes) stands before the id, which is cut."""

@attrs.frozen
class RequestVote(Message):
    """Promise me this epoch of the partition, for a leadership over ``cohort``.

    A trial asks whether you would, and changes nothing. ``base`` is the epoch of the document that the
    candidate has read (0: not told): once a later one is written, the candidacy cannot succeed any more.
    """

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    cohort: tuple[str, ...] = fields.names()
    is_trial: bool = fields.truth()
    base: int = fields.epoch(0, default=0)


@attrs.frozen
class Vote(Message):
    """``is_granted``: promised, durably, and nothing older will be recorded here any more.

    The answer to a trial promises nothing. ``settled`` is the newest epoch known to have had a leader: a
    candidate that finds no document while voters remember one must not begin history anew.
    """

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    is_granted: bool = fields.truth()
    is_trial: bool = fields.truth()
    promised: int = fields.epoch(0)
    settled: int = fields.epoch(0)


@attrs.frozen
class PullClaims(Message):
    """A candidate that holds the receiver's vote reads its live claims, a page at a time."""

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    after: bytes = fields.blob(1, 64)


@attrs.frozen
class ClaimPage(Message):
    """Live claims behind ``after``; ``next`` is empty on the last page."""

    columns = ("ids", "histories", "places")
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()


@attrs.frozen
class PushClaims(Message):
    """The candidate's live claims, for a voter of the new cohort to keep; page ``after``..``next``."""

    columns = ("ids", "histories", "places")
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()


@attrs.frozen
class ClaimsKept(Message):
    """The page pushed is fsynced; the next one starts behind ``next``, if there is one."""

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)


@attrs.frozen
class Sync(Message):
    """A candidate asks a new member of its ``cohort`` to take over all that these voters hold, now that they
    have voted and before it leads. ``base``: see ``RequestVote``."""

    is_promise = False
    partition: int = fields.partition()
    epoch: int = fields.epoch()
    cohort: tuple[str, ...] = fields.names()
    sources: tuple[str, ...] = fields.names()
    base: int = fields.epoch(0, default=0)


@attrs.frozen
class Synced(Message):
    """The sender holds, fsynced, all that the voters named held when they had voted."""

    partition: int = fields.partition()
    epoch: int = fields.epoch()


@attrs.frozen
class Abdicate(Message):
    """The leader of ``epoch`` asks the receiver to stand, at once, for a leadership over ``cohort``."""

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    cohort: tuple[str, ...] = fields.names()


@attrs.frozen
class LeaderRow:
    """The sender leads a partition since an epoch, with a cohort seated in ``era``."""

    partition: int = fields.partition()
    epoch: int = fields.epoch()
    era: int = fields.epoch()
    cohort: tuple[str, ...] = fields.names()


@attrs.frozen
class Gossip(Message):
    """What the sender leads, and queues in which it has tasks to grant; partitions it takes over, fills
    again or hands off. A hint, never a promise.

    ``heads``: inverted priority and id of the best task, of the first queues. ``settings``: the digest of
    all the settings it knows. ``collection``: its own row, where it deletes what ended long ago. ``release``:
    the program that it runs, and ``rules`` the newest rules that this program knows. ``workers`` report to it,
    with so many ``slots``.
    """

    is_promise = False
    leads: tuple[LeaderRow, ...] = fields.rows(LeaderRow, PARTITIONS_MAX)
    queues: tuple[str, ...] = fields.names(1_000)
    moves: tuple[MoveRow, ...] = fields.rows(MoveRow, PARTITIONS_MAX, default=())
    heads: bytes = fields.blob(HEAD_BYTES, HEAD_BYTES * 1_000, default=b"")
    settings: int = fields.number(default=0)
    collection: tuple[CollectionRow, ...] = fields.rows(CollectionRow, 1, default=())
    release: str = fields.text(64, default="", since=3)
    rules: int = fields.number(default=0, since=3)
    workers: int = fields.number(default=0, since=3)
    slots: int = fields.number(default=0, since=3)


@attrs.frozen
class PartialGossip(Gossip):
    """Gossip of some partitions. ``spans``: which, as first and end of each stretch in order.

    A message of its own, so that programs that know ``Gossip`` alone hear all that there is in clusters of few
    partitions. Late fields stand last, so they are declared again.
    """

    spans: bytes = fields.u64s(PARTITIONS_MAX * 2, default=b"")
    release: str = fields.text(64, default="", since=3)
    rules: int = fields.number(default=0, since=3)
    workers: int = fields.number(default=0, since=3)
    slots: int = fields.number(default=0, since=3)
