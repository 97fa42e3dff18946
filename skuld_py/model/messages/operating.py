"""How operators hold partitions where they are, and wish who leads them; and how they take nodes out.

Any node takes it, for some partitions at a time: it reads each document, changes it and swaps it. Repeated it
comes to the same, so an answer that was lost is asked for again.
"""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.messages.message import ROLE_CLIENT, Message

STEERED_MAX = 64
"""Partitions that one request is about."""
REVISIONS_MAX = 512
"""Revisions of one answer."""
CAUSE_CHARS = 1_000
REASON_CHARS, BY_CHARS, KIND_CHARS = 250, 200, 16


@attrs.frozen
class Steer(Message):
    """Do that to ``count`` partitions from ``first`` on (0: as many as a request may be about). ``kind``: freeze,
    unfreeze, solo, normal; lead, reorder, quarantine, unquarantine, reap, all of the node
    ``target``; rebalance, withdraw; force, noted. Nodes of an earlier release know no withdraw, and refuse it.
    ``for_ms``: how long it holds, 0 for as long as it may; ``epoch``: only while this one is the newest, 0 for
    any."""

    roles = ROLE_CLIENT
    since = 3
    request: int = fields.number()
    kind: str = fields.text(KIND_CHARS)
    first: int = fields.number(0, PARTITIONS_MAX)
    count: int = fields.number(0, STEERED_MAX)
    target: str = fields.wide_name(is_optional=True)
    by: str = fields.text(BY_CHARS)
    reason: str = fields.text(REASON_CHARS)
    for_ms: int = fields.number()
    epoch: int = fields.number()


@attrs.frozen
class RefusalRow:
    """Why a partition's document was not changed. ``is_uncertain``: it may have been."""

    partition: int = fields.partition()
    reason: str = fields.text()
    is_uncertain: bool = fields.truth(default=False, since=5)


@attrs.frozen
class FrozenRow:
    """A partition that the node named goes on leading as it is frozen: by whom, and until when, 0 for no end."""

    partition: int = fields.partition()
    by: str = fields.text(BY_CHARS)
    until_ms: int = fields.moment()


@attrs.frozen
class Steered(Message):
    """``changed``: how many documents it made another of; ``refused``: those where it cannot be; ``next``: where
    to go on, 0 behind the last partition. ``frozen``: those where what was asked for begins only once they are
    not frozen any more."""

    since = 3
    request: int = fields.number()
    changed: int = fields.number()
    next: int = fields.number()
    refused: tuple[RefusalRow, ...] = fields.rows(RefusalRow, STEERED_MAX)
    frozen: tuple[FrozenRow, ...] = fields.rows(FrozenRow, STEERED_MAX, default=(), since=5)


@attrs.frozen
class Retire(Message):
    """Place nothing on a node any more, alive or dead, so that it hands on what it has; ``is_back``: place it
    again. Written into the coordination log. Answered by ``Decreed``, of no workflow; refused as ``unknown_node``,
    and as ``too_few_nodes`` where too few would be left to keep all copies."""

    roles = ROLE_CLIENT
    since = 5
    request: int = fields.number()
    node: str = fields.wide_name()
    is_back: bool = fields.truth()


@attrs.frozen
class Recall(Message):
    """Tell the newest revisions of the documents of ``count`` partitions from ``first`` on (0: as many as an
    answer has room for), at most ``most`` of each (0: as many as are kept)."""

    roles = ROLE_CLIENT
    since = 3
    is_reading = True
    request: int = fields.number()
    first: int = fields.number(0, PARTITIONS_MAX)
    count: int = fields.number(0, STEERED_MAX)
    most: int = fields.number(0, REVISIONS_MAX)


@attrs.frozen
class RevisionRow:
    """Who wrote a partition's document, why, and what it said then of leader and voters."""

    partition: int = fields.partition()
    version: int = fields.number()
    epoch: int = fields.epoch(0)
    leader: str = fields.wide_name(is_optional=True)
    voters: tuple[str, ...] = fields.names()
    writer: str = fields.text(BY_CHARS)
    cause: str = fields.text(CAUSE_CHARS)
    write_id: str = fields.text(BY_CHARS)
    at_ms: int = fields.moment()


@attrs.frozen
class Recalled(Message):
    """The revisions, of each partition the newest first; ``next``: where to go on, 0 behind the last partition."""

    since = 3
    request: int = fields.number()
    next: int = fields.number()
    rows: tuple[RevisionRow, ...] = fields.rows(RevisionRow, REVISIONS_MAX)
