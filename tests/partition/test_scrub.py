"""A scrub leaves nothing unreadable and indexes that follow from the data, wherever it is cut short."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partition.test_replica import IDS, OPS, SKEW_MS, Op, apply, check
from skuld_py.errors import Corrupt
from skuld_py.model import ids
from skuld_py.model.body import Header
from skuld_py.model.history import decode_history
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.model.store import TABLES
from skuld_py.partition.copies.scrub import Scrub
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows, read_rows
from skuld_py.partition.leadership.suspicion import damaged, mark_damaged, suspects

NOW_MS = 2_000
DATA = ("body", "history", "log")


def played(ops: list[Op]) -> MemoryStore:
    """A store after some operations on partition 0."""
    replica, now_ms = Replica(0, MemoryStore(), SKEW_MS), 1_000
    for op in ops:
        now_ms += op.time if op.kind == "wait" else 1
        apply(replica, now_ms, op)
    for index in range(2):
        replica.append(IDS[index], FIRST_TOKEN, 0, [b"entry"])
    replica.filing.tally.settle()
    assert isinstance(replica.store, MemoryStore)
    replica.store.commit()
    return replica.store


def scrub(store: MemoryStore, rows: int = 3, breaks: tuple[int, ...] = ()) -> None:
    """Scrub partition 0; crash after so many chunks each time, and begin anew."""
    mark_damaged(store, [0], "a test")
    store.commit()
    for chunks in breaks:
        work = Scrub(store, 0, SKEW_MS, rows)
        for _ in range(chunks):
            if not work.step():
                break
            store.commit()
        store.crash()
    work = Scrub(store, 0, SKEW_MS, rows)
    while work.step():
        store.commit()
    store.commit()


def records(store: MemoryStore) -> list[tuple[str, bytes]]:
    return [(table, key) for table in TABLES if table != "meta" for key in store.rows(table)]


@settings(max_examples=300, deadline=None)
@given(st.lists(OPS, max_size=20), st.data())
def test_what_is_left_is_readable_indexed_and_can_be_filled_up(ops: list[Op], data: st.DataObject) -> None:
    store, peer = played(ops), played(ops)
    hurt = data.draw(st.lists(st.sampled_from(records(store)), unique=True)) if records(store) else []
    for table, key in hurt:
        assert store.damage(table, key)
    rows, breaks = data.draw(st.integers(1, 7)), data.draw(st.lists(st.integers(0, 20), max_size=2).map(tuple))

    scrub(store, rows, breaks)

    assert all(store.get(table, key) is None for table, key in hurt if table in DATA)
    kept = {(table, key): peer.get(table, key) for table, key in records(peer) if table in DATA}
    assert {where: store.get(*where) for where in kept if where not in hurt} == {
        where: value for where, value in kept.items() if where not in hurt}
    check(Replica(0, store, SKEW_MS), NOW_MS)

    replica = Replica(0, store, SKEW_MS)
    merge_rows(replica, NOW_MS, 1, read_rows(Replica(0, peer, SKEW_MS), IDS))
    check(replica, NOW_MS)
    assert {where: store.get(*where) for where in kept} == kept


@settings(max_examples=200)
@given(st.lists(OPS, max_size=20))
def test_an_undamaged_partition_is_as_it_was_once_the_lapsed_are_swept(ops: list[Op]) -> None:
    store, other = played(ops), played(ops)

    scrub(store)

    for each in (store, other):
        replica = Replica(0, each, SKEW_MS)
        replica.filing.sweep(NOW_MS, 100)
        replica.filing.tally.settle()
    for table in ("body", "history", "log", "ready", "lease"):
        assert store.rows(table) == other.rows(table)
    counts = [{key: value for key, value in each.rows("counts").items() if any(value)} for each in (store, other)]
    assert counts[0] == counts[1]


def test_the_mark_of_damage_goes_with_the_last_chunk_and_suspicion_stays() -> None:
    store = played([Op("store", (0, 1, 2, 3), 1, 1)])
    mark_damaged(store, [0, 1], "a bad record")
    work = Scrub(store, 0, SKEW_MS, 1)

    while work.step():
        assert damaged(store, 4) == {0: "a bad record", 1: "a bad record"}

    assert damaged(store, 4) == {1: "a bad record"}
    assert suspects(store, 4) == {0: "a bad record", 1: "a bad record"}


def test_it_tells_how_many_records_were_lost_and_leaves_other_partitions_alone() -> None:
    store = played([Op("store", (0, 1, 2), 1, 1)])
    other = Replica(1, store, SKEW_MS)
    other.store_tasks(1, Header("a").encode(), [IDS[0]], [b""])
    store.commit()
    for task_id in IDS[:2]:
        store.damage("body", tables.prefix_of(0) + task_id)
    store.damage("body", other.prefix + IDS[0])
    work = Scrub(store, 0, SKEW_MS)

    while work.step():
        pass

    assert work.dropped == {"body": 2}
    with pytest.raises(Corrupt):
        store.get("body", other.prefix + IDS[0])


def test_a_claim_whose_body_was_lost_is_still_handed_over_by_a_voter() -> None:
    store = MemoryStore()
    replica = Replica(0, store, SKEW_MS)
    replica.store_tasks(1, Header("q").encode(), [IDS[0]], [b""])
    replica.apply_grant(10, Grant([IDS[0]], [tables.place_of(Header("q"))], 7, 10, 5_000, "me"))
    replica.filing.tally.settle()
    store.commit()
    store.damage("body", replica.prefix + IDS[0])

    scrub(store)

    held = Replica(0, store, SKEW_MS).filing.leases(b"", 10)
    assert [row[1:] for row in held] == [(IDS[0], tables.place_of(Header("q")))]


def test_what_has_its_checksum_and_is_no_history_goes_too() -> None:
    store = played([Op("store", (0,), 1, 1)])
    key = tables.prefix_of(0) + IDS[0]
    store.put_many("history", [(key, b"\0" * 25)])
    store.commit()
    with pytest.raises(Corrupt):
        decode_history(store.get("history", key))

    scrub(store)

    assert store.get("history", key) is None
    assert len(IDS[0]) == ids.ID_BYTES
