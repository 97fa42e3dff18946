"""Nodes that come and go: what a newcomer may vote in, and what a node that stops hands over first."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.model.events import MembersChanged, NodesChanged, Received, Session, SessionChanged, Ticked
from skuld_py.partition.leadership.election import Phase
from skuld_py.partition.vnode import Role

SEAT_MS = 20_000


def cohorts(machines: Machines) -> list[tuple[str, ...]]:
    return [document.cohort for _, (_, document) in sorted(machines.documents.items())]


def leaders(machines: Machines) -> list[str]:
    return [document.leader for _, (_, document) in sorted(machines.documents.items())]


def place_on(machines: Machines, names: list[str]) -> None:
    for name in machines.names:
        machines.give(name, NodesChanged(tuple(names)))


def let_live(machines: Machines, names: list[str]) -> None:
    for name in machines.names:
        machines.give(name, MembersChanged(tuple(each for each in machines.members if each.name in names)))


def await_seated(machines: Machines, name: str, within_ms: int) -> int:
    """How long it took until a node had a seat."""
    begun_ms = machines.now_ms
    while not any(name in cohort for cohort in cohorts(machines)):
        assert machines.now_ms < begun_ms + within_ms, cohorts(machines)
        machines.pass_time(100)
    return machines.now_ms - begun_ms


@pytest.fixture
def three() -> Machines:
    machines = Machines()
    machines.pass_time(3_000)
    return machines


@pytest.fixture
def joined() -> Machines:
    """Three nodes that lead everything; a fourth has just come, and is placed."""
    machines = Machines(4, timing=attrs.evolve(DEFAULT_TIMING, seat_ms=SEAT_MS, look_round=0))
    place_on(machines, machines.names[:3])
    let_live(machines, machines.names[:3])
    machines.pass_time(3_000)
    let_live(machines, machines.names)
    place_on(machines, machines.names)
    return machines


# -- seats ---------------------------------------------------------------------------------------


def test_a_newcomer_fills_at_once_and_votes_once_it_has_been_up_for_a_while(joined: Machines) -> None:
    newcomer = joined.names[3]
    joined.pass_time(SEAT_MS - 2_000)

    assert not any(newcomer in cohort for cohort in cohorts(joined))
    jobs = joined.nodes[newcomer].view.vnodes
    assert all(vnode.role is Role.LEARNER for vnode in jobs if newcomer in vnode.owners)
    assert await_seated(joined, newcomer, within_ms=4_000) >= 1_000


def test_a_newcomer_stands_in_for_a_dead_voter_without_waiting(joined: Machines) -> None:
    joined.pass_time(2_000)
    let_live(joined, [*joined.names[:2], joined.names[3]])

    await_seated(joined, joined.names[3], within_ms=5_000)
    assert all(joined.names[2] not in cohort for cohort in cohorts(joined) if joined.names[3] in cohort)


def test_a_cohort_is_not_settled_whose_new_member_has_gone(joined: Machines) -> None:
    """It is seen to go when it has taken the data over and has yet to be seated."""
    partition = next(vnode.partition for vnode in joined.nodes[joined.names[3]].view.vnodes
                     if joined.names[3] in vnode.owners)
    joined.is_lost = lambda message: isinstance(message, m.ClaimsKept | m.Synced)
    leader = joined.documents[partition][1].leader
    vnode = joined.nodes[leader].view.vnodes[partition]
    joined.pass_time(SEAT_MS - 500)
    while vnode.election.phase is not Phase.SYNCING:
        joined.pass_time(20)
        leader = next((name for name in joined.names if joined.nodes[name].view.vnodes[
            partition].election.phase is Phase.SYNCING), leader)
        vnode = joined.nodes[leader].view.vnodes[partition]
    joined.flying.clear()
    joined.give(leader, MembersChanged(joined.members[:3]))
    joined.give(leader, Received(joined.names[3], m.Synced(partition, vnode.election.epoch)))

    assert vnode.election.phase is Phase.IDLE
    assert joined.names[3] not in joined.documents[partition][1].cohort


# -- handing over --------------------------------------------------------------------------------


def test_a_node_that_stops_hands_over_what_it_leads_first(three: Machines) -> None:
    stopping = three.names[0]
    assert stopping in leaders(three)
    three.nodes[stopping].hand_over(three.now_ms)
    begun_ms = three.now_ms
    while three.nodes[stopping].is_handing_over(three.now_ms):
        three.pass_time(20)

    assert three.now_ms - begun_ms < 1_000
    assert stopping not in leaders(three)
    assert all(vnode.leader not in ("", stopping) for vnode in three.nodes[stopping].view.vnodes)
    assert all(cohort == cohorts(three)[0] or stopping in cohort for cohort in cohorts(three))
    three.pass_time(10_000)
    assert stopping not in leaders(three), "what it is first for is not given back to a node that stops"


def test_an_heir_that_does_not_answer_is_followed_by_the_next_one(three: Machines) -> None:
    stopping = three.names[0]
    three.is_deaf = three.names[1]
    three.nodes[stopping].hand_over(three.now_ms)
    three.pass_time(2_900)

    assert leaders(three).count(three.names[2]) > leaders(three).count(stopping) == 0


def test_a_node_that_may_not_grant_yet_does_not_take_over(three: Machines) -> None:
    document = three.documents[0][1]
    heir = next(name for name in document.cohort if name != document.leader)
    three.nodes[heir].view.may_grant = False
    three.give(heir, Received(document.leader, m.Abdicate(0, document.epoch, document.cohort)))

    assert three.nodes[heir].view.vnodes[0].election.is_idle


def test_a_node_that_stops_takes_nothing_over(three: Machines) -> None:
    document = three.documents[0][1]
    stopping = next(name for name in document.cohort if name != document.leader)
    three.nodes[stopping].hand_over(three.now_ms)
    vnode = three.nodes[stopping].view.vnodes[0]
    three.give(stopping, Received(document.leader, m.Abdicate(0, document.epoch, document.cohort)))
    assert vnode.election.is_idle
    three.give(stopping, MembersChanged(tuple(each for each in three.members if each.name != document.leader)))
    for _ in range(20):
        three.now_ms += 200
        three.give(stopping, Ticked())
        assert vnode.election.is_idle


def test_it_is_through_only_when_it_hears_the_next_leader(three: Machines) -> None:
    """Its candidate reads claims from it until then."""
    node = three.nodes[three.names[0]]
    three.is_lost = lambda message: isinstance(message, m.ClaimPage)
    node.hand_over(three.now_ms)
    three.pass_time(500)
    assert not node.view.led()
    assert node.is_handing_over(three.now_ms)


def test_nodes_that_all_stop_do_not_wait_for_each_other(three: Machines) -> None:
    for name in three.names:
        three.nodes[name].hand_over(three.now_ms)
        three.give(name, Ticked())
    three.pass_time(500)

    assert not any(three.nodes[name].is_handing_over(three.now_ms) for name in three.names)


def test_it_tries_for_a_while_and_then_leaves(three: Machines) -> None:
    node = three.nodes[three.names[0]]
    three.is_lost = lambda message: isinstance(message, m.Abdicate)
    node.hand_over(three.now_ms)
    three.pass_time(DEFAULT_TIMING.handover_ms - 100)
    assert node.is_handing_over(three.now_ms)
    three.pass_time(100 + DEFAULT_TIMING.heir_delay_ms)

    assert not node.is_handing_over(three.now_ms)


def test_without_the_registry_it_leaves_at_once(three: Machines) -> None:
    node = three.nodes[three.names[0]]
    three.give(three.names[0], SessionChanged(Session.SUSPENDED))
    node.hand_over(three.now_ms)

    assert not node.is_handing_over(three.now_ms)


def test_clients_are_sent_to_other_nodes_those_that_wait_too(three: Machines) -> None:
    stopping = three.names[0]
    three.ask(stopping, m.Claim(1, "q", 1, 60_000, 30_000, "me"), b"waits")
    three.pass_time(100)
    assert three.answers_to(b"waits") == []
    three.nodes[stopping].hand_over(three.now_ms)
    three.give(stopping, Ticked())
    three.ask(stopping, m.Claim(2, "q", 1, 60_000, 0, "me"), b"comes")
    three.ask(stopping, m.Greet(3), b"asks")

    for client in (b"waits", b"comes"):
        answer, = three.answers_to(client)
        assert isinstance(answer, m.Failed) and answer.code == "not_ready" and answer.is_definite
    assert isinstance(three.answers_to(b"asks")[0], m.Greeted)


def test_a_claim_at_a_node_that_stops_is_granted_by_the_next_leader_at_once() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(3_000)
    leader = leaders(machines)[0]
    coordinator = next(name for name in machines.names if name != leader)
    machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    machines.pass_time(100)
    machines.nodes[leader].hand_over(machines.now_ms)
    machines.give(leader, Ticked())
    machines.ask(coordinator, m.Claim(2, "q", 1, 60_000, 5_000, "me"), b"worker")
    assert machines.answers_to(b"worker") == []
    machines.pass_time(DEFAULT_TIMING.resend_ms // 2)

    answer, = machines.answers_to(b"worker")
    assert isinstance(answer, m.Claimed) and answer.batches


def test_it_says_which_votes_are_needed(three: Machines) -> None:
    node = three.nodes[three.names[0]]
    assert not node.needs_vote_of(three.names[1])
    let_live(three, three.names[:2])
    assert node.needs_vote_of(three.names[1])
    assert not node.needs_vote_of("a stranger")
    let_live(three, three.names[:1])

    assert node.needs_vote_of(three.names[2]), "it is down, and needed to come back"
