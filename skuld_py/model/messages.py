"""Every message, in protocol order: what clients ask, what owners are told, how leaders are made.

Requests are verbs, answers their participles. ``request`` numbers an operation of the sender and
comes back in the answer. Work is in columns: a message names many tasks, never one.

``is_promise`` says when a message may leave. One that promises nothing (data on its way, a
question) may leave before the local commit, so that the disks of a cohort work side by side. Every
other leaves only after the commit of the batch that made it: an acknowledgement means fsynced.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from skuld_py.config import LEASE_MS_MAX
from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.fields import U32_MAX

ROLE_CLIENT, ROLE_NODE = 1, 2


@attrs.frozen
class Message:
    """Root of all messages; ``roles`` are who may send it. ``columns`` are fields with equal counts."""

    is_promise: ClassVar[bool] = True
    roles: ClassVar[int] = ROLE_NODE
    columns: ClassVar[tuple[str, ...]] = ()


@attrs.frozen
class TaskBatch:
    """Tasks that share a header (``model.task.Header``), of one partition when between nodes."""

    columns: ClassVar[tuple[str, ...]] = ("ids", "payloads")
    header: bytes = fields.blob(bytes_max=512)
    ids: bytes = fields.ids()
    payloads: Column = fields.strings()


@attrs.frozen
class ClaimBatch:
    """Claims granted together: ``bodies`` are body records, leases run to ``end_ms``."""

    columns: ClassVar[tuple[str, ...]] = ("ids", "bodies")
    ids: bytes = fields.ids()
    first_token: int = fields.number()
    end_ms: int = fields.number()
    bodies: Column = fields.strings()


# -- clients and their answers -------------------------------------------------------------------


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
    """What a client must know. ``floor_ms``: mint no id at or below it."""

    request: int = fields.number()
    node: str = fields.wide_name()
    cluster: str = fields.name()
    partitions: int = fields.number()
    replicas: int = fields.number()
    skew_ms: int = fields.number()
    floor_ms: int = fields.number()
    payload_bytes_max: int = fields.number()
    members: tuple[MemberRow, ...] = fields.rows(MemberRow)


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
    """``copies`` fsynced copies exist, of the least copied task."""

    request: int = fields.number()
    copies: int = fields.number()


@attrs.frozen
class Claim(Message):
    """Up to ``count`` tasks of a queue for ``holder``; wait up to ``wait_ms`` for the first."""

    roles = ROLE_CLIENT
    request: int = fields.number()
    queue: str = fields.name()
    count: int = fields.number(1, 1_000)
    lease_ms: int = fields.lease()
    wait_ms: int = fields.number(0, LEASE_MS_MAX)
    holder: str = fields.wide_name()


@attrs.frozen
class Claimed(Message):
    """Granted claims, best first; none when nothing waits. Parked for ``waited_ms`` before the grant."""

    request: int = fields.number()
    waited_ms: int = fields.number()
    batches: tuple[ClaimBatch, ...] = fields.rows(ClaimBatch)


@attrs.frozen
class Renew(Message):
    """Extend claims by ``lease_ms`` from now; 0 releases them. From a client, or passed to a leader."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "tokens")
    request: int = fields.number()
    lease_ms: int = fields.number(0, LEASE_MS_MAX)
    ids: bytes = fields.ids()
    tokens: bytes = fields.u64s()


@attrs.frozen
class Renewed(Message):
    """New ends; 0 where the claim is lost."""

    request: int = fields.number()
    ends: bytes = fields.u64s()


@attrs.frozen
class Append(Message):
    """Log entries ``seq``.. of a claim; to a node, then to the owners."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    w: int = fields.number(0, 9)
    id: bytes = fields.ids()
    token: int = fields.number()
    seq: int = fields.number(0, U32_MAX)
    entries: Column = fields.strings()


@attrs.frozen
class Complete(Message):
    """Record completions; to a node, then to the owners. ``at_ms`` is the coordinator's, 0 before."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    columns = ("ids", "tokens")
    request: int = fields.number()
    w: int = fields.number(0, 9)
    at_ms: int = fields.number()
    ids: bytes = fields.ids()
    tokens: bytes = fields.u64s()


