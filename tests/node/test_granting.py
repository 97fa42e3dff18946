"""What a leader does with the answers of its followers, and when it must stop leading."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.config import Limits
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.events import Received, Session, SessionChanged
from skuld_py.model.history import ClaimRecord, History, epoch_of
from skuld_py.node.operations.operation import Origin
from skuld_py.partition.leadership.promise import Promise
from skuld_py.partition.vnode import Vnode


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def leader_of(machines: Machines) -> tuple[str, Vnode]:
    name = machines.documents[0][1].leader
    return name, machines.nodes[name].view.vnodes[0]


def followers_of(machines: Machines) -> list[str]:
    return [name for name in machines.names if name != leader_of(machines)[0]]


def enqueue(machines: Machines, count: int = 1, queue: str = "q", priority: int = 0) -> bytes:
    batch = machines.batch(queue, count)
    if priority:
        batch = attrs.evolve(batch, header=Header(queue, priority).encode())
    machines.ask(machines.names[0], m.Enqueue(1, 0, (batch,)), b"producer")
    machines.pass_time(100)
    return batch.ids


def claim(machines: Machines, client: bytes, count: int = 1, lease_ms: int = 20_000, wait_ms: int = 0) -> None:
    machines.ask(leader_of(machines)[0], m.Claim(2, "q", count, lease_ms, wait_ms, "w"), client)


def told(machines: Machines, client: bytes) -> m.ClaimBatch | None:
    """What a client was given; nothing, too, where no leader is left to ask, or one did not say."""
    answer = machines.answers_to(client)[-1]
    if isinstance(answer, m.Failed) and answer.code in ("no_leader", "uncertain"):
        return None
    assert isinstance(answer, m.Claimed)
    return answer.batches[0] if answer.batches else None


def renew(machines: Machines, batch: m.ClaimBatch, lease_ms: int, client: bytes) -> int:
    """The new end."""
    machines.ask(machines.names[0], m.Renew(3, lease_ms, batch.ids, columns.pack_u64([batch.first_token])), client)
    machines.pass_time(100)
    answer = machines.answers_to(client)[-1]
    assert isinstance(answer, m.Renewed)
    return columns.unpack_u64(answer.ends)[0]


def depose(machines: Machines, voter: str) -> None:
    """Somebody asks a node for its vote in a much later epoch."""
    candidate = next(name for name in followers_of(machines) if name != voter)
    request = m.RequestVote(0, 90, tuple(machines.names), False)
    machines.give(voter, Received(candidate, request))


def test_a_leader_refused_for_a_newer_promise_resigns(machines: Machines) -> None:
    _, vnode = leader_of(machines)
    enqueue(machines)
    depose(machines, followers_of(machines)[0])
    machines.flying.clear()

    claim(machines, b"client")
    machines.pass_time(20)

    assert not vnode.is_leading


def test_a_leader_deposed_meanwhile_grants_nothing(machines: Machines) -> None:
    leader, _ = leader_of(machines)
    enqueue(machines)
    claim(machines, b"client")
    while not any(isinstance(event, Received) and isinstance(event.message, m.Granted)
                  for _, event in machines.flying):
        machines.deliver(1)
    depose(machines, leader)

    machines.pass_time(3_000)

    assert told(machines, b"client") is None


def test_a_leader_that_hears_no_majority_resigns(machines: Machines) -> None:
    leader, vnode = leader_of(machines)
    machines.is_deaf = leader

    machines.pass_time(machines.nodes[leader].view.timing.silence_ms + 500)

    assert not vnode.is_leading


def test_a_claim_that_fell_short_is_free_at_once(machines: Machines) -> None:
    enqueue(machines)
    machines.is_lost = lambda message: isinstance(message, m.Granted)
    claim(machines, b"in vain")
    machines.pass_time(8_000)
    assert told(machines, b"in vain") is None

    machines.is_lost = lambda message: False
    machines.pass_time(500)
    claim(machines, b"client")
    machines.pass_time(500)

    assert told(machines, b"client") is not None


def test_who_gets_nothing_but_what_a_majority_may_have_recorded_is_told_so(machines: Machines) -> None:
    """All copies had the claim; its leader heard of none, and its word that nothing came of it was lost."""
    task_id = enqueue(machines)
    machines.is_lost = lambda message: isinstance(message, m.Granted | m.Amend)
    claim(machines, b"client")
    machines.pass_time(3_000)

    for name in followers_of(machines):
        replica = machines.nodes[name].view.vnodes[0].replica
        assert History.decode(replica.histories([task_id])[replica.prefix + task_id]).horizon_ms > machines.now_ms
    answer = machines.answers_to(b"client")[-1]
    assert isinstance(answer, m.Failed) and not answer.is_definite


def test_what_no_majority_can_have_recorded_is_nothing(machines: Machines) -> None:
    enqueue(machines)
    for name in followers_of(machines):
        machines.nodes[name].view.vnodes[0].promise = Promise(leader_of(machines)[1].epoch, "somebody else")
    claim(machines, b"client")
    machines.pass_time(100)

    assert machines.answers_to(b"client") == [m.Claimed(2, 0, ())]


def test_an_answer_that_comes_too_late_is_given_back(machines: Machines) -> None:
    enqueue(machines)
    other = followers_of(machines)[0]
    machines.ask(other, m.Claim(2, "q", 1, 20_000, 0, "w"), b"impatient")
    late: list[tuple[str, Received]] = []
    while not machines.answers_to(b"impatient"):
        for name, event in list(machines.flying):
            if name == other and isinstance(event, Received) and isinstance(event.message, m.Claimed):
                machines.flying.remove((name, event))
                late.append((name, event))
        machines.deliver(1)
        if not machines.flying:
            machines.pass_time(1)
    assert told(machines, b"impatient") is None

    for name, event in late:
        machines.give(name, event)
    machines.pass_time(500)
    claim(machines, b"client")
    machines.pass_time(500)

    assert told(machines, b"client") is not None


def test_claims_say_of_which_tasks_they_are_the_first(machines: Machines) -> None:
    task_ids = [enqueue(machines) for _ in range(5)]
    claim(machines, b"before", 2)
    machines.pass_time(100)
    before = told(machines, b"before")
    assert before is not None and before.is_first
    renew(machines, attrs.evolve(before, ids=task_ids[1], first_token=before.first_token + 1), 0, b"release")
    renew(machines, attrs.evolve(before, ids=task_ids[0]), 0, b"release")

    claim(machines, b"after", 5)
    machines.pass_time(100)

    answer = machines.answers_to(b"after")[-1]
    assert isinstance(answer, m.Claimed)
    assert [(batch.is_first, ids.split(batch.ids)) for batch in answer.batches] == [
        (False, task_ids[:2]), (True, task_ids[2:])]
    tokens = [batch.first_token + at for batch in answer.batches for at in range(len(ids.split(batch.ids)))]
    assert tokens == [*range(tokens[0], tokens[0] + 5)]


def test_a_released_task_waits_at_once(machines: Machines) -> None:
    enqueue(machines)
    claim(machines, b"first")
    machines.pass_time(100)
    first = told(machines, b"first")
    assert first is not None

    renew(machines, first, 0, b"release")
    claim(machines, b"second")
    machines.pass_time(100)

    second = told(machines, b"second")
    assert second is not None and second.first_token > first.first_token


def test_a_shorter_renewal_does_not_move_the_end_back(machines: Machines) -> None:
    enqueue(machines)
    claim(machines, b"client", lease_ms=10_000)
    machines.pass_time(100)
    batch = told(machines, b"client")
    assert batch is not None

    assert renew(machines, batch, 1_000, b"shorter") == batch.end_ms
    assert renew(machines, batch, 20_000, b"longer") > batch.end_ms


def test_a_renewal_that_no_majority_recorded_is_not_told(machines: Machines) -> None:
    enqueue(machines)
    claim(machines, b"client", lease_ms=10_000)
    machines.pass_time(100)
    batch = told(machines, b"client")
    assert batch is not None
    machines.is_lost = lambda message: isinstance(message, m.Amended)

    machines.ask(machines.names[0], m.Renew(3, 20_000, batch.ids, columns.pack_u64([batch.first_token])), b"renew")
    machines.pass_time(9_000)

    answer = machines.answers_to(b"renew")[-1]
    assert isinstance(answer, m.Renewed | m.Failed)
    if isinstance(answer, m.Renewed):
        assert (columns.unpack_u64(answer.ends), columns.unpack_u64(answer.unknown)) == ((0,), (0,))
    else:
        assert not answer.is_definite


def test_a_change_of_several_pages_stands_when_a_majority_has_recorded_the_last(machines: Machines) -> None:
    enqueue(machines, 12)
    claim(machines, b"client", count=12)
    machines.pass_time(100)
    batch = told(machines, b"client")
    assert batch is not None
    leader = leader_of(machines)[1]
    leader.limits = attrs.evolve(leader.limits, page_bytes=250)
    tokens = columns.pack_u64([batch.first_token + index for index in range(12)])
    pages: list[bytes] = []
    machines.is_lost = lambda message: isinstance(message, m.Amend) and bool(pages.append(message.ids))
    machines.ask(machines.names[0], m.Renew(3, 30_000, batch.ids, tokens), b"renew")
    machines.pass_time(100)

    answer = machines.answers_to(b"renew")[-1]
    assert isinstance(answer, m.Renewed) and all(columns.unpack_u64(answer.ends))
    assert len(dict.fromkeys(pages)) > 2 and b"".join(dict.fromkeys(pages)) == batch.ids
    for name in machines.names:
        known = machines.nodes[name].view.vnodes[0].replica.histories(ids.split(batch.ids)).values()
        assert {int.from_bytes(record[16:24], "big") for record in known} == {*columns.unpack_u64(answer.ends)}

    machines.is_lost = lambda message: isinstance(message, m.Amend) and batch.ids[-20:] in message.ids
    machines.ask(machines.names[0], m.Renew(4, 40_000, batch.ids, tokens), b"again")
    machines.pass_time(6_000)
    answer = machines.answers_to(b"again")[-1]
    assert (isinstance(answer, m.Failed) and not answer.is_definite) or (
        isinstance(answer, m.Renewed) and not any(columns.unpack_u64(answer.ends)))


def test_vetoed_tasks_are_read_without_logs_and_as_many_as_one_answer_holds(machines: Machines) -> None:
    task_ids = ids.split(enqueue(machines, 40))
    _, vnode = leader_of(machines)
    for name in followers_of(machines):
        other = machines.nodes[name].view.vnodes[0].replica
        other.finish(machines.now_ms, task_ids, [7] * 40, machines.now_ms)
        other.append(task_ids[0], 1 << 32, 0, [b"x" * 1_000])
    asked: list[m.Message] = []
    machines.is_lost = lambda message: isinstance(message, m.Get | m.Got) and bool(asked.append(message))

    claim(machines, b"client", count=40)
    machines.pass_time(100)

    questions = [message for message in asked if isinstance(message, m.Get)]
    assert questions and max(len(message.ids) for message in questions) == 20 * 16
    assert not any(row.entries for message in asked if isinstance(message, m.Got) for row in message.tasks)
    assert vnode.replica.filing.heads("q", None, 99) == [], "all of them are known to be done"


def test_a_leader_without_tokens_takes_a_new_epoch_and_grants_on(machines: Machines) -> None:
    task_ids = enqueue(machines, 4)
    leader, vnode = leader_of(machines)
    vnode.limits = attrs.evolve(vnode.limits, tokens=2)
    claim(machines, b"first", count=2)
    machines.pass_time(20)
    first = told(machines, b"first")
    assert first is not None

    claim(machines, b"second", count=2, wait_ms=5_000)
    machines.pass_time(5_000)

    second, document = told(machines, b"second"), machines.documents[0][1]
    assert second is not None and first.ids + second.ids == task_ids
    assert (epoch_of(first.first_token), epoch_of(second.first_token)) == (1, 2)
    assert (document.leader, document.cause) == (leader, "the epoch's tokens were spent")
    held = m.ClaimBatch(first.ids[:20], first.first_token, first.end_ms, columns.pack([b""]))
    assert renew(machines, held, 30_000, b"renew") > first.end_ms


def test_leaderships_that_are_spent_one_after_another_follow_at_once(machines: Machines) -> None:
    task_ids = enqueue(machines, 6)
    _, vnode = leader_of(machines)
    vnode.limits = attrs.evolve(vnode.limits, tokens=1)
    for turn in range(6):
        claim(machines, b"%d" % turn, wait_ms=4_000)
    machines.pass_time(4_000)

    batches = [batch for turn in range(6) if (batch := told(machines, b"%d" % turn)) is not None]
    assert b"".join(batch.ids for batch in batches) == task_ids
    assert [epoch_of(batch.first_token) for batch in batches] == [1, 2, 3, 4, 5, 6]


def test_the_best_task_over_all_partitions_comes_first() -> None:
    machines = Machines(1, partitions=4, replicas=1)
    machines.pass_time(2_000)
    made = [enqueue(machines, 3) for _ in range(6)]
    urgent = enqueue(machines, 1, priority=7)
    waiting = sorted(task_id for batch in made for task_id in ids.split(batch))
    assert len({ids.partition_of(task_id, 4) for task_id in waiting}) > 1

    machines.ask(machines.names[0], m.Claim(2, "q", 5, 20_000, 0, "w"), b"client")
    machines.pass_time(100)

    answer = machines.answers_to(b"client")[-1]
    assert isinstance(answer, m.Claimed)
    taken = [task_id for batch in answer.batches for task_id in ids.split(batch.ids)]
    assert sorted(taken) == sorted([urgent, *waiting[:4]])


def test_who_is_outside_the_agreed_time_grants_nothing() -> None:
    """Of three clocks the outer two are farther apart than the bound; nobody can say which of them is wrong."""
    machines = Machines(skew_ms=200)
    machines.pass_time(3_000)
    first, middle, last = machines.names
    machines.ahead_ms.update({middle: 150, last: 300})

    machines.pass_time(9_000)

    assert [machines.nodes[name].timekeeper.verdict.value for name in machines.names] == [
        "outside", "agreed", "outside"]
    assert not machines.nodes[first].view.led() and not machines.nodes[last].view.led()
    assert machines.nodes[middle].view.led()


def test_nobody_is_asked_to_grant_nothing(machines: Machines) -> None:
    """A lease that a clock let lapse that ran ahead: the task waits, but is held still."""
    enqueue(machines)
    claim(machines, b"holder")
    machines.pass_time(100)
    replica = leader_of(machines)[1].replica
    replica.filing.sweep(machines.now_ms + 60_000, 10)
    assert replica.filing.heads("q", None, 10)
    sent: list[m.Message] = []
    machines.is_lost = lambda message: bool(sent.append(message))

    claim(machines, b"another")
    machines.pass_time(100)

    assert told(machines, b"another") is None
    assert not any(isinstance(message, m.Grant) for message in sent)
    assert not replica.filing.heads("q", None, 10)


def test_one_answer_carries_what_fits_and_one_task_at_least(machines: Machines) -> None:
    node = machines.nodes[leader_of(machines)[0]]
    size = len(encode_body(Header("q").encode(), b"x"))
    enqueue(machines, 6)
    for room, count in ((1, 1), (3 * size - 1, 2), (3 * size, 3)):
        node.view.limits = Limits(batch_bytes=room)
        claim(machines, b"worker-%d" % room, 6)
        machines.pass_time(100)
        granted = told(machines, b"worker-%d" % room)
        assert granted is not None and len(granted.ids) == count * ids.ID_BYTES


def test_what_fits_is_counted_over_all_partitions() -> None:
    machines = Machines(count=1, partitions=2, replicas=1)
    machines.pass_time(4_000)
    node = machines.nodes[machines.names[0]]
    size = len(encode_body(Header("q").encode(), b"x"))
    for route in (0, 1):
        task_ids = machines.mint.mint(machines.now_ms, 3, route)
        batch = m.TaskBatch(Header("q").encode(), b"".join(task_ids), columns.pack([b"x"] * 3))
        machines.ask(node.view.me.name, m.Enqueue(1, 0, (batch,)))
    machines.pass_time(100)
    node.view.limits = Limits(batch_bytes=4 * size)
    for expected in ([3, 1], [2]):
        machines.ask(node.view.me.name, m.Claim(2, "q", 6, 20_000, 0, "w"), b"worker")
        machines.pass_time(100)
        answer = machines.answers_to(b"worker")[-1]
        assert isinstance(answer, m.Claimed)
        assert [len(granted.ids) // ids.ID_BYTES for granted in answer.batches] == expected


def bring_near(machines: Machines, left_ms: int, partition: int = 0) -> Vnode:
    """The horizon of a partition's document, and who leads it."""
    node = machines.nodes[machines.documents[partition][1].leader]
    vnode = node.view.vnodes[partition]
    version, document = machines.documents[partition]
    near = attrs.evolve(document, horizon_ms=machines.now_ms + left_ms)
    machines.documents[partition] = version, near
    vnode.election.document = near
    node.view.timing = vnode.timing = vnode.election.timing = attrs.evolve(vnode.timing, horizon_ms=2 * left_ms)
    return vnode


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_a_renewal_beyond_the_horizon_waits_until_it_has_moved_and_is_a_whole_one(
        machines: Machines, is_in_doubt: bool) -> None:
    enqueue(machines)
    claim(machines, b"client", lease_ms=10_000)
    machines.pass_time(100)
    batch, vnode = told(machines, b"client"), bring_near(machines, 15_000)
    assert batch is not None
    machines.is_in_doubt = is_in_doubt
    began_ms = machines.now_ms

    assert renew(machines, batch, 60_000, b"longer") >= began_ms + 60_000
    assert vnode.election.document.horizon_ms >= began_ms + 60_000


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_a_claim_beyond_the_horizon_waits_until_it_has_moved(machines: Machines, is_in_doubt: bool) -> None:
    enqueue(machines)
    vnode = bring_near(machines, 15_000)
    machines.is_in_doubt = is_in_doubt
    began_ms = machines.now_ms

    claim(machines, b"client", lease_ms=60_000)
    machines.pass_time(100)

    batch = told(machines, b"client")
    assert batch is not None and began_ms + 60_000 <= batch.end_ms <= vnode.election.document.horizon_ms


