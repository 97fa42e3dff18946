"""Lanes: the oldest first, no more at a time than a lane is wide, whatever order things come in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partition.test_replica import BODIES, IDS, OPS, SKEW_MS, WIDTH, Op, apply, check, store, widen
from skuld_py.model.body import Body, Header
from skuld_py.model.history import RELEASED, token_of
from skuld_py.model.ids import IdMint, lane_route
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.state import State
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Amendment, Grant
from skuld_py.partition.data.replica import Replica

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
    assert replica.filing.tally.row(b"a")[State.SCHEDULED] == 1
    assert replica.filing.tally.row(b"a")[State.BLOCKED] == 1

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


# -- keys that share a route -----------------------------------------------------------------------

TWINS = ("tenant-76288", "tenant-87771")
"""Keys of queue q whose routes are equal by chance."""


def twins_of(*keys: str, start_ms: int = 1_000) -> list[tuple[bytes, Body]]:
    """A task of each key, one after the other, each claimable at once."""
    mint = IdMint(7)
    return [(mint.mint(start_ms, 1, lane_route("q", key), is_laned=True)[0], Body(Header("q"), key=key))
            for key in keys]


def put(replica: Replica, tasks: Sequence[tuple[bytes, Body]]) -> None:
    for task_id, body in tasks:
        assert replica.store_tasks(1_000, body.header.encode(), [task_id], [body.rest]) == []


def claim(replica: Replica, task_id: bytes, epoch: int = 1) -> Grant:
    grant = Grant([task_id], [tables.place_of(Header("q"))], token_of(epoch, 1), 1_000, 1_100, "me")
    replica.apply_grant(1_000, grant)
    return grant


def waiting(replica: Replica) -> list[bytes]:
    return sorted(head[-20:] for head in replica.filing.heads("q", None, 99))


def test_keys_that_share_a_route_do_not_wait_for_each_other() -> None:
    assert lane_route("q", TWINS[0]) == lane_route("q", TWINS[1])
    replica, tasks = Replica(0, MemoryStore(), SKEW_MS), twins_of(*TWINS, *TWINS)
    put(replica, tasks)
    first, other, second, other_second = (task_id for task_id, _ in tasks)
    assert waiting(replica) == [first, other]
    assert (replica.filing.ahead(second), replica.filing.ahead(other_second)) == ([first], [other])

    grant = claim(replica, first)
    assert waiting(replica) == [other]
    assert replica.objections(Grant([other], grant.places, token_of(2, 1), 1_000, 1_100, "me")) == []
    assert replica.objections(Grant([second], grant.places, token_of(2, 1), 1_000, 1_100, "me")) == [0]
    both = Grant([other, other_second], [*grant.places, *grant.places], token_of(2, 1), 1_000, 1_100, "me")
    assert replica.objections(both) == [1]
    replica.finish(1_001, [first], [token_of(1, 1)], 1_001)
    assert waiting(replica) == [other, second]


def test_a_claim_whose_key_is_not_known_here_may_be_of_any_of_its_route() -> None:
    replica, tasks = Replica(0, MemoryStore(), SKEW_MS), twins_of(*TWINS, *TWINS)
    put(replica, tasks[1:])
    first, other, second, _ = (task_id for task_id, _ in tasks)
    grant = claim(replica, first)
    assert waiting(replica) == []
    assert replica.objections(Grant([other], grant.places, token_of(2, 1), 1_000, 1_100, "me")) == [0]

    put(replica, tasks[:1])
    assert waiting(replica) == [other]
    assert replica.objections(Grant([other], grant.places, token_of(2, 1), 1_000, 1_100, "me")) == []
    assert replica.objections(Grant([second], grant.places, token_of(2, 1), 1_000, 1_100, "me")) == [0]


def as_before(replica: Replica, tasks: Sequence[tuple[bytes, Body]], held: bytes) -> None:
    """Lanes as the release before wrote them: by route alone, the oldest of all its keys with its turn."""
    prefix, place = replica.prefix, tables.place_of(Header("q"))
    rows = replica.store.scan("lane", prefix, tables.end_of(prefix), 99)
    replica.store.pop_many("lane", [key for key, _ in rows])
    for task_id, _ in tasks:
        kind, flag = (b"C", b"") if task_id == held else (b"W", b"\0")
        replica.store.put_many("lane", [(prefix + kind + task_id[16:] + task_id, flag + place)])
        if task_id != held and replica.store.pop_many("ready", [prefix + place + task_id])[0] is not None:
            replica.filing.tally.add(b"q", State.WAITING, -1)
            replica.filing.tally.add(b"q", State.BLOCKED, 1)
    replica.filing.tally.settle()


def test_the_lanes_of_a_release_before_are_taken_over_by_the_first_turns() -> None:
    written, tasks = Replica(0, MemoryStore(), SKEW_MS), twins_of(*TWINS, *TWINS, "other", "other")
    put(written, tasks)
    ids = [task_id for task_id, _ in tasks]
    claim(written, ids[0])
    as_before(written, tasks, ids[0])

    replica = Replica(0, written.store, SKEW_MS)
    assert replica.filing.next_lapse_ms == 0
    while replica.filing.next_lapse_ms == 0:
        replica.filing.sweep(1_000, 1)
    assert waiting(replica) == [ids[1], ids[4]]
    assert not replica.filing.lanes.has_old
    replica.filing.tally.settle()
    assert [replica.filing.tally.row(b"q")[state] for state in (State.WAITING, State.CLAIMED, State.BLOCKED)] == [
        2, 1, 3]
    replica.finish(1_001, [ids[0]], [token_of(1, 1)], 1_001)
    assert waiting(replica) == [ids[1], ids[2], ids[4]]


def test_a_lane_of_a_release_before_is_taken_over_when_it_changes() -> None:
    """Before the sweep has come to it, in the order of its ids."""
    written, tasks = Replica(0, MemoryStore(), SKEW_MS), twins_of(TWINS[0], TWINS[0], *TWINS)
    put(written, tasks[1:])
    ids = [task_id for task_id, _ in tasks]
    claim(written, ids[1])
    as_before(written, tasks[1:], ids[1])

    replica = Replica(0, written.store, SKEW_MS)
    grant = Grant([ids[2]], [tables.place_of(Header("q"))], token_of(2, 1), 1_000, 1_100, "me")
    assert replica.objections(grant) == [0], "its older task is held"
    assert replica.filing.ahead(ids[2]) == [ids[1]]
    put(replica, tasks[:1])
    replica.finish(1_001, [ids[1]], [token_of(1, 1)], 1_001)
    assert waiting(replica) == [ids[0], ids[3]]
