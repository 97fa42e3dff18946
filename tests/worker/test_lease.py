"""When leases are renewed and when they are given up, with literal times: lease 30 s, patience 60 s."""

from __future__ import annotations

import pytest

from skuld_py.worker.lease import LeaseKeeper, Step

A, B = (b"a" * 20, 1), (b"b" * 20, 2)


def keeper(now: float = 0.0) -> LeaseKeeper:
    return LeaseKeeper(lease_s=30.0, stall_s=60.0, now=now)


def test_nothing_is_due_without_a_lease() -> None:
    assert keeper().step(1_000.0) == Step()


def test_a_lease_is_renewed_after_a_third() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)

    assert leases.step(9.9) == Step(wake_at=10.0)
    assert leases.step(10.0) == Step(renew=(A,), wake_at=30.0)


def test_one_request_at_a_time() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)
    leases.hold(B, deadline=40.0)

    assert leases.step(21.0) == Step(wake_at=30.0)


def test_a_renewed_lease_counts_from_when_the_request_was_sent() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)

    assert leases.answered(sent=10.5, held={A: True}, now=10.5) == ({A: pytest.approx(40.437, abs=1e-3)}, ())
    assert leases.step(11.0) == Step(wake_at=20.5)


def test_leases_that_are_nearly_due_join_the_request() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.hold(B, deadline=34.0)

    assert leases.step(10.0).renew == (A, B)


def test_a_lease_far_from_due_does_not() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.hold(B, deadline=36.0)

    assert leases.step(10.0).renew == (A,)


def test_what_the_cluster_calls_lost_is_said_once_and_never_asked_for_again() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)

    assert leases.answered(sent=10.0, held={A: False}, now=10.0) == ({}, (A,))
    assert leases.step(30.0) == Step()


def test_without_an_answer_a_lease_is_lost_at_its_deadline() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)

    assert leases.step(29.9) == Step(wake_at=30.0)
    assert leases.step(30.0) == Step(lost=(A,))
    assert leases.answered(sent=10.0, held={A: True}, now=10.0) == ({}, ())


def test_a_failed_request_is_repeated_within_a_second_until_the_deadline() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)
    leases.unanswered(15.0, [A])

    assert leases.step(15.5) == Step(wake_at=16.0)
    assert leases.step(16.0).renew == (A,)
    leases.unanswered(29.5, [A])
    assert leases.step(30.0).lost == (A,)


def test_a_claim_of_which_nobody_knows_is_asked_for_again_soon_and_stays_held() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.hold(B, deadline=30.0)
    leases.step(10.0)

    extended, lost = leases.answered(sent=10.0, held={A: None, B: True}, now=11.0)
    assert (list(extended), lost) == ([B], ())
    assert leases.step(11.5) == Step(wake_at=12.0)
    assert leases.step(12.0).renew == (A,)


def test_a_dropped_claim_is_neither_renewed_nor_lost() -> None:
    leases = keeper()
    leases.hold(A, deadline=30.0)
    leases.step(10.0)
    leases.drop(A)

    assert leases.answered(sent=10.0, held={A: False}, now=10.0) == ({}, ())
    leases.unanswered(12.0, [A])
    assert leases.step(31.0) == Step()


def test_a_silent_worker_is_renewed_for_60_s_and_no_longer() -> None:
    leases = keeper()
    leases.hold(A, deadline=75.0)

    assert leases.step(59.9).renew == (A,)
    leases.answered(sent=59.9, held={A: True}, now=59.9)
    assert leases.step(80.0).wake_at == pytest.approx(89.837, abs=1e-3)
    assert leases.is_stalled(80.0)
    assert leases.step(89.9).lost == (A,)


def test_a_worker_heard_of_again_is_renewed_again() -> None:
    leases = keeper()
    leases.hold(A, deadline=75.0)
    assert leases.step(61.0).renew == ()

    leases.beat(62.0)

    assert leases.step(62.0).renew == (A,)


def test_a_beat_that_arrives_late_does_not_turn_the_clock_back() -> None:
    leases = keeper()
    leases.beat(50.0)
    leases.beat(20.0)

    assert not leases.is_stalled(109.9)
    assert leases.is_stalled(110.0)
