"""Partitions move to new nodes and off old ones, and a wiped node votes again only once it has filled."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from node.operating import down
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.document import NOBODY
from skuld_py.model.events import DocumentRead, MembersChanged, NodesChanged, Received
from skuld_py.model.history import History
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.remarks import Kind, Remark
from skuld_py.node.node import Node
from skuld_py.partition.data.tables import prefix_of
from skuld_py.partition.leadership.suspicion import mark_suspect
from skuld_py.partition.vnode import Role, Vnode

TASKS = 40


def roles(node: Node) -> list[Role]:
    return [vnode.role for vnode in node.view.vnodes]


def live_histories(vnode: Vnode) -> list[History]:
    """Histories of a partition's live claims."""
    found = vnode.replica.histories([task_id for _, task_id, _ in vnode.replica.filing.leases(b"", 1_000)])
    return [History.decode(record) for record in found.values()]


def place_on(machines: Machines, names: list[str]) -> None:
    for name in machines.names:
        machines.give(name, NodesChanged(tuple(names)))


def enqueue(machines: Machines, count: int = TASKS) -> list[bytes]:
    """Tasks in all partitions, acknowledged by all their owners."""
    made: list[bytes] = []
    for number in range(count):
        batch = machines.batch("q", 1)
        made += ids.split(batch.ids)
        machines.ask(machines.names[0], m.Enqueue(number, 0, (batch,)), b"producer")
    machines.pass_time(500)
    acked = [answer for answer in machines.answers_to(b"producer") if isinstance(answer, m.Acked)]
    assert len(acked) == count
    return made


def missing(machines: Machines, made: list[bytes]) -> list[bytes]:
    """Tasks that a node does not find by a read."""
    found: list[bytes] = []
    for at in range(0, len(made), 10):
        machines.ask(machines.names[-1], m.Get(at, b"".join(made[at : at + 10])), f"reader{at}".encode())
        machines.pass_time(200)
        answer = machines.answers_to(f"reader{at}".encode())[-1]
        assert isinstance(answer, m.Got), answer
        found += [row.id for row in answer.tasks]
    return sorted({*made} - {*found})


@pytest.fixture
def four() -> tuple[Machines, list[bytes]]:
    """Four nodes of which three own everything."""
    machines = Machines(4, timing=attrs.evolve(DEFAULT_TIMING, seat_ms=2_000))
    place_on(machines, machines.names[:3])
    machines.pass_time(3_000)
    return machines, enqueue(machines)


def test_a_fourth_node_fills_is_seated_and_the_others_let_go(four: tuple[Machines, list[bytes]]) -> None:
    machines, made = four
    epochs = {partition: document.epoch for partition, (_, document) in machines.documents.items()}
    place_on(machines, machines.names)
    machines.pass_time(15_000)

    for partition, (_, document) in machines.documents.items():
        owners = machines.nodes[machines.names[0]].view.vnodes[partition].owners
        assert sorted(document.cohort) == sorted(owners)
        has_moved = machines.names[3] in owners
        assert (document.epoch > epochs[partition]) == has_moved, "a partition that did not move kept its leader"
        for name in machines.names:
            is_empty = machines.nodes[name].view.vnodes[partition].replica.is_empty()
            assert is_empty == (name not in owners), (partition, name)
    assert any(machines.names[3] in document.cohort for _, document in machines.documents.values())
    assert missing(machines, made) == []


def test_a_node_taken_out_hands_everything_over(four: tuple[Machines, list[bytes]]) -> None:
    machines, made = four
    place_on(machines, machines.names)
    machines.pass_time(15_000)
    place_on(machines, machines.names[1:])
    machines.pass_time(15_000)

    gone = machines.nodes[machines.names[0]]
    assert roles(gone) == [Role.STRANGER] * len(gone.view.vnodes)
    assert all(machines.names[0] not in document.cohort and document.leader != machines.names[0]
               for _, document in machines.documents.values())
    assert missing(machines, made) == []


