"""A holder counts its lease from before the question, by a clock that runs on while the machine sleeps."""

from __future__ import annotations

import time
from typing import Any

import pytest

from skuld_py.client.asking import Answered, Ask, Blocking, Step
from skuld_py.client.claims import Claim
from skuld_py.client.steady import steady_s
from skuld_py.client.verbs import Verbs
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import RELEASED
from skuld_py.model.ids import TaskId
from skuld_py.model.leases import holder_deadline

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


def test_a_claim_counts_from_the_question_and_what_the_node_waited() -> None:
    client = Told(m.Claimed(1, 2_000, (m.ClaimBatch(bytes(20), 1, 99, columns.pack([BODY])),)))

    claim = client.claim("q", lease_s=60, wait_s=5)[0]

    assert claim.deadline == holder_deadline(100.0, 60, 2_000) < 162
    assert claim.remaining_s == claim.deadline - 200


def test_a_renewal_counts_from_the_question_and_what_is_unknown_stays() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99, 0, 0]), columns.pack_u64([1])))
    claims = [Claim(TaskId(m_id), 1, "q", 0, b"", 50, 110.0) for m_id in (bytes(20), b"1" * 20, b"2" * 20)]

    assert client.renew_many(claims, lease_s=60) == [True, None, False]
    assert [claim.deadline for claim in claims] == [holder_deadline(100.0, 60), 110.0, 110.0]


def test_a_single_renewal_counts_from_the_question_too() -> None:
    client = Told(m.Renewed(1, columns.pack_u64([99]), b""))
    claim = Claim(TaskId(bytes(20)), 1, "q", 0, b"", 50, 110.0)

    client.renew(claim, lease_s=60)

    assert (claim.end_ms, claim.deadline) == (99, holder_deadline(100.0, 60))


def test_a_claim_that_nobody_awaits_any_more_can_be_given_back() -> None:
    client = Told(m.Claimed(1, 0, ()))
    work = client._claim("q", 2, 60, 0)
    asked = next(work)
    assert isinstance(asked, Ask) and asked.undo is not None and not asked.is_idempotent
    late = m.Claimed(1, 0, (m.ClaimBatch(b"1" * 20 + b"2" * 20, 7, 99, columns.pack([BODY, BODY])),))

    undoing = asked.undo(late)

    assert undoing is not None
    assert undoing.message == m.Conclude(0, RELEASED, 0, b"1" * 20 + b"2" * 20, columns.pack_u64([7, 8]))
    assert asked.undo(m.Claimed(1, 0, ())) is None
    assert asked.undo(m.Failed(1, "busy", "words", True)) is None


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that counts sleep")
def test_the_clock_counts_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1_000.0 if clock == time.CLOCK_BOOTTIME else 7.0)

    assert steady_s() == 1_000.0
