"""Which cohorts count: those of candidates promised stay until an epoch as new has a leader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.leadership.standing import Standing, load_standing, save_standing

A, B, C = ("n1", "n2", "n3"), ("n1", "n2", "n4"), ("n1", "n4", "n5")


def test_before_the_first_leader_no_cohort_counts() -> None:
    assert Standing().proposed(1, A).groups == ()


def test_a_pending_cohort_stays_until_an_epoch_as_new_has_a_leader() -> None:
    known = Standing().settled(1, 1, A).proposed(4, B).proposed(6, C)

    assert known.groups == (A, B, C)
    assert known.settled(3, 1, A).groups == (A, B, C)
    assert known.settled(4, 1, A).groups == (A, C)
    assert known.settled(5, 4, B).groups == (B, C)
    assert known.settled(6, 6, C).groups == (C,)


def test_the_same_cohort_is_not_pending_and_one_proposed_again_waits_for_the_newer_epoch() -> None:
    known = Standing().settled(1, 1, A).proposed(3, (*A[1:], A[0]))
    assert known.groups == (A,)

    again = known.proposed(4, B).proposed(6, (*B[1:], B[0]))
    assert again.groups == (A, B)
    assert again.settled(5, 1, A).groups == (A, B)


def test_older_news_changes_nothing() -> None:
    known = Standing().settled(5, 4, B).proposed(7, C)

    assert known.settled(4, 4, B) == known
    assert known.settled(6, 3, A) == known


def test_who_votes_or_may_come_to_vote_is_included() -> None:
    known = Standing().settled(1, 1, A).proposed(4, B)

    assert [name for name in ("n1", "n2", "n3", "n4", "n5") if known.includes(name)] == ["n1", "n2", "n3", "n4"]


NAMES = st.lists(st.sampled_from(["n1", "n2", "n3"]), unique=True).map(tuple)


@given(st.integers(0, 9), st.integers(0, 9), NAMES, st.lists(st.tuples(st.integers(0, 9), NAMES)).map(tuple))
def test_it_is_stored_as_it_is(epoch: int, era: int, cohort: tuple[str, ...],
                               pending: tuple[tuple[int, tuple[str, ...]], ...]) -> None:
    store = MemoryStore()
    save_standing(store, 3, Standing(epoch, era, cohort, pending))

    assert load_standing(store, 3) == Standing(epoch, era, cohort, pending)
    assert load_standing(store, 2) == Standing()