def test_while_zookeeper_is_away_leases_are_renewed_up_to_the_horizon_and_not_in_part(machines: Machines) -> None:
    enqueue(machines)
    claim(machines, b"client", lease_ms=10_000)
    machines.pass_time(100)
    batch, vnode = told(machines, b"client"), bring_near(machines, 40_000)
    assert batch is not None
    machines.give(vnode.me.name, SessionChanged(Session.SUSPENDED))

    end_ms = renew(machines, batch, 30_000, b"near")
    assert end_ms >= machines.now_ms + 29_000
    machines.ask(machines.names[0], m.Renew(3, 60_000, batch.ids, columns.pack_u64([batch.first_token])), b"far")
    machines.pass_time(vnode.timing.grant_ms + 100)
    answer = machines.answers_to(b"far")[0]
    assert isinstance(answer, m.Failed) and not answer.is_definite and "horizon" in answer.text
    assert [row.end.value for row in live_claims(vnode, batch)] == [end_ms]

    machines.give(vnode.me.name, SessionChanged(Session.CONNECTED))
    machines.pass_time(1_000)
    assert renew(machines, batch, 60_000, b"again") >= machines.now_ms + 59_000


def live_claims(vnode: Vnode, batch: m.ClaimBatch) -> list[ClaimRecord]:
    record = vnode.replica.histories([batch.ids])[vnode.replica.prefix + batch.ids]
    return list(History.decode(record).claims.entries.values())


