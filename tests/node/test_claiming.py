"""Claims that wait, answers that come late or twice, leases that end."""

from __future__ import annotations

import random

import attrs
import pytest

from node.machines import Machines
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.events import MembersChanged, Received, Withheld
from skuld_py.node.claims.claim import LEAVER_MS, Delegation
from skuld_py.partition.leadership.promise import Promise


@pytest.fixture
def machines() -> Machines:
    made = Machines()
    made.pass_time(2_000)
    assert len(made.documents) == 8, "every partition has a leader"
    return made


def test_the_leaders_are_spread_over_the_nodes(machines: Machines) -> None:
    leaders = [document.leader for _, document in machines.documents.values()]

    assert sorted(leaders.count(name) for name in machines.names) == [2, 3, 3]


def test_a_claim_is_woken_whatever_arrives_between_its_questions(machines: Machines) -> None:
    """Work that came to the coordinator's own partitions while it asked a peer used to be overlooked."""
    rolls = random.Random(5)
    for turn in range(200):
        client = b"%d" % turn
        batch = machines.batch("poll", 1)
        machines.ask(rolls.choice(machines.names), m.Enqueue(1, 0, (batch,)))
        machines.deliver(rolls.randrange(6))
        machines.ask(rolls.choice(machines.names), m.Claim(2, "poll", 1, 5_000, 3_000, "me"), client)
        machines.pass_time(1_000)

        answers = machines.answers_to(client)
        assert len(answers) == 1 and isinstance(answers[0], m.Claimed) and answers[0].batches, turn
        claim = answers[0].batches[0]
        machines.ask(machines.names[0], m.Complete(3, 0, 0, claim.ids, columns.pack_u64([claim.first_token])))
        machines.pass_time(rolls.randrange(1, 30))


def test_a_leader_whose_epoch_too_many_promised_otherwise_takes_a_newer_one(machines: Machines) -> None:
    """It kept its leadership, and nobody could claim, for as long as those voters were needed."""
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 5),)))
    machines.pass_time(100)
    leader, vnode = next((name, vnode) for name in machines.names for vnode in machines.nodes[name].view.vnodes
                         if vnode.is_leading and vnode.replica.filing.heads("q", None, 1))
    epoch = vnode.epoch
    for name in machines.names:
        if name != leader:
            machines.nodes[name].view.vnodes[vnode.partition].promise = Promise(epoch, "somebody else")
    machines.ask(leader, m.Claim(2, "q", 5, 60_000, 0, "me"), b"early")
    machines.pass_time(3_000)
    machines.ask(leader, m.Claim(3, "q", 5, 60_000, 0, "me"), b"late")
    machines.pass_time(100)

    early, late = machines.answers_to(b"early")[0], machines.answers_to(b"late")[0]
    assert isinstance(early, m.Claimed) and not early.batches
    assert machines.documents[vnode.partition][1].epoch > epoch
    assert isinstance(late, m.Claimed) and len(late.batches[0].ids) == 5 * ids.ID_BYTES


def test_a_claim_goes_on_without_a_peer_that_is_silent_until_the_claim_s_own_deadline(machines: Machines) -> None:
    """Where a grant may take longer than a request, the claim used to wait for the peer for ever."""
    hasty = attrs.evolve(machines.nodes[machines.names[0]].view.timing, request_ms=500)
    for node in machines.nodes.values():
        node.view.timing = hasty
    machines.is_deaf = machines.names[1]
    machines.ask(machines.names[0], m.Claim(2, "q", 5, 60_000, 200, "me"))
    machines.pass_time(6_000)

    assert refused(machines, b"client") == [("uncertain", False)]


def refused(machines: Machines, client: bytes) -> list[tuple[str, bool]]:
    """Codes of what a client was refused, and whether for certain; of claims as well if there were any."""
    return [(answer.code, answer.is_definite) if isinstance(answer, m.Failed) else (type(answer).__name__, True)
            for answer in machines.answers_to(client)]


