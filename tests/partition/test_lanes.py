"""Lanes: the oldest first, no more at a time than a lane is wide, whatever order things come in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partition.test_replica import BODIES, IDS, OPS, SKEW_MS, WIDTH, Op, apply, check, store, widen
from skuld_py.model.history import RELEASED, token_of
from skuld_py.model.state import State
from skuld_py.partition import tables
from skuld_py.partition.facts import Amendment, Grant
from skuld_py.partition.replica import Replica
from skuld_py.simulation.store import MemoryStore

FIRST, SECOND, LATER, FOURTH, OTHER = range(9, 14)
"""Tasks of a lane by age, and one of another lane. The third may not be claimed before 1,030 ms."""


@pytest.fixture(autouse=True)
def narrow() -> Iterator[None]:
    WIDTH[0] = 1
    yield
    WIDTH[0] = 1


def replica_of(*indexes: int) -> Replica:
    made = Replica(0, MemoryStore(), SKEW_MS)
    for index in indexes:
        store(made, 1_000, index)
    return made


def heads(replica: Replica) -> list[int]:
    return sorted(IDS.index(head[-20:]) for head in replica.filing.heads("a", None, 99))


def grant_of(*indexes: int, epoch: int = 1, start_ms: int = 1_000, end_ms: int = 1_100) -> Grant:
    places = [tables.place_of(BODIES[index].header) for index in indexes]
    return Grant([IDS[index] for index in indexes], places, token_of(epoch, 1), start_ms, end_ms, "me")


@settings(max_examples=200, deadline=None)
@given(st.lists(OPS | st.integers(1, 3), max_size=25))
def test_lanes_follow_from_the_data_while_their_width_changes(ops: list[Op | int]) -> None:
    WIDTH[0] = 1
    replica, now_ms = Replica(0, MemoryStore(), SKEW_MS), 1_000

    for op in ops:
        if isinstance(op, int):
            widen(replica, now_ms, op)
        else:
            now_ms += op.time if op.kind == "wait" else 1
            apply(replica, now_ms, op)
        check(replica, now_ms)


def test_the_oldest_of_a_lane_is_claimable_whatever_the_priorities_and_the_order_of_coming() -> None:
    replica = replica_of(FOURTH, SECOND, OTHER)
    assert heads(replica) == [SECOND, OTHER]

    store(replica, 1_000, FIRST)
    assert heads(replica) == [FIRST, OTHER]


def test_a_task_waits_until_no_claim_of_its_lane_may_be_held() -> None:
    replica = replica_of(FIRST, SECOND)
    replica.apply_grant(1_000, grant_of(FIRST))
    assert heads(replica) == []

    replica.filing.sweep(1_100 + SKEW_MS - 1, 9)
    assert heads(replica) == []
    replica.filing.sweep(1_100 + SKEW_MS, 9)
    assert heads(replica) == [FIRST], "it lapsed, and is the older one"
    replica.finish(1_120, [IDS[FIRST]], [token_of(1, 1)], 1_120)
    assert heads(replica) == [SECOND]


def test_a_task_that_rests_or_whose_time_has_not_come_holds_its_lane() -> None:
    replica = replica_of(LATER, FOURTH)
    assert heads(replica) == []
    replica.filing.tally.settle()
    assert replica.filing.tally.rows(b"a", 1)[0][1][State.SCHEDULED] == 1
    assert replica.filing.tally.rows(b"a", 1)[0][1][State.BLOCKED] == 1

    replica.filing.sweep(1_030, 9)
    assert heads(replica) == [LATER]


def test_a_claim_whose_task_is_not_known_here_fills_its_lane() -> None:
    replica = replica_of(SECOND)
    replica.apply_grant(1_000, grant_of(FIRST))
    assert heads(replica) == []

    replica.filing.sweep(1_200, 9)
    assert heads(replica) == [SECOND]


def test_a_task_that_comes_into_a_lane_which_became_narrower_finds_all_closed_that_must_be() -> None:
    replica = replica_of(FIRST, SECOND, FOURTH)
    widen(replica, 1_000, 3)
    assert heads(replica) == [FIRST, SECOND, FOURTH]

    replica.filing.widen("a", 1)
    store(replica, 1_000, LATER)
    assert heads(replica) == [FIRST]


# -- vetoes ----------------------------------------------------------------------------------------


def test_a_claim_is_vetoed_while_another_of_its_lane_may_be_held() -> None:
    """Also by a replica that does not know the task of that other claim."""
    for replica in (replica_of(FIRST, SECOND), replica_of(SECOND)):
        replica.apply_grant(1_000, grant_of(FIRST))
        over_ms = 1_100 + SKEW_MS

        assert replica.objections(grant_of(SECOND, epoch=2)) == [0]
        assert replica.blockers(grant_of(SECOND, epoch=2), [0]) == [IDS[FIRST]]
        assert replica.objections(grant_of(OTHER, SECOND, epoch=2)) == [1]
        assert replica.objections(grant_of(SECOND, epoch=2, start_ms=over_ms - 1, end_ms=1_200)) == [0]
        assert replica.objections(grant_of(SECOND, epoch=2, start_ms=over_ms, end_ms=1_200)) == []
        assert replica.objections(grant_of(FIRST)) == [], "its own claim fills no lane"


def test_a_claim_that_was_given_back_fills_no_lane() -> None:
    replica = replica_of(FIRST, SECOND)
    replica.apply_grant(1_000, grant_of(FIRST))
    replica.amend(1_001, [Amendment(IDS[FIRST], token_of(1, 1), 1_100, RELEASED)])

    assert replica.objections(grant_of(SECOND, epoch=2)) == []
    assert replica.blockers(grant_of(SECOND, epoch=2), []) == []


def test_of_two_claims_of_a_lane_in_one_grant_the_second_is_vetoed() -> None:
    replica = replica_of(FIRST, SECOND)

    assert replica.objections(grant_of(FIRST, SECOND)) == [1]
    replica.apply_grant(1_000, grant_of(FIRST, SECOND), [1])
    assert replica.objections(grant_of(FIRST, SECOND)) == [1], "the same grant, sent again"


def test_a_wider_lane_takes_as_many_claims() -> None:
    replica = replica_of(FIRST, SECOND, FOURTH)
    widen(replica, 1_000, 2)
    assert heads(replica) == [FIRST, SECOND]

    assert replica.objections(grant_of(FIRST, SECOND, FOURTH)) == [2]
    replica.apply_grant(1_000, grant_of(FIRST))
    assert replica.objections(grant_of(SECOND, FOURTH, epoch=2)) == [1]
