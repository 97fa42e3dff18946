"""Where a task stands, as the node asked says: by the join of copies, its leader's word on whose turn it is, one
clock and the skew bound."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.errors import Malformed
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.asides import SILENCE, Aside
from skuld_py.model.body import Body, Header
from skuld_py.model.ids import lane_route
from skuld_py.model.state import State

TOKEN = 1 << 32
LEASE_MS = 1_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def ask(machines: Machines, name: str, message: m.Message, wait_ms: int = 100) -> list[m.Message]:
    before = len(machines.answers_to(b"me"))
    machines.ask(name, message, b"me")
    machines.pass_time(wait_ms)
    return machines.answers_to(b"me")[before:]


def enqueue(machines: Machines, key: str) -> bytes:
    task_id, = machines.mint.mint(machines.now_ms, 1, lane_route("q", key), is_laned=True)
    body = Body(Header("q"), key=key, payload=b"x")
    batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
    assert isinstance(ask(machines, machines.names[0], m.Enqueue(1, 3, (batch,)))[0], m.Acked)
    return task_id


def standing(machines: Machines, name: str, task_id: bytes, wait_ms: int = 100) -> list[State | None]:
    return [Aside.decode(said).standing for answer in ask(machines, name, m.Get(2, task_id), wait_ms)
            if isinstance(answer, m.Got) for said in answer.asides.unpack()]


def leader_of(machines: Machines) -> str:
    return machines.documents[0][1].leader


def test_whose_turn_it_is_the_leader_says(machines: Machines) -> None:
    """One follower missed that the first is done, and the reader hears it before it hears the leader."""
    first, second = enqueue(machines, "k"), enqueue(machines, "k")
    others = [name for name in machines.names if name != leader_of(machines)]
    machines.is_deaf = others[1]
    assert isinstance(ask(machines, others[0], m.Complete(3, 0, 0, first, columns.pack_u64([TOKEN])))[0], m.Acked)
    machines.is_deaf = ""
    machines.is_lost = lambda message: isinstance(message, m.Complete | m.Probe | m.Invite)
    assert machines.nodes[others[1]].view.vnodes[0].replica.filing.is_behind(second)

    assert [standing(machines, name, second) for name in machines.names] == [[State.WAITING]] * 3


def test_without_its_word_whoever_knows_of_one_before(machines: Machines) -> None:
    first, second, leader = enqueue(machines, "k"), enqueue(machines, "k"), leader_of(machines)
    reader = next(name for name in machines.names if name != leader)
    machines.is_deaf = leader

    assert standing(machines, reader, second) == []
    machines.pass_time(machines.nodes[reader].view.timing.resend_ms)
    answer = machines.answers_to(b"me")[-1]
    assert isinstance(answer, m.Got) and answer.asides == columns.pack([Aside(State.BLOCKED, (first,)).encode()])


def test_a_lapsed_claim_is_one_until_the_skew_bound_is_over(machines: Machines) -> None:
    task_id, reader = enqueue(machines, "k"), machines.names[1]
    granted = ask(machines, reader, m.Claim(4, "q", 1, LEASE_MS, 0, "w"))[0]
    assert isinstance(granted, m.Claimed)
    machines.pass_time(granted.batches[0].end_ms + machines.parameters.skew_ms // 2 - machines.now_ms)
    assert standing(machines, reader, task_id) == [State.CLAIMED]
    machines.pass_time(machines.parameters.skew_ms)
    assert standing(machines, reader, task_id) == [State.WAITING]


@pytest.mark.parametrize("text", [b"\7\0", b"\4", b"\4\1" + bytes(19), b"\4\0\4", b"\4\0" + bytes(16)])
def test_what_a_task_cannot_be_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        Aside.decode(text)


def test_an_aside_is_read_as_it_was_written() -> None:
    assert [Aside.decode(Aside(state).encode()) for state in (None, *State)] == [
        SILENCE, *map(Aside, State)]
    for aside in (Aside(State.BLOCKED, (bytes(20), b"\1" * 20)), Aside(None, (), {TOKEN: 7}),
                  Aside(State.BLOCKED, (bytes(20),), {TOKEN: 7, TOKEN + 1: 1})):
        assert Aside.decode(aside.encode()) == aside
