"""Schedules on nodes: each tick one task, whoever leads, whoever thinks so, and whatever is lost on the way."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.events import Event, Received, Send, Session, SessionChanged, Settled, Ticked
from skuld_py.model.schedule import SCHEDULE, Schedule, home_of
from skuld_py.model.setting import UNSET
from skuld_py.node.schedules.ticks import LINE_CHARS, SIGHT_MS, TICKS_AT_ONCE, WORK_AT_ONCE

PARTITIONS = 4
EVERY_MS = 10_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=PARTITIONS)
    made.pass_time(2_000)
    return made


def put(machines: Machines, name: str = "s", version: int = 0, *, at: int = 0, value: bytes | None = None,
        **changes: object) -> m.Message | None:
    """Have a schedule known to all; the answer."""
    now_ms = machines.now_ms
    schedule = attrs.evolve(Schedule(Header("q").encode(), b"x", now_ms, every_ms=EVERY_MS), **changes)
    client = b"%d" % len(machines.answers)
    value = schedule.encode() if value is None else value
    message = m.PutSetting(1, SCHEDULE, name, version or now_ms, "w", value)
    machines.ask(machines.names[at], message, client)
    machines.pass_time(20)
    answers = machines.answers_to(client)
    return answers[-1] if answers else None


def ticks(machines: Machines, name: str = "s") -> list[int]:
    """The ticks of which any node has a task, rising; all copies of a tick have one id and one body."""
    found: dict[int, set[tuple[bytes, bytes]]] = {}
    for store in machines.stores.values():
        for key, record in store.rows("body").items():
            body = Body.decode(record)
            if body.unique == f"{SCHEDULE}:{name}":
                found.setdefault(body.made_ms, set()).add((key[2:], record))
    assert all(len(copies) == 1 for copies in found.values())
    return sorted(found)


def lead(machines: Machines, partition: int) -> str:
    return next(name for name in machines.names if machines.nodes[name].view.vnodes[partition].is_leading)


def lose_session(machines: Machines, name: str) -> None:
    machines.give(name, SessionChanged(Session.LOST))


def until_tick(machines: Machines, after_ms: int = 100) -> None:
    """Go on to a while after the next tick."""
    machines.pass_time(EVERY_MS - machines.now_ms % EVERY_MS + after_ms)


# -- ticks -----------------------------------------------------------------------------------------


def test_every_tick_from_the_definition_on_becomes_a_task_in_time(machines: Machines) -> None:
    begun_ms = machines.now_ms
    assert isinstance(put(machines), m.SettingPut)
    machines.pass_time(35_000)

    found = ticks(machines)

    assert found == [tick for tick in range(0, machines.now_ms, EVERY_MS) if tick > begun_ms] and len(found) >= 3


def test_one_node_enqueues_though_all_know_the_schedule(machines: Machines) -> None:
    sent: list[m.Message] = []
    machines.is_lost = lambda message: bool(isinstance(message, m.Replicate) and sent.append(message))
    put(machines)
    machines.pass_time(35_000)

    assert len(sent) == len(ticks(machines)) * (len(machines.names) - 1)


def test_the_next_leader_goes_on_and_no_tick_is_there_twice(machines: Machines) -> None:
    put(machines)
    until_tick(machines)
    first = lead(machines, home_of("s", PARTITIONS))
    lose_session(machines, first)
    machines.pass_time(60_000)

    assert lead(machines, home_of("s", PARTITIONS)) != first
    assert {right - left for left, right in pairwise(ticks(machines))} == {EVERY_MS}


def test_who_comes_to_lead_knows_nothing_and_writes_the_newest_tick_alone(machines: Machines) -> None:
    put(machines)
    until_tick(machines)
    before = ticks(machines)
    sent: list[m.Message] = []
    machines.is_lost = lambda message: bool(isinstance(message, m.Replicate) and sent.append(message))
    lose_session(machines, lead(machines, home_of("s", PARTITIONS)))
    machines.pass_time(4_000)

    assert ticks(machines) == before
    assert len(sent) == len(machines.names) - 1, "one tick to each of the other nodes"


@pytest.mark.parametrize(("catch_up", "made"), [(0, 1), (2, 3), (100, 7)])
def test_of_missed_ticks_the_newest_is_made_up_for_and_as_many_more_as_wanted(
        machines: Machines, catch_up: int, made: int) -> None:
    put(machines, catch_up=catch_up)
    for name in machines.names:
        lose_session(machines, name)
    machines.pass_time(7 * EVERY_MS)
    assert ticks(machines) == []
    for name in machines.names:
        machines.give(name, SessionChanged(Session.CONNECTED))
    machines.pass_time(5_000)

    newest_ms = machines.now_ms // EVERY_MS * EVERY_MS
    assert ticks(machines) == [newest_ms - back * EVERY_MS for back in reversed(range(made))]


def test_a_tick_that_no_majority_has_is_written_again(machines: Machines) -> None:
    put(machines)
    machines.is_lost = lambda message: isinstance(message, m.Replicate)
    until_tick(machines, 6_000)
    sent: list[m.Message] = []
    machines.is_lost = lambda message: bool(isinstance(message, m.Replicate) and sent.append(message))
    machines.pass_time(3_000)

    tick_ms, = ticks(machines)
    assert len(sent) >= 2, "not left to the exchanges, which a tick without any copy would wait for in vain"
    assert sum(1 for store in machines.stores.values() if any(
        Body.decode(record).made_ms == tick_ms for record in store.rows("body").values())) == 3


def test_two_leaders_in_doubt_make_one_task(machines: Machines) -> None:
    """A leader that does not hear that it was deposed, beside the next one."""
    put(machines)
    first = lead(machines, home_of("s", PARTITIONS))
    others = [name for name in machines.names if name != first]
    node = machines.nodes[first]
    until_tick(machines, -200)
    vnode = node.view.vnodes[home_of("s", PARTITIONS)]
    epoch = vnode.epoch
    for name in others:
        machines.nodes[name]._ticks._led = {home_of("s", PARTITIONS): epoch}  # they too take it for theirs
        machines.nodes[name]._ticks._next_look_ms = machines.now_ms + EVERY_MS
        machines.nodes[name]._ticks._fresh.append("s")
        machines.give(name, Ticked())
    machines.pass_time(1_000)

    assert len(ticks(machines)) == 1


# -- definitions -----------------------------------------------------------------------------------


def test_a_removed_schedule_ticks_no_more(machines: Machines) -> None:
    put(machines)
    until_tick(machines)
    put(machines, value=UNSET)
    before = ticks(machines)
    machines.pass_time(30_000)

    assert ticks(machines) == before and len(before) == 1
    assert all(node.deadline() > machines.now_ms for node in machines.nodes.values()), "and nobody is kept awake"


def test_a_changed_definition_holds_from_its_making_on_and_makes_no_old_tick_anew(machines: Machines) -> None:
    put(machines)
    until_tick(machines)
    put(machines, payload=b"y", catch_up=100)
    machines.pass_time(EVERY_MS)

    bodies = {Body.decode(record).made_ms: Body.decode(record).payload
              for store in machines.stores.values() for record in store.rows("body").values()}
    assert [payload for _, payload in sorted(bodies.items())] == [b"x", b"y"]


def test_schedules_outlive_a_restart(machines: Machines) -> None:
    put(machines)
    for name in machines.names:
        machines.restart(name)
    machines.pass_time(30_000)

    assert len(ticks(machines)) >= 2


def test_a_definition_that_cannot_be_read_is_refused_and_what_is_stored_of_it_ignored(machines: Machines) -> None:
    refused = put(machines, value=b"{}")
    assert isinstance(refused, m.Failed) and refused.code == "bad_schedule" and refused.is_definite
    refused = put(machines, every_ms=0, cron="* * * * *")
    assert isinstance(refused, m.Failed) and refused.code == "bad_cron", "these nodes have no calendar"

    cron = Schedule(Header("q").encode(), b"x", 0, cron="* * * * *").encode()
    for name in machines.names:
        rows = tuple(m.SettingRow(SCHEDULE, what, 5, "w", value) for what, value in (("a", b"{}"), ("b", cron)))
        machines.give(name, Received(next(other for other in machines.names if other != name),
                                     m.PulledSettings(rows)))
    put(machines)
    machines.pass_time(30_000)

    assert len(ticks(machines)) >= 2


def test_many_schedules_due_at_once_are_all_served_a_part_at_a_time(machines: Machines) -> None:
    count = 3 * max(TICKS_AT_ONCE, WORK_AT_ONCE)
    schedule = Schedule(Header("q").encode(), b"x", machines.now_ms, every_ms=EVERY_MS)
    rows = tuple(m.SettingRow(SCHEDULE, f"s{number}", 5, "w", schedule.encode()) for number in range(count))
    for name in machines.names:
        machines.give(name, Received(next(other for other in machines.names if other != name),
                                     m.PulledSettings(rows)))
    until_tick(machines, -1)
    for name in machines.names:
        node = machines.nodes[name]
        sent = [effect for event in (Ticked(), Settled()) for effect in node.step(machines.now_ms + 1, event)
                if isinstance(effect, Send) and isinstance(effect.message, m.Replicate)]
        assert len(sent) <= WORK_AT_ONCE // 3 * (len(machines.names) - 1), "two looks and a write for each"
    machines.pass_time(8_000)

    assert all(len(ticks(machines, f"s{number}")) == 1 for number in range(0, count, 50))
    bodies = {key for store in machines.stores.values() for key in store.rows("body")}
    assert len(bodies) == count


# -- clocks that were wrong for a while -------------------------------------------------------------

DAY_MS = 24 * 3_600_000


def put_by_a_client(machines: Machines, at: int, value: bytes | None = None) -> m.Message | None:
    """As clients do: the version is the one told, and so is the time from which on it ticks."""
    client = b"asked %d" % len(machines.answers)
    machines.ask(machines.names[at], m.GetSettings(1, SCHEDULE, "s", b""), client)
    machines.pass_time(20)
    got, = machines.answers_to(client)
    assert isinstance(got, m.GotSettings)
    schedule = Schedule(Header("q").encode(), b"x", got.version, every_ms=EVERY_MS)
    return put(machines, version=got.version, at=at, value=schedule.encode() if value is None else value)


def since(machines: Machines) -> set[int]:
    return {node.view.settings.schedules["s"].since_ms for node in machines.nodes.values()}


def test_a_schedule_that_was_put_by_a_node_a_day_ahead_ticks_today(machines: Machines) -> None:
    wrong = machines.names[1]
    machines.ahead_ms[wrong] = DAY_MS
    begun_ms = machines.now_ms
    assert isinstance(put_by_a_client(machines, 1), m.SettingPut)
    machines.ahead_ms[wrong] = 0
    machines.restart(wrong)
    machines.pass_time(35_000)

    assert [tick for tick in ticks(machines) if tick <= machines.now_ms] == [
        tick for tick in range(0, machines.now_ms, EVERY_MS) if tick > begun_ms]


def test_a_schedule_put_again_ticks_from_now_on_though_its_version_is_of_tomorrow(machines: Machines) -> None:
    wrong = machines.names[1]
    machines.ahead_ms[wrong] = DAY_MS
    put_by_a_client(machines, 1)
    machines.ahead_ms[wrong] = 0
    machines.restart(wrong)
    machines.pass_time(1_000)
    assert isinstance(put_by_a_client(machines, 0, UNSET), m.SettingPut)
    assert isinstance(put_by_a_client(machines, 2), m.SettingPut)
    machines.pass_time(1_000)

    assert all(node.view.settings.version(SCHEDULE, "s") > machines.now_ms for node in machines.nodes.values())
    assert max(since(machines)) <= machines.now_ms
    before = ticks(machines)
    machines.pass_time(3 * EVERY_MS)
    assert len(ticks(machines)) == len(before) + 3


@pytest.mark.parametrize("ahead_ms", [200, 1_500, 3_600_000])
def test_a_leader_whose_clock_jumps_ahead_and_back_loses_no_tick_and_makes_none_twice(
        machines: Machines, ahead_ms: int) -> None:
    put(machines)
    until_tick(machines)
    leader = lead(machines, home_of("s", PARTITIONS))
    until_tick(machines, -100)
    machines.ahead_ms[leader] = ahead_ms
    machines.give(leader, Ticked())
    machines.ahead_ms[leader] = 0
    begun_ms = machines.now_ms
    for _ in range(4):
        until_tick(machines)

    found = [tick for tick in ticks(machines) if begun_ms < tick <= machines.now_ms]
    assert found == [tick for tick in range(0, machines.now_ms, EVERY_MS) if tick > begun_ms] and len(found) == 4


# -- what definitions may cost ---------------------------------------------------------------------


class Calendar:
    """What nodes look at: lines are the minutes between ticks, or the days at which ticks are."""

    def __init__(self, machines: Machines) -> None:
        self.looks = 0
        self.longest_ms = 0
        for node in machines.nodes.values():
            node._ticks._almanac = self.first

    def first(self, cron: str, zone: str, after_ms: int, upto_ms: int) -> int | None:
        self.looks += 1
        self.longest_ms = max(self.longest_ms, upto_ms - after_ms)
        if cron.isdecimal():
            tick = (after_ms // (int(cron) * 60_000) + 1) * int(cron) * 60_000
            return tick if tick <= upto_ms else None
        days = [int(day) * DAY_MS for day in cron.removeprefix("days").split()]
        return next((day for day in days if after_ms < day <= upto_ms), None)


def lines(**cron: str) -> list[m.SettingRow]:
    """Definitions as old as time, as a client of its own making, or a release before, may have stored them."""
    return [m.SettingRow(SCHEDULE, name, 5, "w", Schedule(
        Header("q").encode(), b"x", 0, cron=line, catch_up=100).encode()) for name, line in cron.items()]


def store(machines: Machines, rows: list[m.SettingRow]) -> None:
    for name in machines.names:
        peer = next(other for other in machines.names if other != name)
        for at in range(0, len(rows), 1_000):
            machines.give(name, Received(peer, m.PulledSettings(tuple(rows[at : at + 1_000]))))


@pytest.mark.parametrize("line", ["days", "7", "days" + " 1" * 100])
def test_a_turn_looks_so_often_into_the_calendar_whatever_is_defined(machines: Machines, line: str) -> None:
    machines.now_ms = 400 * DAY_MS
    calendar, most = Calendar(machines), 0
    give = machines.give

    def counted(name: str, event: Event) -> None:
        nonlocal most
        calendar.looks = 0
        give(name, event)
        most = max(most, calendar.looks * (1 + len(line) // LINE_CHARS))
    machines.give = counted  # type: ignore[method-assign]
    store(machines, lines(**{f"s{number}": line for number in range(500)}))
    machines.pass_time(3_000)

    assert WORK_AT_ONCE / 4 < most <= WORK_AT_ONCE + 2 * (1 + len(line) // LINE_CHARS)
    assert calendar.longest_ms <= SIGHT_MS


def test_an_honest_schedule_ticks_in_time_beside_thousands_that_are_dear(machines: Machines) -> None:
    machines.now_ms = 400 * DAY_MS + 58_000
    Calendar(machines)
    home = home_of("honest", PARTITIONS)
    names = [name for name in map("s{}".format, range(12_000)) if home_of(name, PARTITIONS) == home]
    store(machines, lines(**dict.fromkeys(names, "days")))
    schedule = Schedule(Header("q").encode(), b"x", machines.now_ms - 1, cron="1")
    store(machines, [m.SettingRow(SCHEDULE, "honest", 5, "w", schedule.encode())])
    machines.pass_time(2_200)

    assert len(ticks(machines, "honest")) == 1
    searches = machines.nodes[lead(machines, home)]._ticks._searches
    assert len(names) > 2_500 and len(searches) == len(names), "and all others are being searched yet"


def test_ticks_are_made_up_for_as_long_as_they_are_in_sight(machines: Machines) -> None:
    machines.now_ms = 400 * DAY_MS + 5
    Calendar(machines)
    store(machines, lines(s="days 300 368 370 371 399 400"))
    machines.pass_time(2_000)

    assert [tick // DAY_MS for tick in ticks(machines)] == [370, 371, 399, 400]


def test_a_tick_further_ahead_than_is_looked_comes_in_time(machines: Machines) -> None:
    machines.now_ms = 400 * DAY_MS + 5
    Calendar(machines)
    store(machines, lines(s="days 470 475"))
    machines.pass_time(1_000)
    ticks = machines.nodes[lead(machines, home_of("s", PARTITIONS))]._ticks
    for day in range(401, 476):
        ticks.look(day * DAY_MS)
        assert sorted(ticks._plans["s"].owed) == [tick * DAY_MS for tick in (470, 475) if tick <= day]


def test_lines_that_take_long_to_judge_are_refused_when_they_are_many(machines: Machines) -> None:
    machines.now_ms = 400 * DAY_MS
    calendar = Calendar(machines)
    for number in range(50):
        value = Schedule(Header("q").encode(), b"x", 0, cron="days").encode()
        machines.ask(machines.names[0], m.PutSetting(number, SCHEDULE, f"s{number}", 5, "w", value), b"many")
    codes = [answer.code for answer in machines.answers_to(b"many") if isinstance(answer, m.Failed)]

    assert set(codes[2:]) == {"busy"} and codes[:2] == ["bad_cron"] * 2
    assert calendar.looks <= 2 * 2
    machines.pass_time(200)
    assert isinstance(put(machines, every_ms=0, cron="60"), m.SettingPut)
