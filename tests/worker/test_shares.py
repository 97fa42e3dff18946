"""Queues by weight: a random life, and the rules that hold in every one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some

from skuld_py.errors import Refused
from skuld_py.worker.shares import Shares, tags_of, weights_of


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


# -- queues with a cap ---------------------------------------------------------------------------


def test_a_queue_with_a_cap_is_never_held_above_it() -> None:
    shares = Shares({}, 8)
    shares.cap({"wf.w.a": 2, "wf.w.b": 3})
    held = Counter[str]()
    for _ in range(10):
        for name in ("wf.w.a", "wf.w.b"):
            if (wish := shares.take(name)) is not None:
                held[name] += wish.count
                shares.answered(name, wish, wish.count)
    assert held == {"wf.w.a": 2, "wf.w.b": 3}

    shares.ended("wf.w.a")
    wish = shares.take("wf.w.a")
    assert wish is not None and wish.count == 1 and shares.take("wf.w.b") is None


def test_what_may_be_claimed_ahead_goes_beyond_the_cap_until_the_seats_change() -> None:
    shares = Shares({}, 100)
    shares.cap({"wf.w.a": 2})
    shares.ahead("wf.w.a", 10)
    shares.ahead("wf.w.other", 10)  # gone meanwhile
    wish = shares.take("wf.w.a")
    assert wish is not None and wish.count == 12
    shares.answered("wf.w.a", wish, 12)

    shares.cap({"wf.w.a": 2})
    assert shares.take("wf.w.a") is None, "eleven are to end first"
    for _ in range(11):
        shares.ended("wf.w.a")
    wish = shares.take("wf.w.a")
    assert wish is not None and wish.count == 1


def test_one_that_is_at_its_cap_keeps_no_other_waiting() -> None:
    shares = Shares({"q": 1}, 4)
    shares.cap({"wf.w.a": 1})
    for name in ("wf.w.a", "q"):
        wish = shares.take(name)
        assert wish is not None
        shares.answered(name, wish, 1)
    assert shares.take("wf.w.a") is None

    wish = shares.take("q")
    assert wish is not None and wish.count == 2, "all that is left"


def test_one_that_goes_is_asked_no_more_and_counts_again_when_it_comes_back() -> None:
    shares = Shares({}, 4)
    shares.cap({"wf.w.a": 2})
    wish = shares.take("wf.w.a")
    assert wish is not None
    shares.cap({})
    assert not shares.has("wf.w.a")
    shares.answered("wf.w.a", wish, 1)  # it was on its way
    assert not shares.has("wf.w.a")

    shares.cap({"wf.w.a": 2})
    wish = shares.take("wf.w.a")
    assert wish is not None and wish.count == 1, "what it gave before counts"
    shares.answered("wf.w.a", wish, 0)
    shares.ended("wf.w.a")
    shares.cap({})
    shares.ended("wf.w.a")  # of nobody any more


def test_a_cap_is_the_weight() -> None:
    shares = Shares({}, 1)
    shares.cap({"a": 300, "b": 100})
    served = Counter[str]()
    for _ in range(400):
        for name in "ab":
            if (wish := shares.take(name)) is not None:
                served[name] += wish.count
                shares.answered(name, wish, wish.count)
                for _ in range(wish.count):
                    shares.ended(name)
        shares.give(1)

    assert served["a"] / served["b"] == pytest.approx(3, rel=0.1)


@given(some.lists(some.tuples(some.sampled_from("abq"), some.integers(0, 3), some.booleans()), max_size=60),
       some.lists(some.dictionaries(some.sampled_from("ab"), some.integers(1, 4)), min_size=1, max_size=6))
def test_whatever_comes_and_goes_no_cap_is_exceeded(
        life: list[tuple[str, int, bool]], caps: list[dict[str, int]]) -> None:
    shares, held, most = Shares({"q": 1}, 5), Counter[str](), caps[0]
    shares.cap(most)
    for at, (name, stock, is_change) in enumerate(life):
        if is_change:
            most = caps[at % len(caps)]
            shares.cap(most)
        if shares.has(name) and (wish := shares.take(name)) is not None:
            count = min(stock, wish.count)
            if name != "q":
                held[name] += count
                assert held[name] <= most[name]
            shares.answered(name, wish, count)
        for queue in [*held]:
            if held[queue] and stock % 2:
                held[queue] -= 1
                shares.ended(queue)
                shares.give(1)


def test_tags_are_names_each_once_and_none_is_the_clusters_own() -> None:
    assert tags_of(("gpu", "big", "gpu")) == ("big", "gpu")
    for tag in ("workflows", "claims-4", "a b"):
        with pytest.raises(Refused, match="tag"):
            tags_of((tag,))
    with pytest.raises(Refused, match="at most 32"):
        tags_of(map(str, range(33)))
