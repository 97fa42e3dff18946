"""A claim as its holder has it: a task under a lease, and the names by which others may act on it.

The clock that a deadline is counted by travels with it, so that a claim made in virtual time ends in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, repeat
from types import MappingProxyType
from typing import Protocol

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, header_of
from skuld_py.model.bounds import PROOF_BYTES
from skuld_py.model.ids import TaskId
from skuld_py.model.prelude import Prelude

LEASE_S = 60.0
"""The lease of a claim where none is given."""


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
    """A claim key whose renewals note when the claim ends, by the leader's clock, and whether its task is
    cancelled."""

    id: bytes
    token: int
    proof: bytes = attrs.field(default=b"", repr=False)
    is_cancelled: bool = False
    end_ms: int = 0


@attrs.define
class Claim:
    """A task held under a lease. ``deadline``, by ``clock`` in seconds, is when the holder must stop.

    ``is_cancelled``: the last renewal said that the task is cancelled; stop and release it. ``headers`` are what
    its producer gave besides the payload. ``lease_s`` is how long it was claimed for. ``token`` fences: larger is
    newer, for whatever the task writes to. ``proof`` shows that the claim was granted; another process that acts
    on the claim needs it, too. ``is_first``: as far as its leader knew, the task was never claimed before; False
    from nodes of older releases, which say nothing of it.
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
    is_first: bool = attrs.field(default=False, eq=False, repr=False)
    is_noting: bool = attrs.field(default=False, init=False, eq=False, repr=False)
    next_number: int = attrs.field(default=0, init=False, eq=False, repr=False)
    """Of its next checkpoint."""

    @property
    def remaining_s(self) -> float:
        """Seconds of lease left, by this machine's clock."""
        return self.deadline - self.clock()


class Claims(list[Claim]):
    """What a claim was granted, best first. ``withheld``: why it is empty though tasks may wait, ``paused``,
    ``limited``, ``capped`` or ``leaderless``; empty when none waits, or nodes of an older release were asked."""

    withheld: str = ""


def claims_of(batch: m.ClaimBatch, deadline: float, clock: Callable[[], float] = steady_s,
              lease_s: float = LEASE_S) -> list[Claim]:
    """The claims of a batch as granted. Tasks of one header mostly come in a row, and are made together."""
    claims: list[Claim] = []
    task_ids, bodies = list(map(TaskId, ids.split(batch.ids))), batch.bodies.unpack()
    proofs = columns.split(batch.proofs, PROOF_BYTES) if batch.proofs else [b""] * len(bodies)
    known: dict[bytes, tuple[Header, Mapping[str, str]]] = {}
    while (start := len(claims)) < len(task_ids):
        head, run = _run(bodies, start)
        if head not in known:
            parsed = header_of(run[0])
            known[head] = parsed, MappingProxyType(dict(parsed.headers))
        header, headers = known[head]
        end, size = start + len(run), len(head)
        payloads = ([body[size + Prelude.decode(header.prelude, body[size:])[1]:] for body in run]
                    if header.prelude else [body[size:] for body in run])
        claims += map(Claim, task_ids[start:end], count(batch.first_token + start), repeat(header.queue),
                      repeat(header.priority), payloads, repeat(batch.end_ms), repeat(deadline), repeat(0),
                      repeat(False), repeat(clock), repeat(headers), repeat(lease_s), proofs[start:end],
                      repeat(batch.is_first))
    return claims


def _run(bodies: Sequence[bytes], start: int) -> tuple[bytes, Sequence[bytes]]:
    """The header of a body, as bytes, and the bodies from there on that have it. A body begins with the size of
    its header, so it has the header that it begins with."""
    first, end = bodies[start], start + 1
    head = first[: 2 + int.from_bytes(first[:2], "big")]
    while end < len(bodies) and bodies[end].startswith(head):
        end += 1
    return head, bodies[start:end]
