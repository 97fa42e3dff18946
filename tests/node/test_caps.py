"""Caps for each holder: how many it may be granted, by what a leader keeps, and by which rules they are set.
Else see ``scripts/limits.txt``."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.events import RulesChanged
from skuld_py.model.history import RELEASED, decode_history
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, QUOTA
from skuld_py.node.claims import caps
from skuld_py.node.knowledge.view import View
from skuld_py.partition.data.holders import holder_of
from skuld_py.partition.data.tables import queue_of


def limit(machines: Machines, limits: QueueLimits, version: int = 1) -> None:
    for node in machines.nodes.values():
        node.view.settings.join([m.SettingRow(LIMITS, "q", version, "w", limits.encode())])


def granted(machines: Machines, client: bytes) -> int:
    return sum(len(batch.ids) // ID_BYTES for answer in machines.answers_to(client)
               if isinstance(answer, m.Claimed) for batch in answer.batches)


def claims(machines: Machines, client: bytes) -> list[tuple[bytes, int]]:
    """What a client was granted, each with its token."""
    return [(batch.ids[at * ID_BYTES:][:ID_BYTES], batch.first_token + at)
            for answer in machines.answers_to(client) if isinstance(answer, m.Claimed)
            for batch in answer.batches for at in range(len(batch.ids) // ID_BYTES)]


def complete(machines: Machines, node: str, claim: tuple[bytes, int]) -> None:
    machines.ask(node, m.Complete(1, 0, 0, claim[0], columns.pack_u64([claim[1]])), b"completer")


def held_in(machines: Machines, node: str) -> dict[bytes, str]:
    """Who holds what of q, by all leases of a node."""
    return {task_id: holder_of(decode_history(record))
            for vnode in machines.nodes[node].view.vnodes
            for _, task_id, place in vnode.replica.filing.leases(b"", 1_000) if queue_of(place) == b"q"
            for record in vnode.replica.histories([task_id]).values()}


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(4_000)
    return made


@settings(max_examples=25, deadline=None)
@given(cap=st.integers(1, 6), asks=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]),
                                                       st.integers(1, 5)), max_size=8))
def test_whoever_asks_one_after_the_other_gets_no_more_than_the_cap(cap: int,
                                                                    asks: list[tuple[int, str, int]]) -> None:
    machines = Machines(partitions=4)
    machines.pass_time(4_000)
    limit(machines, QueueLimits(holder_concurrency=cap))
    for name in machines.names:
        machines.ask(name, m.Enqueue(1, 0, (machines.batch("q", 10),)))
    machines.pass_time(500)

    for node, holder, count in asks:
        machines.ask(machines.names[node], m.Claim(1, "q", count, 60_000, 0, holder), holder.encode())
        machines.pass_time(1_000)

    for holder in ("a", "b"):
        wanted = sum(count for _, who, count in asks if who == holder)
        assert granted(machines, holder.encode()) == min(cap, wanted)


def test_who_holds_is_looked_for_in_pages(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "PAGE", 2)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 30),)))
    machines.pass_time(500)
    for holder in ("a", "b", "a"):
        machines.ask(machines.names[0], m.Claim(1, "q", 5, 60_000, 0, holder), holder.encode())
        machines.pass_time(500)
    limit(machines, QueueLimits(holder_concurrency=12))

    view = machines.nodes[machines.names[0]].view
    limits = view.settings.capped["q"]
    assert [caps.room_of(view, limits, "q", holder, 9) for holder in ("a", "b", "c")] == [2, 7, 9]
    assert caps.room_of(view, limits, "other", "a", 9) == 9


@settings(max_examples=25, deadline=None)
@given(asks=st.lists(st.tuples(st.sampled_from(["claim", "complete", "release", "renew", "cancel", "wait"]),
                               st.integers(0, 2), st.sampled_from(["a", "b"]), st.integers(1, 6)), max_size=12))
@example([("claim", 0, "a", 4), ("complete", 0, "a", 1), ("release", 1, "a", 2), ("claim", 2, "b", 3),
          ("renew", 0, "b", 2), ("wait", 0, "a", 6), ("cancel", 1, "b", 1), ("claim", 1, "a", 6)])
def test_who_holds_is_kept_as_a_count_of_all_leases_would_find_it(asks: list[tuple[str, int, str, int]]) -> None:
    machines = Machines(partitions=4)
    machines.pass_time(4_000)
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 30),)))
    machines.pass_time(500)
    machines.ask(machines.names[0], m.Claim(1, "q", 3, 8_000, 0, "a"), b"a")
    limit(machines, QueueLimits(holder_concurrency=1_000))
    for node in machines.nodes.values():
        node.view.bulletin.holders.queues[b"q"] = caps.counted(node.view, b"q")

    for what, at, holder, count in asks:
        node, known = machines.names[at], claims(machines, holder.encode())[-count:]
        task_ids, tokens = b"".join([each for each, _ in known]), columns.pack_u64([token for _, token in known])
        if what == "claim":
            machines.ask(node, m.Claim(1, "q", count, 8_000, 0, holder), holder.encode())
        elif what == "wait":
            machines.pass_time(count * 2_000)
        elif known:
            machines.ask(node, {"complete": m.Complete(1, 0, 0, task_ids, tokens),
                                "release": m.Conclude(1, RELEASED, 0, task_ids, tokens),
                                "renew": m.Renew(1, 20_000, task_ids, tokens),
                                "cancel": m.Cancel(1, 0, 0, task_ids)}[what], b"other")
        machines.pass_time(300)

        for name, node_of in machines.nodes.items():
            held = node_of.view.bulletin.holders.queues[b"q"]
            assert held.tasks == held_in(machines, name)
            assert held.counts == Counter(held.tasks.values())


def test_copies_that_are_dropped_hold_nothing_and_a_cap_that_is_taken_away_ends_the_count(
        machines: Machines) -> None:
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 30),)))
    machines.pass_time(500)
    machines.ask(machines.names[0], m.Claim(1, "q", 30, 60_000, 0, "a"), b"a")
    machines.pass_time(500)
    limit(machines, QueueLimits(holder_concurrency=40))
    view = machines.nodes[machines.names[0]].view
    assert caps.room_of(view, view.settings.capped["q"], "q", "a", 20) == 10

    for vnode in view.vnodes:
        vnode.replica.drop(1_000)
    assert held_in(machines, machines.names[0]) == view.bulletin.holders.queues[b"q"].tasks == {}
    limit(machines, QueueLimits(holder_concurrency=0), 2)
    assert view.bulletin.holders.queues == {}


def test_as_many_wake_as_claims_have_ended_and_the_one_whose_holder_has_room(
        machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines(1, partitions=1, replicas=1)
    machines.pass_time(4_000)
    node, = machines.names
    limit(machines, QueueLimits(holder_concurrency=1))
    machines.ask(node, m.Enqueue(1, 0, (machines.batch("q", 50),)))
    for number in range(20):
        machines.ask(node, m.Claim(1, "q", 1, 600_000, 0, f"h{number}"), b"c%d" % number)
        machines.pass_time(5)
        machines.ask(node, m.Claim(1, "q", 1, 600_000, 60_000, f"h{number}"), b"w%d" % number)
    machines.pass_time(50)
    tried: list[str] = []
    room_of = caps.room_of

    def counted(view: View, limits: QueueLimits, queue: str, holder: str, wanted: int) -> int:
        tried.append(holder)
        return room_of(view, limits, queue, holder, wanted)
    monkeypatch.setattr(caps, "room_of", counted)

    held, = claims(machines, b"c13")
    machines.ask(node, m.Renew(1, 700_000, held[0], columns.pack_u64([held[1]])))
    machines.pass_time(50)
    assert tried == []  # a renewal ends nothing
    complete(machines, node, held)
    machines.pass_time(50)

    assert tried[0] == "h13" and len(tried) <= 2  # and whoever got something wakes the next
    assert [granted(machines, b"w%d" % number) for number in range(20)] == [int(number == 13)
                                                                           for number in range(20)]


def test_who_was_at_its_cap_has_its_turn_again_and_is_told_of_no_cap_once_it_has_room(machines: Machines) -> None:
    machines = Machines(1, partitions=1, replicas=1)
    machines.pass_time(4_000)
    node, = machines.names
    limit(machines, QueueLimits(holder_concurrency=1))
    machines.ask(node, m.Enqueue(1, 0, (machines.batch("q", 2),)))
    for holder, wait_ms, client in (("x", 0, b"x"), ("x", 20_000, b"first"), ("x", 10_000, b"soon"),
                                    ("z", 0, b"z"), ("y", 20_000, b"y")):
        machines.ask(node, m.Claim(1, "q", 1, 600_000, wait_ms, holder), client)
        machines.pass_time(50)

    complete(machines, node, claims(machines, b"x")[0])
    machines.pass_time(10_000)
    assert [answer.withheld for answer in machines.answers_to(b"soon") if isinstance(answer, m.Claimed)] == [""]

    machines.ask(node, m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(50)
    assert (granted(machines, b"first"), granted(machines, b"y")) == (1, 0)


def test_caps_are_set_by_the_rules_that_all_nodes_know_and_other_limits_by_any(machines: Machines) -> None:
    node = machines.names[0]
    for event in (RulesChanged(3), RulesChanged(4)):
        machines.give(node, event)
        for number, (kind, value) in enumerate((
                (LIMITS, QueueLimits(3).encode()), (LIMITS, QueueLimits(3, holder_concurrency=1).encode()),
                (LIMITS, QueueLimits(lease_ms=5).encode()), (QUOTA, b"5"), (QUOTA, b""))):
            put = m.PutSetting(1, kind, f"q{number}", machines.now_ms, "w", value)
            machines.ask(node, put, b"%d %d" % (event.rules, number))
        machines.pass_time(500)

    def said(rules: int) -> list[str]:
        answers = [machines.answers_to(b"%d %d" % (rules, number))[0] for number in range(5)]
        return [answer.code if isinstance(answer, m.Failed) else type(answer).__name__ for answer in answers]
    assert said(3) == ["SettingPut", *["old_rules"] * 3, "SettingPut"]
    assert said(4) == ["SettingPut"] * 5


def test_a_leader_grants_no_lease_that_its_coordinator_does_not_know_to_be_too_long(machines: Machines) -> None:
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 3),)))
    machines.pass_time(500)
    leaders = {name for name, node in machines.nodes.items() if node.view.stocked("q")}
    coordinator = next(name for name in machines.names if name not in leaders)
    for name in leaders:
        machines.nodes[name].view.settings.join([
            m.SettingRow(LIMITS, "q", 1, "w", QueueLimits(lease_ms=1_000).encode())])

    machines.ask(coordinator, m.Claim(1, "q", 3, 1_001, 0, "a"), b"a")
    machines.pass_time(50)

    assert granted(machines, b"a") == 0
    assert [answer.withheld for answer in machines.answers_to(b"a") if isinstance(answer, m.Claimed)] == ["capped"]