def test_a_horizon_that_stays_near_costs_no_other_partition_its_renewals() -> None:
    machines = Machines(partitions=2)
    machines.pass_time(4_000)
    rows: list[tuple[bytes, int]] = []
    for route in (0, 1):
        batch = attrs.evolve(machines.batch("q", 1), ids=b"".join(machines.mint.mint(machines.now_ms, 1, route)))
        machines.ask(machines.names[0], m.Enqueue(1, 0, (batch,)))
        machines.pass_time(100)
        machines.ask(machines.names[0], m.Claim(2, "q", 1, 10_000, 0, "w"), b"worker %d" % route)
        machines.pass_time(100)
        granted = told(machines, b"worker %d" % route)
        assert granted is not None
        rows.append((granted.ids, granted.first_token))
    vnode = bring_near(machines, 15_000, 1)
    machines.give(vnode.me.name, SessionChanged(Session.SUSPENDED))
    machines.ask(machines.names[0], m.Renew(3, 60_000, b"".join(row[0] for row in rows),
                                            columns.pack_u64([row[1] for row in rows])), b"both")
    machines.pass_time(1_000)

    answer = machines.answers_to(b"both")[0]
    assert isinstance(answer, m.Renewed)
    ends = columns.unpack_u64(answer.ends)
    assert ends[0] >= machines.now_ms + 59_000 - 1_000 and ends[1] == 0
    assert columns.unpack_u64(answer.unknown) == (1,)


def test_a_renewal_beyond_the_horizon_waits_once_however_often_it_is_asked_and_is_forgotten(
        machines: Machines) -> None:
    """While ZooKeeper was away, each that was asked again stayed in memory for as long."""
    enqueue(machines)
    claim(machines, b"client", lease_ms=10_000)
    machines.pass_time(100)
    batch = told(machines, b"client")
    assert batch is not None
    leader, _ = leader_of(machines)
    bring_near(machines, 15_000)
    for name in machines.names:
        machines.give(name, SessionChanged(Session.SUSPENDED))
    node, origin = machines.nodes[leader], Origin(77, peer=followers_of(machines)[0])
    open_before = len(node.operations.open)
    for _ in range(5):
        request = m.Renew(77, 60_000, batch.ids, columns.pack_u64([batch.first_token]))
        machines.give(leader, Received(origin.peer, request))
    assert node._horizons.awaits(origin)
    assert len(node.operations.open) == open_before + 1

    machines.pass_time(2_000)

    assert not node._horizons.awaits(origin)
    assert len(node.operations.open) <= open_before
