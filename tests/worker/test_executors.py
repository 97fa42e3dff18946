"""When an application has lost its executors for good, and when it only waits for the first ones."""

from __future__ import annotations

from skuld_py.worker.executors import PATIENCE_S, Executors, Standing


def test_executors_that_are_there_are_well_and_so_is_a_short_time_without() -> None:
    executors = Executors(0)
    assert executors.look(2, 1) is Standing.WELL
    assert executors.look(0, PATIENCE_S) is Standing.WELL
    assert executors.look(1, PATIENCE_S + 2) is Standing.WELL
    assert executors.look(0, 2 * PATIENCE_S) is Standing.WELL


def test_executors_that_were_there_and_do_not_come_back_are_lost() -> None:
    executors = Executors(0)
    executors.look(2, 5)

    assert executors.look(0, 5 + PATIENCE_S) is Standing.LOST


def test_an_application_that_never_had_any_waits_and_says_so_once() -> None:
    executors = Executors(0)
    assert executors.look(0, PATIENCE_S - 1) is Standing.WELL and not executors.is_news

    looks = [(executors.look(0, PATIENCE_S + second), executors.is_news) for second in range(3)]

    assert looks == [(Standing.NONE_YET, True), (Standing.NONE_YET, False), (Standing.NONE_YET, False)]
    assert executors.look(1, 10 * PATIENCE_S) is Standing.WELL
