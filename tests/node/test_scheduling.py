"""Schedules on nodes: each tick one task, whoever leads, whoever thinks so, and whatever is lost on the way."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.events import Received, Send, Session, SessionChanged, Settled, Ticked
from skuld_py.model.schedule import SCHEDULE, Schedule, home_of
from skuld_py.model.setting import UNSET
from skuld_py.node.scheduling import PLANS_AT_ONCE, TICKS_AT_ONCE

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
    return next(name for name in machines.names if machines.nodes[name].vnodes[partition].is_leading)


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
    vnode = node.vnodes[home_of("s", PARTITIONS)]
    epoch = vnode.epoch
    for name in others:
        machines.nodes[name]._scheduling._led = {home_of("s", PARTITIONS): epoch}  # they too take it for theirs
        machines.nodes[name]._scheduling._next_look_ms = machines.now_ms + EVERY_MS
        machines.nodes[name]._scheduling._fresh.append("s")
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
    count = 3 * max(PLANS_AT_ONCE, TICKS_AT_ONCE)
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
        assert len(sent) <= PLANS_AT_ONCE * (len(machines.names) - 1)
    machines.pass_time(8_000)

    assert all(len(ticks(machines, f"s{number}")) == 1 for number in range(0, count, 50))
    bodies = {key for store in machines.stores.values() for key in store.rows("body")}
    assert len(bodies) == count
