"""What clients ask and are answered, in the order of a task's life. Nodes pass some of it on as it is.

``request`` numbers an operation of the sender and comes back in the answer.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from skuld_py.config import DEFAULT_LIMITS, LEASE_MS_MAX, PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.fields import U32_MAX, U63_MAX
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, ClaimBatch, Message, TaskBatch

PAUSED_MAX = 1_000
STARVED_MAX = 100
"""Paused queues that a description names."""
AWAITED_MAX = 64
"""At most this many of the nodes that collection waits for are named."""
ENTRIES_MAX = DEFAULT_LIMITS.log_entries + 2
"""Entries of a task in one answer: of its log, and a result and an error besides."""

WITHHELD = ("paused", "limited", "leaderless")
"""Why a claim got nothing, though tasks may wait: its queue is paused; its limits allow no more claims just now;
some partitions have no leader, and what waits there nobody can grant."""

_SLOT_TOKEN = bytes(8)


@attrs.frozen
class MemberRow:
    """A live node."""

    name: str = fields.wide_name()
    host: str = fields.text(255)
    port: int = fields.number(1, 65_535)


@attrs.frozen
class Greet(Message):
    """First message of a client."""

    roles = ROLE_CLIENT
    request: int = fields.number()


@attrs.frozen
class Greeted(Message):
    """What a client must know. ``floor_ms``: mint no id at or below it. ``protocol``: the newest that all nodes
    understand. ``release``: the program that the node runs."""

    request: int = fields.number()
    node: str = fields.wide_name()
    cluster: str = fields.name()
    partitions: int = fields.number()
    replicas: int = fields.number()
    skew_ms: int = fields.number()
    floor_ms: int = fields.number()
    payload_bytes_max: int = fields.number()
    members: tuple[MemberRow, ...] = fields.rows(MemberRow)
    protocol: int = fields.number(1, default=1, since=3)
    release: str = fields.text(64, default="", since=3)


@attrs.frozen
class Failed(Message):
    """The answer that says no. ``is_definite``: it did not and will not happen."""

    request: int = fields.number()
    code: str = fields.text(64)
    text: str = fields.text()
    is_definite: bool = fields.truth()


@attrs.frozen
class Enqueue(Message):
    """Store tasks on the owners of their partitions; answer at ``w`` copies (0: a majority)."""

    roles = ROLE_CLIENT
    request: int = fields.number()
    w: int = fields.number(0, 9)
    batches: tuple[TaskBatch, ...] = fields.rows(TaskBatch)


@attrs.frozen
class Acked(Message):
    """``copies`` fsynced copies exist, of the least copied task.

    ``duplicates``: which tasks of an enqueue, counted over all its batches, existed already under their unique
    names, with the same content. ``ended``: which tasks of a ``Cancel`` had been completed, so that it changes
    nothing of them; a node of an older release names none.
    """

    request: int = fields.number()
    copies: int = fields.number()
    duplicates: bytes = fields.u64s(default=b"")
    ended: bytes = fields.u64s(default=b"", since=3)


@attrs.frozen
class Claim(Message):
    """Up to ``count`` tasks of a queue for ``holder``; wait up to ``wait_ms`` for the first.

    ``takes_proofs``: whether the client reads the proofs of what it is granted, and shows them. Most clusters
    refuse one that does not. ``fence``: of the seat for which it claims, in the queues of a workflow's steps.
    """

    roles = ROLE_CLIENT
    request: int = fields.number()
    queue: str = fields.name()
    count: int = fields.number(1, 1_000)
    lease_ms: int = fields.lease()
    wait_ms: int = fields.number(0, LEASE_MS_MAX)
    holder: str = fields.wide_name()
    takes_proofs: bool = fields.truth(default=False, since=1)
    fence: int = fields.number(default=0, since=3)


@attrs.frozen
class Claimed(Message):
    """Granted claims, best first; none when nothing waits. Parked for ``waited_ms`` before the grant.

    ``withheld``: why there are none though tasks may wait, one of ``WITHHELD``; empty when nothing waits, or when
    the answering node does not know why, or is of an older release."""

    request: int = fields.number()
    waited_ms: int = fields.number()
    batches: tuple[ClaimBatch, ...] = fields.rows(ClaimBatch)
    withheld: str = fields.text(16, default="", since=3)


@attrs.frozen
class Renew(Message):
    """Extend claims, as a whole or not at all, by ``lease_ms`` from now; 0 releases them. From a client, with the
    ``proofs`` of the claims, or passed to a leader, without."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "tokens")
    request: int = fields.number()
    lease_ms: int = fields.number(0, LEASE_MS_MAX)
    ids: bytes = fields.ids()
    tokens: bytes = fields.tokens()
    proofs: bytes = fields.proofs()


