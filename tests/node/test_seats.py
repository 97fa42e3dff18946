"""What a node tells its workers of seats, when, and which claims it refuses for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.machines import Machines
from node.test_workers import row
from skuld_py.model import messages as m
from skuld_py.model.events import SeatsChanged
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.messages import workers as worker_messages
from skuld_py.model.seats import FUNCTION, INPUT, SEATED, Seat, Seats
from skuld_py.model.setting import LIMITS
from skuld_py.node.knowledge import attendance
from skuld_py.node.workers import dealing
from skuld_py.node.workers.capacity import QUIET_MS
from skuld_py.node.workers.dealing import deal
from skuld_py.workflow.scheduling.fences import fence_of

LEASE_MS, WAIT_MS = 30_000, 10_000
OLD, NEW = fence_of(5, [("n", "a", 4)]), fence_of(9, [("n", "a", 2)])


def seat(step: str, count: int, workflow: str = "w", kind: int = FUNCTION, fence: int = OLD) -> Seat:
    return Seat(workflow, step, kind, count, fence)


def seats(*here: Seat, tags: tuple[str, ...] = (), position: int = 5) -> Seats:
    return Seats(position, ((tags, here),), {each.workflow: each.fence for each in here})


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(2_000)
    return made


def know(machines: Machines, known: Seats, at: int = 0) -> None:
    machines.give(machines.names[at], SeatsChanged(known))
    machines.pass_time(1)


def report(machines: Machines, holder: str = "w", slots: int = 4, wait_ms: int = WAIT_MS, seated: int = 0,
           lease_ms: int = LEASE_MS, **more: object) -> None:
    worker = row(holder, slots, takes_seats=True, queues=(), weights=b"", **more)
    machines.ask(machines.names[0], m.Report(1, lease_ms, (worker,), wait_ms, seated), holder.encode())
    machines.pass_time(1)


def told(machines: Machines, holder: str = "w") -> list[m.Reported]:
    answers = machines.answers_to(holder.encode())
    assert all(isinstance(each, m.Reported) for each in answers), answers
    return [each for each in answers if isinstance(each, m.Reported)]


def counts(answer: m.Reported) -> dict[str, int]:
    return {each.step: each.count for each in answer.seats}


# -- who is told what, and when --------------------------------------------------------------------


def test_a_report_waits_until_there_are_seats(machines: Machines) -> None:
    report(machines)
    machines.pass_time(3_000)
    assert told(machines) == []

    know(machines, seats(seat("a", 3), seat("b", 1)))
    answer, = told(machines)
    assert counts(answer) == {"a": 3, "b": 1} and answer.seats[0].fence == OLD
    report(machines, seated=answer.seated)
    assert len(told(machines)) == 1, "it knows them"

    know(machines, seats(seat("a", 3, fence=NEW), seat("b", 1, fence=NEW), position=9))
    assert told(machines)[1].seats[0].fence == NEW
    report(machines, seated=told(machines)[1].seated)
    know(machines, Seats(12))
    assert told(machines)[2] == m.Reported(1)


def test_a_report_that_has_waited_for_long_enough_is_answered_and_one_that_waits_not_at_once(
        machines: Machines) -> None:
    report(machines)
    machines.pass_time(WAIT_MS - 100)
    assert told(machines) == []
    machines.pass_time(200)
    assert told(machines) == [m.Reported(1)]

    report(machines, wait_ms=0)
    assert len(told(machines)) == 2


def test_of_one_worker_the_newest_report_waits_and_one_that_does_not_wait_hinders_none(machines: Machines) -> None:
    report(machines)
    report(machines, wait_ms=0)
    assert len(told(machines)) == 1
    report(machines)
    assert len(told(machines)) == 2
    know(machines, seats(seat("a", 3)))
    assert len(told(machines)) == 3


def test_seats_are_dealt_anew_when_workers_come_go_or_change(machines: Machines) -> None:
    know(machines, seats(seat("a", 4)))
    report(machines, "w1", slots=4)
    assert counts(told(machines, "w1")[-1]) == {"a": 4}
    report(machines, "w2", slots=4)
    assert told(machines, "w2") == [], "there is none left"

    report(machines, "w1", slots=1, seated=told(machines, "w1")[-1].seated)
    assert counts(told(machines, "w1")[-1]) == {"a": 1}
    assert counts(told(machines, "w2")[-1]) == {"a": 3}
    report(machines, "w2", seated=told(machines, "w2")[-1].seated)
    report(machines, "w1", lease_ms=0)
    assert counts(told(machines, "w2")[-1]) == {"a": 4}


def test_a_worker_that_falls_silent_has_its_seats_until_its_lease_is_over(machines: Machines) -> None:
    know(machines, seats(seat("a", 4)))
    report(machines, "w1", wait_ms=0)
    machines.pass_time(LEASE_MS - WAIT_MS)
    report(machines, "w2", wait_ms=LEASE_MS)
    assert told(machines, "w2") == []
    machines.pass_time(WAIT_MS)
    assert counts(told(machines, "w2")[-1]) == {"a": 4}


def test_seats_go_to_workers_with_the_tags_of_their_slots_and_to_none_that_takes_no_seats(
        machines: Machines) -> None:
    know(machines, Seats(5, (((), (seat("a", 2),)), (("gpu",), (seat("b", 1),))), {"w": OLD}))
    report(machines, "plain")
    report(machines, "able", tags=("gpu",))
    machines.ask(machines.names[0], m.Report(1, LEASE_MS, (row("none"),), WAIT_MS), b"none")
    machines.pass_time(1)

    assert counts(told(machines, "plain")[-1]) == {"a": 2} and counts(told(machines, "able")[-1]) == {"b": 1}
    assert told(machines, "none") == [m.Reported(1)]
    report(machines, "able", seated=told(machines, "able")[-1].seated)
    assert counts(told(machines, "able")[-1]) == {}, "it has lost its tag, and another has those seats"


def test_a_node_that_stops_keeps_no_report_waiting(machines: Machines) -> None:
    report(machines)
    node = machines.nodes[machines.names[0]]
    node.hand_over(5_000)
    machines.pass_time(1)

    assert told(machines) == [m.Reported(1)]


def test_a_report_that_waits_is_answered_when_its_worker_says_goodbye(machines: Machines) -> None:
    report(machines)
    report(machines, wait_ms=0, lease_ms=0)

    assert told(machines) == [m.Reported(1)] * 2


def test_slots_come_into_the_log_by_what_tells_them_apart(machines: Machines) -> None:
    report(machines, "w1", slots=4)
    report(machines, "w2", slots=2, tags=("b", "a", "b"))
    machines.ask(machines.names[0], m.Report(1, LEASE_MS, (row("others", 8),)), b"o")
    machines.pass_time(QUIET_MS + 10)

    assert machines.nodes[machines.names[0]].slots == {(SEATED,): 4, (SEATED, "a", "b"): 2, (): 8}


@pytest.mark.parametrize("tag", ["workflows", "claims-9"])
def test_tags_that_are_the_clusters_own_are_refused(machines: Machines, tag: str) -> None:
    report(machines, tags=(tag,))

    answer = machines.answers_to(b"w")[-1]
    assert isinstance(answer, m.Failed) and answer.code == "bad_tags"
    assert len(machines.nodes[machines.names[0]].view.attendance) == 0


def test_different_tags_are_bounded(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendance, "KINDS_MAX", 2)
    for holder, tag in (("w1", "a"), ("w2", "b"), ("w3", "c"), ("w4", "b")):
        report(machines, holder, wait_ms=0, tags=(tag,))

    assert [isinstance(machines.answers_to(f"w{number}".encode())[-1], m.Failed) for number in range(1, 5)] == [
        False, False, True, False]


# -- dealing -------------------------------------------------------------------------------------

WORKERS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5)).map(
    lambda found: [((name, ""), slots) for name, slots in sorted(found.items())])
SEATS = st.dictionaries(st.sampled_from("xyz"), st.integers(1, 5)).map(
    lambda found: [seat(step, count) for step, count in found.items()])


@given(SEATS, SEATS, WORKERS, WORKERS)
def test_all_seats_are_dealt_as_far_as_there_are_slots_and_dealt_again_none_moves(
        first: list[Seat], second: list[Seat], before: list[tuple[tuple[str, str], int]],
        after: list[tuple[tuple[str, str], int]]) -> None:
    former = deal(first, before, {})
    dealt = deal(second, after, former)

    taken: Counter[str] = Counter()
    for name, slots in after:
        assert sum(dealt[name].values()) <= slots
        taken.update({step: count for (_, step), count in dealt[name].items()})
    assert all(taken[each.step] <= each.count for each in second)
    assert taken.total() == min(sum(each.count for each in second), sum(slots for _, slots in after))
    assert deal(second, after, dealt) == dealt


def test_who_has_seats_keeps_them_as_far_as_they_and_its_slots_go() -> None:
    former = {("a", ""): {("w", "x"): 2}, ("b", ""): {("w", "x"): 1, ("w", "y"): 1}}
    dealt = deal([seat("x", 4), seat("z", 1)], [(("a", ""), 1), (("b", ""), 2), (("c", ""), 9)], former)

    assert dealt == {("a", ""): {("w", "x"): 1}, ("b", ""): {("w", "x"): 2},
                     ("c", ""): {("w", "z"): 1, ("w", "x"): 1}}


def test_where_workers_lack_every_step_has_some() -> None:
    dealt = deal([seat("x", 9), seat("y", 9), seat("z", 1)], [(("a", ""), 2), (("b", ""), 1)], {})

    assert dealt == {("a", ""): {("w", "x"): 1, ("w", "y"): 1}, ("b", ""): {("w", "z"): 1}}


def test_a_worker_has_seats_of_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "SEATS_MAX", 2)
    assert worker_messages.SEATS_MAX == 64
    wanted = [seat(step, 2) for step in "vwxyz"]

    dealt = deal(wanted, [(("a", ""), 100), (("b", ""), 1)], {})
    assert [sum(each.values()) for each in dealt.values()] == [4, 1]


# -- claims --------------------------------------------------------------------------------------


def claim(machines: Machines, fence: int, queue: str = "wf.w.a", wait_ms: int = 0,
          client: bytes = b"c") -> m.Message:
    machines.ask(machines.names[0], m.Claim(1, queue, 1, 30_000, wait_ms, "w", fence=fence), client)
    machines.pass_time(50)
    answers = machines.answers_to(client)
    return answers[-1] if answers else m.Reported(0)


def test_a_claim_for_stale_seats_is_refused_and_one_for_newer_seats_is_not(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2, fence=NEW), position=9))

    answer = claim(machines, OLD)
    assert isinstance(answer, m.Failed) and answer.code == "stale_allocation"
    assert isinstance(claim(machines, NEW), m.Claimed)
    assert isinstance(claim(machines, fence_of(12, [])), m.Claimed), "this node is behind"
    assert isinstance(claim(machines, 0, queue="wf.w.acks"), m.Claimed), "a feeder's"
    assert isinstance(claim(machines, OLD, queue="wf.w.feed"), m.Failed)
    assert isinstance(claim(machines, OLD, queue="q"), m.Claimed)


def test_a_claim_for_seats_of_a_workflow_that_has_ended_is_refused(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))
    know(machines, Seats(12))

    answer = claim(machines, OLD)
    assert isinstance(answer, m.Failed) and answer.code == "stale_allocation"


def test_a_claim_without_a_seat_is_told_who_may_claim_there(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))

    answer = claim(machines, 0)
    assert isinstance(answer, m.Failed) and answer.code == "no_seat"
    assert "step a of workflow w" in answer.text and "skuld worker --workflows" in answer.text
    assert isinstance(claim(machines, 0, queue="wf.w.seal"), m.Claimed)
    assert isinstance(claim(machines, 0, queue="wf.w._acks-in"), m.Claimed), "a feeder's, who has no seat there"
    assert isinstance(claim(machines, 0, queue="wf.other.a"), m.Claimed), "nobody's, for all it knows"


def test_a_claim_that_waits_is_refused_when_its_seats_change_before_there_is_work(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))
    claim(machines, OLD, wait_ms=20_000)
    assert machines.answers_to(b"c") == []

    know(machines, seats(seat("a", 1, fence=NEW), position=9))
    batch = machines.batch("wf.w.a", 3)
    machines.ask(machines.names[0], m.Enqueue(2, 1, (batch,)), b"p")
    machines.pass_time(500)
    answer = machines.answers_to(b"c")[-1]
    assert isinstance(answer, m.Failed) and answer.code == "stale_allocation"
    assert isinstance(claim(machines, NEW, client=b"d"), m.Claimed)


def test_a_row_is_a_seat(machines: Machines) -> None:
    know(machines, seats(seat("in", 1, kind=INPUT)))
    report(machines)

    answer, = told(machines)
    assert attrs.astuple(answer.seats[0]) == ("w", "in", INPUT, 1, OLD)


def test_what_a_claim_was_woken_for_whose_seats_are_gone_goes_to_the_next(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))
    claim(machines, OLD, wait_ms=20_000)
    know(machines, seats(seat("a", 1, fence=NEW), position=9))
    claim(machines, NEW, client=b"d", wait_ms=20_000)
    assert machines.answers_to(b"c") == machines.answers_to(b"d") == []

    machines.ask(machines.names[0], m.Enqueue(2, 1, (machines.batch("wf.w.a", 1),)), b"p")
    machines.pass_time(500)
    refused, = machines.answers_to(b"c")
    got, = machines.answers_to(b"d")
    assert isinstance(refused, m.Failed) and refused.code == "stale_allocation"
    assert isinstance(got, m.Claimed) and got.batches


def changed_at(machines: Machines, kind: type[m.Message]) -> list[m.Message]:
    """Messages of one kind; at the first of them the node that is asked comes to know other seats."""
    seen: list[m.Message] = []

    def note(message: m.Message) -> bool:
        if isinstance(message, kind):
            if not seen:
                know_at_once = machines.nodes[machines.names[0]].view.seating.know
                know_at_once(seats(seat("a", 1, fence=NEW), position=9))
            seen.append(message)
        return False
    machines.is_lost = note
    return seen


def test_a_claim_whose_seats_are_gone_goes_on_to_no_other_node(machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))
    asked = changed_at(machines, m.Delegate)

    answer = claim(machines, OLD)
    assert isinstance(answer, m.Failed) and answer.code == "stale_allocation"
    assert len(asked) == 1


def test_what_was_granted_before_the_seats_were_gone_is_told(machines: Machines) -> None:
    """Enough tasks in each partition, and a claim that wants more than one has."""
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 40)))
    machines.ask(machines.names[0], m.Enqueue(2, 0, tuple(machines.batch("wf.w.a", 2) for _ in range(20))), b"p")
    machines.pass_time(500)
    changed_at(machines, m.Delegate)

    machines.ask(machines.names[0], m.Claim(1, "wf.w.a", 40, 30_000, 0, "w", fence=OLD), b"c")
    machines.pass_time(500)
    answer, = machines.answers_to(b"c")
    assert isinstance(answer, m.Claimed) and 0 < sum(len(batch.ids) // 20 for batch in answer.batches) < 40


def test_a_claim_that_waited_for_a_loan_is_granted_nothing_for_seats_that_went_meanwhile(
        machines: Machines) -> None:
    machines.pass_time(5_000)
    know(machines, seats(seat("a", 2)))
    limits = QueueLimits(concurrency=3).encode()
    machines.ask(machines.names[0], m.PutSetting(2, LIMITS, "wf.w.a", 1, "w", limits), b"p")
    machines.ask(machines.names[0], m.Enqueue(2, 0, tuple(machines.batch("wf.w.a", 1) for _ in range(20))), b"p")
    machines.pass_time(500)
    lent, granted = changed_at(machines, m.Reckoned), list[m.Message]()
    know_first: Callable[[m.Message], bool] = machines.is_lost

    def note(message: m.Message) -> bool:
        granted.extend([message] if isinstance(message, m.Grant) else [])
        return know_first(message)
    machines.is_lost = note

    answer = claim(machines, OLD, wait_ms=3_000)
    machines.pass_time(3_000)
    assert lent and granted == []
    answer = machines.answers_to(b"c")[-1]
    assert isinstance(answer, m.Failed) and answer.code == "stale_allocation"
