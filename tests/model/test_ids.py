"""Ids rise over clock steps and restarts, carry their partition, and read as sortable text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.model import ids


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 50)), min_size=1, max_size=20))
def test_ids_rise_whatever_the_clock_does(calls: list[tuple[int, int]]) -> None:
    mint = ids.IdMint(nonce=7)

    minted = [task_id for now_ms, count in calls for task_id in mint.mint(now_ms, count, route=3)]

    assert minted == sorted(set(minted))


def test_ids_rise_over_a_restart_with_a_clock_set_back() -> None:
    before = ids.IdMint(1).mint(5_000, 3, 0)
    floor_ms = ids.time_of(before[-1])

    after = ids.IdMint(2, floor_ms).mint(1_000, 3, 0)

    assert min(after) > max(before)


def test_a_raised_floor_is_passed_by_the_next_id() -> None:
    mint = ids.IdMint(1)
    mint.raise_floor(9_000)

    assert ids.time_of(mint.mint(10, 1, 0)[0]) > 9_000


def test_a_full_millisecond_goes_on_in_the_next() -> None:
    mint = ids.IdMint(1)
    mint.mint(5, 1, 0)
    mint._seq = ids.SEQ_END - 2

    assert ids.time_of(mint.mint(5, 2, 0)[0]) == 6


@given(st.binary(min_size=20, max_size=20), st.binary(min_size=20, max_size=20))
def test_text_sorts_like_the_bytes_and_parses_back(a: bytes, b: bytes) -> None:
    assert ids.from_text(ids.to_text(a)) == a
    assert (ids.to_text(a) < ids.to_text(b)) == (a < b)


@given(st.lists(st.binary(min_size=20, max_size=20), max_size=20))
def test_a_column_of_ids_has_the_texts_of_each(each: list[bytes]) -> None:
    assert ids.to_texts(b"".join(each)) == list(map(ids.to_text, each))


@pytest.mark.parametrize("text", ["", "z" * 32, "0" * 31, "0" * 33, "0" * 30 + "==", "\u0130" * 32])
def test_other_texts_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(Refused, match="32 characters"):
        ids.from_text(text)


@given(st.integers(0, (1 << 32) - 1), st.integers(0, 12))
def test_the_route_alone_decides_the_partition(route: int, power: int) -> None:
    task_id = ids.IdMint(1).mint(1, 1, route)[0]

    assert ids.partition_of(task_id, 1 << power) == route % (1 << power)


@given(st.lists(st.binary(min_size=20, max_size=20)), st.integers(0, 12))
def test_the_partitions_of_a_column_are_those_of_its_ids(task_ids: list[bytes], power: int) -> None:
    found = ids.partitions_of(b"".join(task_ids), 1 << power)

    assert list(found) == [ids.partition_of(task_id, 1 << power) for task_id in task_ids]


def test_a_task_id_prints_as_text() -> None:
    task_id = ids.TaskId(bytes(20))

    assert str(task_id) == "0" * 32
    assert repr(task_id) == f"TaskId('{'0' * 32}')"


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 50), st.booleans()), min_size=1, max_size=20))
def test_laned_ids_and_others_rise_each_among_themselves(calls: list[tuple[int, int, bool]]) -> None:
    mint = ids.IdMint(nonce=7)

    minted = [task_id for now_ms, count, is_laned in calls for task_id in mint.mint(now_ms, count, 3, is_laned)]

    for wanted in (False, True):
        kind = [task_id for task_id in minted if ids.is_laned(task_id) == wanted]
        assert kind == sorted(set(kind))
        assert ids.any_laned(b"".join(kind)) == (wanted and bool(kind))
    assert len(set(minted)) == len(minted)
    assert ids.any_laned(b"".join(minted)) == any(is_laned for _, _, is_laned in calls)


def test_all_tasks_of_a_key_are_of_one_lane_of_their_queue() -> None:
    route = ids.lane_route("work", "user-7")

    assert ids.route_of(ids.IdMint(1).mint(5, 1, route, True)[0]) == route
    assert route == 0x228aeb8a, "stored ids depend on it"
    others = [("wor", "kuser-7"), ("work", "user-8")]
    assert len({route, *(ids.lane_route(*other) for other in others)}) == 3


def test_a_unique_name_is_one_id_in_each_window() -> None:
    made = ids.named_id("work", "daily", 86_400_000, "")

    assert made == ids.named_id("work", "daily", 86_400_000, "")
    assert ids.time_of(made) == 86_400_000 and not ids.is_laned(made)
    others = [("other", "daily", 86_400_000, ""), ("work", "weekly", 86_400_000, ""),
              ("work", "daily", 86_400_001, ""), ("work", "daily", 86_400_000, "k"),
              ("work", "daily", 8_640_000, "0"), ("workd", "aily", 86_400_000, "")]
    assert len({made, *(ids.named_id(*other) for other in others)}) == 7
    assert ids.to_text(made) == "000000054pe006cbvi8evdejubancjsh", "stored ids depend on it"


def test_a_unique_name_with_a_key_is_of_the_lane_of_the_key() -> None:
    made = ids.named_id("work", "daily", 5, "k")

    assert ids.is_laned(made) and ids.route_of(made) == ids.lane_route("work", "k")


def test_a_unique_name_is_of_one_key_even_where_keys_share_a_route() -> None:
    first, second = (ids.named_id("q", "daily", 5, key) for key in ("tenant-76288", "tenant-87771"))

    assert ids.route_of(first) == ids.route_of(second) and first != second
