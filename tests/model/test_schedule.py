"""Schedules: their form, their ticks, and that a tick is one task whoever makes it."""

from __future__ import annotations

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.model.body import Body, Header
from skuld_py.model.ids import time_of
from skuld_py.model.schedule import (
    CATCH_UP_MAX,
    EVERY_MS_MAX,
    EVERY_MS_MIN,
    PAYLOAD_BYTES_MAX,
    Almanac,
    Schedule,
    Search,
    home_of,
    is_schedule,
    no_almanac,
    tick_after,
)

PLAIN = Schedule(Header("q").encode(), b"x", 1_000, every_ms=500)
CRON = attrs.evolve(PLAIN, every_ms=0, cron="any")
DAY_MS = 86_400_000


def sparse(ticks: list[int]) -> Almanac:
    """An almanac with these ticks."""
    def almanac(cron: str, zone: str, after_ms: int, upto_ms: int) -> int | None:
        return min((tick for tick in ticks if after_ms < tick <= upto_ms), default=None)
    return almanac


def newest(schedule: Schedule, almanac: Almanac, after_ms: int, upto_ms: int,
           wanted: int) -> tuple[list[int], int]:
    """The newest ticks, rising, and how many looks it took."""
    search, looks, found = Search(after_ms, upto_ms, wanted), 0, []
    while not search.is_over:
        looks += 1
        tick = search.step(lambda low, high: tick_after(schedule, almanac, low, high))
        found += [] if tick is None else [tick]
    assert found == sorted(found, reverse=True), "the newest first"
    return found[::-1], looks


# -- the form --------------------------------------------------------------------------------------


@given(st.builds(Schedule, st.builds(lambda priority: Header("q", priority).encode(), st.integers(-5, 5)),
                 st.binary(max_size=20), st.integers(0, 1 << 40), every_ms=st.integers(EVERY_MS_MIN, EVERY_MS_MAX),
                 catch_up=st.integers(0, CATCH_UP_MAX)))
def test_what_is_encoded_is_decoded(schedule: Schedule) -> None:
    assert Schedule.decode(schedule.encode()) == schedule
    assert is_schedule(schedule.encode())


@pytest.mark.parametrize(("change", "code"), [
    ({"every_ms": 0}, "bad_schedule"), ({"cron": "* * * * *"}, "bad_schedule"), ({"every_ms": 99}, "bad_schedule"),
    ({"every_ms": EVERY_MS_MAX + 1}, "bad_schedule"), ({"zone": "Europe/Berlin"}, "bad_schedule"),
    ({"catch_up": 101}, "bad_schedule"), ({"catch_up": -1}, "bad_schedule"), ({"since_ms": -1}, "bad_schedule"),
    ({"payload": bytes(PAYLOAD_BYTES_MAX + 1)}, "payload_too_large"), ({"header": b""}, "bad_schedule"),
    ({"header": Header("a b").encode()}, "bad_name"), ({"every_ms": 0, "cron": "*" * 256}, "bad_cron"),
    ({"header": Body(Header("q"), not_before_ms=5).header.encode()}, "bad_schedule"),
])
def test_what_makes_no_sense_is_refused(change: dict[str, object], code: str) -> None:
    with pytest.raises(Refused) as refused:
        Schedule.decode(attrs.evolve(PLAIN, **change).encode())  # type: ignore[arg-type]
    assert refused.value.code == code


@pytest.mark.parametrize("value", [
    b"", b"true", b"{}", b"[" * 5_000, PLAIN.encode() + b" ", PLAIN.encode().replace(b"500", b"500.0"),
    PLAIN.encode().replace(b'"header":"', b'"header":"!'),
    json.dumps({**json.loads(PLAIN.encode()), "more": 1}).encode(),
    PLAIN.encode().replace(b"500", b'"500"'), b"\xff"])
def test_other_bytes_are_no_schedule(value: bytes) -> None:
    with pytest.raises(Refused):
        is_schedule(value)


# -- ticks -----------------------------------------------------------------------------------------


def test_ticks_are_multiples_since_1970_whenever_the_schedule_was_put() -> None:
    late = attrs.evolve(PLAIN, since_ms=1_234)

    assert tick_after(late, no_almanac, 1_234, 1_500) == tick_after(PLAIN, no_almanac, 1_234, 9_000) == 1_500
    assert tick_after(late, no_almanac, 1_234, 1_499) is None
    assert newest(late, no_almanac, 1_234, 2_600, 100)[0] == [1_500, 2_000, 2_500]
    assert newest(late, no_almanac, 1_500, 1_999, 5)[0] == []


@given(st.lists(st.integers(1, 10 * DAY_MS), max_size=30), st.integers(0, 10 * DAY_MS),
       st.integers(0, 10 * DAY_MS), st.integers(1, 5))
def test_the_newest_ticks_of_an_almanac_are_found_by_looking_ahead_only(
        ticks: list[int], after_ms: int, upto_ms: int, count: int) -> None:
    wanted = sorted({tick for tick in ticks if after_ms < tick <= upto_ms})[-count:]

    assert newest(CRON, sparse(ticks), after_ms, upto_ms, count)[0] == wanted


def test_few_looks_find_the_newest_of_many_ticks_and_that_there_is_none() -> None:
    def minutely(cron: str, zone: str, after_ms: int, upto_ms: int) -> int | None:
        tick = (after_ms // 60_000 + 1) * 60_000
        return tick if tick <= upto_ms else None

    assert newest(CRON, minutely, 0, 3_650 * DAY_MS + 5, 1)[0] == [3_650 * DAY_MS]
    assert newest(CRON, minutely, 0, 3_650 * DAY_MS + 5, 1)[1] < 10
    assert newest(CRON, minutely, 0, 3_650 * DAY_MS + 5, 100)[1] < 600
    assert newest(CRON, sparse([DAY_MS]), 0, 3_650 * DAY_MS, 1)[1] < 60
    assert newest(CRON, sparse([]), 0, 31 * DAY_MS, 101)[1] < 20


def test_without_an_almanac_cron_lines_are_refused() -> None:
    with pytest.raises(Refused, match="use every_s"):
        tick_after(CRON, no_almanac, 5, 10)


# -- tasks -----------------------------------------------------------------------------------------


def test_a_tick_has_one_id_and_names_and_ticks_have_their_own() -> None:
    task_id, body = PLAIN.task("a", 1_500)

    assert PLAIN.task("a", 1_500) == (task_id, body)
    assert (time_of(task_id), body.made_ms, body.payload, body.header.queue) == (1_500, 1_500, b"x", "q")
    assert len({PLAIN.task(name, tick)[0] for name in ("a", "b") for tick in (1_500, 2_000)}) == 4
    assert attrs.evolve(PLAIN, payload=b"y", since_ms=7).task("a", 1_500)[0] == task_id
    assert body.prelude.problem_of(task_id, "q", body.header.window_ms) == ""
    assert Body.decode(body.encode()) == body


def test_homes_are_spread() -> None:
    homes = {home_of(f"s{number}", 8) for number in range(100)}

    assert homes == set(range(8))
