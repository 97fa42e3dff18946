"""What a worker claims ahead for its seats, and that no more of a step run than its seat has slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from skuld_py.worker.seated import Seated

A, B = "wf.w.a", "wf.w.b"


def run(queue: str, age_s: float = 0.01, kind: object = None, is_beside: bool = False) -> Any:
    return SimpleNamespace(claim=SimpleNamespace(queue=queue), kind=kind, age_s=age_s, is_beside=is_beside)


def made(told: dict[str, int] | None = None, **caps: int) -> Seated:
    seated = Seated(({} if told is None else told).__setitem__)
    seated.take({f"wf.w.{step}": cap for step, cap in caps.items()}, [])
    return seated


def test_no_more_of_a_step_run_than_its_seat_has_slots() -> None:
    seated, waiting = made(a=2, b=1), [run(A), run(A), run(B), run(A), run(B), run("own"), run("own")]

    first = seated.admitted(waiting)
    assert first == [waiting[0], waiting[1], waiting[2], waiting[5], waiting[6]], "a queue of its own has no cap"
    for each in first:
        seated.begin(each)
    assert seated.admitted([waiting[3], waiting[4]]) == []
    assert seated.is_held_up(waiting[3]) and not seated.is_held_up(waiting[5])

    seated.end(first[0])
    assert seated.admitted([waiting[3], waiting[4]]) == [waiting[3]]


def test_batches_are_let_in_elsewhere() -> None:
    seated, batched = made(a=1), [run(A, kind=object()) for _ in range(3)]
    assert seated.admitted(batched) == batched
    for each in batched:
        seated.begin(each)
    assert not seated.is_held_up(batched[0])


def test_tiny_segments_are_claimed_ahead_by_their_own_time_and_long_ones_are_not() -> None:
    told: dict[str, int] = {}
    seated = made(told, a=2, b=2)
    for each in (run(A, 0.01), run(B, 60.0)):
        seated.begin(each)
        seated.end(each)

    assert told == {A: 50}
    seated.forget([run(A)])
    assert told == {A: 0}, "it was thought wrong"


def test_a_feeder_says_nothing_of_how_long_segments_take() -> None:
    told: dict[str, int] = {}
    seated = made(told, feed=1)
    feeder = run("wf.w.feed", 0.01, is_beside=True)
    seated.begin(feeder)
    seated.end(feeder)

    assert told == {}


def test_of_a_batched_step_one_more_batch_is_claimed() -> None:
    told: dict[str, int] = {}
    seated = made(told, a=100)
    seated.end_batch(A)
    seated.end_batch("own")

    assert told == {A: 100}


def test_what_waits_for_a_seat_that_is_gone_is_given_back() -> None:
    seated, mine, others = made(a=1, b=1), run(A), run(B)
    own = run("own")

    assert seated.take({B: 1}, [mine, others, own]) == [mine]


def test_what_runs_of_a_seat_that_is_gone_counts_when_it_comes_back() -> None:
    seated, runs = made(a=1), [run(A), run(A)]
    seated.begin(runs[0])
    seated.take({}, [])
    assert seated.admitted(runs[1:]) == []

    seated.take({A: 1}, [])
    assert seated.admitted(runs[1:]) == []
    seated.end(runs[0])
    assert seated.admitted(runs[1:]) == runs[1:]
