"""A claim as its holder has it: a task under a lease, and the names by which others may act on it.

The clock that a deadline is counted by travels with it, so that a claim made in virtual time ends in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.model import ids as task_ids
from skuld_py.model.body import Header, header_of
from skuld_py.model.ids import TaskId
from skuld_py.model.message import ClaimBatch
from skuld_py.model.prelude import Prelude


class ClaimKey(Protocol):
    """What names a claim: a task's id and a fencing token."""

    @property
    def id(self) -> bytes:
        """The task."""

    @property
    def token(self) -> int:
        """The fencing token."""


@attrs.frozen
class ClaimName:
    """A claim known by id and token alone, from another process, say."""

    id: bytes
    token: int


@attrs.define
class HeldClaim:
    """A claim known by id and token alone, of which its holder learns by renewing that its task is cancelled."""

    id: bytes
    token: int
    is_cancelled: bool = False


@attrs.define
class Claim:
    """A task held under a lease. ``deadline``, by ``clock`` in seconds, is when the holder must stop.

    ``is_cancelled``: nobody wants the task done any more, as the last renewal said; stop and release it.
    ``headers`` are what its producer gave besides the payload.
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

    @property
    def remaining_s(self) -> float:
        """Seconds of lease left, by this machine's clock."""
        return self.deadline - self.clock()


def claims_of(batch: ClaimBatch, deadline: float, clock: Callable[[], float] = steady_s) -> list[Claim]:
    """The claims of a batch as granted. Tasks of one header mostly come in a row, so it is looked up when it
    changes; a body begins with the size of its header, so it has the header that it begins with."""
    claims: list[Claim] = []
    known: dict[bytes, tuple[Header, Mapping[str, str]]] = {}
    header: Header | None = None
    head, end_ms = b"", batch.end_ms
    rows = zip(map(TaskId, task_ids.split(batch.ids)), batch.bodies.unpack(), strict=True)
    for token, (task_id, body) in enumerate(rows, batch.first_token):
        if header is None or not body.startswith(head):
            head = body[: 2 + int.from_bytes(body[:2], "big")]
            if head not in known:
                parsed = header_of(body)
                known[head] = parsed, MappingProxyType(dict(parsed.headers))
            header, headers = known[head]
            queue, priority, size = header.queue, header.priority, len(head)
        start = size + Prelude.decode(header.prelude, body[size:])[1] if header.prelude else size
        claims.append(Claim(task_id, token, queue, priority, body[start:], end_ms, deadline, 0, False, clock,
                            headers))
    return claims
