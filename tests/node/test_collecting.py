"""What replicas agree on before they collect, seen from within. Else see ``scripts/collecting.txt``."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from node.machines import Machines
from skuld_py.config.timing import Retention
from skuld_py.errors import Corrupt
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_WAIT, Body, Header, split_body
from skuld_py.model.events import Received
from skuld_py.model.notes import SUB
from skuld_py.model.state import State
from skuld_py.node.retention.replica_side import agreed_on, delete, ebb, is_as_told
from skuld_py.partition.copies.garbage import collect
from skuld_py.partition.copies.remains import remains_of
from skuld_py.partition.data.needs import Needs, make_needs, needed
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import prefix_of
from skuld_py.partition.vnode import Role, Vnode

KEEP_MS = 60_000
RETENTION = Retention(KEEP_MS, slice_ms=5_000, page_tasks=3)
LEASE_MS = 10_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1, retention=RETENTION)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def leader_of(machines: Machines) -> str:
    return machines.documents[0][1].leader


def follower_of(machines: Machines) -> str:
    return next(name for name in machines.names if name != leader_of(machines))


def vnodes(machines: Machines) -> dict[str, Vnode]:
    return {name: node.view.vnodes[0] for name, node in machines.nodes.items()}


def ask(machines: Machines, message: m.Message, name: str = "") -> m.Message:
    before = len(machines.answers_to(b"me"))
    machines.ask(name or leader_of(machines), message, b"me")
    machines.pass_time(200)
    answer, = machines.answers_to(b"me")[before:]
    return answer


def enqueue(machines: Machines, count: int = 1) -> list[bytes]:
    made = machines.mint.mint(machines.now_ms, count, 0)
    batch = m.TaskBatch(Header("q").encode(), b"".join(made), columns.pack([b"x"] * count))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    return made


def complete(machines: Machines, made: list[bytes]) -> m.Message:
    return ask(machines, m.Complete(3, 0, 0, b"".join(made), columns.pack_u64([1 << 32] * len(made))))


def left(machines: Machines) -> list[list[bytes]]:
    """The tasks of each node."""
    return [[key[2:] for key in store.rows("body")] for store in machines.stores.values()]


def test_what_is_offered_and_does_not_arrive_keeps_all_unsealed(machines: Machines) -> None:
    """The one replica goes on lacking what another has acknowledged."""
    lacking = follower_of(machines)
    machines.is_deaf = lacking
    made = enqueue(machines, 3)
    machines.pass_time(5_000)
    machines.is_lost = lambda message: isinstance(message, m.Repair) or bool(
        isinstance(message, m.Fetched) and message.tasks)
    machines.is_deaf = ""

    machines.pass_time(2 * KEEP_MS)

    assert machines.stores[lacking].rows("body") == {}
    assert not any(vnode.replica.watermark.sealed_ms for vnode in vnodes(machines).values())
    machines.is_lost = lambda message: False
    machines.pass_time(KEEP_MS)
    assert left(machines) == [made] * 3


def test_what_one_replica_holds_otherwise_stays_on_all(machines: Machines) -> None:
    """It knows of something that the others would lose."""
    made = enqueue(machines, 2)
    complete(machines, made)
    machines.is_lost = lambda message: isinstance(message, m.Collect)
    machines.pass_time(2 * KEEP_MS)
    other = vnodes(machines)[follower_of(machines)].replica
    other.append(made[0], 7, 0, [b"heard by nobody else"])
    machines.is_lost = lambda message: isinstance(message, m.Probe | m.Probed)

    machines.pass_time(1_500)
    under_way = {name: node._steward.slices._slices for name, node in machines.nodes.items()}
    assert any(under_way.values()) or left(machines) == [made] * 3
    leader = vnodes(machines)[leader_of(machines)]
    digests = remains_of(leader.replica, made).digests
    told = [delete(machines.nodes[name].view, machines.now_ms, vnode, m.Collect(
        1, 0, leader.epoch, leader.replica.watermark.sealed_ms, True, False, b"".join(made),
        digests)) for name, vnode in vnodes(machines).items()]

    assert [columns.unpack_u64(answer.kept) for answer in told] == [
        (0,) if vnode.replica is other else () for vnode in vnodes(machines).values()]
    assert left(machines) == [made] * 3


def collected(machines: Machines, count: int = 2) -> list[bytes]:
    """Tasks that have come and gone."""
    made = enqueue(machines, count)
    complete(machines, made)
    machines.pass_time(2 * KEEP_MS)
    assert left(machines) == [[]] * 3
    return made


def test_the_end_of_a_task_is_told_as_long_as_one_copy_that_counts_has_it(machines: Machines) -> None:
    made = enqueue(machines)
    complete(machines, made)
    replica = vnodes(machines)[follower_of(machines)].replica
    replica.watermark.seal(ids.time_of(made[0]))
    collect(replica, made)
    assert replica.gone(made)

    answer = ask(machines, m.Await(5, made[0], 30_000))

    assert isinstance(answer, m.Awaited) and answer.ends == bytes([State.COMPLETED])


def test_a_suspect_stops_it_and_is_sealed_nowhere(machines: Machines) -> None:
    """It may lack what nobody collected; if it said that this is gone, others would delete it."""
    collected(machines)
    name = follower_of(machines)
    vnode = vnodes(machines)[name]
    question = m.Ebb(1, 0, 99, vnode.replica.watermark.sealed_ms)
    assert question.upto_ms and ebb(machines.nodes[name].operations, machines.now_ms, vnode, question).is_accepted
    vnode.doubt(machines.now_ms, "in doubt")

    assert not vnode.replica.watermark.sealed_ms
    assert not ebb(machines.nodes[name].operations, machines.now_ms, vnode, question).is_accepted


def test_a_seal_for_an_earlier_life_seals_nothing(machines: Machines) -> None:
    """A replica that has dropped all and begins anew lacks what nobody has collected."""
    collected(machines)
    node = machines.nodes[follower_of(machines)]
    vnode = node.view.vnodes[0]
    life, sealed_ms, epoch = vnode.replica.watermark.life, vnode.replica.watermark.sealed_ms, vnode.promise.epoch
    vnode.replica.drop(1_000)
    assert not vnode.replica.watermark.sealed_ms

    assert not ebb(node.operations, machines.now_ms, vnode, m.Ebb(1, 0, epoch, sealed_ms, life)).is_accepted
    assert not vnode.replica.watermark.sealed_ms
    told = ebb(node.operations, machines.now_ms, vnode, m.Ebb(1, 0, epoch, sealed_ms))
    assert told.is_accepted
    assert told.life not in (0, life)


def test_a_voter_of_a_newer_leader_refuses_and_the_old_one_resigns(machines: Machines) -> None:
    enqueue(machines, 2)
    voter = vnodes(machines)[follower_of(machines)]
    leader = vnodes(machines)[leader_of(machines)]
    voter.promise_to(machines.now_ms, leader.epoch + 5, "somebody")
    assert leader.is_leading

    answer = ebb(machines.nodes[voter.me.name].operations, machines.now_ms, voter, m.Ebb(1, 0, leader.epoch, 5))

    assert not answer.is_accepted
    assert answer.promised == leader.epoch + 5


def test_who_is_not_sealed_so_far_deletes_nothing(machines: Machines) -> None:
    made = enqueue(machines, 2)
    complete(machines, made)
    node = machines.nodes[follower_of(machines)]
    digests = remains_of(node.view.vnodes[0].replica, made).digests

    question = m.Collect(1, 0, 99, machines.now_ms, False, False, b"".join(made), digests)
    answer = delete(node.view, machines.now_ms, node.view.vnodes[0], question)

    assert not answer.is_accepted
    assert left(machines) == [made] * 3


def test_what_is_newer_than_what_is_sealed_stays(machines: Machines) -> None:
    """Its id may be newer than its end, by another clock."""
    made = enqueue(machines, 2)
    complete(machines, made)
    replica = vnodes(machines)[leader_of(machines)].replica
    held, made_ms = remains_of(replica, made), ids.time_of(made[-1])
    ended = attrs.evolve(held, histories=[(made_ms - 9).to_bytes(8, "big") + (history or b"")[8:]
                                          for history in held.histories])

    assert [*agreed_on(replica, ended, held.digests, made_ms)] == [0, 1]
    assert [*agreed_on(replica, ended, held.digests, made_ms - 1)] == []
    assert [*agreed_on(replica, ended, held.digests[:8] + columns.pack_u64([7]), made_ms)] == [0]


def test_what_is_held_as_the_leader_says_is_not_read_before_it_goes(machines: Machines) -> None:
    made = sorted(enqueue(machines, 3))
    complete(machines, made)
    replica = vnodes(machines)[follower_of(machines)].replica
    digests, made_ms = remains_of(replica, made).digests, ids.time_of(made[-1])
    for table in ("body", "history"):
        assert machines.stores[follower_of(machines)].damage(table, replica.prefix + made[1])
    assert is_as_told(replica, made, digests, made_ms)

    one, two, three = columns.split(digests, 8)
    for task_ids, other, upto_ms in ((made, digests, made_ms - 1), (made[::-1], three + two + one, made_ms),
                                     (made, one + two + bytes(8), made_ms), (made[::2], one + three, made_ms),
                                     ([*made[:2], made[2][:-1] + b"?"], digests, made_ms), ([], b"", made_ms)):
        assert not is_as_told(replica, task_ids, other, upto_ms)
    assert not is_as_told(replica, [task_id[:-1] + b"?" for task_id in made], b"", made_ms)
    with pytest.raises(Corrupt):
        collect(replica, made)


@pytest.mark.parametrize("change", [
    lambda replica, task_id: replica.append(task_id, 7, 0, [b"late"]),
    lambda replica, task_id: replica.note(0, SUB, 5, [task_id]),
], ids=["a log", "who waits for the end"])
def test_what_is_more_than_its_body_and_its_history_is_read(
        machines: Machines, change: Callable[[Replica, bytes], object]) -> None:
    made = sorted(enqueue(machines, 3))
    complete(machines, made)
    replica = vnodes(machines)[follower_of(machines)].replica
    digests, made_ms = remains_of(replica, made).digests, ids.time_of(made[-1])
    assert is_as_told(replica, made, digests, made_ms)

    change(replica, made[1])

    assert not is_as_told(replica, made, digests, made_ms)


def test_a_grant_of_what_was_collected_is_vetoed(machines: Machines) -> None:
    """A leader that remembers a task which everybody else has collected must not give it to anybody."""
    made = collected(machines, 1)
    node = machines.nodes[follower_of(machines)]
    vnode = node.view.vnodes[0]
    grant = m.Grant(1, 0, vnode.promise.epoch, 9 << 32, machines.now_ms, machines.now_ms + LEASE_MS, "w", "q",
                    made[0], bytes(4))
    machines.give(node.view.me.name, Received(leader_of(machines), grant))

    granted = [event.message for _, event in machines.flying
               if isinstance(event, Received) and isinstance(event.message, m.Granted)]
    assert [columns.unpack_u64(answer.vetoed) for answer in granted] == [(0,)]
    assert not machines.stores[node.view.me.name].rows("history")


def test_who_was_to_become_a_voter_and_does_not_holds_nothing_up() -> None:
    """It agreed to be compared, and answers no exchange any more."""
    machines = Machines(4, partitions=1, retention=RETENTION)
    machines.pass_time(2_000)
    made = enqueue(machines, 2)
    complete(machines, made)
    document = machines.documents[0][1]
    stranger = next(name for name in machines.names if name not in document.cohort)
    vnode = vnodes(machines)[stranger]
    vnode.expect(document.epoch + 1, (*document.cohort[:2], stranger), 0)
    machines.is_lost = lambda message: isinstance(message, m.Probed)
    machines.pass_time(2 * KEEP_MS)
    assert vnode.replica.watermark.life
    assert left(machines).count(made) == 3

    vnode.settle(machines.now_ms, document.epoch + 1, vnode.standing.era, vnode.standing.cohort)
    assert vnode.role is Role.STRANGER
    machines.is_lost = lambda message: False
    machines.pass_time(KEEP_MS)

    assert left(machines) == [[]] * 4


def test_a_long_comparison_is_not_given_up(machines: Machines) -> None:
    """All still are the replicas that were closed: what has come to its end is not done again."""
    complete(machines, enqueue(machines, 2))
    slow = follower_of(machines)
    slices = machines.nodes[leader_of(machines)]._steward.slices._slices
    machines.is_lost = lambda message: isinstance(message, m.Probed)
    machines.pass_time(KEEP_MS + 10_000)
    under_way = slices[0]

    machines.pass_time(20_000)
    assert slices[0] is under_way

    machines.is_lost = lambda message: isinstance(message, m.Probed | m.Ebbed)
    machines.is_deaf = slow
    machines.pass_time(5_000)
    assert slices[0] is under_way


# -- what is needed ------------------------------------------------------------------------------------


def needy(machines: Machines, deps: list[bytes], route: int = 0) -> bytes:
    """A task that waits for others."""
    task_id, = machines.mint.mint(machines.now_ms, 1, route)
    header = Header("then", policy=ON_FAILURE_WAIT, dep_wait_ms=24 * 3_600_000)
    raw, rest = split_body(Body(header, deps=tuple(sorted(deps))).encode())
    assert isinstance(ask(machines, m.Enqueue(1, 0, (m.TaskBatch(raw, task_id, columns.pack([rest])),))), m.Acked)
    return task_id


def kept(machines: Machines) -> set[bytes]:
    """What all nodes keep, that keep any of it."""
    return {task_id for each in left(machines) for task_id in each}


def test_what_is_behind_a_needed_task_of_the_same_page_is_needed(machines: Machines) -> None:
    first, = enqueue(machines)
    second = needy(machines, [first])
    third = needy(machines, [second])
    complete(machines, [first, second])
    indexes = [node.view.vnodes[0].replica.filing.needs for node in machines.nodes.values()]

    assert [*needed(indexes, [first, second])] == [first, second]
    assert [*needed(indexes, [first, second, third])] == []
    assert [*needed(indexes, [first, third])] == [first]


def test_a_long_chain_goes_in_one_slice(machines: Machines) -> None:
    steps = enqueue(machines, 1)
    for _ in range(9):
        steps.append(needy(machines, steps[-1:]))
    complete(machines, steps)

    machines.pass_time(KEEP_MS - 5_000)
    assert kept(machines) == set(steps)
    closed = [vnode.replica.watermark.closed_ms for vnode in vnodes(machines).values()]
    while kept(machines):
        machines.pass_time(100)
        now = [vnode.replica.watermark.closed_ms for vnode in vnodes(machines).values()]
        closed = now if closed[0] == 0 else closed
        assert now == closed or 0 in now, "each page of the chain would take a slice of its own"


def test_who_leads_the_dependency_keeps_nothing_of_the_dependent_and_others_speak_for_it() -> None:
    machines = Machines(7, partitions=16, replicas=3, retention=RETENTION)
    machines.pass_time(4_000)
    owners = {partition: machines.future_owners(partition) for partition in range(16)}
    here, there = next((one, other) for one in owners for other in owners
                       if not {*owners[one]} & {*owners[other]})
    part, = machines.mint.mint(machines.now_ms, 1, here)
    ask(machines, m.Enqueue(1, 0, (m.TaskBatch(Header("q").encode(), part, columns.pack([b"x"])),)))
    total = needy(machines, [part], there)
    complete(machines, [part])

    machines.pass_time(3 * KEEP_MS)

    assert kept(machines) == {part, total}
    assert not any({part, total} <= {*tasks} for tasks in left(machines))


def test_a_store_from_before_what_is_needed_was_known_is_indexed_once(machines: Machines) -> None:
    part, = enqueue(machines)
    totals = [needy(machines, [part]) for _ in range(3)]
    store = machines.stores[leader_of(machines)]
    rows = store.rows("need")
    assert len(rows) == 3
    store.pop_many("need", list(rows))

    make_needs(store, 1, rows=2)
    assert store.rows("need") == rows
    assert needed([Needs(store, prefix_of(0))], [part]) == {part: None}

    store.pop_many("need", list(rows))
    make_needs(store, 1)
    assert store.rows("need") == {} and totals