def lead_alone(machines: Machines) -> tuple[str, str]:
    """The leader of the only partition, in which a task waits, and another node."""
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    machines.ask(leader, m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(50)
    return leader, next(name for name in machines.names if name != leader)


def test_a_claim_is_not_refused_while_a_leader_that_was_asked_may_have_granted_it() -> None:
    """Its answer was lost; then it died, and no other leader was there: the client claimed a second task."""
    machines = Machines(partitions=1)
    leader, other = lead_alone(machines)
    machines.is_lost = lambda message: isinstance(message, m.Claimed)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 0, "w"), b"w")
    machines.pass_time(20)
    machines.is_deaf, machines.reads_failing = leader, 10_000
    for name in machines.names:
        if name != leader:
            machines.give(name, MembersChanged(tuple(each for each in machines.members if each.name != leader)))
    machines.pass_time(3_000)

    assert not machines.nodes[other].view.has_leaders
    assert refused(machines, b"w") == [("uncertain", False)]


def test_a_claim_for_which_there_is_no_place_is_not_refused_for_certain_while_another_may_stand() -> None:
    machines = Machines(partitions=1)
    _, other = lead_alone(machines)
    machines.nodes[other].view.limits = attrs.evolve(machines.nodes[other].view.limits, parked_claims=0)
    machines.is_lost = lambda message: isinstance(message, m.Claimed)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 5_000, "w"), b"w")
    machines.pass_time(3_000)
    assert refused(machines, b"w") == [("uncertain", False)]

    machines.is_lost = lambda message: False
    machines.ask(other, m.Claim(3, "q", 1, 60_000, 5_000, "w"), b"again")
    machines.pass_time(3_000)
    assert refused(machines, b"again") == [("busy", True)]


def test_who_answers_late_that_there_is_nothing_leaves_no_doubt() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    other = next(name for name in machines.names if name != leader)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 5_000, "w"), b"w")
    while not any(isinstance(event, Received) and isinstance(event.message, m.Claimed)
                  for _, event in machines.flying):
        machines.deliver(1)
    late = list(machines.flying)
    machines.flying.clear()
    machines.pass_time(3_000)
    machines.flying.extend(late)
    machines.pass_time(4_000)

    assert machines.answers_to(b"w") == [m.Claimed(2, 0, ())]


def test_a_leader_that_cannot_answer_for_its_size_leaves_a_claim_in_doubt_and_ends_no_node() -> None:
    machines = Machines(partitions=1)
    leader, other = lead_alone(machines)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 0, "w"), b"w")
    asked = next(event.message for _, event in machines.flying if isinstance(event, Received)
                 and isinstance(event.message, m.Delegate))
    machines.flying.clear()
    machines.give(other, Received(leader, m.Failed(asked.request, "too_large", "too much", True)))

    assert refused(machines, b"w") == [("uncertain", False)]


def test_a_claim_goes_on_soon_when_the_peer_it_asks_is_gone(machines: Machines) -> None:
    asker, deaf = machines.names[:2]
    machines.is_deaf = deaf
    machines.ask(asker, m.Claim(2, "q", 5, 60_000, 0, "me"))
    machines.pass_time(100)
    assert machines.answers_to(b"client") == []

    machines.give(asker, MembersChanged(tuple(member for member in machines.members if member.name != deaf)))
    machines.pass_time(LEAVER_MS + 100)

    assert refused(machines, b"client") == [("uncertain", False)]


def test_what_a_peer_says_that_has_just_left_counts() -> None:
    """One that leaves cleanly answers what it was asked before; each such claim used to be in doubt."""
    machines = Machines(partitions=1)
    leader, other = lead_alone(machines)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 0, "w"), b"w")
    machines.give(other, MembersChanged(tuple(member for member in machines.members if member.name != leader)))
    machines.pass_time(100)

    assert [len(answer.batches) for answer in machines.answers_to(b"w") if isinstance(answer, m.Claimed)] == [1]


def test_claims_that_no_client_was_given_are_released() -> None:
    """Their client's key counts no more. Else a task would wait for the whole lease, which may be a day."""
    machines = Machines(partitions=1)
    leader, other = lead_alone(machines)
    machines.ask(other, m.Claim(2, "q", 1, 60_000, 0, "w"), b"w")
    machines.pass_time(100)
    (granted,) = machines.answers_to(b"w")
    assert isinstance(granted, m.Claimed) and granted.batches

    machines.give(other, Withheld(granted))
    machines.pass_time(100)
    machines.ask(leader, m.Claim(3, "q", 1, 60_000, 0, "v"), b"v")
    machines.pass_time(100)

    assert [len(answer.batches) for answer in machines.answers_to(b"v") if isinstance(answer, m.Claimed)] == [1]


