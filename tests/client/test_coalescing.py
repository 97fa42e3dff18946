"""Calls that travel together: who leaves when, and that each has an outcome of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skuld_py.client.asking import Answered, Ask, Blocking, Joint, Step, Work, ask
from skuld_py.client.coalescing import BYTES_MAX, COUNT_MAX, UNDER_WAY_MAX, Lane, one_by_one, own
from skuld_py.errors import Fenced, Malformed, Refused, SkuldError, Uncertain
from skuld_py.model import columns
from skuld_py.model import messages as m


def nothing(_: Sequence[object]) -> Work[list[object]]:
    raise AssertionError
    yield


def joint(size: int = 10) -> Joint[str, object]:
    return Joint(("test",), "item", size, nothing)


def lane(count: int, size: int = 10) -> Lane[int]:
    made: Lane[int] = Lane()
    for caller in range(count):
        made.add(joint(size), caller)
    return made


def callers(taken: list[tuple[Joint[str, object], int]]) -> list[int]:
    return [caller for _, caller in taken]


def test_one_alone_leaves_at_once_and_all_that_wait_leave_together() -> None:
    waiting = lane(3)

    assert waiting.is_due()
    assert callers(waiting.take(lambda _: True)) == [0, 1, 2]
    assert not waiting.is_due()


def test_while_a_request_is_under_way_others_gather() -> None:
    waiting = lane(3)
    waiting.under_way = 1
    assert not waiting.is_due()

    waiting.under_way = 0
    assert waiting.is_due()


def test_a_full_request_does_not_wait_for_the_one_before_but_there_are_never_many() -> None:
    by_count, by_size = lane(COUNT_MAX), lane(2, BYTES_MAX // 2)
    for waiting in (by_count, by_size):
        waiting.under_way = UNDER_WAY_MAX - 1
        assert waiting.is_due()
        waiting.under_way = UNDER_WAY_MAX
        assert not waiting.is_due()


@given(some.lists(some.integers(1, BYTES_MAX), max_size=30))
def test_a_request_is_within_the_limits_and_nobody_is_left_out(sizes: list[int]) -> None:
    waiting: Lane[int] = Lane()
    for caller, size in enumerate(sizes):
        waiting.add(joint(size), caller)

    requests = []
    while waiting.waiting:
        requests.append(callers(waiting.take(lambda _: True)))

    assert [caller for request in requests for caller in request] == list(range(len(sizes)))
    assert all(sum(sizes[caller] for caller in request[:-1]) < BYTES_MAX for request in requests)
    assert all(0 < len(request) <= COUNT_MAX for request in requests)
    assert waiting.size == 0


def test_a_call_given_up_before_it_left_does_not_leave() -> None:
    waiting = lane(4)

    assert callers(waiting.take(lambda caller: caller != 2)) == [0, 1, 3]


class Judge(Blocking):
    """Answers a request with the error that the first of its bad items has."""

    def __init__(self, bad: dict[int, SkuldError]) -> None:
        self.bad = bad
        self.requests: list[list[int]] = []

    def _perform(self, step: Step) -> Answered[m.Acked]:
        assert isinstance(step, Ask) and isinstance(step.message, m.Enqueue)
        items = [int(batch.header) for batch in step.message.batches]
        self.requests.append(items)
        for item in items:
            if item in self.bad:
                raise self.bad[item]
        return Answered(m.Acked(0, 2), 0.0)


def store(items: Sequence[int]) -> Work[list[int]]:
    batches = tuple(m.TaskBatch(str(item).encode(), b"", columns.pack([])) for item in items)
    yield from ask(m.Acked, m.Enqueue(0, 0, batches))
    return list(items)


@given(some.integers(1, 40), some.data())
def test_no_call_fails_for_another_ones_fault(count: int, data: some.DataObject) -> None:
    kinds: dict[int, SkuldError] = {
        item: data.draw(some.sampled_from([Refused("conflict", "it"), Uncertain("conflict", "it"),
                                           Uncertain("too_old", "it"),
                                           Refused("future_id", "it")]))
        for item in data.draw(some.sets(some.integers(0, count - 1), max_size=5))}
    judge = Judge(kinds)

    outcomes = judge._run(one_by_one(range(count), store))

    assert outcomes == [kinds.get(item, item) for item in range(count)]
    assert len(judge.requests) <= 1 + 2 * len(kinds) * count.bit_length()


@pytest.mark.parametrize("error", [Refused("unreachable", ""), Refused("busy", ""), Uncertain("deadline", "")])
def test_what_is_nobodys_fault_is_not_asked_for_each(error: SkuldError) -> None:
    judge = Judge(dict.fromkeys(range(100), error))

    assert judge._run(one_by_one(range(100), store)) == [error] * 100
    assert len(judge.requests) == 1


@pytest.mark.parametrize("error", [Refused("a", "b", field="c"), Uncertain("a", "b"), Fenced("b", token=1),
                                   Malformed("field", "is bad")])
def test_each_caller_gets_an_error_of_its_own_that_says_the_same(error: SkuldError) -> None:
    with pytest.raises(type(error)) as raised:
        own(error)

    assert raised.value is not error
    assert str(raised.value) == str(error) and vars(raised.value) == vars(error)
    assert error.__traceback__ is None
