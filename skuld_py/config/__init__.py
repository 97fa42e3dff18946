"""Every bound in one place, with its unit in its name and its reason beside it.

``Parameters`` are the cluster's: fixed at creation, kept in ZooKeeper, equal on every node. ``Limits`` say what a
message may hold. Of nodes alone are ``timing``, the durations of a node's machine, and ``scaling``, what large
clusters switch on; a client never loads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from skuld_py.errors import Refused

RULES = 6
"""The newest rules of a cluster that this program can go by. Rules 2: a place belongs to its node's newest life,
and failures have no words in the digest. Rules 3: nodes speak protocol 3 to each other, and the log carries
workflows. Rules 4: tasks may be there instead of others, queues have caps for each holder, inputs of workflows
several feeders, and the number of copies of a task may change. Rules 5: nodes speak protocol 5, in which they
look for tasks of a key, are taken out by any of them, and say whom they watch and what may have been done.
Rules 6: it is noted when a task died of one that it needed, and nodes speak protocol 6."""
PROTOCOLS = (1, 3, 5, 6)
"""What this program understands, the oldest first."""
PROTOCOL_VERSION = PROTOCOLS[-1]
GREETING_PROTOCOL = 3
"""Clients greet in this one first: the oldest in which the answer says what the nodes speak."""
FAREWELL_PROTOCOL = 3
"""Clients that speak this one know a node's farewell."""
PARTITIONS_MAX = 1 << 12
REPLICAS_MAX = 9
LEASE_MS_MAX = 24 * 3600 * 1000
BATCHES_MAX = 64
"""Of one worker that are told of: it has one for each function and queue, and no more than slots."""
FUNCTION_CHARS = 200
REPORT_LEASE_MS_MAX = 600_000
"""For so long at most is a worker's report valid."""
SKEW_MS_MAX = 3600 * 1000
AHEAD_MS_MAX = 3_660 * 24 * 3600 * 1000
"""A task's times lie no farther ahead by a node's clock: ten years, and ten days over what clients allow, so that
no node refuses what another has stored. What is beyond was counted in another unit."""


@attrs.frozen
class FormerKey:
    """A key by which claims were proved. Claims that it proves are renewed until ``renewed_until_ms``, and count
    until ``until_ms``, when the last lease has ended that a renewal gave."""

    key: str = attrs.field(repr=False)
    renewed_until_ms: int
    until_ms: int


def _former_keys(given: Iterable[FormerKey | Mapping[str, Any]]) -> tuple[FormerKey, ...]:
    """As they are, or as JSON has them."""
    return tuple(each if isinstance(each, FormerKey) else FormerKey(**each) for each in given)


@attrs.frozen
class Parameters:
    """What a cluster is: ``partitions`` slices, ``replicas`` copies when it was created (the log says how many
    now), clocks within ``skew_ms``."""

    cluster: str
    cluster_id: str
    partitions: int = 8
    replicas: int = 3
    skew_ms: int = 2_000
    """How far two nodes' clocks may differ; a lapsed claim is granted again at its end plus this."""
    rules: int = RULES
    """The rules by which the coordination log begins; later rules are set by an entry of it."""
    claim_key: str = attrs.field(default="", repr=False)
    """With this (32 bytes, as hex digits) nodes prove that a claim was granted: see ``model.proofs``. Nodes know
    it, and all that may read ZooKeeper; no message has it. Empty: the cluster was made by an earlier release and
    not upgraded, and any token is taken for a claim's."""
    proofs_from_ms: int = 0
    """Until then claims without a proof are taken, since they may have been granted before there was a key."""
    claim_from_ms: int = 0
    """From then on claims are proved by ``claim_key``; until then by the first of the former keys. Meanwhile all
    nodes get to know it."""
    former_keys: tuple[FormerKey, ...] = attrs.field(default=(), converter=_former_keys)
    """The newest first."""

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX or self.partitions & (self.partitions - 1):
            raise Refused("bad_partitions", f"partitions: {self.partitions} is not a power of two in"
                          f" 1..{PARTITIONS_MAX}; use 8, 16, 32 or 64", partitions=self.partitions)
        if not 1 <= self.replicas <= REPLICAS_MAX:
            raise Refused("bad_replicas", f"replicas: {self.replicas} is not in 1..{REPLICAS_MAX};"
                          " use 3, or 1 for a single machine", replicas=self.replicas)
        if not 0 < self.skew_ms <= SKEW_MS_MAX:
            raise Refused("bad_skew", f"skew_ms: {self.skew_ms} is not in 1..{SKEW_MS_MAX}",
                          skew_ms=self.skew_ms)
        for key in (self.claim_key, *(former.key for former in self.former_keys)):
            if key and not re.fullmatch("[0-9a-f]{64}", key, re.ASCII):
                raise Refused("bad_key", "claim_key: is no key, which has 64 hex digits")


def protocol_of(rules: int) -> int:
    """What all members of a cluster under these rules understand. Protocols have the numbers of the rules that
    brought them, so that an operator raises one number."""
    return max(protocol for protocol in PROTOCOLS if protocol <= max(rules, PROTOCOLS[0]))


@attrs.frozen
class Limits:
    """What one message may hold. A sender checks them too, so that a receiver never must drop."""

    payload_bytes: int = 1 << 20
    entry_bytes: int = 1 << 16
    batch_tasks: int = 1_000
    batch_bytes: int = 24 << 20
    """Payload bytes of one request; the frame limit of the transport leaves room above it."""
    message_bytes: int = 32 << 20
    log_entries: int = 10_000
    """What one read shows of a task's log, from its end; the rest is kept, and read page by page."""
    log_bytes: int = 1 << 20
    page_rows: int = 1_000
    page_bytes: int = 4 << 20
    requests: int = 20_000
    """Open operations of one coordinator; beyond it a node answers ``busy``..."""
    holders_requests: int = 1_000
    """...and this many before, to all but requests that renew or end claims."""
    tokens: int = 1 << 31
    """Claims granted in one leadership; then its leader stands for a new epoch, long before the 32 bits of a
    token's counter are full."""
    parked_claims: int = 5_000
    """Claims that wait at a node; one more is refused as ``busy``, when there is nothing for it..."""
    parked_claims_each: int = 1_000
    """...and those of one connection."""
    waits: int = 5_000
    """Waits for ends of tasks, and for more of their logs, at a node..."""
    waits_each: int = 1_000
    """...and those of one connection: each is looked at anew now and then."""
    listings: int = 32
    """Listings, and counts of all queues, for which a coordinator may have a page on order: each takes some tens
    of milliseconds of every node..."""
    listings_each: int = 16
    """...and those of one connection."""
    partitions: int = PARTITIONS_MAX
    """Partitions are numbered below this; a node's limits have its cluster's count."""


DEFAULT_LIMITS = Limits()