def test_a_claim_answered_twice_is_not_given_back(machines: Machines) -> None:
    """The second copy of a peer's answer used to release leases that a client was holding."""
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 5),)))
    machines.pass_time(100)
    led = next(name for name, node in machines.nodes.items() if any(
        vnode.is_leading and vnode.replica.filing.heads("q", None, 1) for vnode in node.view.vnodes))
    other = next(name for name in machines.names if name != led)
    machines.ask(other, m.Claim(2, "q", 5, 60_000, 0, "me"))
    copies = []
    for _ in range(200):
        if machines.flying:
            name, event = machines.flying[0]
            if name == other and isinstance(event, Received) and isinstance(event.message, m.Claimed):
                copies.append((name, event))
            machines.deliver(1)
    assert copies
    for name, event in copies:
        machines.give(name, event)
    machines.pass_time(1_000)

    assert [type(message) for message in machines.answers_to(b"client")] == [m.Acked, m.Claimed]
    machines.ask(machines.names[0], m.Count(3, "q"), b"counter")
    machines.pass_time(100)
    counted = machines.answers_to(b"counter")[0]
    assert isinstance(counted, m.Counted) and counted.rows[0].claimed == 5


def test_a_lapsed_claim_is_granted_again_after_the_skew_bound_and_not_before(machines: Machines) -> None:
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(100)
    machines.ask(machines.names[0], m.Claim(2, "q", 1, 1_000, 0, "first"))
    machines.pass_time(50)
    first = machines.answers_to(b"client")[-1]
    assert isinstance(first, m.Claimed)

    machines.ask(machines.names[1], m.Claim(3, "q", 1, 1_000, 5_000, "second"), b"second")
    while not machines.answers_to(b"second"):
        machines.pass_time(10)
    second = machines.answers_to(b"second")[0]

    assert isinstance(second, m.Claimed)
    assert 0 <= machines.now_ms - (first.batches[0].end_ms + 200) <= 400
    assert second.batches[0].first_token > first.batches[0].first_token
    assert second.waited_ms > 1_000, "the holder's deadline counts from the grant, not from the question"


def test_a_claim_whose_partition_has_no_majority_is_not_granted(machines: Machines) -> None:
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(100)
    led = next(name for name, node in machines.nodes.items() if any(
        vnode.is_leading and vnode.replica.filing.heads("q", None, 1) for vnode in node.view.vnodes))
    machines.ask(led, m.Claim(2, "q", 1, 60_000, 0, "me"), b"alone")
    end_ms = machines.now_ms + 3_000
    while machines.now_ms < end_ms:
        machines.flying = type(machines.flying)(
            (name, event) for name, event in machines.flying
            if name == led and not (isinstance(event, Received) and isinstance(event.message, m.Granted)))
        machines.pass_time(1)

    answers = machines.answers_to(b"alone")
    assert all(isinstance(answer, m.Claimed) and not answer.batches for answer in answers)


def test_ids_of_a_batch_are_checked_for_their_partition(machines: Machines) -> None:
    stray = machines.mint.mint(machines.now_ms, 1, 1) + machines.mint.mint(machines.now_ms, 1, 2)
    batch = m.TaskBatch(machines.batch("q", 1).header, b"".join(stray), columns.pack([b"", b""]))
    node = machines.nodes[machines.names[0]]

    machines.give(machines.names[0], Received(machines.names[1], m.Replicate(9, (batch,))))

    assert node.malformed_count == 1
    for task_id in stray:
        replica = node.view.vnodes[ids.partition_of(task_id, 8)].replica
        assert replica.bodies([task_id]) == [None]


def test_a_claim_is_renewed_until_its_end_and_not_a_moment_later(machines: Machines) -> None:
    """Its task is not granted again before the skew bound has passed too; that is no reason to revive it."""
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.pass_time(100)
    machines.ask(machines.names[0], m.Claim(2, "q", 1, 1_000, 0, "me"))
    machines.pass_time(50)
    claimed = machines.answers_to(b"client")[-1]
    assert isinstance(claimed, m.Claimed)
    batch = claimed.batches[0]
    renew = m.Renew(3, 1_000, batch.ids, columns.pack_u64([batch.first_token]))

    machines.pass_time(batch.end_ms - machines.now_ms - 20)
    machines.ask(machines.names[1], renew, b"in time")
    machines.pass_time(19)
    renewed = machines.answers_to(b"in time")[0]
    assert isinstance(renewed, m.Renewed)
    end_ms = columns.unpack_u64(renewed.ends)[0]
    assert end_ms > batch.end_ms

    machines.pass_time(end_ms - machines.now_ms + 10)
    machines.ask(machines.names[1], renew, b"too late")
    machines.pass_time(50)
    refused = machines.answers_to(b"too late")[0]
    assert isinstance(refused, m.Renewed) and columns.unpack_u64(refused.ends) == (0,)


