"""Listings of unique names, whose ids are as old as their windows: by the time at which they were asked for."""

from __future__ import annotations

import pytest

from node.test_reading import NOW_MS, PARTITIONS, CountingStore, mask, pages
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.history import CANCELLED
from skuld_py.model.state import State
from skuld_py.node.reads.listing import listed
from skuld_py.partition.data import windows
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.replica import Replica

DAY_MS, MINUTE_MS = 86_400_000, 60_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2


def replicas_of(store: CountingStore) -> list[Replica]:
    return [Replica(partition, store, 100) for partition in range(PARTITIONS)]


def put(replicas: list[Replica], made_ms: int) -> bytes:
    """A task without a name."""
    task_id, = ids.IdMint(1).mint(made_ms, 1, made_ms // MINUTE_MS % PARTITIONS)
    at = replicas[ids.partition_of(task_id, len(replicas))]
    at.store_tasks(NOW_MS, Header("q").encode(), [task_id], [b""])
    return task_id


def put_named(replicas: list[Replica], name: str, made_ms: int, window_ms: int) -> bytes:
    body = Body(Header("q", window_ms=window_ms), made_ms=made_ms, unique=name)
    task_id = ids.named_id("q", name, made_ms // window_ms * window_ms, "")
    at = replicas[ids.partition_of(task_id, len(replicas))]
    at.store_tasks(NOW_MS, body.header.encode(), [task_id], [body.rest])
    return task_id


def one_page(replica: Replica, since_ms: int) -> m.Listed:
    return listed(NOW_MS, [0], [replica], DEFAULT_LIMITS, m.List(1, "", b"", 7, 0, since_ms))


@pytest.mark.parametrize("states", [0, mask(State.WAITING)])
@pytest.mark.parametrize(("since", "until"), [
    (NOON_MS + 10 * MINUTE_MS, 0), (NOON_MS, 0), (1, NOON_MS + 2),
    (NOON_MS + 1, NOON_MS + 15 * MINUTE_MS), (0, NOON_MS + 5 * MINUTE_MS)])
def test_names_are_listed_by_the_time_at_which_they_were_asked_for(since: int, until: int, states: int) -> None:
    """Though they stand, and pages go on, by their ids. Other tasks of the time of these ids are none of them."""
    replicas = replicas_of(CountingStore())
    asked = {put_named(replicas, f"{made_ms}", made_ms, window_ms): made_ms for window_ms in (DAY_MS, 420_000, 1)
             for made_ms in range(NOON_MS, NOON_MS + 30 * MINUTE_MS, 5 * MINUTE_MS)}
    for made_ms in (NOON_MS - DAY_MS // 2, *range(NOON_MS, NOON_MS + 30 * MINUTE_MS, MINUTE_MS)):
        asked[put(replicas, made_ms)] = made_ms

    found = [task_id for page in pages(replicas, m.List(1, "", b"", 3, states, since, until))
             for task_id in ids.split(page.ids)]
    assert found == sorted(task_id for task_id, made_ms in asked.items()
                           if since <= made_ms < (until or made_ms + 1))
    assert len(found) > 3


def test_a_name_that_was_cancelled_is_found_by_the_time_of_its_asking_too() -> None:
    replicas = replicas_of(CountingStore())
    early, late = (put_named(replicas, name, NOON_MS + at, DAY_MS) for name, at in (("a", 0), ("b", 9)))
    for task_id in (early, late):
        replicas[ids.partition_of(task_id, PARTITIONS)].mark(NOW_MS, [Mark(task_id, CANCELLED, NOW_MS)])

    found = pages(replicas, m.List(1, "", b"", 7, mask(State.CANCELLED), NOON_MS + 5))
    assert b"".join(page.ids for page in found) == late


def test_what_was_asked_for_since_is_found_without_a_look_at_what_was_not() -> None:
    store = CountingStore()
    replica = Replica(0, store, 100)
    for at in range(1_000):
        put([replica], NOON_MS - 1_000 + at)
    named = put_named([replica], "n", NOON_MS + 9, DAY_MS)
    store.walked = store.scanned = 0

    page = one_page(replica, NOON_MS + 5)
    assert (page.ids, page.upto) == (named, b"")
    assert store.walked <= 2 and not store.scanned


def test_of_very_many_windows_all_that_may_be_open_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOWS_MAX", 2)
    replica = Replica(0, CountingStore(), 100)
    lengths = (DAY_MS, 7_000, 11_000, 13_000, 17_000)
    made = [put_named([replica], f"{window_ms}", NOON_MS + 9, window_ms) for window_ms in lengths]
    assert all(ids.time_of(task_id) < NOON_MS + 9 for task_id in made)

    assert ids.split(one_page(replica, NOON_MS + 9).ids) == sorted(made)


def test_a_store_from_before_windows_were_noted_is_gone_through_once() -> None:
    store = CountingStore()
    replicas = replicas_of(store)
    for number in range(9):
        put_named(replicas, f"{number}", NOON_MS, (DAY_MS, 7_000)[number % 2])
        put(replicas, NOON_MS + number)
    rows = store.rows("window")
    assert len(rows) > 2
    store.pop_many("window", list(rows))

    windows.make_windows(store, PARTITIONS, rows=2)
    assert store.rows("window") == rows
    store.pop_many("window", list(rows))
    windows.make_windows(store, PARTITIONS)
    assert store.rows("window") == {}
