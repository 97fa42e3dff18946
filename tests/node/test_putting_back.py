"""A document that somebody deletes is put back by its leader, and by no leader that is not the newest."""

from __future__ import annotations

import attrs

from node.machines import Machines
from node.operating import down
from node.test_overseeing import asked
from skuld_py.model import messages as m
from skuld_py.model.document import NOBODY, Document, seats_of
from skuld_py.model.events import DocumentChanged, DocumentRead, SwapDocument
from skuld_py.partition.leadership.promise import Promise
from skuld_py.partition.leadership.putting_back import PuttingBack
from skuld_py.verbs.attention import Facts, concerns
from skuld_py.wire import codec
from skuld_py.wire.codec import Envelope


def led(partitions: int = 1) -> Machines:
    machines = Machines(partitions=partitions)
    machines.pass_time(2_000)
    return machines


def delete(machines: Machines, partition: int = 0) -> None:
    del machines.documents[partition]
    machines.flying.extend((name, DocumentChanged(partition)) for name in machines.names)


def test_a_deleted_document_is_back_within_a_second_with_its_epoch_and_grants_go_on() -> None:
    machines = led()
    before = machines.documents[0][1]
    delete(machines)
    machines.pass_time(1_000)

    version, after = machines.documents[0]
    assert after == attrs.evolve(before, write_id=after.write_id, cause=after.cause, put_back=1)
    assert "put back" in after.cause and Document.decode(after.encode()) == after
    assert asked(machines, before.leader) == m.Steered(1, 1, 0, ()) and machines.documents[0][0] > version
    machines.pass_time(30_000)
    assert machines.documents[0][1].epoch == before.epoch


def test_a_swap_that_was_decided_before_the_deletion_finds_no_document_of_its_version() -> None:
    """Versions begin anew. An operator's swap that hung in a process which stood still brought an old one back."""
    machines = led()
    leader = machines.documents[0][1].leader
    for kind in ("freeze", "unfreeze"):
        asked(machines, leader, kind=kind)
    version, old = machines.documents[0]
    late = SwapDocument(0, version, attrs.evolve(old, mode="solo", write_id="late"))
    for times in (1, 2):
        delete(machines)
        machines.pass_time(1_000)
        assert (machines.documents[0][0], machines.documents[0][1].put_back) == (0, times)
        for kind in ("freeze", "unfreeze"):
            asked(machines, leader, kind=kind)
        known = machines.documents[0]
        assert known[0] == version

        machines._carry_out(leader, late)
        assert machines.documents[0] == known
    machines.pass_time(30_000)
    assert (machines.documents[0][1].leader, machines.documents[0][1].epoch) == (leader, old.epoch)


def test_one_that_was_written_by_hand_and_deleted_at_once_is_back_though_it_did_not_say_how_often() -> None:
    machines = led()
    delete(machines)
    machines.pass_time(1_000)
    _, known = machines.documents[0]
    assert known.put_back == 1
    machines.write(0, attrs.evolve(known, put_back=0, write_id="by hand"))
    machines.deliver(len(machines.flying))
    delete(machines)
    machines.pass_time(3_000)
    assert 0 in machines.documents, "its leader never finds out how often it was put back"
    assert machines.documents[0][1].put_back == 2


def test_how_often_it_was_put_back_is_heard_whenever_it_is_said() -> None:
    """Also between two reads that do not know it."""
    gone = PuttingBack(attrs.evolve(led().documents[0][1], put_back=1), "n1")
    for said in (0, 3, 0):
        gone.note(said)

    assert gone.document.put_back == 3


def test_another_document_of_the_version_that_its_leader_knows_is_noted() -> None:
    machines = led()
    version, known = machines.documents[0]
    machines.documents[0] = version, attrs.evolve(known, mode="solo", write_id="other")
    machines.flying.extend((name, DocumentChanged(0)) for name in machines.names)
    machines.pass_time(1_000)

    assert machines.nodes[known.leader].view.vnodes[0].election.document.mode == "solo"


def test_what_its_leader_asks_passes_the_wire() -> None:
    machines = led()
    before = machines.documents[0][1]
    sent: list[m.RequestVote] = []
    machines.is_lost = lambda message: isinstance(message, m.RequestVote) and not sent.append(message)
    delete(machines)
    machines.pass_time(1_000)
    assert sent

    envelope = Envelope(before.leader, "c", tuple(sent))
    assert codec.decode(codec.encode(envelope)).messages == tuple(sent)


def test_silent_voters_are_asked_again() -> None:
    machines = led()
    before = machines.documents[0][1]
    machines.is_lost = lambda message: isinstance(message, m.Vote)
    delete(machines)
    machines.pass_time(2_000)
    assert not machines.documents
    machines.is_lost = lambda message: False
    machines.pass_time(2_000)
    assert machines.documents[0][1].epoch == before.epoch


def test_a_leader_that_does_not_know_of_a_newer_one_puts_nothing_back() -> None:
    machines = led()
    before = machines.documents[0][1]
    for name in before.cohort[1:]:
        machines.nodes[name].view.vnodes[0].promise = Promise(before.epoch + 1, before.cohort[1])
    delete(machines)
    machines.pass_time(3_000)
    assert not machines.documents


def test_a_majority_without_a_newer_promise_is_enough() -> None:
    gone = PuttingBack(Document(4, "a", seats=seats_of("abc")), "a")
    assert not gone.is_allowed and gone.unasked == ["b", "c"]
    gone.promised["b"] = 5
    assert not gone.is_allowed and gone.unasked == ["c"]
    gone.promised["c"] = 4
    assert gone.is_allowed
    assert PuttingBack(Document(4, "a", seats=seats_of("a")), "a").is_allowed


def test_a_document_that_is_gone_while_nobody_leads_is_told_of_with_what_to_do() -> None:
    machines = led()
    leader = machines.documents[0][1].leader
    other = next(name for name in machines.names if name != leader)
    down(machines, leader)
    delete(machines)
    machines.pass_time(30_000)

    assert not machines.documents
    told = concerns(Facts("c", 3, 200, machines.nodes[other].description()))
    (words,) = [each.words for each in told if each.kind == "held"]
    assert "led by nobody" in words and "'skuld cluster restore'" in words


def test_a_document_that_is_deleted_before_its_voters_knew_of_a_leader_is_not_begun_anew() -> None:
    machines = Machines(partitions=1)
    while not machines.documents:
        machines.deliver(1) if machines.flying else machines.pass_time(1)
    leader = machines.documents[0][1].leader
    others = [name for name in machines.names if name != leader]
    down(machines, leader)
    delete(machines)
    assert not any(machines.nodes[name].view.vnodes[0].standing.epoch for name in others)
    machines.pass_time(30_000)

    assert not machines.documents
    told = concerns(Facts("c", 3, 200, machines.nodes[others[0]].description()))
    (words,) = [each.words for each in told if each.kind == "held"]
    assert "its history shows that there was one" in words and "'skuld cluster restore'" in words


def test_who_lost_its_disk_trusts_itself_only_where_there_never_was_a_document() -> None:
    for was_there in (False, True):
        machines = Machines(2, partitions=1)
        name = machines.names[0]
        vnode = machines.nodes[name].view.vnodes[0]
        vnode.place((name,))
        vnode.suspicion = "its disk is new"
        machines.give(name, DocumentRead(0, -1, NOBODY, was_there))
        assert bool(vnode.suspicion) is was_there
