"""Several archivers: each partition's pages are given to one, and to another when that one falls silent."""

from __future__ import annotations

from skuld_py.node.retention.sharing import ARCHIVERS_MAX, SILENT_MS, Sharing

PARTITIONS = range(64)


def given(sharing: Sharing, now_ms: int, archiver: int) -> set[int]:
    return {partition for partition in PARTITIONS if not sharing.is_others(now_ms, partition, archiver)}


def test_partitions_are_spread_over_those_that_ask_and_each_has_one() -> None:
    sharing = Sharing()
    assert given(sharing, 0, 1) == set(PARTITIONS)
    given(sharing, 1, 2)

    one, two = given(sharing, 2, 1), given(sharing, 3, 2)

    assert one | two == set(PARTITIONS) and not one & two
    assert min(len(one), len(two)) > 16


def test_who_is_silent_is_followed_by_another() -> None:
    sharing = Sharing()
    given(sharing, 0, 1)
    given(sharing, SILENT_MS - 1, 2)

    assert given(sharing, SILENT_MS, 2) == set(PARTITIONS)


def test_who_leaves_is_followed_at_once() -> None:
    sharing = Sharing()
    given(sharing, 0, 1)
    for partition in PARTITIONS:
        sharing.leave(partition, 1)

    assert given(sharing, 1, 2) == set(PARTITIONS)


def test_who_has_no_number_is_given_all_and_takes_nothing_from_others() -> None:
    sharing = Sharing()
    given(sharing, 0, 1)

    assert given(sharing, 1, 0) == set(PARTITIONS) == given(sharing, 2, 1)


def test_no_more_numbers_are_kept_than_so_many() -> None:
    sharing = Sharing()
    for archiver in range(1, 10 * ARCHIVERS_MAX):
        sharing.is_others(0, 0, archiver)

    assert len(sharing._asked[0]) == ARCHIVERS_MAX
