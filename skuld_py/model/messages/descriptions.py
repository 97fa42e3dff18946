"""The cluster as one node sees it, for operators and monitoring."""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.messages.message import ROLE_CLIENT, Message

PAUSED_MAX = 1_000
STARVED_MAX = 100
"""Paused queues, and starved workflows, that a description names."""
AWAITED_MAX = 64
"""At most this many of the nodes that collection waits for are named."""


@attrs.frozen
class Describe(Message):
    """Ask for the cluster as this node sees it; with ``reads_unproven`` also whether claims count without a
    proof."""

    roles = ROLE_CLIENT
    is_reading = True
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
    """A registered node, or one that is taken out and still runs (``is_leaving``). ``clock`` is a ``Verdict`` on
    it, ``offset_ms`` how far it is ahead of the agreed time (of the answering node's clock when none is agreed),
    give or take ``error_ms``. ``release``: the program
    that it runs, and ``rules`` the newest rules that this program knows; empty and 0 where it has not said.
    ``is_silent``: it is live by ZooKeeper's word, and the answering node has heard nothing of it for long.
    ``workers`` report to it, which run so many tasks at once as they have ``slots``. ``watches``: the node whose
    death it notices, by the ring in the coordination log; empty for a node that is alone, or down."""

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
    is_leaving: bool = fields.truth(default=False, since=5)
    watches: str = fields.text(200, default="", since=5)


@attrs.frozen
class CollectionRow:
    """What a node has collected on the partitions that it leads, by its own copies, so that the sum over all nodes
    has each task once. ``sealed_ms``: the time of ids up to which all these partitions are sealed, or have
    nothing, but for those that were never sealed; 0 if none was. ``awaited``: the nodes without which collection
    does not go on, the first of them. ``unarchived``: tasks that have ended and go once an archive has them, young
    ones included; ``unarchived_since_ms``: since when those that are on offer could have gone, 0 where none is.
    ``collected_per_s``: how many went in a second, over the last few."""

    node: str = fields.wide_name()
    collected: int = fields.number()
    sealed_ms: int = fields.number()
    awaited: tuple[str, ...] = fields.names(AWAITED_MAX)
    unarchived: int = fields.number(default=0, since=3)
    unarchived_since_ms: int = fields.moment(default=0, since=3)
    collected_per_s: int = fields.number(default=0, since=3)


@attrs.frozen
class StarvedRow:
    """A live workflow that no slot serves, and why."""

    workflow: str = fields.name()
    reason: str = fields.text(250)


@attrs.frozen
class HeldRow:
    """What operators hold or wish of a partition, as its document says. ``what``: frozen, solo, promotion,
    malformed, force, loss, barrier, horizon, unled, floor, quarantine; ``words``: by whom, and why; ``until_ms``:
    until when, 0 for no end."""

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
