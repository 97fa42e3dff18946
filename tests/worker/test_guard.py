"""When a guardian starts a driver and ends it, and what a claim does about the drivers of earlier ones."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from skuld_py.worker.journal import Journal, decode_entry
from skuld_py.worker.kinds.drivers import Intent, Past, Plan, intent_of, plan
from skuld_py.worker.kinds.guard import (
    ATTACH_S,
    KILL_S,
    TERM_S,
    Attached,
    Do,
    Ended,
    Extended,
    Guard,
    Left,
    Ordered,
)
from skuld_py.worker.kinds.machine import Machine, Process

ADOPT_S = 30.0
LAST_S = ADOPT_S - TERM_S - KILL_S
"""How long after a deadline a driver goes on without a word."""


@pytest.fixture
def guard() -> Guard:
    return Guard(ADOPT_S, 0.0)


@pytest.fixture
def started(guard: Guard) -> Guard:
    """With a master of token 1 until 10."""
    assert guard.step(0.0, Attached(1, 10.0)) == [Do.WELCOME]
    assert guard.step(1.0, Ordered(1, "go")) == [Do.START]
    return guard


def test_a_driver_starts_once_and_before_its_masters_deadline(guard: Guard) -> None:
    assert guard.step(0.0, Ordered(1, "go")) == []
    guard.step(0.0, Attached(1, 10.0))
    assert guard.step(10.0, Ordered(1, "go")) == []
    guard.step(10.0, Extended(1, 20.0))
    assert guard.step(11.0, Ordered(1, "go")) == [Do.START]
    assert guard.step(12.0, Ordered(1, "go")) == []


def test_what_was_not_started_leaves_with_its_master_or_without_one_after_30_s(guard: Guard) -> None:
    assert guard.step(ATTACH_S - 0.1) == []
    assert Guard(ADOPT_S, 0.0).step(ATTACH_S) == [Do.LEAVE]
    guard.step(ATTACH_S - 0.1, Attached(1, 100.0))
    assert guard.step(ATTACH_S + 1) == []
    assert guard.step(50.0, Left(1)) == [Do.LEAVE]


def test_without_a_renewed_deadline_a_driver_has_ended_when_adoption_is_over(started: Guard) -> None:
    assert started.step(10 + LAST_S - 0.1) == []
    assert started.step(10 + LAST_S) == [Do.TERMINATE]
    assert started.wake_at == 10 + LAST_S + TERM_S
    assert started.step(10 + LAST_S + TERM_S - 0.1) == []
    assert started.step(10 + LAST_S + TERM_S) == [Do.KILL]
    assert 10 + LAST_S + TERM_S + KILL_S == 10 + ADOPT_S
    assert started.step(99.0) == []


def test_a_driver_outlives_its_master_and_is_the_next_ones(started: Guard) -> None:
    started.step(2.0, Left(1))
    assert started.step(10.0) == []
    assert started.step(20.0, Attached(2, 50.0)) == [Do.WELCOME]
    assert started.step(40.0) == []
    started.step(41.0, Extended(2, 70.0))
    assert started.step(70 + LAST_S - 0.1) == []
    assert started.step(70 + LAST_S) == [Do.TERMINATE]


def test_an_older_claim_is_not_heard(started: Guard) -> None:
    started.step(2.0, Attached(3, 20.0))
    assert started.step(3.0, Attached(2, 90.0)) == [Do.REFUSE]
    assert started.step(3.0, Ordered(1, "end")) == []
    started.step(3.0, Extended(1, 90.0))
    started.step(3.0, Left(1))
    assert started.master == 3
    assert started.step(20 + LAST_S) == [Do.TERMINATE]


def test_a_master_ends_its_driver_and_nobody_adopts_what_is_being_ended(started: Guard) -> None:
    assert started.step(2.0, Ordered(1, "end")) == [Do.TERMINATE]
    assert started.step(3.0, Ordered(1, "end")) == []
    assert started.step(3.0, Attached(2, 90.0)) == [Do.REFUSE]
    assert started.step(2 + TERM_S) == [Do.KILL]
    assert started.step(6.0, Ended()) == [Do.TELL]
    assert started.step(6.0, Ordered(1, "bye")) == [Do.LEAVE]


def test_how_a_driver_ended_is_told_to_whoever_asks_next(started: Guard) -> None:
    assert started.step(2.0, Ordered(1, "bye")) == []
    started.step(2.0, Left(1))
    assert started.step(3.0, Ended()) == []
    assert started.step(4.0, Attached(2, 20.0)) == [Do.WELCOME, Do.TELL]
    started.step(5.0, Left(2))
    assert started.step(20 + LAST_S) == [Do.LEAVE]


def test_nobody_is_waited_for_by_a_driver_that_was_ended(started: Guard) -> None:
    started.step(2.0, Left(1))
    assert started.step(10 + LAST_S) == [Do.TERMINATE]
    assert started.step(11 + LAST_S, Ended()) == [Do.LEAVE]


# -- what the next claim does --------------------------------------------------------------------

HERE = Machine("here", "boot", "space")
TASK = "task"
LIVING: set[int] = set()


def intent(token: int, machine: Machine = HERE) -> Intent:
    return Intent(f"{TASK}:{token}", machine, Process(100 + token, 7), Process(200 + token, 7), "/tmp/x/guardian",
                  20.0, ADOPT_S)


def past(*entries: dict[str, Any], is_cut: bool = False, has_lapsed: bool = True) -> Past:
    return Past(entries, is_cut, has_lapsed)


def planned(*earlier: Past, living: tuple[int, ...] = ()) -> Plan:
    return plan(TASK, earlier, HERE, lambda process: process.id in living and process.start == 7, 10.0, 40.0)


def test_without_a_driver_of_earlier_claims_nothing_is_to_be_done() -> None:
    assert planned() == planned(past(), past({"kind": "log", "text": "hello"})) == Plan()


def test_a_driver_that_was_said_to_have_ended_is_nobodys() -> None:
    ended = {"driver_ended": f"{TASK}:1"}
    assert planned(past(intent(1).entry(), ended), living=(101,)) == Plan()
    assert planned(past(intent(1).entry()), past(ended), living=(101,)) == Plan()


def test_a_driver_here_whose_guardian_lives_is_adopted_and_else_killed() -> None:
    earlier = past(intent(1).entry())
    assert planned(earlier, living=(101,)) == Plan(intent(1))
    assert planned(earlier, living=(201,)) == Plan(kill=(intent(1),))
    assert planned(earlier, past(intent(2).entry()), living=(101, 102)) == Plan(kill=(intent(2), intent(1)))


def test_an_adopted_driver_is_one_and_its_newest_word_counts() -> None:
    adopted = attrs.evolve(intent(1), lease_s=99.0)
    assert planned(past(intent(1).entry()), past(adopted.entry()), living=(101,)) == Plan(adopted)


@pytest.mark.parametrize("there", [Machine("here", "other boot", "space"), Machine("here", "boot", "other space")])
def test_a_driver_elsewhere_is_waited_for_as_long_as_its_guardian_may_let_it_live(there: Machine) -> None:
    entry = intent(1, there).entry()
    assert planned(past(entry), living=(101,)) == Plan(wait_s=30.0, where="here")
    assert planned(past(entry, has_lapsed=False), living=(101,)) == Plan(wait_s=50.0, where="here")
    both = planned(past(entry), past(intent(2).entry()), living=(102,))
    assert both == Plan(kill=(intent(2),), wait_s=30.0, where="here")


def test_a_log_that_is_cut_and_tells_of_no_driver_may_have_told_of_one() -> None:
    assert planned(past(is_cut=True)).wait_s == 40.0
    assert planned(past(is_cut=True, has_lapsed=False)).wait_s == 50.0
    assert planned(past({"driver_ended": f"{TASK}:1"}, is_cut=True)) == Plan()


def test_no_log_makes_a_claim_touch_another_tasks_driver() -> None:
    forged = attrs.evolve(intent(1), claim="other:1").entry()
    assert planned(past(forged), living=(101,)) == Plan()


@pytest.mark.parametrize("broken", [
    {"machine": None}, {"guardian": {"id": 1, "start": 7}}, {"driver": {"id": "x", "start": 7}}, {"adopt_s": -1},
    {"adopt_s": float("nan")}, {"lease_s": 1e12}, {"socket": ...},
])
def test_what_is_no_intent_is_none(broken: dict[str, Any]) -> None:
    told = {**intent(1).entry()["driver"], **broken}
    told = {name: value for name, value in told.items() if value is not ...}
    assert intent_of({"driver": told}) is None
    assert intent_of({"driver": 5}) is None and intent_of({}) is None
    assert intent_of(json.loads(json.dumps(intent(1).entry()))) == intent(1)


def test_what_is_to_be_sure_is_never_overtaken_and_said_once_it_is_written() -> None:
    journal = Journal(0.0)
    for number in range(1_000):
        journal.say(f"line {number}", 0)
    is_written = journal.say_surely({"driver": 1}, 0)
    journal.say("and on", 0)
    entries: list[bytes] = []
    while not is_written.is_set():
        batch = journal.take(0.0, 0)
        assert batch is not None
        entries += batch.entries
        journal.confirm()
    assert [each for each in map(decode_entry, entries) if "driver" in each] == [
        {"kind": "log", "at_ms": 0, "driver": 1}]
