"""What nodes believe of each other about epochs and voters: no message ends a partition, or names its voters."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.bounds import U32_MAX
from skuld_py.model.events import Received
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD
from skuld_py.partition.leadership.standing import load_standing
from skuld_py.partition.vnode import Vnode

EVIL = ("evil:1", "evil:2", "evil:3")


@pytest.fixture
def led() -> Machines:
    """Three nodes and one partition, which has a leader."""
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    return machines


def leader_of(machines: Machines) -> str:
    return machines.documents[0][1].leader


def follower_of(machines: Machines) -> str:
    return next(name for name in machines.names if name != leader_of(machines))


def vnodes(machines: Machines) -> list[Vnode]:
    return [node.view.vnodes[0] for node in machines.nodes.values()]


def tell_all(machines: Machines, message: m.Message) -> None:
    """As a peer, each as another one."""
    for at, name in enumerate(machines.names):
        machines.give(name, Received(machines.names[at - 1], message))


def insist_that_it_lives(machines: Machines) -> None:
    """A task is stored and claimed, in the end."""
    machines.pass_time(10_000)
    name = machines.names[0]
    machines.ask(name, m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(200)
    machines.ask(name, m.Claim(2, "q", 1, 1_000, 4_000, "w"))
    machines.pass_time(5_000)
    acked, claimed = machines.answers_to(b"client")[-2:]
    assert isinstance(acked, m.Acked), acked
    assert isinstance(claimed, m.Claimed) and claimed.batches, claimed


def candidacy(epoch: int, cohort: tuple[str, ...], base: int = 0) -> m.RequestVote:
    return m.RequestVote(0, epoch, cohort, False, base)


# -- epochs ----------------------------------------------------------------------------------------


def test_an_epoch_far_above_the_document_s_is_not_promised(led: Machines) -> None:
    before = [vnode.promise for vnode in vnodes(led)]

    tell_all(led, candidacy(U32_MAX, tuple(led.names)))
    tell_all(led, candidacy(led.documents[0][1].epoch + EPOCHS_AHEAD + 1, tuple(led.names)))

    assert [vnode.promise for vnode in vnodes(led)] == before
    insist_that_it_lives(led)
    assert [vnode.promise for vnode in vnodes(led)] == before


def test_the_highest_epoch_that_is_promised_leaves_room_for_another(led: Machines) -> None:
    for _ in range(3):
        epoch = led.documents[0][1].told_epoch
        tell_all(led, candidacy(epoch + EPOCHS_AHEAD, tuple(led.names)))
        assert {vnode.promise.epoch for vnode in vnodes(led)} == {epoch + EPOCHS_AHEAD}

        insist_that_it_lives(led)
        assert led.documents[0][1].epoch > epoch + EPOCHS_AHEAD


@pytest.mark.parametrize("victims", [1, 2])
def test_it_is_enough_that_some_were_lied_to(led: Machines, victims: int) -> None:
    epoch = led.documents[0][1].epoch + EPOCHS_AHEAD
    for at in range(victims):
        led.give(led.names[at], Received(led.names[at - 1], candidacy(epoch, tuple(led.names))))

    insist_that_it_lives(led)


def test_a_leader_that_moves_its_partition_writes_which_epochs_are_spent(led: Machines) -> None:
    name = leader_of(led)
    vnode = led.nodes[name].view.vnodes[0]
    document = led.documents[0][1]
    vnode.election._seen_epoch = document.epoch + EPOCHS_AHEAD

    led.nodes[name]._outbox.carry_out(led.nodes[name].view.candidacy(vnode)._open(
        led.now_ms, document, led.documents[0][0], document.cohort, "a test"))
    insist_that_it_lives(led)

    assert led.documents[0][1].spent == document.epoch + EPOCHS_AHEAD
    assert led.documents[0][1].epoch > led.documents[0][1].spent


def test_a_promise_beyond_belief_is_as_good_as_silence(led: Machines) -> None:
    name = follower_of(led)
    vnode = led.nodes[name].view.vnodes[0]
    epoch, version = led.documents[0][1].epoch, led.documents[0][0]
    vnode.election.stand(led.now_ms)
    vnode.election.choose_epoch(led.documents[0][1], epoch)
    vnode.election.open(led.now_ms, led.documents[0][1], version, tuple(led.names), is_trial=True, cause="a test")

    led.give(name, Received(leader_of(led), m.Vote(0, epoch + 1, False, True, U32_MAX, epoch)))

    assert vnode.election.choose_epoch(led.documents[0][1], epoch) == epoch + 1


def test_a_grant_of_an_epoch_far_above_is_neither_recorded_nor_answered(led: Machines) -> None:
    name, epoch = follower_of(led), led.documents[0][1].epoch + EPOCHS_AHEAD + 1
    task_id = led.mint.mint(led.now_ms, 1, 0)[0]
    led.flying.clear()
    grant = m.Grant(1, 0, epoch, (epoch << 32) + 1, led.now_ms, led.now_ms + 1_000, "w", "q", task_id, bytes(4))
    for message in (grant, m.Amend(1, 0, epoch, b"", columns.Column(), columns.Column())):
        led.give(name, Received(leader_of(led), message))

    assert led.nodes[name].view.vnodes[0].promise.epoch < epoch
    assert not led.nodes[name].view.vnodes[0].replica.histories([task_id])
    assert not [event for _, event in led.flying if isinstance(event, Received)
                and isinstance(event.message, m.Granted | m.Amended)]


# -- voters ----------------------------------------------------------------------------------------


def test_gossip_seats_nobody(led: Machines) -> None:
    before = [vnode.standing for vnode in vnodes(led)]
    epoch = before[0].epoch

    for cohort in (EVIL, tuple(led.names[:1])):
        for row in (m.LeaderRow(0, U32_MAX, U32_MAX, cohort), m.LeaderRow(0, epoch + 1, epoch + 1, cohort),
                    m.LeaderRow(0, epoch, epoch, cohort)):
            tell_all(led, m.Gossip((row,), ()))

    assert [vnode.standing for vnode in vnodes(led)] == before
    insist_that_it_lives(led)
    assert all(vnode.standing.cohort == before[0].cohort for vnode in vnodes(led))


def test_who_says_that_he_leads_what_the_document_does_not_know_of_is_forgotten(led: Machines) -> None:
    name, document = follower_of(led), led.documents[0][1]
    liar = next(other for other in led.names if other not in (name, document.leader))
    vnode = led.nodes[name].view.vnodes[0]

    led.give(name, Received(liar, m.Gossip((m.LeaderRow(0, document.epoch + 9, 1, document.cohort),), ())))
    led.pass_time(2_000)

    assert (vnode.leader, vnode.leader_epoch) == (document.leader, document.epoch)


def test_a_follower_learns_of_a_new_leader_by_the_document(led: Machines) -> None:
    old, name = leader_of(led), follower_of(led)
    led.nodes[name]._outbox.carry_out(led.nodes[name].view.candidacy(led.nodes[name].view.vnodes[0]).stand(led.now_ms))
    led.nodes[old].view.vnodes[0].resign(led.now_ms)
    led.pass_time(5_000)

    document = led.documents[0][1]
    assert document.epoch > 1
    assert {(vnode.standing.epoch, vnode.leader) for vnode in vnodes(led)} == {(document.epoch, document.leader)}


def test_an_answer_about_other_voters_seats_nobody(led: Machines) -> None:
    node = led.nodes[follower_of(led)]
    before, era = node.view.vnodes[0].standing, led.documents[0][1].era

    assert node.view.believes(m.CohortRow(0, era + 1, tuple(led.names)))
    assert not node.view.believes(m.CohortRow(0, era + 1, EVIL))
    assert not node.view.believes(m.CohortRow(0, U32_MAX, tuple(led.names)))
    led.pass_time(2_000)

    assert node.view.vnodes[0].standing == before
    assert load_standing(led.stores[node.view.me.name], 0) == before


def test_a_candidate_for_voters_that_are_no_nodes_gets_no_vote(led: Machines) -> None:
    before = [vnode.standing for vnode in vnodes(led)]
    epoch = before[0].epoch

    tell_all(led, candidacy(epoch + 1, (*led.names[:2], EVIL[0]), epoch))
    for name in led.names:
        led.give(name, Received(led.names[0], m.Sync(0, epoch + 1, (name, EVIL[0]), tuple(led.names), epoch)))

    assert [vnode.standing for vnode in vnodes(led)] == before
    assert {vnode.promise.epoch for vnode in vnodes(led)} == {epoch}


def test_only_the_leader_itself_has_somebody_stand_for_other_voters(led: Machines) -> None:
    name, document = follower_of(led), led.documents[0][1]
    liar = next(other for other in led.names if other not in (name, document.leader))

    led.give(name, Received(liar, m.Abdicate(0, document.epoch, (name,))))
    led.pass_time(3_000)
    now = led.documents[0][1]
    assert (now.epoch, now.leader, now.cohort) == (document.epoch, document.leader, document.cohort)

    led.give(name, Received(document.leader, m.Abdicate(0, document.epoch, document.cohort)))
    led.pass_time(1_000)
    assert led.documents[0][1].leader == name


def test_of_data_on_its_way_a_peer_speaks_for_itself_alone(led: Machines) -> None:
    name, peer = led.names[:2]
    rows = tuple(m.MoveRow(0, node, "learner", 0, True, "") for node in led.names)

    led.give(name, Received(peer, m.Gossip((), (), rows)))

    assert [row.node for row in led.nodes[name]._steward.gossiper.moves()] == [peer]
