"""Queues by weight: a random life, and the rules that hold in every one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skuld_py.errors import Refused
from skuld_py.worker.shares import Shares, weights_of


def drawn(shares: Shares, stocks: dict[str, int], rounds: int) -> Counter[str]:
    """What each queue gave while one task ended at a time, asked by turns; a queue gives what it has."""
    given_by: Counter[str] = Counter()
    for _ in range(rounds):
        for name, stock in stocks.items():
            if (wish := shares.take(name)) is not None:
                count = min(wish.count, stock)
                stocks[name] -= count
                given_by[name] += count
                shares.answered(name, wish, count)
        shares.give(1)
    return given_by


def test_full_queues_are_served_by_their_weights() -> None:
    served = drawn(Shares({"a": 3, "b": 1, "c": 1}, 1), {"a": 10**6, "b": 10**6, "c": 10**6}, 1_000)

    assert served["a"] == pytest.approx(600, abs=5)
    assert served["b"] == pytest.approx(200, abs=5) and served["c"] == pytest.approx(200, abs=5)


def test_a_queue_whose_answer_is_on_its_way_keeps_its_turn() -> None:
    shares, stocks = Shares({"a": 3, "b": 1}, 1), {"a": 10**6, "b": 10**6}
    drawn(shares, stocks, 10)
    shares.give(100)
    taken: Counter[str] = Counter()
    for _ in range(500):  # b answers twice before a has answered once
        late = shares.take("a")
        for name in "bba":
            wish = late if name == "a" else shares.take(name)
            if wish is not None:
                taken[name] += wish.count
                shares.answered(name, wish, wish.count)
        shares.give(4)

    assert taken["a"] / taken["b"] == pytest.approx(3, rel=0.05)


def test_room_for_many_is_shared_by_weight_too() -> None:
    shares = Shares({"a": 3, "b": 1}, 100)
    for name in "ab":  # both are found to have something
        wish = shares.take(name)
        assert wish is not None
        shares.answered(name, wish, 1)
    wishes = {name: shares.take(name) for name in "ab"}

    assert [(wish.count, wish.waits) for wish in wishes.values() if wish] == [(73, False), (23, False)]


def test_an_empty_queue_costs_the_others_nothing() -> None:
    assert drawn(Shares({"a": 1, "b": 1_000}, 2), {"a": 10**6, "b": 0}, 500)["a"] >= 500


def test_a_queue_that_was_empty_is_not_served_for_what_it_missed() -> None:
    shares, stocks = Shares({"a": 1, "b": 1}, 1), {"a": 10**6, "b": 0}
    drawn(shares, stocks, 500)
    stocks["b"] = 10**6

    assert drawn(shares, stocks, 100)["b"] == pytest.approx(50, abs=3)


def test_an_empty_queue_waits_at_the_cluster_for_one_task_without_a_permit() -> None:
    shares = Shares({"a": 1, "b": 1}, 2)
    wishes = [shares.take(name) for name in "ab"]

    assert all(wish is not None and wish.waits and wish.is_beyond and wish.count == 1 for wish in wishes)


def test_without_room_nothing_is_asked_until_a_task_ends() -> None:
    shares = Shares({"a": 1, "b": 1}, 1)
    first = shares.take("a")
    assert first is not None
    shares.answered("a", first, 1)
    idle = shares.take("b")
    assert shares.take("a") is None and idle is None, "the only slot is taken"

    shares.give(1)
    wish, more = shares.take("b"), shares.take("a")
    assert wish is not None and wish.waits and more is not None and more.count == 1
    shares.answered("b", wish, 0)
    shares.answered("a", more, 1)
    assert shares.take("b") is None, "no task has ended since it was asked"


def test_one_queue_waits_with_all_its_room() -> None:
    shares = Shares({"a": 5}, 7)

    wish = shares.take("a")
    assert wish is not None and (wish.count, wish.waits, wish.is_beyond) == (7, True, False)
    shares.answered("a", wish, 3)
    more = shares.take("a")
    assert more is not None and more.count == 4


def test_no_more_is_asked_for_than_one_answer_may_hold() -> None:
    wish = Shares({"a": 1}, 5_000).take("a")

    assert wish is not None and wish.count == 1_000


@given(some.dictionaries(some.sampled_from("abcd"), some.integers(1, 9), min_size=1), some.integers(1, 5),
       some.lists(some.tuples(some.sampled_from("abcdt"), some.integers(0, 6))))
def test_claims_go_beyond_the_room_by_one_for_each_empty_queue_at_most(
    weights: dict[str, int], slots: int, acts: list[tuple[str, int]]
) -> None:
    shares, held = Shares(weights, slots), 0
    for name, stock in acts:
        if name == "t" and held:
            held -= 1
            shares.give(1)
        elif name in weights and (wish := shares.take(name)) is not None:
            held += min(stock, wish.count)
            shares.answered(name, wish, min(stock, wish.count))
        assert held <= slots + (len(weights) if len(weights) > 1 else 0)


def test_queues_are_written_with_their_weights() -> None:
    assert weights_of("a") == {"a": 1} and weights_of("a:3, b") == {"a": 3, "b": 1}


@pytest.mark.parametrize("text", ["", "a,", "a:", "a:0", "a:x", "a:-1", "a:1001", "a,a", "a b", "a:1:2", "a:²",
                                  ",".join(f"q{number}" for number in range(65))])
def test_what_are_no_queues_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        weights_of(text)
