"""One caller cannot keep all others out, and a place that is given back can be taken again."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from skuld_py.gateway.places import Places
from skuld_py.gateway.problems import Problem


def places(most: int) -> Places:
    return Places(most, "requests are open", "wait and try again")


@pytest.mark.parametrize(("most", "share"), [(1, 1), (2, 1), (3, 2), (256, 128)])
def test_one_caller_has_half_of_the_places_and_another_one_finds_room(most: int, share: int) -> None:
    room = places(most)
    with ExitStack() as taken:
        for _ in range(share):
            taken.enter_context(room.taken("greedy"))
        if share < most:
            with pytest.raises(Problem, match=f"{share} requests are open for this caller") as refused:
                taken.enter_context(room.taken("greedy"))
            assert (refused.value.status, refused.value.code) == (429, "too_many_at_once")
            assert refused.value.retry and refused.value.headers == {"Retry-After": "1"}
        for _ in range(most - share):
            taken.enter_context(room.taken("modest"))

        with pytest.raises(Problem, match=f"{most} requests are open, no more") as busy:
            taken.enter_context(room.taken("third"))
        assert (busy.value.status, busy.value.code) == (503, "busy")


def test_a_place_is_given_back_whatever_ends_its_request() -> None:
    room = places(2)
    for _ in range(3):
        with pytest.raises(KeyError), room.taken("one"):
            raise KeyError
    with room.taken("one"), room.taken("other"):
        pass

    assert not room._taken and not room._taken_by