@attrs.frozen
class Get(Message):
    """Tasks by id; to a node, then to the owners."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    ids: bytes = fields.ids()


@attrs.frozen
class TaskRow:
    """A task's records on one replica; empty where it has none."""

    columns: ClassVar[tuple[str, ...]] = ("tokens", "seqs", "entries")
    id: bytes = fields.ids()
    body: Column = fields.strings(1)
    history: bytes = fields.blob()
    tokens: bytes = fields.u64s()
    seqs: bytes = fields.u64s()
    entries: Column = fields.strings()


@attrs.frozen
class Got(Message):
    """The tasks that exist."""

    request: int = fields.number()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)


@attrs.frozen
class Count(Message):
    """Counts of a queue, or of all (``""``); to a node, then to all nodes."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    queue: str = fields.name(is_optional=True)


@attrs.frozen
class CountRow:
    """Counts of one queue in one partition."""

    partition: int = fields.number()
    queue: str = fields.name()
    waiting: int = fields.number(-U32_MAX)
    claimed: int = fields.number(-U32_MAX)
    completed: int = fields.number(-U32_MAX)


@attrs.frozen
class Counted(Message):
    """``partitions`` says which ones the answering node owns; to a client, rows are summed."""

    request: int = fields.number()
    partitions: bytes = fields.u64s()
    led: bytes = fields.u64s()
    rows: tuple[CountRow, ...] = fields.rows(CountRow, 100_000)


@attrs.frozen
class List(Message):
    """A page of tasks in id order, behind ``after``; of a queue, or of all."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    queue: str = fields.name(is_optional=True)
    after: bytes = fields.blob(20, 20)
    limit: int = fields.number(1, 1_000)


@attrs.frozen
class Listed(Message):
    """The page. ``upto``: complete up to this id (empty: to the end) on every partition named."""

    columns = ("ids", "bodies", "histories")
    request: int = fields.number()
    partitions: bytes = fields.u64s()
    upto: bytes = fields.blob(20, 20)
    ids: bytes = fields.ids()
    bodies: Column = fields.strings()
    histories: Column = fields.strings()


@attrs.frozen
class Describe(Message):
    """Ask for the cluster as this node sees it."""

    roles = ROLE_CLIENT
    request: int = fields.number()


@attrs.frozen
class PartitionRow:
    """A partition: who leads it since which epoch, who owns it."""

    partition: int = fields.number()
    epoch: int = fields.number()
    leader: str = fields.wide_name(is_optional=True)
    owners: tuple[str, ...] = fields.names()


@attrs.frozen
class NodeRow:
    """A registered node."""

    name: str = fields.wide_name()
    is_live: bool = fields.truth()
    leads: int = fields.number()
    owns: int = fields.number()


@attrs.frozen
class Described(Message):
    """The cluster as one node sees it."""

    request: int = fields.number()
    node: str = fields.wide_name()
    session: str = fields.text(20)
    nodes: tuple[NodeRow, ...] = fields.rows(NodeRow)
    partitions: tuple[PartitionRow, ...] = fields.rows(PartitionRow, 4_096)


# -- owners of a partition -----------------------------------------------------------------------


@attrs.frozen
class Replicate(Message):
    """Keep these tasks."""

    is_promise = False
    request: int = fields.number()
    batches: tuple[TaskBatch, ...] = fields.rows(TaskBatch)


@attrs.frozen
class Kept(Message):
    """Fsynced; except ``refused``, which exist with other content."""

    request: int = fields.number()
    refused: bytes = fields.ids()


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
    """The leader asks its cohort to record claims; ``places`` are ready-index places."""

    columns = ("ids", "priorities")
    request: int = fields.number()
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    first_token: int = fields.number()
    start_ms: int = fields.number()
    end_ms: int = fields.number()
    holder: str = fields.wide_name()
    queue: str = fields.name()
    ids: bytes = fields.ids()
    priorities: bytes = fields.blob(4, 4_000)


