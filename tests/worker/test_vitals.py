"""Whether a worker lives, by its words and by the kernel's, with literal times: stuck after 60 s."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skuld_py.worker.lease import LeaseKeeper
from skuld_py.worker.vitals import OVERRUN_S, Look, Losses, Overruns, Vitals, parse_stat


def look(state: str = "S", cpu: int = 100) -> Look:
    return Look(state, cpu, start=7)


def test_a_worker_that_neither_speaks_nor_works_is_stuck_after_60_s() -> None:
    vitals = Vitals(60.0, 0.0)
    for second in range(60):
        vitals.seen(float(second), look())
        assert vitals.may_hold(float(second))
    assert not vitals.may_hold(60.0)


def test_a_worker_that_works_lives_though_it_says_nothing() -> None:
    vitals = Vitals(60.0, 0.0)
    for second in range(500):
        vitals.seen(float(second), look("R", cpu=100 + second))
        assert vitals.may_hold(float(second))


def test_a_worker_that_speaks_lives() -> None:
    vitals = Vitals(60.0, 0.0)
    vitals.seen(0.0, look())
    vitals.heard(50.0)
    vitals.heard(40.0)
    assert vitals.may_hold(109.9)
    assert not vitals.may_hold(110.0)


@pytest.mark.parametrize("state", ["T", "t"])
def test_a_worker_that_is_stopped_holds_nothing_until_it_goes_on(state: str) -> None:
    vitals = Vitals(60.0, 0.0)
    vitals.heard(1.0)
    vitals.seen(1.0, look(state))
    assert not vitals.may_hold(1.0)

    vitals.seen(2.0, look())

    assert vitals.may_hold(2.0)


def test_nothing_is_renewed_for_a_stopped_worker_and_its_claims_are_lost_with_their_leases() -> None:
    leases = LeaseKeeper(lease_s=30.0, stall_s=60.0, now=0.0)
    key = (b"a" * 20, 1, b"p")
    leases.hold(key, deadline=30.0)
    leases.vitals.seen(9.0, look("T"))

    assert leases.step(10.0).renew == ()
    assert leases.step(30.0).lost == (key,)


def test_a_loss_is_to_be_acknowledged_within_a_second() -> None:
    losses = Losses[str]()
    assert losses.overdue_at() is None
    losses.told("a", 10.0)
    losses.told("b", 10.5)

    assert not losses.take_overdue(10.9)
    losses.acknowledged("a")
    assert losses.overdue_at() == 11.5
    assert not losses.take_overdue(11.4)
    losses.acknowledged("b")
    assert not losses.take_overdue(99.0)


def test_a_loss_that_nobody_heard_is_overdue_once() -> None:
    losses = Losses[str]()
    losses.told("a", 10.0)
    losses.told("a", 10.9)

    assert losses.take_overdue(11.0)
    assert not losses.take_overdue(12.0)


def test_a_worker_that_does_not_end_what_runs_for_too_long_is_to_be_ended_for_it_once() -> None:
    overruns = Overruns[str]()
    overruns.limit("a", 10.0)
    overruns.limit("b", 10.5)
    overruns.limit("c", 99.0)
    overruns.drop("b")

    assert overruns.take(10.0 + OVERRUN_S - 0.1) == ()
    assert overruns.take(11.0 + OVERRUN_S) == ("a",)
    assert overruns.take(12.0 + OVERRUN_S) == ()


def test_the_kernels_words_are_read_whatever_the_programs_name() -> None:
    fields = " ".join(str(number) for number in range(4, 53))
    assert parse_stat(f"42 (a b) R (c)) S {fields}\n") == Look("S", 14 + 15, 22)


def test_a_process_that_works_and_is_stopped_is_seen_so() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("there is no /proc here")
    own = parse_stat(Path("/proc/self/stat").read_text())
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            os.kill(child.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
            stopped = parse_stat(Path(f"/proc/{child.pid}/stat").read_text())
        finally:
            child.kill()
    assert (own.state, stopped.state) == ("R", "T")
    assert stopped.start >= own.start and own.cpu > 0