def test_a_node_whose_clock_was_ahead_before_it_started_again_waits_for_its_leases() -> None:
    machines = Machines(1, replicas=1)
    machines.pass_time(1_000)
    node = machines.nodes[machines.names[0]]
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.ask(machines.names[0], m.Claim(2, "q", 1, 5_000, 0, "me"))
    machines.pass_time(100)
    for vnode in node.view.vnodes:
        vnode.replica.filing.sweep(machines.now_ms + 60_000, 10)

    machines.ask(machines.names[0], m.Claim(3, "q", 1, 5_000, 0, "other"), b"too early")
    machines.ask(machines.names[0], m.Claim(4, "q", 1, 5_000, 20_000, "other"), b"in time")
    machines.pass_time(100)
    assert [getattr(answer, "batches", None) for answer in machines.answers_to(b"too early")] == [()]
    assert not machines.answers_to(b"in time")

    machines.pass_time(5_200)
    assert len(machines.answers_to(b"in time")) == 1


def holding(machines: Machines) -> tuple[m.Renew, dict[str, list[int]]]:
    """Claims of two leaders' partitions: the request to renew them, and the rows of each leader."""
    for _ in range(30):
        machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", 1),)))
        machines.pass_time(10)
    machines.pass_time(100)
    rows: list[tuple[bytes, int]] = []
    for number in range(10):
        machines.ask(machines.names[0], m.Claim(100 + number, "q", 10, 60_000, 0, "me"), b"%d" % number)
        machines.pass_time(50)
        claimed = machines.answers_to(b"%d" % number)[0]
        assert isinstance(claimed, m.Claimed)
        rows += [(task_id, batch.first_token + index) for batch in claimed.batches
                 for index, task_id in enumerate(ids.split(batch.ids))]
    by_leader: dict[str, list[int]] = {}
    for index, (task_id, _) in enumerate(rows):
        leader = machines.nodes[machines.names[0]].view.leader_of(ids.partition_of(task_id, 8))
        by_leader.setdefault(leader, []).append(index)
    assert len(by_leader) == 3
    tokens = columns.pack_u64([row[1] for row in rows])
    return m.Renew(9, 60_000, b"".join(row[0] for row in rows), tokens), by_leader


def test_a_silent_leader_costs_its_own_claims_an_answer_and_the_others_nothing(machines: Machines) -> None:
    renew, by_leader = holding(machines)
    silent = next(name for name in by_leader if name != machines.names[0])
    machines.is_deaf = silent

    machines.ask(machines.names[0], renew, b"holder")
    machines.pass_time(900)

    renewed = machines.answers_to(b"holder")[0]
    assert isinstance(renewed, m.Renewed)
    assert columns.unpack_u64(renewed.unknown) == tuple(by_leader[silent])
    ends = columns.unpack_u64(renewed.ends)
    assert all((ends[index] > 0) == (index not in by_leader[silent]) for index in range(len(ends)))

    machines.is_deaf = ""
    machines.ask(machines.names[0], attrs.evolve(renew, request=10), b"again")
    machines.pass_time(100)
    renewed = machines.answers_to(b"again")[0]
    assert isinstance(renewed, m.Renewed) and not renewed.unknown and all(columns.unpack_u64(renewed.ends))


def test_what_a_silent_leader_should_release_is_released_when_it_hears_again(machines: Machines) -> None:
    renew, by_leader = holding(machines)
    machines.is_deaf = next(name for name in by_leader if name != machines.names[0])

    machines.ask(machines.names[0], attrs.evolve(renew, lease_ms=0), b"holder")
    machines.pass_time(1_000)
    released = machines.answers_to(b"holder")[0]
    assert isinstance(released, m.Renewed) and released.unknown
    machines.is_deaf = ""
    machines.pass_time(1_000)

    machines.ask(machines.names[0], m.Count(11, "q"), b"counter")
    machines.pass_time(100)
    counted = machines.answers_to(b"counter")[0]
    assert isinstance(counted, m.Counted) and (counted.rows[0].waiting, counted.rows[0].claimed) == (30, 0)


