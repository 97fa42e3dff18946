"""The life of a claim, as its holder tells it: taken, renewed, logged, completed.

Nodes pass some of it on as it is, to the leader or to the owners.
"""

from __future__ import annotations

import attrs

from skuld_py.config import LEASE_MS_MAX
from skuld_py.model import fields
from skuld_py.model.bounds import U32_MAX
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, ClaimBatch, Message


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

    ``withheld``: why there are none though tasks may wait: ``paused``, its queue is; ``limited``, its limits allow
    no more claims just now; ``capped``, they allow its holder no more; ``leaderless``, some partitions have no
    leader, and what waits there nobody can grant. Empty when nothing waits, or when the answering node does not
    know why, or is of an older release."""

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

    ``unknown``: rows, by index, whose leader did not answer in time, so that they may be renewed or not, or has to
    wait for a barrier and renewed none; of a leader of an earlier release those are lost. ``cancelled``:
    rows whose task is cancelled: their holders should stop and release, though the lease runs on. To
    ``Conclude``, a row's end is when its task may be claimed again, and of a release the end of its lease.
    """

    request: int = fields.number()
    ends: bytes = fields.u64s()
    unknown: bytes = fields.u64s(default=b"")
    cancelled: bytes = fields.u64s(default=b"")


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
