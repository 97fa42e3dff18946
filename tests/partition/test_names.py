"""Unique names: of two bodies the one asked for first stands, on every copy, in whatever order they come."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.model.body import Body, Header, stands_over
from skuld_py.model.history import token_of
from skuld_py.model.ids import IdMint, named_id
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.reads.merge import merge_task_rows
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import covers, merge_rows, read_rows

SKEW_MS, NOW_MS, WINDOW_MS = 10, 5_300, 1_000
TASK = named_id("q", "n", 5_000, "")


def named(made_ms: int, payload: bytes = b"x", priority: int = 0, expires_ms: int = 0) -> Body:
    return Body(Header("q", priority, window_ms=WINDOW_MS), 0, expires_ms, payload, made_ms=made_ms, unique="n")


BODIES = st.builds(named, st.integers(5_000, 5_003), st.binary(max_size=2), st.integers(-1, 1),
                   st.sampled_from((0, 9_000)))
PLAIN = Body(Header("q"), payload=b"plain")


def store(replica: Replica, *bodies: Body) -> list[bytes]:
    return [refused for body in bodies
            for refused in replica.store_tasks(NOW_MS, body.header.encode(), [TASK], [body.rest])]


def content(replica: Replica) -> list[object]:
    replica.filing.tally.settle()
    prefix = replica.prefix
    rows = [replica.store.scan(table, prefix, tables.end_of(prefix), 99)
            for table in ("body", "ready", "lease", "time", "expiry", "lane", "counts")]
    return [*rows, replica.tree.nodes.level(0, ())]


@given(st.lists(BODIES, min_size=2, max_size=4, unique_by=Body.encode))
def test_copies_that_hear_bodies_in_any_order_are_equal(bodies: list[Body]) -> None:
    first = min(bodies, key=lambda body: (body.made_ms, body.encode()))
    wanted = Replica(0, MemoryStore(), SKEW_MS)
    store(wanted, first)

    for order in permutations(bodies):
        replica = Replica(0, MemoryStore(), SKEW_MS)
        store(replica, *order)
        assert content(replica) == content(wanted)


@settings(deadline=None)
@given(BODIES, BODIES)
def test_who_stands_is_told_by_all_alike(a: Body, b: Body) -> None:
    """By copies that join, by readers, and by who asks whether a copy may go."""
    here, there = (Replica(0, MemoryStore(), SKEW_MS) for _ in range(2))
    store(here, a)
    store(there, b)
    ours, theirs = (read_rows(replica, [TASK]) for replica in (here, there))

    assert covers(ours[0], theirs[0]) != stands_over(b.encode(), a.encode())
    (joined,) = merge_task_rows([*ours, *theirs])
    assert merge_task_rows([*theirs, *ours]) == [joined]
    assert merge_rows(here, NOW_MS, 1, theirs) == merge_rows(there, NOW_MS, 1, ours) == []
    assert read_rows(here, [TASK]) == read_rows(there, [TASK]) == [joined]
    assert content(here) == content(there)


def test_a_later_body_is_refused_and_an_earlier_one_is_not() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)

    assert store(replica, named(5_002), named(5_003), named(5_002, b"y")) == [TASK, TASK]
    assert store(replica, named(5_001, b"z"), named(5_001, b"z")) == []
    assert replica.bodies([TASK]) == [named(5_001, b"z").encode()]


def test_a_name_waits_in_the_order_of_asking_though_its_window_began_long_before() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    early, late = (IdMint(1).mint(time_ms, 1, 0)[0] for time_ms in (5_199, 5_201))
    replica.store_tasks(NOW_MS, Header("q").encode(), [late, early], [b"", b""])
    better = IdMint(2).mint(5_299, 1, 0)
    replica.store_tasks(NOW_MS, Header("q", 1).encode(), better, [b""])
    store(replica, named(5_250))
    assert waiting(replica) == [*better, early, late, TASK]

    assert store(replica, named(5_200)) == [], "asked for earlier still"
    assert waiting(replica) == [*better, early, TASK, late]


def waiting(replica: Replica) -> list[bytes]:
    return [head[-20:] for head in replica.filing.heads("q", None, 9)]


def test_a_body_without_a_name_gives_way_to_none_and_takes_the_place_of_none() -> None:
    other = Body(Header("q"), expires_ms=9_000, payload=b"a")
    for bodies in ((PLAIN, named(5_001)), (named(5_001), PLAIN), (PLAIN, other), (named(5_001), other)):
        replica = Replica(0, MemoryStore(), SKEW_MS)
        assert store(replica, *bodies) == [TASK]
        assert replica.bodies([TASK]) == [bodies[0].encode()]


def test_a_body_is_replaced_while_its_task_is_claimed_and_after_it_was_completed() -> None:
    replica = Replica(0, MemoryStore(), SKEW_MS)
    late, early = named(5_002, priority=1), named(5_001, priority=5)
    store(replica, late)
    grant = Grant([TASK], [tables.place_of(late.header)], token_of(1, 1), NOW_MS, NOW_MS + 50, "me")
    replica.apply_grant(NOW_MS, grant)

    assert store(replica, early) == []
    (_, task_id, place), = replica.filing.leases(b"", 9)
    assert (task_id, place) == (TASK, tables.place_of(early.header))
    replica.finish(NOW_MS, [TASK], [token_of(1, 1)], NOW_MS)
    store(replica, named(5_000))
    assert [*replica.filing.tally.rows()] == [("q", (0, 0, 1, 0, 0, 0, 0))]
