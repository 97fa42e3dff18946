"""The verbs that end a claim or a task otherwise than by completion: fail, snooze, release; cancel; retry.

A claim is ended by its partition's leader, and only while it is held: afterwards the task is another claim's, or
waits already. Each of these verbs may be repeated: what has happened already is answered again. Where that cannot
be told any more, since the task has gone on meanwhile, the call is uncertain, not refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Joint, Work, as_part, ask, verb
from skuld_py.client.claims import ClaimKey
from skuld_py.client.coalescing import one_by_one
from skuld_py.client.holding import CLAIM_BYTES, fenced, no_loss, parts_with_entries, verdicts_of, with_entries
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.history import FAILED, RELEASED, SNOOZED

BY_POLICY = -1
NOT_REVIVED = {"NOT_DEAD": "not_dead", "CANCELLED": "cancelled", "NO_TASK": "no_such_task", "TOO_OLD": "too_old",
               "EXPIRED": "expired"}
"""Codes of what cannot be retried, by the names of ``Revival``."""
WHY_NOT = {"not_dead": "only what is dead can", "cancelled": "what is cancelled never runs again",
           "too_old": "dead for longer than ended tasks are kept, or claimed 8,000 times; enqueue another one",
           "expired": "it would expire again at once; enqueue another one"}
UNANSWERED = "no leader's answer came in time, or only when it may have been too late to tell; try again"


class Concluding:
    """Needs nothing but an answer."""

    @verb
    def fail(self, claim: ClaimKey, error: bytes | str = b"", *, retry_in_s: float | None = None,
             final: bool = False) -> Work[None]:
        """The attempt failed; ``error`` says why. Its task is tried again after the pause of its retry policy, or
        ``retry_in_s``, until its attempts are used up: then it is dead. With ``final`` it is dead at once: no
        other attempt could succeed. Raises ``Fenced`` when the claim is lost.
        """
        delay_ms, entry = _pause("retry_in_s", retry_in_s), checking.as_entry("error", error)
        key, final = checking.as_claim(claim), checking.as_flag("final", final)

        def together(items: Sequence[tuple[ClaimKey, bytes]]) -> Work[Sequence[int | SkuldError | None]]:
            return one_by_one(items, lambda part: _conclude(FAILED, delay_ms, part, final))
        _insist(claim, (yield Joint(("fail", delay_ms, final), (key, entry), CLAIM_BYTES + len(entry), together)))

    @verb
    def fail_many(self, claims: Sequence[ClaimKey], errors: Sequence[bytes | str] | None = None, *,
                  retry_in_s: float | None = None, final: bool = False) -> Work[list[bool | None]]:
        """Fail many claims; says of each whether it was still held. None: unknown, try again."""
        delay_ms, final = _pause("retry_in_s", retry_in_s), checking.as_flag("final", final)
        ends = yield from _conclude(FAILED, delay_ms, with_entries("errors", claims, errors), final)
        return [None if end_ms is None else bool(end_ms) for end_ms in ends]

    @verb
    def snooze(self, claim: ClaimKey, delay_s: float) -> Work[None]:
        """Give the task back for later; it is no failed attempt. Raises ``Fenced`` when the claim is lost."""
        delay_ms = checking.as_ms("delay_s", delay_s, least=0, most=m.DELAY_MS_MAX)
        _insist(claim, (yield from _conclude(SNOOZED, delay_ms, [(claim, b"")]))[0])

    @verb
    def snooze_many(self, claims: Sequence[ClaimKey], delay_s: float) -> Work[list[bool | None]]:
        """Give many tasks back for later; says of each whether it was still held. None: unknown, try again."""
        delay_ms = checking.as_ms("delay_s", delay_s, least=0, most=m.DELAY_MS_MAX)
        ends = yield from _conclude(SNOOZED, delay_ms, with_entries("claims", claims, None))
        return [None if end_ms is None else bool(end_ms) for end_ms in ends]

    @verb
    def release(self, *claims: ClaimKey) -> Work[None]:
        """Give claims back: their tasks wait again at once. A lost claim is no error."""
        ends = yield from _conclude(RELEASED, 0, with_entries("claims", claims, None))
        if None in ends:
            raise Uncertain("uncertain", "a leader did not answer in time; what was not released will lapse")

    @verb
    def cancel(self, *ids: bytes | str, w: int | None = None) -> Work[int]:
        """Let these tasks be claimed no more; gives how many of them are cancelled, now or since before: others
        had been completed. A holder learns it by renewing; if it completes the task all the same, the task is
        completed. It cannot be taken back. Refused as ``no_such_task`` when one of them does not exist: then none
        is cancelled, and a task that is enqueued under the id later lives. A node of a release before 0.2 does not
        say what was completed: all are counted.
        """
        copies, count = checking.as_w(w) or 0, 0
        for done, part in enumerate(_ids_in_parts(ids)):
            count += yield from as_part(done, self._marked(part, copies))
        return count

    @verb
    def retry(self, *ids: bytes | str) -> Work[None]:
        """Let dead tasks begin anew, their attempts counted from 0; what they went through stays on record.

        One that was retried before and has not ended since is as if retried now. Raises ``Refused`` about those
        that are not dead (``not_dead``, ``cancelled``, ``no_such_task``), have been for longer than ended tasks
        are kept, or were claimed 8,000 times (``too_old``), or would expire again at once (``expired``: enqueue
        another one); the others are retried.
        """
        refused: dict[m.Revival, list[bytes]] = {}
        for done, part in enumerate(_ids_in_parts(ids)):
            for task_id, outcome in zip(part, (yield from as_part(done, self._revive(part))), strict=True):
                if outcome != m.Revival.REVIVED:
                    refused.setdefault(m.Revival(outcome), []).append(task_id)
        if m.Revival.UNKNOWN in refused:
            raise self._unanswered()
        for outcome, which in refused.items():
            code = NOT_REVIVED[outcome.name]
            if code == "no_such_task":
                raise Refused(code, task_ids.none_said(which))
            listed = ", ".join(map(task_ids.to_text, which[:5]))
            raise Refused(code, f"ids: {len(which)} cannot be retried, {WHY_NOT[code]}: {listed}")

    def _marked(self, ids: Sequence[bytes], copies: int = 0) -> Work[int]:
        """Cancel as many as a request may name; gives how many of them had not been completed."""
        named = [*dict.fromkeys(ids)]
        answer = (yield from ask(m.Acked, m.Cancel(0, copies, 0, b"".join(named)))).message
        return len(named) - len(columns.unpack_u64(answer.ended))

    def _revive(self, ids: Sequence[bytes]) -> Work[bytes]:
        """What became of each, a byte for each."""
        answer = yield from ask(m.Revived, m.Revive(0, b"".join(ids)), doubted=_no_refusal)
        return answer.message.outcomes

    @staticmethod
    def _unanswered() -> Uncertain:
        return Uncertain("uncertain", UNANSWERED)


def _no_refusal(answer: m.Message) -> m.Message:
    """The answer to a request that was sent before: what leaders refuse now they may have done then."""
    if not isinstance(answer, m.Revived):
        return answer
    return attrs.evolve(answer, outcomes=bytes(
        outcome if outcome == m.Revival.REVIVED else m.Revival.UNKNOWN for outcome in answer.outcomes))


def _conclude(kind: int, delay_ms: int, items: Sequence[tuple[ClaimKey, bytes]],
              is_final: bool = False) -> Work[list[int | None]]:
    """From when each task may be claimed again; 0: the claim was lost, None: unknown."""
    ends: list[int | None] = []
    doubted = None if kind == RELEASED else no_loss
    for done, (ids, tokens, proofs, errors) in enumerate([*parts_with_entries(items)]):
        answer = yield from as_part(done, ask(
            m.Renewed, m.Conclude(0, kind, delay_ms, ids, tokens, errors, proofs, is_final), doubted=doubted))
        ends += [verdict.end_ms for verdict in verdicts_of(answer)]
    return ends


def _insist(claim: ClaimKey, end_ms: int | None) -> None:
    if end_ms is None:
        raise Uncertain("uncertain", UNANSWERED)
    if not end_ms:
        raise fenced(claim)


def _pause(field: str, seconds: float | None) -> int:
    return BY_POLICY if seconds is None else checking.as_ms(field, seconds, least=0, most=m.DELAY_MS_MAX)


def _ids_in_parts(ids: Sequence[bytes | str]) -> list[list[task_ids.TaskId]]:
    wanted, most = [checking.as_id(task_id) for task_id in ids], DEFAULT_LIMITS.batch_tasks
    return [wanted[start : start + most] for start in range(0, len(wanted), most)]