def test_when_nothing_is_known_the_answer_waits_and_is_in_doubt(machines: Machines) -> None:
    renew, by_leader = holding(machines)
    silent = next(name for name in by_leader if name != machines.names[0])
    rows = by_leader[silent]
    tokens = columns.unpack_u64(renew.tokens)
    task_ids = ids.split(renew.ids)
    machines.is_deaf = silent

    machines.ask(machines.names[0], m.Renew(9, 60_000, b"".join(task_ids[row] for row in rows),
                                            columns.pack_u64([tokens[row] for row in rows])), b"holder")
    machines.pass_time(1_000)
    assert machines.answers_to(b"holder") == []
    machines.pass_time(3_500)

    failed = machines.answers_to(b"holder")[0]
    assert isinstance(failed, m.Failed) and not failed.is_definite


def test_a_partition_whose_cohort_is_silent_leaves_only_its_own_claims_in_doubt(machines: Machines) -> None:
    renew, _ = holding(machines)
    partition = ids.partition_of(ids.split(renew.ids)[0], 8)
    in_doubt = [row for row, task_id in enumerate(ids.split(renew.ids))
                if ids.partition_of(task_id, 8) == partition]
    machines.is_lost = lambda message: isinstance(message, m.Amended) and message.partition == partition

    machines.ask(machines.names[0], renew, b"holder")
    machines.pass_time(2_000)

    renewed = machines.answers_to(b"holder")[0]
    assert isinstance(renewed, m.Renewed)
    assert columns.unpack_u64(renewed.unknown) == tuple(in_doubt)


def test_one_leader_in_doubt_does_not_end_the_wait_for_another(machines: Machines) -> None:
    renew, by_leader = holding(machines)
    task_ids, tokens = ids.split(renew.ids), columns.unpack_u64(renew.tokens)
    first = by_leader[machines.names[0]][0]
    silent = next(name for name in by_leader if name != machines.names[0])
    rows = [first, *by_leader[silent]]
    partition = ids.partition_of(task_ids[first], 8)
    machines.is_lost = lambda message: isinstance(message, m.Amended) and message.partition == partition
    machines.is_deaf = silent

    machines.ask(machines.names[0], m.Renew(9, 60_000, b"".join(task_ids[row] for row in rows),
                                            columns.pack_u64([tokens[row] for row in rows])), b"holder")
    machines.pass_time(2_000)
    assert machines.answers_to(b"holder") == []
    machines.is_deaf = ""
    machines.pass_time(1_000)

    renewed = machines.answers_to(b"holder")[0]
    assert isinstance(renewed, m.Renewed) and columns.unpack_u64(renewed.unknown) == (0,)


def spread(machines: Machines, count: int, payload: bytes = b"x") -> None:
    """Tasks on all partitions, so that every node leads some."""
    for _ in range(count):
        batch = attrs.evolve(machines.batch("q", 1), payloads=columns.pack([payload]))
        machines.ask(machines.names[0], m.Enqueue(1, 3, (batch,)))
    machines.pass_time(50)


def claimed(machines: Machines, count: int, *, wait_ms: int = 0, pass_ms: int = 50) -> list[int]:
    """How many a claim was given by each batch."""
    client = b"claimer %d" % len(machines.answers)
    machines.ask(machines.names[0], m.Claim(2, "q", count, 60_000, wait_ms, "me"), client)
    machines.pass_time(pass_ms)
    return [len(batch.bodies) for answer in machines.answers_to(client) if isinstance(answer, m.Claimed)
            for batch in answer.batches]


def delegated(machines: Machines) -> list[m.Delegate]:
    """What nodes ask others to grant, from now on."""
    sent: list[m.Delegate] = []
    machines.is_lost = lambda message: isinstance(message, m.Delegate) and sent.append(message) is not None
    return sent


def test_a_claim_of_many_is_filled_from_all_nodes(machines: Machines) -> None:
    spread(machines, 64)
    assert sum(claimed(machines, 100)) == 64


def test_what_the_first_node_fills_costs_no_other_one_a_question(machines: Machines) -> None:
    spread(machines, 64)
    sent = delegated(machines)
    assert sum(claimed(machines, 5)) == 5 and sent == []


