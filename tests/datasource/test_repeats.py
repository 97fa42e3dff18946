"""Ids by place: the same rows again are the same tasks, other rows in their place are refused."""

from __future__ import annotations

import pytest

from datasource.world import World
from skuld_py.datasource.repeats import RUN, Namer, explained
from skuld_py.errors import Refused
from skuld_py.model.ids import is_laned, route_of


def test_a_part_that_is_repeated_stores_nothing_twice() -> None:
    world = World()
    for _ in range(2):
        namer = Namer(world.write, "q", 3)
        world.client.enqueue_many("q", [b"1", b"2"], ids=namer.ids([0, 1], None))
        world.client.enqueue_many("q", [b"3"], key=["k"], ids=namer.ids([2], ["k"]))

    assert world.depth().total == 3


def test_other_rows_in_their_place_are_refused_with_the_reason() -> None:
    world = World()
    world.client.enqueue_many("q", [b"1"], ids=Namer(world.write, "q", 3).ids([0], None))

    with pytest.raises(Refused) as caught:
        world.client.enqueue_many("q", [b"2"], ids=Namer(world.write, "q", 3).ids([0], None))
    assert "not deterministic" in explained(caught.value, 3).message


def test_no_two_rows_of_a_write_have_one_id_and_runs_of_rows_have_one_route() -> None:
    world = World()
    rows = range(RUN + 1)
    parts = [Namer(world.write, "q", part).ids(rows, None) for part in range(20)]
    keyed = [Namer(world.write, "q", part).ids(rows, ["k"] * len(rows)) for part in range(20)]

    assert len({task_id for part in parts + keyed for task_id in part}) == 40 * len(rows)
    assert len({route_of(task_id) for task_id in parts[0]}) == 2


def test_a_row_with_a_key_has_an_id_of_the_keys_lane_and_keys_keep_the_order_of_rows() -> None:
    world = World()
    made = Namer(world.write, "q", 0).ids(range(9), ["k"] * 9)

    assert all(map(is_laned, made)) and made == sorted(made)
    assert len({*map(route_of, made)}) == 1


def test_other_refusals_stay_what_they_are() -> None:
    refusal = Refused("bad_key", "key: no")

    assert explained(refusal, 1) is refusal
