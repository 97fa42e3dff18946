"""A holder counts its lease from before the question, by a clock that runs on while the machine sleeps."""

from __future__ import annotations

import time
from typing import Any

import attrs
import pytest

from skuld_py.client.asking import Answered, Ask, Blocking, Step
from skuld_py.client.claims import Claim, ClaimName, HeldClaim
from skuld_py.client.steady import steady_s
from skuld_py.client.verbs import Verbs
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import RELEASED
from skuld_py.model.ids import TaskId, split, to_text
from skuld_py.model.leases import holder_deadline
from skuld_py.model.outcomes import FIRST_TOKEN

BODY = encode_body(Header("q").encode(), b"x")


class Told(Verbs, Blocking):
    """A client that is given one answer to a question it sent at 100 s; its clock shows 200 s."""

    def __init__(self, answer: m.Message) -> None:
        super().__init__("test", clock=lambda: 200.0)
        self.asked: list[m.Message] = []
        self._answer = answer

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Ask):
            self.asked.append(step.message)
            return Answered(self._answer, 100.0)
        return self._run(step.together([step.item]))[0]


class Doubted(Told):
    """A client whose enqueues are in doubt."""

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Ask) and isinstance(step.message, m.Enqueue):
            self.asked.append(step.message)
            raise Uncertain("deadline", "no answer")
        if isinstance(step, Ask):
            return super()._perform(step)
        outcome = self._run(step.together([step.item]))[0]
        if isinstance(outcome, SkuldError):
            raise outcome
        return outcome


def test_a_claim_counts_from_the_question_and_what_the_node_waited() -> None:
    client = Told(m.Claimed(1, 2_000, (m.ClaimBatch(bytes(20), 1, 99, columns.pack([BODY])),)))

    claim = client.claim("q", lease_s=60, wait_s=5)[0]

    assert claim.deadline == holder_deadline(100.0, 60, 2_000) < 162
    assert claim.remaining_s == claim.deadline - 200


def test_a_renewal_counts_from_the_question_and_what_is_unknown_stays() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99, 0, 0]), columns.pack_u64([1])))
    claims = [Claim(TaskId(name * 20), FIRST_TOKEN, "q", 0, b"", 50, 110.0) for name in (b"0", b"1", b"2")]

    assert client.renew_many(claims, lease_s=60) == [True, None, False]
    assert [claim.deadline for claim in claims] == [holder_deadline(100.0, 60), 110.0, 110.0]


def test_a_single_renewal_counts_from_the_question_too() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99]), b""))
    claim = Claim(TaskId(bytes(20)), FIRST_TOKEN, "q", 0, b"", 50, 110.0)

    client.renew(claim, lease_s=60)

    assert (claim.end_ms, claim.deadline) == (99, holder_deadline(100.0, 60))


@pytest.mark.parametrize(("given", "asked_ms"), [(None, 90_000), (5, 5_000)])
def test_a_claim_is_renewed_for_as_long_as_it_was_claimed_for_unless_something_else_is_said(
        given: float | None, asked_ms: int) -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99]), b""))
    claim = Claim(TaskId(bytes(20)), FIRST_TOKEN, "q", 0, b"", 50, 110.0, lease_s=90)

    client.renew(claim, lease_s=given)
    client.renew_many([claim], lease_s=given)

    assert [message.lease_ms for message in client.asked if isinstance(message, m.Renew)] == [asked_ms] * 2
    assert claim.deadline == holder_deadline(100.0, asked_ms / 1000) or asked_ms == 5_000


def test_claims_of_different_leases_are_renewed_each_for_its_own_and_told_in_their_order() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99]), b""))
    long, short = (Claim(TaskId(name * 20), FIRST_TOKEN, "q", 0, b"", 50, 110.0, lease_s=lease_s)
                   for name, lease_s in ((b"0", 3_600), (b"1", 30)))
    named = ClaimName(b"2" * 20, FIRST_TOKEN)

    assert client.renew_many([long, short, named]) == [True, True, True]
    assert [(message.lease_ms, message.ids[:1]) for message in client.asked if isinstance(message, m.Renew)] == [
        (3_600_000, b"0"), (30_000, b"1"), (60_000, b"2")]


def test_an_enqueue_in_doubt_tells_the_ids_to_ask_again_with() -> None:
    client = Doubted(m.Greeted(1, "n", "c", 1, 1, 0, 0, 1 << 20, ()))
    for enqueue in (lambda: client.enqueue("q", b"x"), lambda: client.enqueue_many("q", [b"x", b"y"])):
        with pytest.raises(Uncertain) as doubt:
            enqueue()

        asked = client.asked[-1]
        assert isinstance(asked, m.Enqueue)
        ids = [to_text(task_id) for batch in asked.batches for task_id in split(batch.ids)]
        assert str(doubt.value.facts["ids"]).split() == ids and ids
    assert doubt.value.facts["stored"] == 0


def test_a_claim_knows_what_it_was_claimed_for() -> None:
    client = Told(m.Claimed(1, 0, (m.ClaimBatch(bytes(20), 1, 99, columns.pack([BODY])),)))

    assert client.claim("q", lease_s=14_400)[0].lease_s == 14_400


def test_who_knows_a_claim_by_name_learns_when_it_ends_and_that_its_task_is_cancelled() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99, 0]), b"", columns.pack_u64([0])))
    held, lost = HeldClaim(bytes(20), FIRST_TOKEN), HeldClaim(bytes(20), FIRST_TOKEN)

    assert client.renew_many([held, lost]) == [True, False]
    assert (held.end_ms, held.is_cancelled, lost.end_ms, lost.is_cancelled) == (99, True, 0, False)


def test_a_claim_that_nobody_awaits_any_more_can_be_given_back() -> None:
    client = Told(m.Claimed(1, 0, ()))
    work = client._claim("q", 2, 60, 0)
    asked = next(work)
    assert isinstance(asked, Ask) and asked.undo is not None and not asked.is_idempotent
    proofs = b"3" * 16
    late = m.Claimed(1, 0, (m.ClaimBatch(b"1" * 20 + b"2" * 20, 7, 99, columns.pack([BODY, BODY]), proofs),))

    undoing = asked.undo(late)

    assert undoing is not None
    assert undoing.message == m.Conclude(0, RELEASED, 0, b"1" * 20 + b"2" * 20, columns.pack_u64([7, 8]),
                                         proofs=proofs)
    assert asked.undo(m.Claimed(1, 0, ())) is None
    assert asked.undo(m.Failed(1, "busy", "words", True)) is None


def test_a_node_of_the_release_before_is_asked_as_it_knows_to_be_asked() -> None:
    work = Told(m.Claimed(1, 0, ()))._claim("q", 2, 60, 0)
    first = next(work)
    assert isinstance(first, Ask) and isinstance(first.message, m.Claim) and first.message.takes_proofs

    second = work.throw(Refused("malformed", "Claim: has 7 fields, not 6"))
    assert isinstance(second, Ask) and not second.is_idempotent and second.undo is not None
    assert second.message == attrs.evolve(first.message, takes_proofs=False)
    with pytest.raises(Refused, match="busy"):
        work.throw(Refused("busy", "the node is busy"))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that counts sleep")
def test_the_clock_counts_sleep() -> None:
    assert steady_s(lambda clock: 1_000.0 if clock == time.CLOCK_BOOTTIME else 7.0) == 1_000.0
