"""How many tasks are claimed ahead: of tiny ones many, of long ones none."""

from __future__ import annotations

from skuld_py.worker.ahead import AHEAD_MAX, Ahead


def test_nothing_is_claimed_ahead_of_what_is_not_known() -> None:
    assert Ahead(8).count == 0


def test_as_many_as_the_slots_will_have_done_in_a_moment() -> None:
    ahead = Ahead(2)
    ahead.note(0.01)

    assert ahead.count == 50
    ahead.note(0.0)
    for _ in range(100):
        ahead.note(0.0)
    assert ahead.count == AHEAD_MAX


def test_of_long_tasks_none() -> None:
    ahead = Ahead(2)
    ahead.note(0.001)
    ahead.note(60.0)

    assert ahead.count == 0


def test_it_is_learnt_anew() -> None:
    ahead = Ahead(2)
    ahead.note(0.001)
    ahead.forget()

    assert ahead.count == 0


def test_what_waits_for_spark_to_start_makes_room_for_as_many_others_as_there_are_slots() -> None:
    ahead = Ahead(2)
    ahead.note_starting(1)
    assert ahead.count == 1
    ahead.note_starting(9)
    assert ahead.count == 2
    ahead.note_starting(0)
    assert ahead.count == 0
