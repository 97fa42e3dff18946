"""The verbs of a holder: claim, renew, release, add to the log, complete.

A holder's deadline is counted from before the grant can have happened: see ``model.leases``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.client import checking
from skuld_py.client.asking import Ask, Joint, Work, ask, verb
from skuld_py.client.claims import Claim, ClaimKey, claims_of
from skuld_py.client.coalescing import one_by_one
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Fenced, Refused, SkuldError, Uncertain
from skuld_py.model import columns, names
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.leases import holder_deadline

LEASE_S = 60.0
CLAIM_BYTES = task_ids.ID_BYTES + 8
Verdict = tuple[int | None, float]
"""The end of a renewed lease (0: lost, None: nobody knows), and when it was asked for."""


class Holding:
    """Needs the holder's name and its steady clock."""

    holder: str
    _clock: Callable[[], float]

    @verb
    def claim(self, queue: str, *, n: int = 1, lease_s: float = LEASE_S, wait_s: float = 0) -> Work[list[Claim]]:
        """Hold up to ``n`` waiting tasks for ``lease_s``, best first; wait up to ``wait_s`` for one.

        Empty when nothing waits. Order is exact within a partition, approximate across.
        """
        return (yield from self._claim(queue, n, lease_s, wait_s))

    @verb
    def claim_one(self, queue: str, *, lease_s: float = LEASE_S, wait_s: float = 0) -> Work[Claim | None]:
        """Hold the best waiting task, or None."""
        claims = yield from self._claim(queue, 1, lease_s, wait_s)
        return claims[0] if claims else None

    def _claim(self, queue: str, n: int, lease_s: float, wait_s: float) -> Work[list[Claim]]:
        names.check_name("queue", queue)
        lease_ms = checking.as_ms("lease_s", lease_s, least=1)
        wait_ms = checking.as_ms("wait_s", wait_s, least=0)
        if not 1 <= n <= DEFAULT_LIMITS.batch_tasks:
            raise Refused("bad_count", f"n: {n} is not in 1..{DEFAULT_LIMITS.batch_tasks}")
        answer = yield from ask(m.Claimed, m.Claim(0, queue, n, lease_ms, wait_ms, self.holder),
                                is_idempotent=False, wait_s=wait_s, undo=_give_back)
        deadline = holder_deadline(answer.sent, lease_s, answer.message.waited_ms)
        return [claim for batch in answer.message.batches for claim in claims_of(batch, deadline, self._clock)]

    @verb
    def renew(self, claim: ClaimKey, *, lease_s: float = LEASE_S) -> Work[None]:
        """Extend a claim by ``lease_s`` from now; raises ``Fenced`` when it is lost."""
        lease_ms = checking.as_ms("lease_s", lease_s, least=1)

        def together(claims: Sequence[ClaimKey]) -> Work[Sequence[Verdict | SkuldError]]:
            return one_by_one(claims, lambda part: self._renew(part, lease_ms))
        verdict: Verdict = yield Joint(("renew", lease_ms), claim, CLAIM_BYTES, together)
        is_held = _note(claim, verdict, lease_s)
        if is_held is None:
            raise Uncertain("uncertain", "the partition's leader did not answer in time; try again")
        if not is_held:
            raise Fenced(f"claim {claim.token} of {task_ids.to_text(claim.id)} is lost: its lease ended, it was"
                         " released, or the task is completed", id=claim.id, token=claim.token)

    @verb
    def renew_many(self, claims: Sequence[ClaimKey], *, lease_s: float = LEASE_S) -> Work[list[bool | None]]:
        """Extend many claims; says of each whether it is still held.

        None: nobody knows, its leader did not answer in time. Its old deadline holds; try again.
        """
        verdicts = yield from self._renew(claims, checking.as_ms("lease_s", lease_s, least=1))
        return [_note(claim, verdict, lease_s) for claim, verdict in zip(claims, verdicts, strict=True)]

    @verb
    def release(self, *claims: ClaimKey) -> Work[None]:
        """Give claims back: their tasks wait again at once. A lost claim is no error."""
        verdicts = yield from self._renew(claims, 0)
        if any(end_ms is None for end_ms, _ in verdicts):
            raise Uncertain("uncertain", "a leader did not answer in time; what was not released will lapse")

    def _renew(self, claims: Sequence[ClaimKey], lease_ms: int) -> Work[list[Verdict]]:
        verdicts: list[Verdict] = []
        for part in _parts(claims):
            answer = yield from ask(m.Renewed, m.Renew(0, lease_ms, *_named(part)))
            unknown = columns.unpack_u64(answer.message.unknown)
            verdicts += [(None if index in unknown else end_ms, answer.sent)
                         for index, end_ms in enumerate(columns.unpack_u64(answer.message.ends))]
        return verdicts

    @verb
    def update(self, claim: ClaimKey, data: bytes | Sequence[bytes], *, seq: int | None = None,
               w: int | None = None) -> Work[int]:
        """Add entries to the claim's log; gives the next seq.

        Entries are numbered from 0 by the claim's holder. Readers see the contiguous prefix. The same
        seq again with the same data is harmless, with other data refused.
        """
        entries = [data] if isinstance(data, bytes) else list(data)
        if seq is None:
            if not isinstance(claim, Claim):
                raise Refused("bad_seq", "seq: give the number of the first entry, from 0")
            seq = claim.next_seq
        yield from ask(m.Acked, m.Append(0, w or 0, claim.id, claim.token, seq, columns.pack(entries)))
        if isinstance(claim, Claim):
            claim.next_seq = max(claim.next_seq, seq + len(entries))
        return seq + len(entries)

    @verb
    def complete(self, claim: ClaimKey, *, w: int | None = None) -> Work[None]:
        """Record that the task is done; from any claim, however late; it dominates every other fact."""
        def together(claims: Sequence[ClaimKey]) -> Work[Sequence[SkuldError | None]]:
            return one_by_one(claims, lambda part: self._complete(part, w))
        yield Joint(("complete", w), claim, CLAIM_BYTES, together)

    @verb
    def complete_many(self, claims: Sequence[ClaimKey], *, w: int | None = None) -> Work[None]:
        """Complete many claims."""
        yield from self._complete(claims, w)

    def _complete(self, claims: Sequence[ClaimKey], w: int | None) -> Work[list[None]]:
        for part in _parts(claims):
            yield from ask(m.Acked, m.Complete(0, w or 0, 0, *_named(part)))
        return [None] * len(claims)


def _parts(claims: Sequence[ClaimKey]) -> list[Sequence[ClaimKey]]:
    most = DEFAULT_LIMITS.batch_tasks
    return [claims[start : start + most] for start in range(0, len(claims), most)]


def _named(claims: Sequence[ClaimKey]) -> tuple[bytes, bytes]:
    return b"".join(claim.id for claim in claims), columns.pack_u64([claim.token for claim in claims])


def _note(claim: ClaimKey, verdict: Verdict, lease_s: float) -> bool | None:
    """Move the claim's end; say whether it is held."""
    end_ms, sent = verdict
    if end_ms and isinstance(claim, Claim):
        claim.end_ms = end_ms
        claim.deadline = max(claim.deadline, holder_deadline(sent, lease_s))
    return None if end_ms is None else bool(end_ms)


def _give_back(answer: m.Message) -> Ask | None:
    """Claims that nobody waits for any more need not lie until their leases end."""
    if not isinstance(answer, m.Claimed) or not answer.batches:
        return None
    tokens = [batch.first_token + index for batch in answer.batches
              for index in range(len(batch.ids) // task_ids.ID_BYTES)]
    return Ask(m.Renew(0, 0, b"".join(batch.ids for batch in answer.batches), columns.pack_u64(tokens)))
