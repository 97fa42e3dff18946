"""Caps for each holder: how many it may be granted, by what a leader keeps, and by which rules they are set.
Else see ``scripts/limits.txt``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.events import RulesChanged
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, QUOTA
from skuld_py.node.claims import caps


def limit(machines: Machines, limits: QueueLimits, version: int = 1) -> None:
    for node in machines.nodes.values():
        node.view.settings.join([m.SettingRow(LIMITS, "q", version, "w", limits.encode())])


def granted(machines: Machines, client: bytes) -> int:
    return sum(len(batch.ids) // ID_BYTES for answer in machines.answers_to(client)
               if isinstance(answer, m.Claimed) for batch in answer.batches)


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
