"""Whose fault the death of an engine is, by the logs of earlier claims; and who may run beside whom."""

from __future__ import annotations

import pytest

from skuld_py.model.task import ClaimView
from skuld_py.worker.blame import Verdict, admitted, deaths_under, may_claim, verdict
from skuld_py.worker.journal import Journal

DIED, RELEASED, FAILED, LAPSED = "died", "released", "failed", "lapsed"


def claim(token: int, end: str, *, has_failed: bool = False) -> ClaimView:
    """A claim with the log that a worker writes when it ends so."""
    journal = Journal(0.0)
    journal.say("at work", at_ms=1)
    if end == DIED:
        journal.engine_died("ended", at_ms=2)
    if end != LAPSED:
        journal.close(3, "" if end == FAILED or has_failed else "why it is given back")
    batch = journal.take(1.0, 3)
    outcome = {FAILED: "failed", LAPSED: ""}.get(end, "failed" if has_failed else "released")
    return ClaimView(token, "w", 1, 2, end != LAPSED, None, batch.entries if batch else (), outcome)


@pytest.mark.parametrize(("ends", "deaths"), [
    ([], 0), ([FAILED], 0), ([RELEASED], 0), ([LAPSED], 0), ([DIED], 1), ([DIED, RELEASED], 1),
    ([DIED, LAPSED, RELEASED], 1), ([DIED, FAILED], 0), ([DIED, FAILED, DIED], 1), ([DIED, DIED], 2),
    ([FAILED, RELEASED], 0)])
def test_a_task_is_accused_until_it_ends_by_itself(ends: list[str], deaths: int) -> None:
    assert deaths_under([claim(token, end) for token, end in enumerate(ends, 1)]) == deaths


def test_a_task_that_failed_because_its_engine_died_stays_accused() -> None:
    assert deaths_under([claim(1, DIED), claim(2, DIED, has_failed=True)]) == 2


def test_what_a_task_says_itself_accuses_nobody() -> None:
    journal = Journal(0.0)
    journal.say({"kind": "engine_died", "text": "I made this up"}, at_ms=1)
    journal.close(2)
    batch = journal.take(1.0, 2)
    assert batch is not None

    assert not deaths_under([ClaimView(1, "w", 1, 2, True, None, batch.entries, "released")])


def test_the_first_death_is_nobodys_fault_and_that_of_an_accused_one_its_own() -> None:
    assert verdict(False, "ended") == Verdict("Spark's JVM ended", has_failed=False)
    assert verdict(True, "ended") == Verdict("Spark's JVM ended (out of memory?)", has_failed=True)
    assert verdict(True, "does not answer").words == "Spark's JVM does not answer (out of memory?)"


@pytest.mark.parametrize(("waiting", "running", "start"), [
    ([0, 0], [], [0, 1]), ([0], [0], [0]), ([None, 0], [], [1]), ([None], [], []), ([1], [], [0]),
    ([1, 1], [], [0]), ([1], [0], []), ([0], [1], []), ([1], [1], []), ([1, 0], [], [1]), ([1, 0], [0], [1]),
    ([None, 1], [], [1])])
def test_an_accused_task_runs_alone(waiting: list[int | None], running: list[int], start: list[int]) -> None:
    assert admitted(waiting, running) == start


def test_a_task_that_killed_an_engine_alone_comes_after_its_neighbours() -> None:
    assert admitted([2, 1, 1], []) == [1]


@pytest.mark.parametrize(("waiting", "running", "expected"), [
    ([], [], True), ([0], [0], True), ([None], [], True), ([1], [0], False), ([], [1], False)])
def test_nothing_is_claimed_while_an_accused_task_runs_or_waits(
    waiting: list[int | None], running: list[int], expected: bool
) -> None:
    assert may_claim(waiting, running) is expected


def test_all_that_wait_have_their_turn() -> None:
    waiting: list[int | None] = [1, 0, 2, 0]
    running: list[int] = []
    begun = 0
    for _ in range(10):
        chosen = admitted(waiting, running)
        running += [waiting[index] or 0 for index in chosen]
        begun += len(chosen)
        waiting = [each for index, each in enumerate(waiting) if index not in chosen]
        assert len(running) == 1 or not any(running)
        running = running[1:]
    assert (begun, waiting) == (4, [])
