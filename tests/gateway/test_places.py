"""One caller cannot keep all others out, and a place that is given back can be taken again."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.gateway.places import Places
from skuld_py.gateway.problems import Problem


def places(most: int) -> Places:
    return Places(most, "requests are open", "wait and try again")


def fill(room: Places, caller: str, taken: ExitStack) -> Problem:
    """Take all places that a caller gets; gives the refusal of one more."""
    while True:
        try:
            taken.enter_context(room.taken(caller))
        except Problem as problem:
            return problem


@pytest.mark.parametrize(("most", "share"), [(2, 1), (3, 2), (256, 128)])
def test_one_caller_has_half_of_the_places_and_another_one_finds_room(most: int, share: int) -> None:
    room = places(most)
    with ExitStack() as taken:
        refused = fill(room, "greedy", taken)
        assert f"{share} requests are open for this caller" in refused.message
        assert f"{most - share} places that are free" in refused.message
        assert (refused.status, refused.code) == (429, "too_many_at_once")
        assert refused.retry and refused.headers == {"Retry-After": "1"}
        for number in range(most - share):
            taken.enter_context(room.taken(f"modest {number}"))

        with pytest.raises(Problem, match=f"{most} requests are open, no more") as busy:
            taken.enter_context(room.taken("third"))
        assert (busy.value.status, busy.value.code) == (503, "busy")


def test_a_few_callers_that_take_all_they_get_leave_room_for_more() -> None:
    room = places(256)
    with ExitStack() as taken:
        for greedy in range(6):
            fill(room, f"greedy {greedy}", taken)
        assert 256 - room._taken == 4
        taken.enter_context(room.taken("modest"))


@given(st.integers(1, 20), st.lists(st.sampled_from("abcd"), max_size=40))
def test_who_has_none_is_refused_only_when_none_is_free(most: int, callers: list[str]) -> None:
    room, held = places(most), Counter[str]()
    with ExitStack() as taken:
        for caller in callers:
            is_let = held[caller] < most - held.total()
            try:
                taken.enter_context(room.taken(caller))
            except Problem:
                assert not is_let
            else:
                assert is_let
                held[caller] += 1


def test_a_place_is_given_back_whatever_ends_its_request() -> None:
    room = places(2)
    for _ in range(3):
        with pytest.raises(KeyError), room.taken("one"):
            raise KeyError
    with room.taken("one"), room.taken("other"):
        pass

    assert not room._taken and not room._taken_by
