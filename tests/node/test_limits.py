"""Limits over a cluster: loans that are late or old, new homes, rates. Else see ``scripts/limits.txt``."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.events import Received, Session, SessionChanged
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.setting import LIMITS, home_of

THREE = QueueLimits(concurrency=3)
QUICK = QueueLimits(rate=10, window_ms=1_000, burst=2)


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(6_000)
    return made


def ask(machines: Machines, message: m.Message, at: int = 0, wait_ms: int = 20) -> m.Message | None:
    client = b"%d" % len(machines.answers)
    machines.ask(machines.names[at], message, client)
    machines.pass_time(wait_ms)
    answers = machines.answers_to(client)
    return answers[-1] if answers else None


def put(machines: Machines, limits: QueueLimits) -> None:
    got = ask(machines, m.GetSettings(1, LIMITS, "q", b""))
    assert isinstance(got, m.GotSettings), got
    answer = ask(machines, m.PutSetting(2, LIMITS, "q", got.version, "w", limits.encode()))
    assert answer == m.SettingPut(2, len(machines.names), ()), answer


def give(machines: Machines, count: int, batches: int = 1) -> None:
    for _ in range(batches):
        machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("q", count),)))
    machines.pass_time(20)


def claim(machines: Machines, at: int, count: int = 5, wait_ms: int = 0, client: bytes = b"") -> None:
    client = client or b"worker%d" % len(machines.answers)
    machines.ask(machines.names[at], m.Claim(3, "q", count, 60_000, wait_ms, "me"), client)


def held(machines: Machines, client: bytes | None = None) -> list[tuple[bytes, int]]:
    """(id, token) of every claim that was told."""
    rows = []
    for who, answer in machines.answers:
        if isinstance(answer, m.Claimed) and client in (None, who):
            for batch in answer.batches:
                tasks = ids.split(batch.ids)
                rows += [(task_id, batch.first_token + index) for index, task_id in enumerate(tasks)]
    return rows


def claim_all(machines: Machines, wait_ms: int = 1_200) -> int:
    for at in range(3):
        claim(machines, at)
    machines.pass_time(wait_ms)
    return len(held(machines))


def complete(machines: Machines, rows: list[tuple[bytes, int]]) -> None:
    machines.ask(machines.names[0], m.Complete(4, 0, 0, b"".join(row[0] for row in rows),
                                               columns.pack_u64([row[1] for row in rows])))


def home(machines: Machines) -> str:
    return machines.documents[home_of("q", 4)][1].leader


# -- concurrency -------------------------------------------------------------------------------


def test_a_home_that_frees_room_on_its_own_node_serves_who_waits_in_the_next_turn() -> None:
    """Its word to itself arrives when the turn has looked; that alone must wake it again."""
    machines = Machines(1, partitions=1, replicas=1)
    machines.pass_time(6_000)
    put(machines, QueueLimits(concurrency=1))
    give(machines, 5)
    waited_ms = []
    for number in range(4):
        claim(machines, 0, 1, 30_000, b"worker-%d" % number)
        machines.pass_time(173)
        if number:
            ended_ms = machines.now_ms
            complete(machines, held(machines, b"worker-%d" % (number - 1)))
            machines.pass_time(500)
            granted = machines.answers_to(b"worker-%d" % number)[-1]
            assert isinstance(granted, m.Claimed)
            waited_ms.append(granted.batches[0].end_ms - 60_000 - ended_ms)

    assert max(waited_ms) <= 3, waited_ms


def test_a_new_home_lends_only_when_no_loan_of_the_old_one_can_be_used(machines: Machines) -> None:
    put(machines, THREE)
    give(machines, 5, 8)
    claim_all(machines)
    old = home(machines)
    lent: list[tuple[int, int]] = []

    def note(message: m.Message) -> bool:
        if isinstance(message, m.Lent) and message.count:
            lent.append((machines.now_ms, message.count))
        return False
    machines.is_lost = note
    complete(machines, held(machines))
    node = machines.nodes[old]
    begun_ms = machines.now_ms
    node.view.vnodes[home_of("q", 4)].resign(machines.now_ms)
    for at in range(3):
        claim(machines, at, 5, 20_000)
    machines.pass_time(8_000)

    since_ms = next(since for name in machines.names
                    if (since := machines.nodes[name].lender._led_since(
                        machines.nodes[name].view.vnodes[home_of("q", 4)])) is not None)
    assert since_ms > begun_ms
    assert lent and lent[0][0] >= since_ms + 1_000 + machines.parameters.skew_ms
    assert len(held(machines)) == 6


def test_a_home_that_its_voters_do_not_confirm_lends_nothing(machines: Machines) -> None:
    put(machines, THREE)
    give(machines, 5, 8)
    for name in machines.names:
        if name != home(machines):
            machines.nodes[name].view.vnodes[home_of("q", 4)].suspicion = "a test"
    asked: list[m.Message] = []

    def note(message: m.Message) -> bool:
        asked.extend([message] if isinstance(message, m.Grant) else [])
        return False
    machines.is_lost = note

    assert claim_all(machines, 100) == 0
    assert asked == [], "it lends to nobody, itself included"


def test_what_a_leader_known_to_be_deposed_reports_does_not_count(machines: Machines) -> None:
    put(machines, THREE)
    give(machines, 5, 8)
    deposed = next(name for name in machines.names if name != home(machines) and machines.nodes[name].view.led())
    for vnode in machines.nodes[deposed].view.led():
        machines.nodes[home(machines)].view.vnodes[vnode.partition].note_leader(deposed, vnode.epoch + 1)

    assert claim_all(machines) == 0, "its successor has told nothing"


def caught(machines: Machines) -> tuple[str, str, m.Lent]:
    """A loan on its way: its borrower, its home, and what was lent."""
    put(machines, THREE)
    give(machines, 5, 8)
    claim_all(machines)
    complete(machines, held(machines))
    machines.pass_time(2_000)
    claim(machines, next(at for at in range(3) if machines.names[at] != home(machines)))
    while not machines.flying or not isinstance(lent := getattr(machines.flying[0][1], "message", None), m.Lent):
        machines.deliver(1)
        if not machines.flying:
            machines.pass_time(1)
    borrower, event = machines.flying.popleft()
    assert isinstance(event, Received) and isinstance(lent, m.Lent) and lent.count == 3
    return borrower, event.peer, lent


def grants(machines: Machines) -> list[m.Message]:
    """What is on its way to cohorts."""
    return [event.message for _, event in machines.flying
            if isinstance(event, Received) and isinstance(event.message, m.Grant)]


def test_a_loan_that_comes_late_is_not_used(machines: Machines) -> None:
    """Its node stood still: it has not even seen that it has waited too long."""
    borrower, lender, lent = caught(machines)
    machines.now_ms = lent.until_ms + 1

    machines.give(borrower, Received(lender, lent))

    assert not grants(machines)


def test_a_loan_in_time_is_used(machines: Machines) -> None:
    borrower, lender, lent = caught(machines)
    machines.now_ms = lent.until_ms

    machines.give(borrower, Received(lender, lent))

    assert grants(machines)


def test_a_loan_by_limits_that_hold_no_more_is_not_used(machines: Machines) -> None:
    borrower, lender, lent = caught(machines)
    machines.nodes[borrower].view.settings.join([m.SettingRow(LIMITS, "q", lent.version + 1, "w", THREE.encode())])

    machines.give(borrower, Received(lender, lent))

    assert not grants(machines)


def test_a_home_that_nobody_leads_is_said_to_be_the_cause_and_not_the_limits(machines: Machines) -> None:
    put(machines, THREE)
    give(machines, 5, 8)
    asked = next(at for at, name in enumerate(machines.names) if name != home(machines)
                 and machines.nodes[name].view.stocked("q"))
    machines.give(home(machines), SessionChanged(Session.SUSPENDED))
    machines.pass_time(1_000)

    for _ in range(2):  # without a loan, then in the dry time behind it
        assert ask(machines, m.Claim(3, "q", 5, 60_000, 0, "me"), asked) == m.Claimed(3, 0, (), "leaderless")


# -- rate --------------------------------------------------------------------------------------


def test_a_rate_is_kept_and_reached(machines: Machines) -> None:
    put(machines, QUICK)
    give(machines, 5, 20)
    told: list[int] = []
    begun_ms = machines.now_ms
    for number in range(60):
        claim(machines, number % 3, 1, 30_000)
    while machines.now_ms < begun_ms + 4_000:
        machines.pass_time(10)
        told += [machines.now_ms] * (len(held(machines)) - len(told))

    assert 36 <= len(told) <= 42
    for first in range(len(told)):
        for last in range(first, len(told)):
            assert last - first + 1 <= (told[last] - told[first] + 40) * 10 / 1_000 + 2
