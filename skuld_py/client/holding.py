"""The verbs of a holder: claim, renew, add to the log, complete; other ways to end a claim are in ``concluding``.

A holder's deadline is counted from before the grant can have happened: see ``model.leases``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Answered, Ask, Joint, Work, as_part, ask, ask_either, verb
from skuld_py.client.claims import LEASE_S, Claim, ClaimKey, Claims, HeldClaim, claims_of
from skuld_py.client.coalescing import one_by_one
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Fenced, Refused, SkuldError, Uncertain
from skuld_py.model import columns, names
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.bounds import PROOF_BYTES
from skuld_py.model.columns import Column
from skuld_py.model.history import RELEASED
from skuld_py.model.leases import holder_deadline

CLAIM_BYTES = task_ids.ID_BYTES + 8 + PROOF_BYTES
ClaimColumns = tuple[bytes, bytes, bytes, Column]
"""Ids, tokens and proofs of claims, and their results or errors."""


class _NoCheckpoint(Enum):
    """A value of its own: None is a checkpoint like others."""

    NONE = "none"


NO_CHECKPOINT = _NoCheckpoint.NONE


@attrs.frozen
class Mark:
    """A checkpoint on its way: its number within the claim, when it was said, and what is stored."""

    number: int
    at_ms: int
    data: bytes


@attrs.frozen
class Verdict:
    """The end of a renewed lease (0: lost, None: unknown), when it was asked for, whether the task is
    cancelled."""

    end_ms: int | None
    sent: float
    is_cancelled: bool


class Holding:
    """Needs the holder's name, its steady clock, and the wall's time."""

    holder: str
    _clock: Callable[[], float]
    _wall_ms: Callable[[], int]

    @verb
    def claim(self, queue: str, *, n: int = 1, lease_s: float = LEASE_S, wait_s: float = 0,
              fence: int = 0) -> Work[Claims]:
        """Hold up to ``n`` waiting tasks for ``lease_s``, nearly the best of all nodes; wait up to ``wait_s``
        for one. As many large payloads as one answer holds.

        Empty when nothing waits; refused as ``no_leader`` where no partition has a leader that could say so. Its
        ``withheld`` says why it is empty though tasks may wait: ``paused``, ``limited``, ``capped`` when this
        holder has as many claims as the queue allows one, or ``leaderless`` when some partitions have no leader.
        Refused as ``lease_too_long`` where the queue allows only shorter ones. Order is exact within a partition,
        approximate across. ``fence``: of the seat that it is for, in the queue of a workflow's step
        (``take_seats``); refused as ``stale_allocation`` when seats have changed since.
        """
        return (yield from self._claim(queue, n, lease_s, wait_s, fence))

    @verb
    def claim_one(self, queue: str, *, lease_s: float = LEASE_S, wait_s: float = 0) -> Work[Claim | None]:
        """Hold the best waiting task, or None."""
        claims = yield from self._claim(queue, 1, lease_s, wait_s)
        return claims[0] if claims else None

    def _claim(self, queue: str, n: int, lease_s: float, wait_s: float, fence: int = 0) -> Work[Claims]:
        names.check_name("queue", queue)
        lease_ms = checking.as_ms("lease_s", lease_s, least=1)
        wait_ms = checking.as_ms("wait_s", wait_s, least=0)
        if not 1 <= n <= DEFAULT_LIMITS.batch_tasks:
            raise Refused("bad_count", f"n: {n} is not in 1..{DEFAULT_LIMITS.batch_tasks}")
        wish = m.Claim(0, queue, n, lease_ms, wait_ms, self.holder, takes_proofs=True,
                       fence=checking.as_fence(fence))
        answer = yield from ask_either(m.Claimed, wish, attrs.evolve(wish, takes_proofs=False),
                                       is_idempotent=False, wait_s=wait_s, undo=_give_back)
        deadline = holder_deadline(answer.sent, lease_s, answer.message.waited_ms)
        claims = Claims()
        claims.withheld = answer.message.withheld
        for batch in answer.message.batches:
            claims += claims_of(batch, deadline, self._clock, lease_s)
        return claims

    @verb
    def renew(self, claim: ClaimKey, *, lease_s: float | None = None) -> Work[None]:
        """Extend a claim by ``lease_s`` from now, or by as much as it was claimed for (60 s where only its name is
        known); its end never comes nearer. Raises ``Fenced`` when it is lost.

        Where the task is cancelled the lease is extended all the same, and ``claim.is_cancelled`` says so.
        """
        lease_s = _lease_of(claim, lease_s)
        lease_ms, key = checking.as_ms("lease_s", lease_s, least=1), checking.as_claim(claim)

        def together(claims: Sequence[ClaimKey]) -> Work[Sequence[Verdict | SkuldError]]:
            return one_by_one(claims, lambda part: self._renew(part, lease_ms))
        verdict: Verdict = yield Joint(("renew", lease_ms), key, CLAIM_BYTES, together)
        is_held = _note(claim, verdict, lease_s)
        if is_held is None:
            raise Uncertain("uncertain", "the partition's leader did not answer in time; try again")
        if not is_held:
            raise fenced(claim)

    @verb
    def renew_many(self, claims: Sequence[ClaimKey], *, lease_s: float | None = None) -> Work[list[bool | None]]:
        """Extend many claims, as ``renew`` does; says of each whether it is still held.

        None: unknown, its leader did not answer in time. Its old deadline holds; try again.
        """
        leases: dict[float, list[int]] = {}
        for index, claim in enumerate(claims):
            leases.setdefault(_lease_of(claim, lease_s), []).append(index)
        held: list[bool | None] = [None] * len(claims)
        for each_s, indexes in leases.items():
            part = [claims[index] for index in indexes]
            verdicts = yield from self._renew(part, checking.as_ms("lease_s", each_s, least=1))
            for index, claim, verdict in zip(indexes, part, verdicts, strict=True):
                held[index] = _note(claim, verdict, each_s)
        return held

    def _renew(self, claims: Sequence[ClaimKey], lease_ms: int) -> Work[list[Verdict]]:
        verdicts: list[Verdict] = []
        for done, named in enumerate([checking.names_of(part) for part in parts_of(claims)]):
            verdicts += verdicts_of((yield from as_part(done, ask(
                m.Renewed, m.Renew(0, lease_ms, *named), doubted=no_loss))))
        return verdicts

    @verb
    def update(self, claim: ClaimKey, data: bytes | str | Sequence[bytes | str] = (), *, seq: int | None = None,
               w: int | None = None, checkpoint: Any = NO_CHECKPOINT, number: int | None = None) -> Work[int]:
        """Add entries to the claim's log, or set the task's checkpoint, or both; gives the next seq.

        Entries are numbered from 0 by the claim's holder. Readers see the contiguous prefix. The same seq again
        with the same data is harmless, with other data refused. Where no ``seq`` is given, one update of a claim
        is under way at a time: the number of the next is known when the one before is stored.

        ``checkpoint``: how far the task is, whatever a task function may return, up to 64 KiB. A task has one;
        that of a later claim replaces it, and within a claim the one with the highest ``number``, which a
        ``Claim`` counts by itself. A majority stores it, whatever ``w``. Refused as ``fenced``, and with it the
        entries, when the claim is over.
        """
        given: Sequence[bytes | str] = data if isinstance(data, list | tuple) else [data]  # type: ignore[list-item]
        entries = [checking.as_entry("entries", entry) for entry in given]
        checking.as_claim(claim)
        mark = self._mark(claim, checkpoint, number)
        if not (mark is None) <= len(entries) <= DEFAULT_LIMITS.batch_tasks:
            raise Refused("bad_count", f"entries: {len(entries)} of them; one call adds 1 to"
                          f" {DEFAULT_LIMITS.batch_tasks:,}")
        if seq is not None:
            return (yield from _append(claim, entries, checking.as_seq("seq", seq), w, mark))
        if not entries:
            return (yield from _append(claim, entries, claim.next_seq if isinstance(claim, Claim) else 0, w, mark))
        if not isinstance(claim, Claim):
            raise Refused("bad_seq", "seq: give the number of the first entry, from 0")
        if claim.is_noting:
            raise Refused("update_under_way", "claim: another update of it is under way; wait for that one, give"
                          " both its entries, or number them yourself by seq")
        claim.is_noting = True
        try:
            return (yield from _append(claim, entries, claim.next_seq, w, mark))
        finally:
            claim.is_noting = False

    def _mark(self, claim: ClaimKey, checkpoint: Any, number: int | None) -> Mark | None:
        """What is said of how far the task is, if anything is."""
        if checkpoint is NO_CHECKPOINT:
            if number is not None:
                raise Refused("bad_number", "number: is that of a checkpoint; give a checkpoint, too")
            return None
        data = checking.as_checkpoint("checkpoint", checkpoint)
        if number is None:
            if not isinstance(claim, Claim):
                raise Refused("bad_number", "number: number the checkpoints of the claim, from 0 on; the one with"
                              " the highest number stands")
            number = claim.next_number
        number = checking.as_number("number", number)
        if isinstance(claim, Claim):
            claim.next_number = max(claim.next_number, number + 1)
        return Mark(number, self._wall_ms(), data)

    @verb
    def complete(self, claim: ClaimKey, result: Any = None, *, w: int | None = None) -> Work[int]:
        """Record that the task is done, with its result; from any claim, however late; it dominates every other
        fact. The result is bytes, text, or whatever else a task function may return. Gives on how many disks the
        completion is."""
        entry, key, w = checking.as_result("result", result), checking.as_claim(claim), checking.as_w(w)

        def together(items: Sequence[tuple[ClaimKey, bytes]]) -> Work[Sequence[int | SkuldError]]:
            return one_by_one(items, lambda part: self._complete(part, w))
        copies: int = yield Joint(("complete", w), (key, entry), CLAIM_BYTES + len(entry), together)
        return copies

    @verb
    def complete_many(self, claims: Sequence[ClaimKey], results: Sequence[Any] | None = None, *,
                      w: int | None = None) -> Work[int]:
        """Complete many claims; ``results``: none, or one for each. Gives on how many disks the least copied
        completion is, 0 for no claims."""
        parts = parts_without_entries(list(claims)) if results is None else parts_with_entries(
            with_entries("results", claims, results, checking.as_result))
        return (yield from self._complete_parts(parts, w))

    def _complete(self, items: Sequence[tuple[ClaimKey, bytes]], w: int | None) -> Work[list[int]]:
        copies = yield from self._complete_parts(parts_with_entries(items), w)
        return [copies] * len(items)

    def _complete_parts(self, parts: Iterable[ClaimColumns], w: int | None) -> Work[int]:
        copies: list[int] = []
        for done, (ids, tokens, proofs, results) in enumerate([*parts]):
            completed = m.Complete(0, checking.as_w(w) or 0, 0, ids, tokens, b"", results, proofs)
            acked = yield from as_part(done, ask(m.Acked, completed))
            copies.append(acked.message.copies)
        return min(copies, default=0)


def parts_of(claims: Sequence[ClaimKey]) -> list[Sequence[ClaimKey]]:
    """Claims in requests."""
    most = DEFAULT_LIMITS.batch_tasks
    return [claims[start : start + most] for start in range(0, len(claims), most)]


def with_entries(field: str, claims: Sequence[ClaimKey],
                 entries: Sequence[Any] | None,
                 written: Callable[[str, Any], bytes] = checking.as_entry) -> list[tuple[ClaimKey, bytes]]:
    """Each claim with its result or error, empty without one."""
    if entries is None:
        return [(claim, b"") for claim in claims]
    if len(entries) != len(claims):
        raise Refused(f"bad_{field}", f"{field}: {len(entries)} for {len(claims)} claims")
    return list(zip(claims, [written(field, entry) for entry in entries], strict=True))


def parts_without_entries(claims: Sequence[ClaimKey]) -> Iterator[ClaimColumns]:
    """Ids, tokens and proofs in requests, with the empty column of no results or errors at all."""
    for part in parts_of(claims):
        yield *checking.names_of(part), Column()


def parts_with_entries(items: Sequence[tuple[ClaimKey, bytes]]) -> Iterator[ClaimColumns]:
    """Ids, tokens and proofs in requests, with the column of their results or errors, empty for none at all."""
    claims, entries = [claim for claim, _ in items], [entry for _, entry in items]
    if not any(entries):
        yield from parts_without_entries(claims)
        return
    start = 0
    for part in checking.chunks(entries):
        yield *checking.names_of(claims[start : start + len(part)]), columns.pack(part) if any(part) else Column()
        start += len(part)


def _append(claim: ClaimKey, entries: Sequence[bytes], seq: int, w: int | None, mark: Mark | None) -> Work[int]:
    key, after = checking.as_claim(claim), seq + len(entries)
    request = m.Append(0, checking.as_w(w) or 0, checking.as_id(key.id), key.token, seq, columns.pack(entries),
                       proofs=checking.as_proof(key.proof))
    if mark is not None:
        request = attrs.evolve(request, number=mark.number, at_ms=mark.at_ms, checkpoint=columns.pack([mark.data]))
    yield from ask(m.Acked, request)
    if isinstance(claim, Claim):
        claim.next_seq = max(claim.next_seq, after)
    return after


def verdicts_of(answer: Answered[m.Renewed]) -> list[Verdict]:
    """The verdicts of leaders on the claims of one request."""
    unknown, cancelled = columns.unpack_u64(answer.message.unknown), columns.unpack_u64(answer.message.cancelled)
    return [Verdict(None if index in unknown else end_ms, answer.sent, index in cancelled)
            for index, end_ms in enumerate(columns.unpack_u64(answer.message.ends))]


def no_loss(answer: m.Message) -> m.Message:
    """The answer to a request that was sent before: claims that it calls lost may be lost only since then."""
    if not isinstance(answer, m.Renewed):
        return answer
    lost = [index for index, end_ms in enumerate(columns.unpack_u64(answer.ends)) if not end_ms]
    return attrs.evolve(answer, unknown=columns.pack_u64(lost))


def fenced(claim: ClaimKey) -> Fenced:
    """The claim can do nothing any more, except complete its task."""
    task_id = checking.as_id(claim.id)
    return Fenced(f"claim {claim.token} of {task_id} is lost: its lease ended, it was released, or the task is"
                  " completed", id=task_id, token=claim.token)


def _lease_of(claim: ClaimKey, lease_s: float | None) -> float:
    """As given, or as the claim was made with."""
    if lease_s is not None:
        return lease_s
    return claim.lease_s if isinstance(claim, Claim) else LEASE_S


def _note(claim: ClaimKey, verdict: Verdict, lease_s: float) -> bool | None:
    """Move the claim's end; say whether it is held."""
    if isinstance(claim, Claim | HeldClaim):
        claim.is_cancelled = claim.is_cancelled or verdict.is_cancelled
        claim.end_ms = verdict.end_ms or claim.end_ms
    if verdict.end_ms and isinstance(claim, Claim):
        claim.deadline = max(claim.deadline, holder_deadline(verdict.sent, lease_s))
    return None if verdict.end_ms is None else bool(verdict.end_ms)


def _give_back(answer: m.Message) -> Ask | None:
    """The request that gives back claims which no call waits for any more."""
    if not isinstance(answer, m.Claimed) or not answer.batches:
        return None
    tokens = [batch.first_token + index for batch in answer.batches
              for index in range(len(batch.ids) // task_ids.ID_BYTES)]
    return Ask(m.Conclude(0, RELEASED, 0, b"".join(batch.ids for batch in answer.batches),
                          columns.pack_u64(tokens), proofs=b"".join(batch.proofs for batch in answer.batches)))
