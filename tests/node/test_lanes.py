"""Tasks of one ordering key on real machines: one at a time and in order, also when copies differ."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, Retry
from skuld_py.model.history import FAILED, RELEASED, decode_history, token_of
from skuld_py.model.ids import lane_route, split
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS
from skuld_py.model.state import State
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.tables import place_of

LEASE_MS = 20_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def enqueue(machines: Machines, *keys: str, retry: Retry | None = None) -> list[bytes]:
    """A task of each key, in this order."""
    made = []
    for key in keys:
        task_id, = machines.mint.mint(machines.now_ms, 1, lane_route("q", key), is_laned=True)
        body = Body(Header("q", retry=retry or Retry()), key=key, payload=b"x")
        batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
        assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
        made.append(task_id)
    return made


def ask(machines: Machines, message: m.Message) -> m.Message:
    before = len(machines.answers_to(b"me"))
    machines.ask(machines.names[0], message, b"me")
    machines.pass_time(300)
    answer, = machines.answers_to(b"me")[before:]
    return answer


def claim(machines: Machines, count: int = 9) -> dict[bytes, int]:
    """Task -> token of what there is to claim."""
    answer = ask(machines, m.Claim(2, "q", count, LEASE_MS, 0, "w"))
    assert isinstance(answer, m.Claimed)
    return {task_id: batch.first_token + index for batch in answer.batches
            for index, task_id in enumerate(split(batch.ids))}


def conclude(machines: Machines, kind: int, claims: dict[bytes, int], delay_ms: int = 0) -> None:
    tokens = columns.pack_u64(list(claims.values()))
    answer = ask(machines, m.Conclude(3, kind, delay_ms, b"".join(claims), tokens))
    assert isinstance(answer, m.Renewed)


def complete(machines: Machines, claims: dict[bytes, int]) -> None:
    tokens = columns.pack_u64(list(claims.values()))
    assert isinstance(ask(machines, m.Complete(4, 0, 0, b"".join(claims), tokens)), m.Acked)


def counts(machines: Machines, name: str) -> tuple[int, ...]:
    return machines.nodes[name].view.vnodes[0].replica.filing.tally.row(b"q")


def leader_of(machines: Machines) -> str:
    return machines.documents[0][1].leader


def test_tasks_of_a_key_are_claimed_one_at_a_time_in_their_order(machines: Machines) -> None:
    first, second, other, third = enqueue(machines, "k", "k", "j", "k")
    assert all(counts(machines, name)[State.BLOCKED] == 2 for name in machines.names)

    claims = claim(machines)
    assert [*claims] == [first, other] and claim(machines) == {}
    complete(machines, claims)
    claims = claim(machines)
    assert [*claims] == [second]
    complete(machines, claims)
    assert [*claim(machines)] == [third]
    assert counts(machines, leader_of(machines))[State.BLOCKED] == 0


def test_a_task_given_back_goes_before_the_younger_ones(machines: Machines) -> None:
    first, _ = enqueue(machines, "k", "k")
    conclude(machines, RELEASED, claim(machines))

    assert [*claim(machines)] == [first]


def test_a_task_that_failed_holds_its_lane_until_it_is_tried_again_or_dead(machines: Machines) -> None:
    first, second = enqueue(machines, "k", "k", retry=Retry(max_attempts=2))
    conclude(machines, FAILED, claim(machines), delay_ms=3_000)
    assert claim(machines) == {}

    machines.pass_time(3_000)
    claims = claim(machines)
    assert [*claims] == [first]
    conclude(machines, FAILED, claims)
    assert [*claim(machines)] == [second], "the first is dead"


def test_a_lane_is_free_when_its_claim_has_lapsed_and_the_skew_bound_is_over(machines: Machines) -> None:
    first, _ = enqueue(machines, "k", "k")
    assert [*claim(machines)] == [first]

    machines.pass_time(LEASE_MS - 1_000)
    assert claim(machines) == {}
    machines.pass_time(1_000 + machines.parameters.skew_ms)
    assert [*claim(machines)] == [first]


def test_a_cancelled_task_leaves_its_lane(machines: Machines) -> None:
    first, second = enqueue(machines, "k", "k")
    assert isinstance(ask(machines, m.Cancel(5, 0, 0, first)), m.Acked)

    assert [*claim(machines)] == [second]


def test_a_queue_may_allow_more_at_a_time_and_less_again(machines: Machines) -> None:
    first, second, third = enqueue(machines, "k", "k", "k")
    limits = QueueLimits(key_concurrency=2).encode()
    assert isinstance(ask(machines, m.PutSetting(6, LIMITS, "q", 1, "ops", limits)), m.SettingPut)

    claims = claim(machines)
    assert [*claims] == [first, second]
    assert isinstance(ask(machines, m.PutSetting(7, LIMITS, "q", 2, "ops", b"")), m.SettingPut)
    complete(machines, {first: claims[first]})
    assert claim(machines) == {}
    complete(machines, {second: claims[second]})
    assert [*claim(machines)] == [third]


def test_a_follower_that_missed_the_end_of_a_claim_is_told_when_it_objects(machines: Machines) -> None:
    """Both followers missed it, so that no grant of the lane has a majority before."""
    first, second = enqueue(machines, "k", "k")
    claims = claim(machines)
    others = [name for name in machines.names if name != leader_of(machines)]
    replica = machines.nodes[leader_of(machines)].view.vnodes[0].replica
    replica.finish(machines.now_ms, [first], [claims[first]], machines.now_ms)

    assert claim(machines) == {}
    for name in others:
        record = machines.nodes[name].view.vnodes[0].replica.histories([first])
        assert decode_history(next(iter(record.values()))).completion.value is not None, "told by the leader"
    assert [*claim(machines)] == [second]


def test_a_leader_that_missed_a_claim_learns_it_from_who_objects(machines: Machines) -> None:
    first, second = enqueue(machines, "k", "k")
    grant = Grant([first], [place_of(Header("q"))], token_of(1, 99), machines.now_ms,
                  machines.now_ms + LEASE_MS, "w")
    for name in machines.names:
        if name != leader_of(machines):
            machines.nodes[name].view.vnodes[0].replica.apply_grant(machines.now_ms, grant)
    leader = machines.nodes[leader_of(machines)].view.vnodes[0].replica
    leader.finish(machines.now_ms, [first], [1], machines.now_ms)
    leader.store.pop_many("history", [leader.prefix + first])
    assert [head[-20:] for head in leader.filing.heads("q", None, 9)] == [second]

    assert claim(machines) == {}
    assert claim(machines) == {}
    assert decode_history(next(iter(leader.histories([first]).values()))).claims.entries