def test_who_stood_in_vain_for_a_cohort_is_let_go_by_a_new_epoch(four: tuple[Machines, list[bytes]]) -> None:
    machines, made = four
    outsider = machines.nodes[machines.names[3]]
    vnode, (_, document) = outsider.view.vnodes[0], machines.documents[0]
    task_id = next(task_id for task_id in made if ids.partition_of(task_id, 8) == 0)
    vnode.replica.store_tasks(0, Header("q").encode(), [task_id], [b""])
    vnode.expect(document.epoch + 1, (machines.names[3], *document.cohort[1:]), 0)
    others = [machines.documents[number][1].epoch for number in range(1, 8)]

    machines.pass_time(20_000)

    assert machines.documents[0][1].epoch > document.epoch
    assert set(machines.documents[0][1].cohort) == set(document.cohort)
    assert roles(outsider) == [Role.STRANGER] * len(outsider.view.vnodes)
    assert others == [machines.documents[number][1].epoch for number in range(1, 8)]


def test_a_node_that_is_away_keeps_its_seats_until_those_who_take_over_have_filled(
        four: tuple[Machines, list[bytes]]) -> None:
    machines, made = four
    dead = machines.names[0]
    alive = tuple(member for member in machines.members if member.name != dead)
    machines.names.remove(dead)
    for member in alive:
        machines.give(member.name, MembersChanged(alive))
    machines.pass_time(8_000)
    assert all(dead in document.cohort for _, document in machines.documents.values())
    assert all(document.leader != dead for _, document in machines.documents.values())

    place_on(machines, machines.names)
    machines.pass_time(15_000)
    assert all(dead not in document.cohort for _, document in machines.documents.values())
    assert missing(machines, made) == []


@pytest.fixture
def wiped() -> tuple[Machines, list[bytes], Node]:
    """Three nodes, one of which starts again on an empty store that it knows to be empty."""
    machines = Machines()
    machines.pass_time(3_000)
    made = enqueue(machines)
    name = machines.names[0]
    store = machines.stores[name] = MemoryStore()
    mark_suspect(store, range(8), "the data directory is empty")
    store.commit()
    node = machines.restart(name)
    return machines, made, node


def test_a_wiped_node_neither_votes_nor_counts_until_it_has_filled(
        wiped: tuple[Machines, list[bytes], Node]) -> None:
    machines, _, node = wiped
    others = machines.names[1:]
    assert roles(node) == [Role.SUSPECT] * 8
    for vnode in node.view.vnodes:
        vnode.has_read = True
        assert vnode.on_request_vote(machines.now_ms, others[0], m.RequestVote(
            vnode.partition, 99, tuple(machines.names), False), is_led=False) is None
        task_id = machines.mint.mint(machines.now_ms, 1, vnode.partition)[0]
        grant = m.Grant(1, vnode.partition, 99, 99 << 32, 1, 2, "w", "q", task_id, bytes(4))
        refused = vnode.on_grant(machines.now_ms, others[0], grant)
        assert refused is not None and not refused.is_accepted
        assert not vnode.is_counted


def test_who_knows_of_no_voters_hands_off_to_nobody_and_drops_nothing() -> None:
    machines = Machines(4, partitions=1)
    name = next(each for each in machines.names if each not in machines.future_owners(0))
    others = [each for each in machines.names if each != name]
    for other in others:
        down(machines, other)
    batch = machines.batch("q", 1)
    machines.nodes[name].view.vnodes[0].place((name, *others[:2]))
    machines.give(name, Received(others[0], m.Replicate(1, (batch,), columns.pack_u64([0, 0]))))
    machines.give(name, NodesChanged(tuple(machines.names)))
    machines.pass_time(20_000)

    assert roles(machines.nodes[name]) == [Role.ZOMBIE]
    assert machines.stores[name].get("body", prefix_of(0) + batch.ids) is not None
    assert [row.is_done for row in machines.nodes[name].description().moves] == [False]


def test_a_wiped_node_trusts_itself_for_no_document_that_somebody_has_deleted() -> None:
    machines = Machines()
    machines.pass_time(3_000)
    name, deleted = machines.names[0], {**machines.documents}
    store = machines.stores[name] = MemoryStore()
    mark_suspect(store, range(8), "the data directory is empty")
    store.commit()
    machines.documents.clear()
    node = machines.restart(name)
    for partition in range(8):
        machines.give(name, DocumentRead(partition, -1, NOBODY))
    assert roles(node) == [Role.SUSPECT] * 8

    machines.documents.update(deleted)
    machines.pass_time(10_000)
    assert roles(node) == [Role.MEMBER] * 8
    assert all(vnode.promise.epoch for vnode in node.view.vnodes)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nodes_wiped_before_there_was_a_leader_are_trusted_by_what_others_say(count: int) -> None:
    machines = Machines()
    for name in machines.names[:count]:
        store = machines.stores[name] = MemoryStore()
        mark_suspect(store, range(8), "the data directory is empty")
        store.commit()
        machines.restart(name)
    machines.pass_time(10_000)

    assert all(roles(node) == [Role.MEMBER] * 8 for node in machines.nodes.values())
    assert len(machines.documents) == 8


