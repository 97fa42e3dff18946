"""Tasks that may not be claimed yet, or no more, on real machines."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, Retry
from skuld_py.model.events import Session, SessionChanged
from skuld_py.model.history import EXPIRED, decode_history
from skuld_py.model.state import State
from skuld_py.node.claims import lapses


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def enqueue(machines: Machines, after_ms: int = 0, until_ms: int = 0, retry: Retry | None = None) -> bytes:
    """A task that may be claimed ``after_ms`` from now, and expires ``until_ms`` from now."""
    task_id, = machines.mint.mint(machines.now_ms, 1, machines.random.getrandbits(32))
    times = [machines.now_ms + wait_ms if wait_ms else 0 for wait_ms in (after_ms, until_ms)]
    body = Body(Header("q", retry=retry or Retry()), *times, b"x")
    batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    return task_id


def ask(machines: Machines, message: m.Message) -> m.Message:
    before = len(machines.answers_to(b"me"))
    machines.ask(machines.names[0], message, b"me")
    machines.pass_time(100)
    answer, = machines.answers_to(b"me")[before:]
    return answer


def claim(machines: Machines, lease_ms: int = 20_000) -> bytes:
    """The id of a task, or nothing."""
    answer = ask(machines, m.Claim(2, "q", 1, lease_ms, 0, "w"))
    assert isinstance(answer, m.Claimed)
    return b"".join(batch.ids for batch in answer.batches)


def counts(machines: Machines) -> list[int]:
    """By state, the same on every node."""
    rows = {node.view.vnodes[0].replica.filing.tally.row(b"q") for node in machines.nodes.values()}
    assert len(rows) == 1
    return list(rows.pop())


def test_a_task_waits_for_its_time(machines: Machines) -> None:
    task_id = enqueue(machines, after_ms=5_000)
    assert claim(machines) == b"" and counts(machines)[State.SCHEDULED] == 1

    machines.pass_time(4_600)
    assert claim(machines) == b""
    machines.pass_time(400)

    assert claim(machines) == task_id


def test_a_parked_claim_is_woken_when_a_task_becomes_due(machines: Machines) -> None:
    task_id = enqueue(machines, after_ms=3_000)
    machines.ask(machines.names[0], m.Claim(2, "q", 1, 20_000, 10_000, "w"), b"patient")
    machines.pass_time(2_500)
    assert not machines.answers_to(b"patient")

    machines.pass_time(1_500)

    answer, = machines.answers_to(b"patient")
    assert isinstance(answer, m.Claimed) and answer.batches[0].ids == task_id


@pytest.mark.parametrize("after_ms", [0, 1_000, 2_990])
def test_a_task_that_nobody_claimed_in_time_is_dead_on_every_copy(machines: Machines, after_ms: int) -> None:
    task_id = enqueue(machines, after_ms, until_ms=3_000)

    machines.pass_time(4_000)

    assert claim(machines) == b"" and counts(machines)[State.DEAD] == 1
    for node in machines.nodes.values():
        replica = node.view.vnodes[0].replica
        assert decode_history(replica.histories([task_id])[replica.prefix + task_id]).death(99, 0) == EXPIRED


def test_what_has_expired_is_granted_to_nobody_before_its_leader_has_said_that_it_is_dead(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader looks for expired tasks now and then, and a new one has many of them."""
    monkeypatch.setattr(lapses, "bury_expired", lambda *_: None)
    expired = [enqueue(machines, until_ms=1_000) for _ in range(3)]
    living = enqueue(machines, until_ms=5_000)
    machines.pass_time(1_000)

    assert counts(machines)[State.WAITING] == len(expired) + 1
    assert claim(machines) == living and claim(machines) == b""


def test_what_expired_while_nobody_led_is_buried_by_who_comes_to_lead(machines: Machines) -> None:
    enqueue(machines, until_ms=200)
    first = machines.documents[0][1].leader
    machines.give(first, SessionChanged(Session.LOST))

    machines.pass_time(300)
    assert not any(node.view.vnodes[0].is_leading for node in machines.nodes.values())
    machines.pass_time(6_000)

    assert machines.documents[0][1].leader not in ("", first)
    assert counts(machines)[State.DEAD] == 1


def test_a_claim_that_runs_is_not_stopped_by_the_time_and_its_completion_stands(machines: Machines) -> None:
    enqueue(machines, until_ms=2_000)
    answer = ask(machines, m.Claim(2, "q", 1, 20_000, 0, "w"))
    assert isinstance(answer, m.Claimed)
    batch, = answer.batches
    machines.pass_time(5_000)
    assert counts(machines)[State.CLAIMED] == 1

    ask(machines, m.Complete(3, 0, 0, batch.ids, columns.pack_u64([batch.first_token])))

    machines.pass_time(1_000)
    assert counts(machines)[State.COMPLETED] == 1 and sum(counts(machines)) == 1


def test_a_task_that_kills_its_workers_stops_when_its_attempts_are_spent(machines: Machines) -> None:
    task_id = enqueue(machines, retry=Retry(max_attempts=2))
    for _ in range(2):
        assert claim(machines, lease_ms=1_000) == task_id
        machines.pass_time(4_000)

    assert claim(machines) == b"" and counts(machines)[State.DEAD] == 1
