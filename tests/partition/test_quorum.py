"""Any two majorities of a cohort share a member; the arithmetic against a dumb twin."""

from __future__ import annotations

from itertools import combinations

import pytest

from skuld_py.partition.leadership.quorum import has_joint_majority, has_majority, majority

NAMES = "abcdefg"


@pytest.mark.parametrize("size", range(1, 8))
def test_two_majorities_overlap_and_nothing_smaller_is_one(size: int) -> None:
    cohort = NAMES[:size]

    quorums = [set(voters) for count in range(size + 1) for voters in combinations(cohort, count)
               if has_majority(cohort, voters)]

    assert all(a & b for a in quorums for b in quorums)
    assert min(map(len, quorums)) == majority(size)
    assert 2 * majority(size) > size


def test_nothing_wins_an_empty_cohort_and_strangers_do_not_count() -> None:
    assert has_majority("", "")
    assert not has_majority("abc", "axyz")
    assert has_majority("abc", "abxyz")


def test_a_joint_majority_needs_both() -> None:
    assert has_joint_majority("abc", "cde", "abcd")
    assert not has_joint_majority("abc", "cde", "abc")
    assert not has_joint_majority("abc", "cde", "cde")
