"""Claims that wait: who is woken for what, that no word of work is lost, and how many may wait at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import attrs
import pytest

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.events import (
    Asked,
    DocumentSwapped,
    Event,
    MembersChanged,
    Received,
    Session,
    SessionChanged,
)
from skuld_py.model.setting import PAUSED, YES
from skuld_py.node.claims import grant
from skuld_py.node.claims.claim import Delegation, GrantHere
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.turn import take_turn

WAIT_MS = 20_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def leader_of(machines: Machines) -> str:
    return machines.documents[0][1].leader


def follower_of(machines: Machines) -> str:
    return next(name for name in machines.names if name != leader_of(machines))


def enqueue(machines: Machines, count: int = 1) -> None:
    machines.ask(leader_of(machines), m.Enqueue(1, 0, (machines.batch("q", count),)), b"producer")


def park(machines: Machines, name: str, count: int, first: int = 0, n: int = 1) -> None:
    """Claims of clients ``w000`` and so on, in their order."""
    for number in range(first, first + count):
        machines.ask(name, m.Claim(2, "q", n, 60_000, WAIT_MS, "w"), b"w%03d" % number)
    machines.pass_time(100)


def served(machines: Machines) -> list[bytes]:
    """Who was given something, in the order in which they were."""
    return [client for client, answer in machines.answers if isinstance(answer, m.Claimed) and answer.batches]


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """At whom claims were tried."""
    tried: list[str] = []
    start = Operations.start

    def noting(self: Operations, operation: Operation, now_ms: int) -> None:
        if isinstance(operation, Delegation | GrantHere):
            tried.append(operation.peer)
        start(self, operation, now_ms)
    monkeypatch.setattr(Operations, "start", noting)
    yield tried


@pytest.mark.parametrize("count", [1, 7])
def test_as_many_are_woken_as_tasks_came_and_those_that_wait_longest(
        machines: Machines, tries: list[str], count: int) -> None:
    park(machines, leader_of(machines), 200)
    tries.clear()

    enqueue(machines, count)
    machines.pass_time(50)

    assert served(machines) == [b"w%03d" % number for number in range(count)]
    assert len(tries) <= count + 1


def test_a_claim_woken_in_vain_waits_where_it_was(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    park(machines, leader_of(machines), 5)
    monkeypatch.setattr(grant, "pick", lambda *_: {})
    enqueue(machines)
    machines.pass_time(50)
    assert served(machines) == []
    monkeypatch.undo()

    enqueue(machines)
    machines.pass_time(50)

    assert served(machines) == [b"w000", b"w001"], "one is woken for the new task, and the next for what was left"


def test_who_takes_all_leaves_the_others_where_they_were(machines: Machines) -> None:
    park(machines, leader_of(machines), 3, n=10)
    enqueue(machines, 5)
    machines.pass_time(50)
    assert served(machines) == [b"w000"]

    enqueue(machines, 11)
    machines.pass_time(50)

    assert served(machines) == [b"w000", b"w001", b"w002"]


def test_a_hint_is_followed_by_one_first_and_by_more_where_there_is_more(
        machines: Machines, tries: list[str]) -> None:
    park(machines, follower_of(machines), 100)
    tries.clear()
    enqueue(machines)
    machines.pass_time(1_000)
    assert served(machines) == [b"w000"]
    assert len(tries) <= 6

    enqueue(machines, 99)
    machines.pass_time(1_000)

    assert sorted(served(machines)) == [b"w%03d" % number for number in range(100)]
    assert len(tries) <= 350


def test_a_hint_of_a_node_that_is_no_member_is_followed_once_it_is_one(machines: Machines) -> None:
    name, leader = follower_of(machines), leader_of(machines)
    park(machines, name, 1)
    machines.give(name, MembersChanged(tuple(each for each in machines.members if each.name != leader)))
    enqueue(machines)
    machines.pass_time(1_000)
    assert served(machines) == []

    machines.give(name, MembersChanged(machines.members))
    machines.pass_time(100)

    assert served(machines) == [b"w000"]


def test_a_hint_that_came_while_a_claim_was_tried_is_followed_when_it_has_got_nothing(
        machines: Machines, tries: list[str]) -> None:
    name, leader = follower_of(machines), leader_of(machines)
    other = next(each for each in machines.names if each not in (name, leader))
    machines.is_lost = lambda message: True
    machines.flying.clear()
    machines.ask(name, m.Claim(2, "q", 1, 60_000, WAIT_MS, "w"), b"w000")
    machines.give(name, Received(other, m.Gossip((), ("q",))))
    assert tries == [name, leader]
    machines.pass_time(machines.timing.grant_ms + 2 * machines.timing.resend_ms)

    assert tries == [name, leader, name, other]


def test_word_of_work_outlives_whoever_has_it() -> None:
    """Claims and tasks at any node, in any order: whoever waits is served as long as there is anything."""
    rolls = random.Random(3)
    made = Machines(partitions=4)
    made.pass_time(3_000)
    for turn in range(60):
        clients = [b"%d-%d" % (turn, number) for number in range(rolls.randint(1, 5))]
        things = [*clients, *[b""] * len(clients)]
        rolls.shuffle(things)
        for client in things:
            name = rolls.choice(made.names)
            if client:
                made.ask(name, m.Claim(2, "q", 1, 60_000, WAIT_MS, "me"), client)
            else:
                made.ask(name, m.Enqueue(1, 0, (made.batch("q", 1),)))
            made.deliver(rolls.randrange(8))
        made.pass_time(1_200)
        for client in clients:
            answer, = made.answers_to(client)
            assert isinstance(answer, m.Claimed) and answer.batches, (turn, client)
            batch = answer.batches[0]
            made.ask(made.names[0], m.Complete(3, 0, 0, batch.ids, columns.pack_u64([batch.first_token])))
        made.pass_time(50)


def test_word_that_was_not_used_is_passed_on() -> None:
    """Both claims ask a peer when a task comes here: the older one gets another there, the younger one none."""
    made = Machines(count=2, partitions=2, replicas=2)
    made.pass_time(3_000)
    leaders = [made.documents[partition][1].leader for partition in (0, 1)]
    assert leaders[0] != leaders[1]

    def task(route: int) -> m.Enqueue:
        batch = made.batch("q", 1)
        return m.Enqueue(1, 0, (attrs.evolve(batch, ids=made.mint.mint(made.now_ms, 1, route)[0]),))
    made.is_lost = lambda message: isinstance(message, m.Gossip)
    made.ask(leaders[1], task(1))
    made.pass_time(20)
    for client in (b"w000", b"w001"):
        made.ask(leaders[0], m.Claim(2, "q", 1, 60_000, WAIT_MS, "w"), client)
    made.ask(leaders[0], task(0))
    made.pass_time(100)

    assert sorted(served(made)) == [b"w000", b"w001"]


def test_who_waits_is_served_when_grants_are_possible_again(machines: Machines) -> None:
    name = leader_of(machines)
    park(machines, name, 3)
    machines.give(name, SessionChanged(Session.SUSPENDED))
    enqueue(machines, 2)
    machines.pass_time(200)
    assert served(machines) == []

    machines.give(name, SessionChanged(Session.CONNECTED))
    machines.pass_time(100)

    assert served(machines) == [b"w000", b"w001"]


def test_who_waits_is_served_when_its_node_leads_anew(machines: Machines) -> None:
    name = leader_of(machines)
    park(machines, name, 3)
    machines.nodes[name].view.vnodes[0].resign(machines.now_ms)
    enqueue(machines, 2)
    machines.pass_time(8_000)
    assert machines.documents[0][1].epoch > 1

    assert len(served(machines)) == 2 and b"w002" not in served(machines)


def test_who_waits_is_served_when_the_horizon_has_moved_though_the_grant_gave_up(
        machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    name, give = leader_of(machines), machines.give
    vnode, (version, document) = machines.nodes[name].view.vnodes[0], machines.documents[0]
    held: list[Event] = []

    def hold(name: str, event: Event) -> None:
        if isinstance(event, DocumentSwapped):
            held.append(event)
        else:
            give(name, event)
    park(machines, name, 1)
    near = attrs.evolve(document, horizon_ms=machines.now_ms + 15_000)
    machines.documents[0], vnode.election.document = (version, near), near
    monkeypatch.setattr(machines, "give", hold)
    enqueue(machines)
    machines.pass_time(3_000)
    assert held and served(machines) == []

    give(name, held[0])
    machines.pass_time(100)

    assert served(machines) == [b"w000"]


def refusals(machines: Machines, client: bytes) -> list[str]:
    return [answer.code for answer in machines.answers_to(client) if isinstance(answer, m.Failed)]


def test_so_many_claims_wait_at_a_node_and_so_many_of_a_client(machines: Machines) -> None:
    name = leader_of(machines)
    node = machines.nodes[name]
    node.view.limits = attrs.evolve(node.view.limits, parked_claims=3, parked_claims_each=2)

    def wait(client: bytes, wait_ms: int = WAIT_MS) -> None:
        machines.ask(name, m.Claim(2, "q", 1, 60_000, wait_ms, "w"), client)
        machines.pass_time(50)
    for client in (b"one", b"one", b"one", b"two", b"two"):
        wait(client)
    assert (refusals(machines, b"one"), refusals(machines, b"two")) == (["busy"], ["busy"])

    wait(b"three", 0)
    assert [type(answer) for answer in machines.answers_to(b"three")] == [m.Claimed], "without a place"
    enqueue(machines)
    machines.pass_time(50)
    assert served(machines) == [b"one"]
    wait(b"two")
    assert refusals(machines, b"two") == ["busy"], "a place was free, and is taken"

    enqueue(machines, 4)
    machines.pass_time(50)
    wait(b"one")
    assert len(served(machines)) == 5
    wait(b"one", 0)
    assert len(served(machines)) == 5


def test_what_can_be_served_needs_no_place(machines: Machines) -> None:
    node = machines.nodes[leader_of(machines)]
    node.view.limits = attrs.evolve(node.view.limits, parked_claims=3)
    for client in (b"a", b"b", b"c"):
        machines.ask(node.view.me.name, m.Claim(2, "another", 1, 60_000, WAIT_MS, "w"), client)
    enqueue(machines)
    machines.pass_time(50)

    park(machines, node.view.me.name, 2)

    assert served(machines) == [b"w000"] and refusals(machines, b"w001") == ["busy"]


def test_a_claim_is_not_told_that_nothing_waits_where_nobody_can_say(machines: Machines) -> None:
    enqueue(machines)
    machines.pass_time(100)
    for name in machines.names:
        machines.give(name, SessionChanged(Session.SUSPENDED))
    machines.pass_time(1_000)
    for name in machines.names:
        machines.ask(name, m.Claim(2, "q", 1, 60_000, 0, "w"), name.encode())
        machines.ask(name, m.Claim(2, "q", 1, 60_000, 400, "w"), b"patient " + name.encode())
    machines.pass_time(100)

    assert [refusals(machines, name.encode()) for name in machines.names] == [["no_leader"]] * 3
    assert not any(machines.answers_to(b"patient " + name.encode()) for name in machines.names)
    machines.pass_time(500)
    assert [refusals(machines, b"patient " + name.encode()) for name in machines.names] == [["no_leader"]] * 3
    assert served(machines) == []


def test_of_a_paused_queue_nothing_can_be_claimed_whoever_leads(machines: Machines) -> None:
    machines.ask(machines.names[0], m.PutSetting(1, PAUSED, "q", machines.now_ms, "ops", YES))
    machines.pass_time(100)
    for name in machines.names:
        machines.give(name, SessionChanged(Session.SUSPENDED))
    machines.pass_time(1_000)

    machines.ask(machines.names[0], m.Claim(2, "q", 1, 60_000, 0, "w"), b"worker")
    machines.pass_time(100)

    assert machines.answers_to(b"worker") == [m.Claimed(2, 0, (), "paused")]


def test_a_claim_that_gets_nothing_is_told_of_partitions_that_nobody_leads() -> None:
    machines = Machines(partitions=4)
    machines.pass_time(3_000)
    leaders = [document.leader for _, document in machines.documents.values()]
    led = next(name for name in leaders if name != leaders[0])
    asked = next(name for name in leaders if name != led)

    def claimed(client: bytes) -> m.Message:
        machines.ask(asked, m.Claim(2, "q", 1, 60_000, 0, "w"), client)
        machines.pass_time(100)
        answer, = machines.answers_to(client)
        return answer
    before = claimed(b"before")
    machines.give(led, SessionChanged(Session.SUSPENDED))
    machines.pass_time(1_000)

    assert before == m.Claimed(2, 0, ())
    assert claimed(b"after") == m.Claimed(2, 0, (), "leaderless")


@pytest.mark.parametrize("make", [
    lambda request, task_id: m.Await(request, task_id, WAIT_MS),
    lambda request, task_id: m.ReadLog(request, task_id, 0, 0, 9, WAIT_MS)])
def test_so_many_ends_and_logs_are_waited_for_at_a_node_and_so_many_by_a_client(
        machines: Machines, make: Callable[[int, bytes], m.Message]) -> None:
    node = machines.nodes[leader_of(machines)]
    node.view.limits = attrs.evolve(node.view.limits, waits=3, waits_each=2)
    batch = machines.batch("q", 1)
    machines.ask(node.view.me.name, m.Enqueue(1, 0, (batch,)))
    machines.pass_time(50)

    def wait(client: bytes) -> None:
        machines.ask(node.view.me.name, make(2, batch.ids), client)
        machines.pass_time(50)
    for client in (b"one", b"one", b"one", b"two", b"two"):
        wait(client)
    assert (refusals(machines, b"one"), refusals(machines, b"two")) == (["busy"], ["busy"])

    machines.ask(node.view.me.name, m.Cancel(3, 0, 0, batch.ids))
    machines.pass_time(500)
    wait(b"one")
    wait(b"one")
    assert refusals(machines, b"one") == ["busy"], "the places are free again"


def test_who_holds_claims_renews_and_ends_them_where_others_are_refused(machines: Machines) -> None:
    node = machines.nodes[leader_of(machines)]
    machines.ask(node.view.me.name, m.Enqueue(1, 0, (machines.batch("q", 1),)))
    machines.ask(node.view.me.name, m.Claim(2, "q", 1, 60_000, 0, "w"), b"w")
    machines.pass_time(100)
    answer, = machines.answers_to(b"w")
    assert isinstance(answer, m.Claimed)
    task_id, tokens = answer.batches[0].ids, columns.pack_u64([answer.batches[0].first_token])
    node.view.limits = attrs.evolve(node.view.limits, requests=4, holders_requests=4)

    for message in (m.Count(3, "q"), m.Renew(4, 60_000, task_id, tokens), m.Complete(5, 0, 0, task_id, tokens)):
        machines.ask(node.view.me.name, message, b"holder")
        machines.pass_time(100)

    assert [type(each) for each in machines.answers_to(b"holder")] == [m.Failed, m.Renewed, m.Acked]


def test_a_claim_that_comes_in_the_turn_in_which_grants_are_possible_again_is_served() -> None:
    """Nobody waited while grants were not possible, so nobody was there to be told."""
    machines = Machines(1, partitions=1, replicas=1)
    machines.pass_time(3_000)
    name = leader_of(machines)
    machines.ask(name, m.Claim(1, "q", 1, 60_000, 10, "w"), b"w111")
    machines.pass_time(100)
    enqueue(machines)
    machines.pass_time(100)
    machines.give(name, SessionChanged(Session.SUSPENDED))
    node = machines.nodes[name]
    turn = take_turn(node, machines.now_ms, [
        Asked(b"w000", m.Claim(2, "q", 1, 60_000, WAIT_MS, "w")), SessionChanged(Session.CONNECTED)])
    machines.stores[name].commit()
    for effect in (*turn.early, *turn.late):
        machines._carry_out(name, effect)
    machines.pass_time(1_000)

    assert served(machines) == [b"w000"]