def test_a_wiped_node_fills_again_and_then_votes_for_nothing_old(
        wiped: tuple[Machines, list[bytes], Node]) -> None:
    machines, made, node = wiped
    machines.pass_time(10_000)

    assert roles(node) == [Role.MEMBER] * 8
    for vnode in node.view.vnodes:
        _, document = machines.documents[vnode.partition]
        assert vnode.promise.epoch >= document.epoch
        peer = machines.nodes[machines.names[1]].view.vnodes[vnode.partition]
        assert vnode.replica.tree.root == peer.replica.tree.root
    assert missing(machines, made) == []


def test_a_leader_whose_data_is_an_old_copy_is_found_out() -> None:
    machines = Machines(partitions=1)
    young = {name: store.snapshot() for name, store in machines.stores.items()}
    machines.pass_time(3_000)
    leader = machines.documents[0][1].leader
    machines.stores[leader].restore(young[leader])
    node = machines.restart(leader)
    assert not node.view.vnodes[0].suspicion
    said: list[Remark] = []
    node.view.bulletin.remark = said.append

    for _ in range(1_000):
        machines.pass_time(1)
        if node.view.vnodes[0].suspicion:
            break
    assert "old copy" in node.view.vnodes[0].suspicion
    assert [remark for remark in said if remark.kind is Kind.DOUBT] == [
        Remark(Kind.DOUBT, "partition 0", node.view.vnodes[0].suspicion)]
    machines.pass_time(10_000)
    assert not node.view.vnodes[0].suspicion


def test_a_voter_whose_data_is_an_old_copy_is_found_out() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(3_000)
    first = machines.documents[0][1].leader
    voter = next(name for name in reversed(machines.documents[0][1].cohort) if name != first)
    copy = machines.stores[voter].snapshot()
    others = tuple(member for member in machines.members if member.name != first)
    for member in others:
        machines.give(member.name, MembersChanged(others))
    machines.pass_time(5_000)
    document = machines.documents[0][1]
    assert document.leader not in (first, voter)
    assert document.promises[voter] == document.epoch > document.previous.epoch

    machines.stores[voter].restore(copy)
    node = machines.restart(voter)
    machines.pass_time(20)

    assert "old copy" in node.view.vnodes[0].suspicion
    machines.pass_time(10_000)
    assert not node.view.vnodes[0].suspicion


def test_no_grant_is_cut_short_by_a_change_of_the_cohort(four: tuple[Machines, list[bytes]]) -> None:
    machines, _ = four
    partition = next(partition for partition in range(8) if machines.names[3] in machines.future_owners(partition))
    document = machines.documents[partition][1]
    vnode = machines.nodes[document.leader].view.vnodes[partition]
    machines.is_lost = lambda message: isinstance(message, m.Grant) and message.partition == partition
    machines.ask(document.leader, m.Claim(900, "q", 100, 60_000, 0, "me"))
    assert vnode.open_grants == 1

    place_on(machines, machines.names)
    machines.pass_time(1_000)
    assert vnode.is_leading and vnode.epoch == document.epoch and vnode.open_grants
    machines.pass_time(1_000)
    assert not vnode.open_grants
    machines.is_lost = lambda message: False
    machines.pass_time(15_000)
    assert machines.documents[partition][1].epoch > document.epoch
    assert all(not history.horizon_ms for history in live_histories(vnode)), "what failed was released"


def test_two_of_three_wiped_nodes_do_not_believe_each_other(wiped: tuple[Machines, list[bytes], Node]) -> None:
    machines, _, node = wiped
    second = machines.names[1]
    store = machines.stores[second] = MemoryStore()
    mark_suspect(store, range(8), "the data directory is empty")
    store.commit()
    machines.restart(second)
    machines.pass_time(10_000)

    assert roles(node) == [Role.SUSPECT] * 8
    assert roles(machines.nodes[second]) == [Role.SUSPECT] * 8
