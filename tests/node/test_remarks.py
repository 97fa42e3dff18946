"""What nodes say of themselves: each thing once, with its reason."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.events import MembersChanged, Session, SessionChanged
from skuld_py.model.remarks import Kind, Remark
from skuld_py.node.leadership.clocks import Verdict
from skuld_py.node.reads import depths
from skuld_py.node.reads.depths import OTHERS, Depths


class Told:
    """Machines, and what each of them has said."""

    def __init__(self, **options: int) -> None:
        self.machines = Machines(**options)
        self.said: dict[str, list[Remark]] = {name: [] for name in self.machines.names}
        for name in self.machines.names:
            self.machines.nodes[name].view.bulletin.remark = self.said[name].append
        self.machines.pass_time(3_000)

    def of(self, kind: Kind) -> list[Remark]:
        return [remark for name in self.machines.names for remark in self.said[name] if remark.kind is kind]

    def lose(self, *gone: str) -> None:
        left = tuple(member for member in self.machines.members if member.name not in gone)
        for member in left:
            self.machines.give(member.name, MembersChanged(left))


@pytest.fixture
def told() -> Told:
    return Told(partitions=2)


def test_an_election_names_partition_epoch_and_reason(told: Told) -> None:
    assert [(remark.about.split(" (")[0], remark.why) for remark in sorted(told.of(Kind.ELECTED), key=str)] == [
        ("partition 0", "the first leader"), ("partition 1", "the first leader")]
    assert sum(node.view.bulletin.counts.elected for node in told.machines.nodes.values()) == 2


def test_a_leader_without_a_session_says_why_it_leads_no_longer(told: Told) -> None:
    leader = told.machines.documents[0][1].leader
    led = sum(vnode.is_leading for vnode in told.machines.nodes[leader].view.vnodes)
    told.machines.give(leader, SessionChanged(Session.LOST))

    assert {remark.why for remark in told.of(Kind.DEPOSED)} == {"the session with ZooKeeper is lost"}
    assert len(told.of(Kind.DEPOSED)) == led == told.machines.nodes[leader].view.bulletin.counts.deposed
    assert Remark(Kind.SESSION, why="lost") in told.said[leader]


def test_a_node_that_stops_ends_its_session_and_does_not_lose_it(told: Told) -> None:
    name = told.machines.names[0]
    told.machines.nodes[name].hand_over(told.machines.now_ms)
    told.machines.give(name, SessionChanged(Session.LOST))

    assert Remark(Kind.SESSION, why="over, for it stops") in told.said[name]


def test_members_are_told_as_they_come_and_go_and_a_majority_when_it_is_lost_and_back(told: Told) -> None:
    first, *others = told.machines.names
    told.lose(*others)
    told.machines.give(first)
    assert {remark.about for remark in told.of(Kind.LEFT)} == set(others)
    told.machines.pass_time(3_000)
    assert len(told.of(Kind.MAJORITY_LOST)) == 2
    told.machines.give(first, MembersChanged(told.machines.members))
    told.machines.pass_time(3_000)

    assert len(told.of(Kind.MAJORITY_LOST)) == len(told.of(Kind.MAJORITY_REGAINED)) == 2
    assert {remark.about for remark in told.of(Kind.JOINED)} == set(others)


def test_a_node_that_starts_and_knows_nobody_yet_says_nothing_of_majorities(told: Told) -> None:
    first = told.machines.names[0]
    told.machines.give(first, MembersChanged(()))
    told.machines.pass_time(3_000)

    assert told.of(Kind.MAJORITY_LOST) == []


def test_a_clock_in_doubt_is_told_and_its_recovery_and_not_that_it_is_heard_first(told: Told) -> None:
    assert told.of(Kind.CLOCK) == []
    name = told.machines.names[0]
    keeper = told.machines.nodes[name].timekeeper
    keeper.verdict = Verdict.FAR

    keeper._say(Verdict.AGREED)
    keeper.verdict = Verdict.AGREED
    keeper._say(Verdict.FAR)
    keeper._say(Verdict.UNHEARD)

    assert [remark.why for remark in told.said[name] if remark.kind is Kind.CLOCK] == ["far", "agreed"]


def test_claims_are_counted_by_the_request(told: Told) -> None:
    machines = told.machines
    machines.ask(machines.names[0], m.Enqueue(1, 3, (machines.batch("q", 3),)))
    machines.pass_time(1_000)
    machines.ask(machines.names[0], m.Claim(2, "q", 2, 30_000, 0, "w"))
    machines.pass_time(1_000)

    assert sum(node.view.bulletin.counts.granted for node in machines.nodes.values()) == 2
    assert sum(node.view.bulletin.counts.vetoed for node in machines.nodes.values()) == 0


def test_depths_go_round_the_led_partitions_and_name_so_many_queues(
        told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = told.machines
    monkeypatch.setattr(depths, "QUEUES_MAX", 1)
    for node in machines.nodes.values():
        for vnode in node.view.vnodes:
            for queue in (b"a", b"b"):
                task_id = (machines.now_ms - 5_000).to_bytes(8, "big") + bytes(12)
                vnode.replica.filing.await_claim(queue + b"\0" + b"\xff" * 4, [task_id])
            vnode.replica.filing.tally.settle()
    found = [look for node in machines.nodes.values() for look in (_round(node.view),)]

    totals = {name: sum(each[name].counts[0] for each in found if name in each) for name in ("a", OTHERS)}
    assert totals == {"a": 2, OTHERS: 2}
    assert {each["a"].oldest_ms for each in found if "a" in each} == {machines.now_ms - 5_000}


def _round(view: object) -> dict[str, depths.Depth]:
    looking = Depths(view)  # type: ignore[arg-type]
    assert looking.look(1_000) == {}
    looks = [looking.look(1) for _ in range(10)]
    return dict(next(look for look in looks if look is not None))


