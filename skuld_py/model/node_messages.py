"""What nodes tell each other: copies, grants, elections, gossip, anti-entropy.

Everything that rests on leadership carries its epoch; a receiver that promised a newer one refuses.
"""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.client_messages import CohortRow, CollectionRow, MoveRow, TaskRow
from skuld_py.model.columns import Column
from skuld_py.model.history import TOKEN_COUNTER_BITS
from skuld_py.model.message import Message, TaskBatch

HEAD_BYTES = 24
"""The head of a queue: inverted priority (4 bytes), id (20). With a unique name, whose id is as old as its window,
the time at which it was asked for (8 bytes) stands before the id, which is cut."""

# -- owners of a partition -----------------------------------------------------------------------


@attrs.frozen
class Replicate(Message):
    """Keep these tasks. ``eras``: see ``CohortRow``."""

    is_promise = False
    request: int = fields.number()
    batches: tuple[TaskBatch, ...] = fields.rows(TaskBatch)
    eras: bytes = fields.eras(default=b"")


@attrs.frozen
class Kept(Message):
    """Fsynced; except ``refused`` ids, which exist with other content, and ``unkept`` partitions, which
    the sender may no longer add to. ``cohorts``: see ``CohortRow``. ``old``: ids to which nothing is added any
    more; their partitions are unkept."""

    request: int = fields.number()
    refused: bytes = fields.ids()
    unkept: bytes = fields.partitions(default=b"")
    cohorts: tuple[CohortRow, ...] = fields.rows(CohortRow, PARTITIONS_MAX, default=())
    old: bytes = fields.ids(default=b"")


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
    """The leader renewed or ended claims, or revived tasks: of each history what changed and what counts with it
    (``partition.change``), and where the task waits.

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
    tokens: bytes = fields.u64s(default=b"")
    errors: Column = fields.strings(default=Column())


@attrs.frozen
class Amended(Message):
    """Recorded and fsynced, or refused with the newer epoch."""

    request: int = fields.number()
    partition: int = fields.partition()
    promised: int = fields.epoch(0)
    is_accepted: bool = fields.truth()


# -- elections -----------------------------------------------------------------------------------


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


# -- movement ------------------------------------------------------------------------------------


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


# -- gossip and anti-entropy ---------------------------------------------------------------------


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

    ``heads``: inverted priority and id of the best task, of the first so many queues. ``settings``: the digest of
    all the settings it knows. ``collection``: its own row, where it deletes what ended long ago.
    """

    is_promise = False
    leads: tuple[LeaderRow, ...] = fields.rows(LeaderRow, PARTITIONS_MAX)
    queues: tuple[str, ...] = fields.names(1_000)
    moves: tuple[MoveRow, ...] = fields.rows(MoveRow, PARTITIONS_MAX, default=())
    heads: bytes = fields.blob(HEAD_BYTES, HEAD_BYTES * 1_000, default=b"")
    settings: int = fields.number(default=0)
    collection: tuple[CollectionRow, ...] = fields.rows(CollectionRow, 1, default=())


@attrs.frozen
class PartialGossip(Gossip):
    """Gossip of some partitions. ``spans``: which, as first and end of each stretch in order.

    A message of its own, so that programs that know ``Gossip`` alone hear all that there is in clusters of few
    partitions.
    """

    spans: bytes = fields.u64s(PARTITIONS_MAX * 2, default=b"")


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
    watermarks: see ``partition.watermark``."""

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
    """The sender has these digests of these units (0: nothing), and wants what is otherwise. ``gone``: indexes of
    those whose tasks it has collected."""

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


# -- clocks --------------------------------------------------------------------------------------


@attrs.frozen
class AskTime(Message):
    """What does your clock show?"""

    is_promise = False
    request: int = fields.number()


@attrs.frozen
class ToldTime(Message):
    """What the sender's clock showed between question and answer."""

    is_promise = False
    request: int = fields.number()
    told_ms: int = fields.moment()
