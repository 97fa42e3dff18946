"""What ended long ago goes from every replica, and only when all of them know; nothing of it comes back."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.config import Retention
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_IGNORE, ON_FAILURE_WAIT, Body, Header, Retry, split_body
from skuld_py.model.events import MembersChanged, Received
from skuld_py.model.history import DEP_UNKNOWN, decode_history
from skuld_py.model.state import State
from skuld_py.node.retention.replica_side import delete, ebb
from skuld_py.partition.copies.garbage import collect, remains_of
from skuld_py.partition.data.needs import Needs, make_needs, needed
from skuld_py.partition.data.tables import prefix_of, suspect_key
from skuld_py.partition.leadership.suspicion import mark_suspect
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


def enqueue(machines: Machines, count: int = 1, retry: Retry | None = None) -> list[bytes]:
    made = machines.mint.mint(machines.now_ms, count, 0)
    header = Header("q") if retry is None else Header("q", retry=retry)
    batch = m.TaskBatch(header.encode(), b"".join(made), columns.pack([b"x"] * count))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    return made


def complete(machines: Machines, made: list[bytes]) -> m.Message:
    return ask(machines, m.Complete(3, 0, 0, b"".join(made), columns.pack_u64([1 << 32] * len(made))))


def left(machines: Machines) -> list[list[bytes]]:
    """The tasks of each node."""
    return [[key[2:] for key in store.rows("body")] for store in machines.stores.values()]


def test_what_ended_long_ago_goes_everywhere_and_what_has_not_ended_stays(machines: Machines) -> None:
    done, waiting = enqueue(machines, 8), enqueue(machines, 2)
    entry = columns.pack([b"a line"])
    assert isinstance(ask(machines, m.Append(2, 0, done[0], 1 << 32, 0, entry)), m.Acked)
    complete(machines, done)

    machines.pass_time(KEEP_MS - 5_000)
    assert left(machines) == [sorted([*done, *waiting])] * 3

    machines.pass_time(30_000)
    assert left(machines) == [sorted(waiting)] * 3
    assert not any(store.rows("history") or store.rows("log") for store in machines.stores.values())
    for vnode in vnodes(machines).values():
        counts = vnode.replica.filing.tally.row(b"q")
        assert (counts[0], counts[2]) == (2, 0)
        assert vnode.replica.watermark.collected == len(done)
        assert vnode.replica.tree.root == vnodes(machines)[leader_of(machines)].replica.tree.root


def test_without_a_retention_everything_is_kept() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    made = enqueue(machines, 2)
    complete(machines, made)

    machines.pass_time(3 * KEEP_MS)

    assert left(machines) == [made] * 3


def test_a_replica_that_is_away_stops_it_and_its_return_lets_it_go_on(machines: Machines) -> None:
    made = enqueue(machines, 4)
    complete(machines, made)
    away, all_members = follower_of(machines), machines.members
    for name in machines.names:
        machines.give(name, MembersChanged(tuple(member for member in all_members if member.name != away)))

    machines.pass_time(3 * KEEP_MS)
    assert left(machines) == [made] * 3

    for name in machines.names:
        machines.give(name, MembersChanged(all_members))
    machines.pass_time(KEEP_MS)
    assert left(machines) == [[]] * 3


def test_a_replica_that_does_not_answer_stops_it(machines: Machines) -> None:
    made = enqueue(machines, 2)
    complete(machines, made)
    machines.is_lost = lambda message: isinstance(message, m.Ebbed)

    machines.pass_time(3 * KEEP_MS)

    assert left(machines) == [made] * 3
    machines.is_lost = lambda message: isinstance(message, m.Collected)
    machines.pass_time(KEEP_MS)
    assert left(machines) == [made] * 3


def test_a_replica_that_hears_nothing_stops_it(machines: Machines) -> None:
    made = enqueue(machines, 2)
    complete(machines, made)
    machines.is_deaf = follower_of(machines)

    machines.pass_time(3 * KEEP_MS)

    assert left(machines) == [made] * 3


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


def test_what_ended_late_is_kept_from_its_end_on(machines: Machines) -> None:
    made = enqueue(machines, 2)
    machines.pass_time(2 * KEEP_MS)
    complete(machines, made)

    machines.pass_time(KEEP_MS - 5_000)
    assert left(machines) == [made] * 3
    machines.pass_time(30_000)
    assert left(machines) == [[]] * 3


def test_no_replica_is_sealed_before_all_were_compared(machines: Machines) -> None:
    """Who has closed may still lack what others have."""
    made = enqueue(machines, 2)
    complete(machines, made)
    machines.is_lost = lambda message: isinstance(message, m.Probed)

    machines.pass_time(3 * KEEP_MS)

    assert left(machines) == [made] * 3
    assert all(vnode.replica.watermark.closed_ms for vnode in vnodes(machines).values())
    assert not any(vnode.replica.watermark.sealed_ms for vnode in vnodes(machines).values())


def test_a_task_that_one_replica_lacked_is_given_to_it_before_the_seal(machines: Machines) -> None:
    lacking = follower_of(machines)
    machines.is_deaf = lacking
    made = enqueue(machines, 3)
    machines.pass_time(5_000)
    machines.is_deaf = ""
    assert not machines.stores[lacking].rows("body")

    machines.pass_time(2 * KEEP_MS)

    assert left(machines) == [made] * 3
    assert all(vnode.replica.watermark.sealed_ms >= ids.time_of(made[0]) for vnode in vnodes(machines).values())


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
    rows = list(remains_of(leader.replica, made))
    told = [delete(machines.nodes[name].view, vnode, m.Collect(
        1, 0, leader.epoch, leader.replica.watermark.sealed_ms, True, False, b"".join(made),
        columns.pack_u64([row.digest for row in rows]))) for name, vnode in vnodes(machines).items()]

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


def test_an_id_below_the_watermark_is_refused_by_name_and_remedy(machines: Machines) -> None:
    made = collected(machines)
    batch = m.TaskBatch(Header("q").encode(), b"".join(made), columns.pack([b"x"] * 2))
    for message in (m.Enqueue(5, 0, (batch,)),
                    m.Append(5, 0, made[0], 1 << 32, 0, columns.pack([b"late"])),
                    m.Complete(5, 0, 0, made[0], columns.pack_u64([1 << 32]))):
        answer = ask(machines, message)

        assert isinstance(answer, m.Failed)
        assert answer.code == "too_old"
        assert answer.text.startswith("id: ")
        assert "fresh ids" in answer.text
        assert answer.is_definite
    cancelled = ask(machines, m.Cancel(5, 0, 0, made[0]))
    assert isinstance(cancelled, m.Failed) and cancelled.code == "no_such_task"
    assert not any(store.rows(table) for store in machines.stores.values() for table in ("body", "history", "log"))


@pytest.mark.parametrize("wait_ms", [0, 30_000])
def test_who_awaits_what_was_collected_is_refused_at_once_and_what_may_yet_come_is_waited_for(
        machines: Machines, wait_ms: int) -> None:
    made = collected(machines)
    fresh, = machines.mint.mint(machines.now_ms, 1, 0)
    for name in machines.names:
        answer = ask(machines, m.Await(5, made[0] + fresh, wait_ms), name)

        assert isinstance(answer, m.Failed)
        assert answer.code == "no_such_task" and answer.is_definite
        assert ids.to_text(made[0]) in answer.text and ids.to_text(fresh) not in answer.text
    machines.answers.clear()
    machines.ask(leader_of(machines), m.Await(6, fresh, 30_000), b"waiter")
    machines.pass_time(20_000)
    assert not machines.answers_to(b"waiter")


def test_the_end_of_a_task_is_told_as_long_as_one_copy_that_counts_has_it(machines: Machines) -> None:
    made = enqueue(machines)
    complete(machines, made)
    replica = vnodes(machines)[follower_of(machines)].replica
    replica.watermark.seal(ids.time_of(made[0]))
    collect(replica, made)
    assert replica.gone(made)

    answer = ask(machines, m.Await(5, made[0], 30_000))

    assert isinstance(answer, m.Awaited) and answer.ends == bytes([State.COMPLETED])


def test_an_enqueue_that_is_repeated_is_no_new_task_while_the_old_one_stands(machines: Machines) -> None:
    made = enqueue(machines, 2)
    machines.pass_time(2 * KEEP_MS)
    batch = m.TaskBatch(Header("q").encode(), b"".join(made), columns.pack([b"x"] * 2))

    assert isinstance(ask(machines, m.Enqueue(5, 0, (batch,))), m.Acked)


def test_what_ended_below_the_watermark_changes_no_more(machines: Machines) -> None:
    """It may be deleted on one replica already, and what another hears is lost."""
    dead, = enqueue(machines, 1, Retry(max_attempts=1))
    claimed = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, "w"))
    assert isinstance(claimed, m.Claimed)
    token = columns.pack_u64([claimed.batches[0].first_token])
    ask(machines, m.Conclude(3, 3, -1, dead, token))
    machines.is_lost = lambda message: isinstance(message, m.Collect)
    machines.pass_time(2 * KEEP_MS)
    before = [store.rows("history") for store in machines.stores.values()]
    assert all(before)

    late = (m.Complete(5, 0, 0, dead, token), m.Cancel(5, 0, 0, dead),
            m.Append(5, 0, dead, 1 << 32, 0, columns.pack([b"late"])))
    assert [getattr(ask(machines, message), "code", "") for message in late] == ["too_old"] * 3
    revived = ask(machines, m.Revive(6, dead))
    assert isinstance(revived, m.Revived)
    assert revived.outcomes[0] == m.Revival.TOO_OLD
    assert [store.rows("history") for store in machines.stores.values()] == before


def test_to_complete_again_what_is_completed_is_still_no_error(machines: Machines) -> None:
    made = enqueue(machines)
    complete(machines, made)
    machines.is_lost = lambda message: isinstance(message, m.Collect)
    machines.pass_time(2 * KEEP_MS)

    assert isinstance(complete(machines, made), m.Acked)


def test_a_copy_from_an_old_disk_brings_nothing_back(machines: Machines) -> None:
    made = enqueue(machines, 3)
    stale = follower_of(machines)
    machines.pass_time(100)
    old = machines.stores[stale].snapshot()
    complete(machines, made)
    machines.pass_time(2 * KEEP_MS)
    assert left(machines) == [[]] * 3

    machines.stores[stale].restore(old)
    mark_suspect(machines.stores[stale], [0], "turned back")
    machines.stores[stale].commit()
    machines.restart(stale)
    assert left(machines)[machines.names.index(stale)] == made
    machines.pass_time(KEEP_MS)

    assert left(machines) == [[]] * 3
    assert machines.stores[stale].get("meta", suspect_key(0)) is None
    assert ask(machines, m.Claim(9, "q", 5, LEASE_MS, 0, "w")) == m.Claimed(9, 0, ())
    assert vnodes(machines)[stale].replica.watermark.sealed_ms >= ids.time_of(made[0])


def test_a_copy_from_an_old_disk_is_not_read_before_it_has_filled(machines: Machines) -> None:
    made = enqueue(machines, 3)
    stale = follower_of(machines)
    old = machines.stores[stale].snapshot()
    complete(machines, made)
    machines.pass_time(2 * KEEP_MS)
    machines.stores[stale].restore(old)
    mark_suspect(machines.stores[stale], [0], "turned back")
    machines.stores[stale].commit()
    machines.is_lost = lambda message: isinstance(message, m.Probe | m.Probed)
    machines.restart(stale)

    answer = ask(machines, m.Get(8, b"".join(made)), stale)

    assert answer == m.Got(8, ())


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
    digests = columns.pack_u64([row.digest for row in remains_of(node.view.vnodes[0].replica, made)])

    question = m.Collect(1, 0, 99, machines.now_ms, False, False, b"".join(made), digests)
    answer = delete(node.view, node.view.vnodes[0], question)

    assert not answer.is_accepted
    assert left(machines) == [made] * 3


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


def test_a_stranger_is_closed_and_never_sealed() -> None:
    """It lacks everything, for the reason that nothing was given to it."""
    machines = Machines(4, partitions=1, retention=RETENTION)
    machines.pass_time(2_000)
    made = enqueue(machines, 2)
    complete(machines, made)
    stranger = next(name for name in machines.names if name not in machines.documents[0][1].cohort)

    machines.pass_time(2 * KEEP_MS)

    assert left(machines) == [[]] * 4
    watermark = vnodes(machines)[stranger].replica.watermark
    assert vnodes(machines)[stranger].role is Role.STRANGER
    assert watermark.closed_ms and not watermark.sealed_ms


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


def test_watermarks_survive_a_restart(machines: Machines) -> None:
    collected(machines)
    name = follower_of(machines)
    before = vnodes(machines)[name].replica.watermark

    machines.restart(name)

    after = vnodes(machines)[name].replica.watermark
    assert (after.closed_ms, after.sealed_ms, after.life, after.collected) == (
        before.closed_ms, before.sealed_ms, before.life, 2)


def test_the_history_that_all_agree_on_is_the_one_that_goes(machines: Machines) -> None:
    """An end that one replica has not heard of travels first."""
    lacking = follower_of(machines)
    made = enqueue(machines, 2)
    machines.is_deaf = lacking
    complete(machines, made)
    machines.is_deaf = ""
    record = machines.stores[lacking].get("history", b"\0\0" + made[0])
    assert not decode_history(record).is_completed

    machines.pass_time(2 * KEEP_MS)

    assert left(machines) == [[]] * 3


# -- what is needed ------------------------------------------------------------------------------------


def needy(machines: Machines, deps: list[bytes], route: int = 0, policy: int = ON_FAILURE_WAIT) -> bytes:
    """A task that waits for others."""
    task_id, = machines.mint.mint(machines.now_ms, 1, route)
    header = Header("then", policy=policy, dep_wait_ms=24 * 3_600_000)
    raw, rest = split_body(Body(header, deps=tuple(sorted(deps))).encode())
    assert isinstance(ask(machines, m.Enqueue(1, 0, (m.TaskBatch(raw, task_id, columns.pack([rest])),))), m.Acked)
    return task_id


def kept(machines: Machines) -> set[bytes]:
    """What all nodes keep, that keep any of it."""
    return {task_id for each in left(machines) for task_id in each}


@pytest.mark.parametrize("route", [0, 1], ids=["here", "in another partition"])
def test_what_an_open_task_needs_is_kept_and_goes_after_it(route: int) -> None:
    machines = Machines(4, partitions=2, retention=RETENTION)
    machines.pass_time(2_000)
    parts, behind = enqueue(machines, 5), enqueue(machines, 1)
    part = needy(machines, behind)
    total = needy(machines, [*parts, part], route)
    alone = enqueue(machines, 2)
    complete(machines, [*parts[1:], *behind, *alone])
    complete(machines, [part])

    machines.pass_time(3 * KEEP_MS)
    assert kept(machines) == {*parts, *behind, part, total}

    complete(machines, parts[:1])
    machines.pass_time(500)
    complete(machines, [total])
    machines.pass_time(KEEP_MS - 10_000)
    assert kept(machines) == {*parts, *behind, part, total}, "who has just ended is still read"
    machines.pass_time(KEEP_MS)
    assert kept(machines) == set()
    assert not any(store.rows("need") for store in machines.stores.values())


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


@pytest.mark.parametrize(("policy", "reason"), [(ON_FAILURE_WAIT, DEP_UNKNOWN), (ON_FAILURE_IGNORE, 0)])
@pytest.mark.parametrize("is_known", [True, False], ids=["collected", "never there"])
def test_who_needs_what_is_gone_is_told_at_once(machines: Machines, policy: int, reason: int,
                                                is_known: bool) -> None:
    part, = enqueue(machines) if is_known else machines.mint.mint(machines.now_ms, 1, 0)
    complete(machines, enqueue(machines))
    if is_known:
        complete(machines, [part])
    machines.pass_time(3 * KEEP_MS)
    assert kept(machines) == set()

    total = needy(machines, [part], policy=policy)
    machines.pass_time(1_000)

    replica = vnodes(machines)[leader_of(machines)].replica
    history = decode_history(replica.histories([total]).get(replica.prefix + total))
    assert history.death(25, machines.now_ms) == reason
    assert bool(replica.filing.heads("then", None, 10)) == (not reason)