def test_others_are_asked_for_no_more_than_is_left(machines: Machines) -> None:
    spread(machines, 64)
    here = machines.nodes[machines.names[0]].view.led()
    own = sum(len(vnode.replica.filing.heads("q", None, 99)) for vnode in here)
    sent = delegated(machines)
    assert 0 < own < 40 and sum(claimed(machines, 40)) == 40
    assert [message.count for message in sent] == [40 - own]


def test_a_claim_that_is_filled_asks_the_best_first_and_its_own_node_when_it_is_its_turn(
        machines: Machines) -> None:
    asked, better, best = machines.names
    for name, priority in ((asked, 0), (better, 5), (best, 9)):
        for partition in (partition for partition, (_, document) in machines.documents.items()
                          if document.leader == name):
            task_ids = machines.mint.mint(machines.now_ms, 2, partition)
            batch = m.TaskBatch(Header("q", priority).encode(), b"".join(task_ids), columns.pack([b"x"] * 2))
            machines.ask(asked, m.Enqueue(1, 3, (batch,)))
    machines.pass_time(2_000)
    machines.ask(asked, m.Claim(2, "q", 100, 60_000, 0, "me"), b"claimer")
    machines.pass_time(50)

    answer, = machines.answers_to(b"claimer")
    assert isinstance(answer, m.Claimed)
    given = [Body.decode(body).header.priority for batch in answer.batches for body in batch.bodies.unpack()]
    assert given == sorted(given, reverse=True) and len(given) == 16 and {*given} == {0, 5, 9}


def test_a_claim_that_is_woken_is_filled_from_those_who_have_told_of_tasks(machines: Machines) -> None:
    client = b"waiting"
    machines.ask(machines.names[0], m.Claim(2, "q", 100, 60_000, 5_000, "me"), client)
    machines.pass_time(100)
    batches = tuple(machines.batch("q", 1) for _ in range(64))
    machines.ask(machines.names[0], m.Enqueue(1, 3, batches))
    machines.pass_time(100)
    answer, = machines.answers_to(client)
    assert isinstance(answer, m.Claimed) and sum(len(batch.bodies) for batch in answer.batches) == 64


def test_what_is_granted_fits_one_answer(machines: Machines) -> None:
    """Each node grants as much as an answer holds; others are not asked for more of it."""
    limits = machines.nodes[machines.names[0]].view.limits
    spread(machines, 64, bytes((limits.message_bytes - limits.batch_bytes) // 64))
    sent = delegated(machines)
    assert sum(claimed(machines, 100)) < 64 and len(sent) == 1


def test_who_holds_something_waits_for_a_silent_node_only_for_a_moment(machines: Machines) -> None:
    spread(machines, 64)
    machines.is_deaf = machines.names[1]
    assert claimed(machines, 100) == []
    machines.pass_time(machines.nodes[machines.names[0]].view.timing.resend_ms)
    answer = machines.answers[-1][1]
    assert isinstance(answer, m.Claimed) and answer.batches


def test_who_holds_something_waits_for_its_own_node_only_for_a_moment(machines: Machines,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """As for another one. What that node's cohort says after it is given back."""
    spread(machines, 64)
    name = machines.names[0]
    own = {vnode.partition for vnode in machines.nodes[name].view.led()}
    node, resend_ms = machines.nodes[name], machines.nodes[name].view.timing.resend_ms
    monkeypatch.setattr(node.view.router, "order", lambda queue, peers: [*peers, name])
    asked: list[m.Delegate] = []

    def is_lost(message: m.Message) -> bool:
        if isinstance(message, m.Delegate):
            asked.append(message)
        is_of_own = isinstance(message, m.Grant) and message.partition in own
        return is_of_own or (len(asked) > 1 and message is asked[1])
    machines.is_lost = is_lost
    machines.ask(name, m.Claim(2, "q", 100, 60_000, 0, "w"), b"filler")
    machines.pass_time(resend_ms // 2)
    second = node.operations.open[asked[1].request]
    assert isinstance(second, Delegation)
    machines.give(name, Received(second.peer, m.Claimed(second.request, 0, ())))
    machines.pass_time(resend_ms // 2 + 1)

    answer = machines.answers_to(b"filler")[-1]
    assert isinstance(answer, m.Claimed) and answer.batches
    machines.is_lost = lambda message: False
    machines.pass_time(3_000)
    assert not own & set().union(*(ids.by_partition(ids.split(batch.ids), 8) for batch in answer.batches))
    assert claimed(machines, 100) and not node.operations.open
