"""What a worker claims ahead for its seats, and that no more of a step run than its seat has slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skuld_py.worker.seated import Seated
from skuld_py.worker.seats import Place

A, B = "wf.w.a", "wf.w.b"


def run(queue: str, age_s: float = 0.01, kind: object = None, is_beside: bool = False) -> Any:
    claim = SimpleNamespace(queue=queue, is_first=True, payload=b"")
    made = SimpleNamespace(claim=claim, kind=kind, age_s=age_s, is_beside=is_beside, is_along=False,
                           received_s=0.0, assignment=SimpleNamespace(work=None))
    made.together = [made]
    return made


def let_in(seated: Seated, *runs: Any, slots: int = 100) -> list[Any]:
    lists, others = seated.admitted(runs, slots)
    return [*others, *(each for some in lists for each in some)]


def made(told: dict[str, int] | None = None, **caps: int) -> Seated:
    seated = Seated(({} if told is None else told).__setitem__)
    seated.take({f"wf.w.{step}": Place(cap, 7) for step, cap in caps.items()}, [])
    return seated


def test_no_more_of_a_step_run_than_its_seat_has_slots() -> None:
    seated, waiting = made(a=2, b=1), [run(A), run(A), run(B), run(A), run(B), run("own"), run("own")]

    first = let_in(seated, *waiting)
    assert first == [waiting[5], waiting[6], waiting[0], waiting[1], waiting[2]], "a queue of its own has no cap"
    assert let_in(seated, *waiting[:5], slots=1) == waiting[:1]
    for each in first:
        seated.begin([each])
    assert let_in(seated, waiting[3], waiting[4]) == []
    assert seated.is_held_up(waiting[3]) and not seated.is_held_up(waiting[5])

    seated.end(first[2])
    assert let_in(seated, waiting[3], waiting[4]) == [waiting[3]]


def test_batches_are_let_in_elsewhere() -> None:
    seated, batched = made(a=1), [run(A, kind=object()) for _ in range(3)]
    assert seated.admitted(batched, 0) == ([], batched)
    for each in batched:
        seated.begin([each])
    assert not seated.is_held_up(batched[0])


def test_tiny_segments_are_claimed_ahead_by_their_own_time_and_long_ones_are_not() -> None:
    told: dict[str, int] = {}
    seated = made(told, a=2, b=2)
    for each in (run(A, 0.01), run(B, 60.0)):
        seated.begin([each])
        seated.end(each)

    assert told == {A: 50}
    seated.forget([run(A)])
    assert told == {A: 0}, "it was thought wrong"


def test_a_feeder_says_nothing_of_how_long_segments_take() -> None:
    told: dict[str, int] = {}
    seated = made(told, feed=1)
    feeder = run("wf.w.feed", 0.01, is_beside=True)
    seated.begin([feeder])
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

    assert seated.take({B: Place(1, 8)}, [mine, others, own]) == [mine]


def test_what_is_told_and_kept_is_in_the_order_of_seats_and_runs() -> None:
    told: list[str] = []
    seated = Seated(lambda queue, count: told.append(queue))
    queues = [f"wf.w.{step}" for step in ["zebra", "yak", "wolf", "viper", "urial", "tapir", "seal", "rat"]]
    seated.take(dict.fromkeys(queues, Place(2, 7)), [])
    for queue in queues:
        seated.end(run(queue, 0.001))
    told.clear()
    seated.forget(run(queue) for queue in queues)
    assert told == queues


def test_what_runs_of_a_seat_that_is_gone_counts_when_it_comes_back() -> None:
    seated, runs = made(a=1), [run(A), run(A)]
    seated.begin([runs[0]])
    seated.take({}, [])
    assert let_in(seated, *runs[1:]) == []

    seated.take({A: Place(1, 8)}, [])
    assert let_in(seated, *runs[1:]) == []
    seated.end(runs[0])
    assert let_in(seated, *runs[1:]) == runs[1:]


def test_a_list_takes_one_slot_of_the_worker_and_of_the_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.lists.may_join", lambda run: True)
    monkeypatch.setattr("skuld_py.worker.seated.Together", lambda runs: [
        setattr(each, "is_along", each is not runs[0]) for each in runs])
    seated = Seated(lambda queue, count: None)
    seated.take({A: Place(20, 7, 10)}, [])
    waiting = [run(A) for _ in range(35)]

    lists, _ = seated.admitted(waiting, 8)
    assert [len(each) for each in lists] == [10, 10], "two slots, of ten each"
    for each in lists:
        seated.begin(each)
    assert seated.beyond == 18 and seated.is_held_up(waiting[-1])
    for each in lists[0]:
        seated.end(each)
    assert seated.beyond == 9 and [len(each) for each in seated.admitted(waiting[20:], 8)[0]] == [10]