@attrs.frozen
class Renewed(Message):
    """New ends; 0 where the claim is lost, or where the row is ``unknown``.

    ``unknown``: rows, by index, whose leader did not answer in time. They may be renewed or not. ``cancelled``:
    rows whose task is cancelled: their holders should stop and release, though the lease runs on. To
    ``Conclude``, a row's end is when its task may be claimed again, and of a release the end of its lease.
    """

    request: int = fields.number()
    ends: bytes = fields.u64s()
    unknown: bytes = fields.u64s(default=b"")
    cancelled: bytes = fields.u64s(default=b"")


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
class Append(Message):
    """Log entries ``seq``.. of a claim; to a node, with the claim's proof, then to the owners, without.

    ``checkpoint``: none, or the task's, said at ``at_ms`` by the holder's clock; of those of a claim the one with
    the highest ``number`` stands. With one there may be no entries. It is kept by a majority at least, and all of
    the request is refused if the claim is over."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    w: int = fields.number(0, 9)
    id: bytes = fields.ids()
    token: int = fields.number()
    seq: int = fields.number(0, U32_MAX)
    entries: Column = fields.strings()
    eras: bytes = fields.eras(1, default=b"")
    proofs: bytes = fields.proofs()
    number: int = fields.number(0, U32_MAX, default=0, since=3)
    at_ms: int = fields.moment(default=0, since=3)
    checkpoint: Column = fields.strings(1, default=Column(), since=3, is_vital=True)


@attrs.frozen
class Complete(Message):
    """Record completions; to a node, with the claims' ``proofs``, then to the owners, without. ``at_ms`` is the
    coordinator's, 0 before.

    ``results``: none, or one for each claim; an empty one is none.
    """

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "tokens")
    request: int = fields.number()
    w: int = fields.number(0, 9)
    at_ms: int = fields.moment()
    ids: bytes = fields.ids()
    tokens: bytes = fields.tokens()
    eras: bytes = fields.eras(default=b"")
    results: Column = fields.strings(default=Column())
    proofs: bytes = fields.proofs()


@attrs.frozen
class Get(Message):
    """Tasks by id; to a node, then to the owners.

    ``least``: none, or for each task how many facts (``model.outcomes.facts_of``) an answer must show.
    ``is_bare``: without logs, results and errors.
    """

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    ids: bytes = fields.ids()
    eras: bytes = fields.eras(default=b"")
    least: bytes = fields.u64s(default=b"")
    is_bare: bool = fields.truth(default=False)


@attrs.frozen
class TaskRow:
    """A task's records on one replica; empty where it has none. Who speaks a protocol older than ``grew_with`` is
    not sent its checkpoint (``model.checkpoint``), the entry with token 0, which stands first."""

    columns: ClassVar[tuple[str, ...]] = ("tokens", "seqs", "entries")
    grew_with: ClassVar[int] = 3
    id: bytes = fields.ids()
    body: Column = fields.strings(1)
    history: bytes = fields.blob()
    tokens: bytes = fields.tokens(ENTRIES_MAX)
    seqs: bytes = fields.u64s(ENTRIES_MAX)
    entries: Column = fields.strings(ENTRIES_MAX)

    def as_known_to(self, version: int) -> TaskRow:
        """The row as it is sent to who speaks this protocol."""
        if version >= self.grew_with or not self.tokens.startswith(_SLOT_TOKEN):
            return self
        size = int.from_bytes(self.entries.lengths[:4], "big")
        return attrs.evolve(self, tokens=self.tokens[8:], seqs=self.seqs[8:],
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
class Count(Message):
    """Counts of a queue, or of all (``""``)."""

    roles = ROLE_CLIENT
    is_promise = False
    request: int = fields.number()
    queue: str = fields.name(is_optional=True)


@attrs.frozen
class CountRow:
    """Counts of one queue by state, in the order of ``model.state``; in one partition, or summed over several."""

    partition: int = fields.partition()
    queue: str = fields.name()
    waiting: int = fields.number(-U32_MAX)
    claimed: int = fields.number(-U32_MAX)
    completed: int = fields.number(-U32_MAX)
    scheduled: int = fields.number(-U32_MAX)
    blocked: int = fields.number(-U32_MAX)
    cancelled: int = fields.number(-U32_MAX)
    dead: int = fields.number(-U32_MAX)

    @property
    def counts(self) -> tuple[int, ...]:
        """By state."""
        return (self.waiting, self.claimed, self.completed, self.scheduled, self.blocked, self.cancelled,
                self.dead)


@attrs.frozen
class Counted(Message):
    """Rows are sums over all partitions. ``partitions`` and ``led`` are empty."""

    request: int = fields.number()
    partitions: bytes = fields.partitions()
    led: bytes = fields.partitions()
    rows: tuple[CountRow, ...] = fields.rows(CountRow, 100_000)


@attrs.frozen
class List(Message):
    """A page of tasks in id order, behind ``after``; of a queue, or of all.

    ``states``: a bit for each number of ``model.state``; 0 for any. ``since_ms`` and ``until_ms``: asked for then
    or later, and before (0: no bound); the body of a task with a unique name tells when, the id of others.
    ``place``: of all partitions (0), or of the one before this number. ``with_errors``: with the last errors of
    the tasks.
    """

    roles = ROLE_CLIENT | ROLE_NODE
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


@attrs.frozen
class Listed(Message):
    """The page, perhaps empty. ``upto``: complete up to this id (empty: to the end) on every partition named.

    ``errors``: none, or one for each task: the token of the newest claim that failed with an error, as u64, and
    the error; empty where there is none."""

    columns = ("ids", "bodies", "histories")
    request: int = fields.number()
    partitions: bytes = fields.partitions()
    upto: bytes = fields.blob(20, 20)
    ids: bytes = fields.ids()
    bodies: Column = fields.strings()
    histories: Column = fields.strings()
    errors: Column = fields.strings(default=Column(), since=3)


@attrs.frozen
class Describe(Message):
    """Ask for the cluster as this node sees it; with ``reads_unproven`` also whether claims count without a
    proof."""

    roles = ROLE_CLIENT
    request: int = fields.number()
    reads_unproven: bool = fields.truth(default=False, since=1)


@attrs.frozen
class PartitionRow:
    """A partition: its leader and epoch, its owners, and its voters (others than the owners while data moves)."""

    partition: int = fields.partition()
    epoch: int = fields.epoch(0)
    leader: str = fields.wide_name(is_optional=True)
    owners: tuple[str, ...] = fields.names()
    cohort: tuple[str, ...] = fields.names()


@attrs.frozen
class MoveRow:
    """A partition's data on its way: ``node`` fills (``learner``), fills again because its memory is not to
    be trusted (``suspect``), or hands off (``zombie``). ``rows`` have moved so far; done once all have."""

    partition: int = fields.partition()
    node: str = fields.wide_name()
    role: str = fields.name()
    rows: int = fields.number()
    is_done: bool = fields.truth()
    reason: str = fields.text(200)


@attrs.frozen
class NodeRow:
    """A registered node. ``clock`` is a ``Verdict`` on it, ``offset_ms`` how far it is ahead of the agreed
    time (of the answering node's clock when none is agreed), give or take ``error_ms``. ``release``: the program
    that it runs, and ``rules`` the newest rules that this program knows; empty and 0 where it has not said.
    ``is_silent``: it is live by ZooKeeper's word, and the answering node has heard nothing of it for long.
    ``workers`` report to it, which run so many tasks at once as they have ``slots``."""

    name: str = fields.wide_name()
    is_live: bool = fields.truth()
    leads: int = fields.number()
    owns: int = fields.number()
    clock: str = fields.text(20, default="unheard")
    offset_ms: int = fields.number(-U63_MAX, default=0)
    error_ms: int = fields.number(default=0)
    release: str = fields.text(64, default="", since=3)
    rules: int = fields.number(default=0, since=3)
    is_silent: bool = fields.truth(default=False, since=3)
    workers: int = fields.number(default=0, since=3)
    slots: int = fields.number(default=0, since=3)


@attrs.frozen
class CollectionRow:
    """What a node has collected on the partitions that it leads, by its own copies, so that the sum over all nodes
    has each task once. ``sealed_ms``: the time of ids up to which all these partitions are sealed, but for those
    that never were; 0 if none was. ``awaited``: the nodes without which collection does not go on, the first of
    them. ``unarchived``: tasks that have ended and go once an archive has them, young ones included;
    ``unarchived_since_ms``: since when those that are on offer could have gone, 0 where none is."""

    node: str = fields.wide_name()
    collected: int = fields.number()
    sealed_ms: int = fields.number()
    awaited: tuple[str, ...] = fields.names(AWAITED_MAX)
    unarchived: int = fields.number(default=0, since=3)
    unarchived_since_ms: int = fields.moment(default=0, since=3)


@attrs.frozen
class StarvedRow:
    """A live workflow that no slot serves, and why."""

    workflow: str = fields.name()
    reason: str = fields.text(250)


@attrs.frozen
class HeldRow:
    """What operators hold or wish of a partition, as its document says. ``what``: frozen, solo, promotion,
    malformed, force, loss, unled; ``words``: by whom, and why; ``until_ms``: until when, 0 for no end."""

    partition: int = fields.partition()
    what: str = fields.text(16)
    words: str = fields.text(500)
    until_ms: int = fields.moment()


@attrs.frozen
class Described(Message):
    """The cluster as one node sees it. ``paused``: the first of the queues from which it grants nothing.
    ``collections``: of the nodes that delete what ended long ago. ``is_unproven``: claims count without a proof;
    said only to clients that read it. ``starved``: the first of the workflows that no slot serves, of so many.
    ``held``: what operators hold of the partitions that this node keeps."""

    request: int = fields.number()
    node: str = fields.wide_name()
    session: str = fields.text(20)
    nodes: tuple[NodeRow, ...] = fields.rows(NodeRow)
    partitions: tuple[PartitionRow, ...] = fields.rows(PartitionRow, PARTITIONS_MAX)
    moves: tuple[MoveRow, ...] = fields.rows(MoveRow, PARTITIONS_MAX, default=())
    paused: tuple[str, ...] = fields.names(PAUSED_MAX, default=())
    collections: tuple[CollectionRow, ...] = fields.rows(CollectionRow, default=())
    is_unproven: bool = fields.truth(default=False, since=1)
    starved: tuple[StarvedRow, ...] = fields.rows(StarvedRow, STARVED_MAX, default=(), since=3)
    starved_count: int = fields.number(default=0, since=3)
    held: tuple[HeldRow, ...] = fields.rows(HeldRow, PARTITIONS_MAX, default=(), since=3)

    @property
    def workers(self) -> int:
        """How many workers report to the nodes; one that has just changed its node counts twice."""
        return sum(node.workers for node in self.nodes)

    @property
    def slots(self) -> int:
        """How many tasks they run at once."""
        return sum(node.slots for node in self.nodes)
