"""A claim as its holder has it: a task under a lease, and the names by which others may act on it.

The clock that a deadline is counted by travels with it, so that a claim made in virtual time ends in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from types import MappingProxyType
from typing import Protocol

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.model import columns
from skuld_py.model import ids as task_ids
from skuld_py.model.body import Header, header_of
from skuld_py.model.fields import PROOF_BYTES
from skuld_py.model.ids import TaskId
from skuld_py.model.messages.message import ClaimBatch
from skuld_py.model.prelude import Prelude

LEASE_S = 60.0
"""How long a claim is held where nobody says how long."""


class ClaimKey(Protocol):
    """What names a claim: a task's id and a fencing token; and the proof that it was granted."""

    @property
    def id(self) -> bytes | str:
        """The task."""

    @property
    def token(self) -> int:
        """The fencing token."""

    @property
    def proof(self) -> bytes | str:
        """What came with the claim, for its holder alone; empty from clusters without proofs."""


@attrs.frozen
class ClaimName:
    """A claim known by these three, from another process, say: ``ClaimName(claim.id, claim.token, claim.proof)``.

    The id and the proof may be text, as the command line and HTTP have them.
    """

    id: bytes | str
    token: int
    proof: bytes | str = attrs.field(default=b"", repr=False)


@attrs.define
class HeldClaim:
    """The same, and its holder learns by renewing when it ends, by the leader's clock, and that its task is
    cancelled."""

    id: bytes
    token: int
    proof: bytes = attrs.field(default=b"", repr=False)
    is_cancelled: bool = False
    end_ms: int = 0


@attrs.define
class Claim:
    """A task held under a lease. ``deadline``, by ``clock`` in seconds, is when the holder must stop.

    ``is_cancelled``: nobody wants the task done any more, as the last renewal said; stop and release it.
    ``headers`` are what its producer gave besides the payload. ``lease_s`` is how long it was claimed for.
    ``token`` fences: larger is newer, for whatever the task writes to. ``proof`` shows that the claim was granted;
    who is to act on the claim needs it, too.
    """

    id: TaskId
    token: int
    queue: str
    priority: int
    payload: bytes
    end_ms: int
    deadline: float
    next_seq: int = 0
    is_cancelled: bool = False
    clock: Callable[[], float] = attrs.field(default=steady_s, eq=False, repr=False)
    headers: Mapping[str, str] = MappingProxyType({})
    lease_s: float = LEASE_S
    proof: bytes = attrs.field(default=b"", repr=False)
    is_noting: bool = attrs.field(default=False, init=False, eq=False, repr=False)

    @property
    def remaining_s(self) -> float:
        """Seconds of lease left, by this machine's clock."""
        return self.deadline - self.clock()


def claims_of(batch: ClaimBatch, deadline: float, clock: Callable[[], float] = steady_s,
              lease_s: float = LEASE_S) -> list[Claim]:
    """The claims of a batch as granted. Tasks of one header mostly come in a row, so it is looked up when it
    changes; a body begins with the size of its header, so it has the header that it begins with."""
    claims: list[Claim] = []
    known: dict[bytes, tuple[Header, Mapping[str, str]]] = {}
    header: Header | None = None
    head, end_ms = b"", batch.end_ms
    bodies = batch.bodies.unpack()
    proofs = columns.split(batch.proofs, PROOF_BYTES) if batch.proofs else repeat(b"", len(bodies))
    rows = zip(map(TaskId, task_ids.split(batch.ids)), bodies, proofs, strict=True)
    for token, (task_id, body, proof) in enumerate(rows, batch.first_token):
        if header is None or not body.startswith(head):
            head = body[: 2 + int.from_bytes(body[:2], "big")]
            if head not in known:
                parsed = header_of(body)
                known[head] = parsed, MappingProxyType(dict(parsed.headers))
            header, headers = known[head]
            queue, priority, size = header.queue, header.priority, len(head)
        start = size + Prelude.decode(header.prelude, body[size:])[1] if header.prelude else size
        claims.append(Claim(task_id, token, queue, priority, body[start:], end_ms, deadline, 0, False, clock,
                            headers, lease_s, proof))
    return claims
