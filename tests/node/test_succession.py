"""A new leader knows every claim that a majority recorded, and hands them on before it leads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.events import Event, MembersChanged, Received


def message_of(event: Event) -> m.Message | None:
    return event.message if isinstance(event, Received) else None


def pass_without(machines: Machines, milliseconds: int, is_lost: Callable[[str, m.Message | None], bool]) -> None:
    """Let time pass while some messages are lost."""
    for _ in range(milliseconds):
        machines.flying = type(machines.flying)(
            (name, event) for name, event in machines.flying if not is_lost(name, message_of(event)))
        machines.deliver(1)
        if not machines.flying:
            machines.pass_time(1)


@pytest.fixture
def orphaned() -> tuple[Machines, int, str, bytes]:
    """A task claimed on two replicas; the third, which will stand, has not heard of it."""
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    heir = next(name for name in machines.documents[0][1].cohort if name != leader)
    batch = machines.batch("q", 1)
    machines.ask(leader, m.Enqueue(1, 3, (batch,)))
    machines.pass_time(100)
    machines.ask(leader, m.Claim(2, "q", 1, 60_000, 0, "me"))
    pass_without(machines, 100, lambda name, message: name == heir and isinstance(message, m.Grant))
    answer = machines.answers_to(b"client")[-1]
    assert isinstance(answer, m.Claimed) and answer.batches
    assert machines.nodes[heir].view.vnodes[0].replica.filing.leases(b"", 10) == []
    machines.flying.clear()
    others = tuple(member for member in machines.members if member.name != leader)
    for member in others:
        machines.give(member.name, MembersChanged(others))
    return machines, machines.documents[0][1].epoch, heir, batch.ids


def is_from_exchange(message: m.Message | None) -> bool:
    return isinstance(message, m.Probe | m.Probed | m.Compare | m.Compared | m.Fetch | m.Fetched | m.Repair)


def test_it_has_read_the_claims_of_its_voters(orphaned: tuple[Machines, int, str, bytes]) -> None:
    machines, epoch, heir, task_id = orphaned
    vnode = machines.nodes[heir].view.vnodes[0]

    for _ in range(2_000):
        pass_without(machines, 1, lambda _, message: is_from_exchange(message))
        if vnode.is_leading:
            break

    assert machines.documents[0][1].leader == heir and machines.documents[0][1].epoch > epoch
    assert [row[1] for row in vnode.replica.filing.leases(b"", 10)] == [task_id]


def test_it_does_not_lead_until_a_majority_has_confirmed_them(orphaned: tuple[Machines, int, str, bytes]) -> None:
    machines, epoch, heir, _ = orphaned

    pass_without(machines, 3_000, lambda _, message: isinstance(message, m.ClaimsKept))

    assert machines.documents[0][1].epoch == epoch
    assert not machines.nodes[heir].view.vnodes[0].is_leading


def test_it_does_not_lead_without_the_old_cohort_s_claims(orphaned: tuple[Machines, int, str, bytes]) -> None:
    machines, epoch, heir, _ = orphaned

    pass_without(machines, 3_000, lambda _, message: isinstance(message, m.ClaimPage))

    assert machines.documents[0][1].epoch == epoch
    assert not machines.nodes[heir].view.vnodes[0].is_leading


def test_it_does_not_lead_without_a_majority_of_votes(orphaned: tuple[Machines, int, str, bytes]) -> None:
    machines, epoch, heir, _ = orphaned

    pass_without(machines, 3_000, lambda _, message: isinstance(message, m.Vote))

    assert machines.documents[0][1].epoch == epoch
    assert not machines.nodes[heir].view.vnodes[0].is_leading


def test_an_old_copy_of_a_leader_s_data_votes_for_nobody_before_it_is_found_out() -> None:
    """Taken earlier in the same start, and put back after its node had led."""
    machines = Machines(partitions=1)
    machines.pass_time(3_000)
    first = machines.documents[0][1].leader
    copies = {name: store.snapshot() for name, store in machines.stores.items()}
    others = tuple(member for member in machines.members if member.name != first)
    for member in others:
        machines.give(member.name, MembersChanged(others))
    machines.pass_time(5_000)
    document = machines.documents[0][1]
    assert document.leader != first
    machines.stores[document.leader].restore(copies[document.leader])
    machines.flying.clear()
    old = machines.restart(document.leader).view.vnodes[0]

    machines.give(document.leader, Received(first, m.RequestVote(0, 9, document.cohort, False, document.epoch)))

    votes = [message_of(event) for name, event in machines.flying if isinstance(message_of(event), m.Vote)]
    assert votes == []
    assert old.promise.epoch < document.epoch
    machines.pass_time(20)
    assert "old copy" in old.suspicion