@attrs.frozen
class Granted(Message):
    """Recorded and fsynced, except ``vetoed`` indexes; or refused whole, with the newer epoch."""

    request: int = fields.number()
    partition: int = fields.number()
    promised: int = fields.number()
    is_accepted: bool = fields.truth()
    vetoed: bytes = fields.u64s()


@attrs.frozen
class Amend(Message):
    """The leader renewed or released claims: the histories as they are now, and where the tasks wait.

    Whole histories, not changes: a follower that missed the claim must not acknowledge its renewal
    without recording the claim itself.
    """

    columns = ("ids", "histories", "places")
    request: int = fields.number()
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()


@attrs.frozen
class Amended(Message):
    """Recorded and fsynced, or refused with the newer epoch."""

    request: int = fields.number()
    partition: int = fields.number()
    promised: int = fields.number()
    is_accepted: bool = fields.truth()


# -- elections -----------------------------------------------------------------------------------


@attrs.frozen
class RequestVote(Message):
    """Promise me this epoch of the partition."""

    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)


@attrs.frozen
class Vote(Message):
    """``is_granted``: promised, durably, and nothing older will be recorded here any more."""

    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    is_granted: bool = fields.truth()
    promised: int = fields.number()


@attrs.frozen
class PullClaims(Message):
    """A candidate that holds the receiver's vote reads its live claims, a page at a time."""

    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    after: bytes = fields.blob(1, 64)


@attrs.frozen
class ClaimPage(Message):
    """Live claims behind ``after``; ``next`` is empty on the last page."""

    columns = ("ids", "histories", "places")
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()


@attrs.frozen
class PushClaims(Message):
    """The candidate's live claims, for a voter of the new cohort to keep; page ``after``..``next``."""

    columns = ("ids", "histories", "places")
    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)
    ids: bytes = fields.ids()
    histories: Column = fields.strings()
    places: Column = fields.strings()


@attrs.frozen
class ClaimsKept(Message):
    """The page pushed is fsynced; the next one starts behind ``next``, if there is one."""

    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)
    after: bytes = fields.blob(1, 64)
    next: bytes = fields.blob(1, 64)


# -- gossip and anti-entropy ---------------------------------------------------------------------


@attrs.frozen
class LeaderRow:
    """The sender leads a partition since an epoch."""

    partition: int = fields.number()
    epoch: int = fields.number(1, U32_MAX)


@attrs.frozen
class Gossip(Message):
    """What the sender leads, and queues in which it has tasks to grant. A hint, never a promise."""

    is_promise = False
    leads: tuple[LeaderRow, ...] = fields.rows(LeaderRow, 4_096)
    queues: tuple[str, ...] = fields.names(1_000)


@attrs.frozen
class Invite(Message):
    """Your copy of this partition may lack something: compare it with the other owners."""

    is_promise = False
    partition: int = fields.number()


@attrs.frozen
class Compare(Message):
    """Digests of the sender's tasks behind ``after`` up to ``upto`` (empty: to the end)."""

    is_promise = False
    columns = ("ids", "digests")
    partition: int = fields.number()
    after: bytes = fields.blob(20, 20)
    upto: bytes = fields.blob(20, 20)
    ids: bytes = fields.ids()
    digests: bytes = fields.u64s()


@attrs.frozen
class Compared(Message):
    """What the receiver of ``Compare`` has more, and which ids it wants; covers up to ``upto``."""

    partition: int = fields.number()
    after: bytes = fields.blob(20, 20)
    upto: bytes = fields.blob(20, 20)
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    wanted: bytes = fields.ids()


@attrs.frozen
class Repair(Message):
    """Tasks the receiver asked for."""

    is_promise = False
    partition: int = fields.number()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)


MESSAGES: tuple[type[Message], ...] = (
    Greet, Greeted, Failed, Enqueue, Acked, Claim, Claimed, Renew, Renewed, Append, Complete, Get, Got,
    Count, Counted, List, Listed, Describe, Described, Replicate, Kept, Delegate, Grant, Granted, Amend,
    Amended, RequestVote, Vote, PullClaims, ClaimPage, PushClaims, ClaimsKept, Gossip, Invite, Compare,
    Compared, Repair,
)
"""The operation table: a message's code on the wire is its index here."""
