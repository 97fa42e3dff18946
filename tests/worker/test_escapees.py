"""When a cancellation is proven: what runs is the running tasks' own, three looks in a row, in ten seconds."""

from __future__ import annotations

from skuld_py.worker.escapees import Found, Sweep

QUIET, GOING_ON = Found(is_quiet=True), Found()


def test_three_quiet_looks_are_a_proof() -> None:
    sweep = Sweep(0.0)
    assert [sweep.look(0.1 * look, [], []) for look in range(3)] == [GOING_ON, GOING_ON, QUIET]


def test_jobs_of_running_tasks_are_no_escapees() -> None:
    sweep = Sweep(0.0)
    assert [sweep.look(0.1 * look, [3, 4], [4, 3, 2]) for look in range(3)] == [GOING_ON, GOING_ON, QUIET]


def test_all_others_are_cancelled_each_time_they_are_seen() -> None:
    sweep = Sweep(0.0)
    assert sweep.look(0.0, [9, 7, 3], [3]) == Found(cancel=(7, 9))
    assert sweep.look(0.1, [9, 3], [3]) == Found(cancel=(9,))


def test_a_thread_between_two_jobs_is_not_taken_for_quiet() -> None:
    sweep = Sweep(0.0)
    looks = [sweep.look(0.1 * look, active, []) for look, active in enumerate([[], [], [5], [], [], []])]
    assert looks == [GOING_ON, GOING_ON, Found(cancel=(5,)), GOING_ON, GOING_ON, QUIET]


def test_what_does_not_end_in_ten_seconds_is_not_proven() -> None:
    sweep = Sweep(10.0)
    assert sweep.look(19.9, [1], []) == Found(cancel=(1,))
    assert sweep.look(20.0, [2], []) == Found(cancel=(2,), is_quiet=False)


def test_tasks_are_not_over_with_their_jobs_and_those_that_do_not_obey_are_interrupted_again() -> None:
    sweep = Sweep(0.0)
    tasks = [[3, 5], [3, 5], [5], [5], [5, 7], [5], [], [], []]
    looks = [sweep.look(0.1 * look, [], [], seen) for look, seen in enumerate(tasks)]
    assert looks == [GOING_ON] * 3 + [Found(interrupt=(5,))] * 3 + [GOING_ON, GOING_ON, QUIET]


def test_a_task_that_never_obeys_is_not_quiet() -> None:
    sweep = Sweep(0.0)
    assert [sweep.look(9.9, [], [], [1]).is_quiet, sweep.look(10.0, [], [], [1]).is_quiet] == [None, False]
