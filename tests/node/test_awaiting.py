"""Waiting for ends and log entries: who waits is told at once, of what a majority has, and asks nobody again."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, Retry
from skuld_py.model.history import FAILED
from skuld_py.model.state import State
from skuld_py.node.operations.outbox import Outbox
from skuld_py.node.reads import interests
from skuld_py.node.reads.ends import LOOK_MS, PACE_MS
from skuld_py.node.reads.interests import KEPT_MS, Interests

LEASE_MS = 20_000
DONE, CANCELLED, DEAD = State.COMPLETED, State.CANCELLED, State.DEAD
SETTLED_MS = 2 * PACE_MS + 20
"""Every keeper says that a task has changed, and so it is looked at twice."""
EXCHANGES = (m.Invite, m.Probe, m.Compare, m.Fetch, m.Repair)


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def ask(machines: Machines, message: m.Message, wait_ms: int = 100) -> m.Message:
    machines.ask(machines.names[0], message, b"actor")
    machines.pass_time(wait_ms)
    return machines.answers_to(b"actor")[-1]


def enqueue(machines: Machines, retry: Retry | None = None) -> bytes:
    task_id, = machines.mint.mint(machines.now_ms, 1, 0)
    header = Header("q") if retry is None else Header("q", retry=retry)
    ask(machines, m.Enqueue(1, 3, (m.TaskBatch(header.encode(), task_id, columns.pack([b"x"])),)))
    return task_id


def claim(machines: Machines) -> int:
    answer = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, "w"))
    assert isinstance(answer, m.Claimed)
    return answer.batches[0].first_token


def complete(machines: Machines, task_id: bytes, token: int, result: bytes = b"", w: int = 0) -> None:
    results = columns.pack([result] if result else [])
    machines.ask(machines.names[0], m.Complete(3, w, 0, task_id, columns.pack_u64([token]), b"", results),
                 b"actor")


def append(machines: Machines, task_id: bytes, token: int, seq: int, *entries: bytes) -> None:
    machines.ask(machines.names[0], m.Append(4, 0, task_id, token, seq, columns.pack(entries)), b"actor")


def await_ends(machines: Machines, task_ids: bytes, wait_ms: int = 30_000, node: int = 1) -> None:
    machines.ask(machines.names[node], m.Await(5, task_ids, wait_ms), b"waiter")


def told(machines: Machines) -> m.Message | None:
    return next(iter(machines.answers_to(b"waiter")), None)


def ends(machines: Machines) -> list[tuple[int, bytes, bytes]]:
    answer = told(machines)
    assert isinstance(answer, m.Awaited)
    return list(zip(answer.ends, answer.results.unpack(), answer.errors.unpack(), strict=True))


def follow(machines: Machines, task_id: bytes, token: int, after: int, wait_ms: int = 30_000,
           limit: int = 100) -> m.Message | None:
    """The answer that is there at once."""
    machines.answers.clear()
    machines.ask(machines.names[1], m.ReadLog(6, task_id, token, after, limit, wait_ms), b"waiter")
    machines.pass_time(PACE_MS // 2)
    return told(machines)


# -- ends ------------------------------------------------------------------------------------------


def test_who_waits_is_told_when_the_last_task_has_ended_and_not_before(machines: Machines) -> None:
    first, second, third = (enqueue(machines) for _ in range(3))
    tokens = [claim(machines) for _ in range(2)]
    await_ends(machines, first + second + third + first)
    machines.pass_time(SETTLED_MS)
    complete(machines, first, tokens[0], b"result")
    machines.pass_time(SETTLED_MS)
    machines.ask(machines.names[2], m.Cancel(7, 0, 0, third), b"actor")
    machines.pass_time(SETTLED_MS)
    assert told(machines) is None

    complete(machines, second, tokens[1])
    machines.pass_time(10)
    assert ends(machines) == [(DONE, b"result", b""), (DONE, b"", b""), (CANCELLED, b"", b""),
                              (DONE, b"result", b"")]


def test_waiting_asks_nothing_while_nothing_happens(machines: Machines) -> None:
    task_id = enqueue(machines)
    await_ends(machines, task_id)
    machines.pass_time(100)
    sent: list[m.Message] = []
    machines.is_lost = lambda message: sent.append(message) is not None

    machines.pass_time(LOOK_MS - 500)
    assert [message for message in sent if isinstance(message, m.Interest | m.Stirred)] == []


def test_what_is_told_is_on_a_majority(machines: Machines) -> None:
    task_id, knows = enqueue(machines), machines.names[0]
    token = claim(machines)
    machines.is_lost = lambda message: isinstance(message, (m.Complete, *EXCHANGES))
    await_ends(machines, task_id, node=0)
    machines.pass_time(SETTLED_MS)
    complete(machines, task_id, token, b"result", w=1)
    machines.pass_time(10)
    assert ends(machines) == [(DONE, b"result", b"")]

    machines.answers.clear()
    machines.is_deaf = knows
    await_ends(machines, task_id, wait_ms=0, node=1)
    machines.pass_time(100)
    assert ends(machines) == [(DONE, b"result", b"")]


def test_lost_word_costs_time_and_nothing_else(machines: Machines) -> None:
    task_id = enqueue(machines)
    token = claim(machines)
    await_ends(machines, task_id)
    machines.pass_time(100)
    machines.is_lost = lambda message: isinstance(message, m.Stirred)
    node = machines.nodes[machines.names[1]]
    node._reads.interests.watchers.clear()
    complete(machines, task_id, token)
    machines.pass_time(LOOK_MS // 2)
    assert told(machines) is None

    machines.pass_time(LOOK_MS)
    assert ends(machines) == [(DONE, b"", b"")]


def test_a_task_dies_by_lapsing_and_its_waiter_is_told(machines: Machines) -> None:
    task_id = enqueue(machines, Retry(max_attempts=1))
    claim(machines)
    await_ends(machines, task_id, 60_000)
    machines.pass_time(LEASE_MS - 1_000)
    assert told(machines) is None
    machines.pass_time(1_000 + machines.parameters.skew_ms + LOOK_MS)
    assert ends(machines) == [(DEAD, b"", b"")]


def test_a_death_is_told_with_its_error(machines: Machines) -> None:
    task_id = enqueue(machines, Retry(max_attempts=1))
    token = claim(machines)
    await_ends(machines, task_id)
    machines.pass_time(100)
    row = columns.pack_u64([token])
    ask(machines, m.Conclude(8, FAILED, -1, task_id, row, columns.pack([b"why"])))
    assert ends(machines) == [(DEAD, b"", b"why")]


def test_a_cancelled_task_has_not_ended_while_its_claim_runs(machines: Machines) -> None:
    task_id = enqueue(machines)
    claim(machines)
    ask(machines, m.Cancel(7, 0, 0, task_id))
    await_ends(machines, task_id, wait_ms=0)
    machines.pass_time(100)
    assert ends(machines) == [(m.NOT_ENDED, b"", b"")]


def test_when_the_wait_is_over_what_is_known_is_told(machines: Machines) -> None:
    done, waits = enqueue(machines), enqueue(machines)
    complete(machines, done, claim(machines))
    unknown, = machines.mint.mint(machines.now_ms, 1, 0)
    await_ends(machines, done + waits + unknown, wait_ms=1_000)
    machines.pass_time(990)
    assert told(machines) is None
    machines.pass_time(20)
    assert [end for end, _, _ in ends(machines)] == [DONE, m.NOT_ENDED, m.NOT_ENDED]


def test_a_task_may_be_awaited_before_it_exists(machines: Machines) -> None:
    task_id, = machines.mint.mint(machines.now_ms, 1, 0)
    await_ends(machines, task_id)
    machines.pass_time(100)
    batch = m.TaskBatch(Header("q").encode(), task_id, columns.pack([b"x"]))
    ask(machines, m.Enqueue(1, 3, (batch,)))
    complete(machines, task_id, claim(machines))
    machines.pass_time(SETTLED_MS)
    assert [end for end, _, _ in ends(machines)] == [DONE]


def test_without_a_majority_the_wait_goes_on_and_is_woken_after_healing(machines: Machines) -> None:
    task_id = enqueue(machines)
    token = claim(machines)
    await_ends(machines, task_id, 60_000)
    machines.pass_time(100)
    machines.is_deaf = machines.names[1]
    complete(machines, task_id, token)
    machines.pass_time(3 * LOOK_MS)
    assert told(machines) is None

    machines.is_deaf = ""
    machines.pass_time(LOOK_MS + 500)
    assert [end for end, _, _ in ends(machines)] == [DONE]


def test_a_wait_that_never_reached_a_majority_is_unavailable(machines: Machines) -> None:
    task_id = enqueue(machines)
    machines.is_deaf = machines.names[1]
    await_ends(machines, task_id, 1_000)
    machines.pass_time(8_000)
    answer = told(machines)
    assert isinstance(answer, m.Failed) and answer.code == "unavailable"


def test_too_many_at_once_are_refused(machines: Machines) -> None:
    machines.ask(machines.names[1], m.Await(5, b"".join(machines.mint.mint(1, m.ENDS_MAX + 1, 0)), 0), b"waiter")
    answer = told(machines)
    assert isinstance(answer, m.Failed) and answer.code == "too_large" and "ids" in answer.text


# -- logs ------------------------------------------------------------------------------------------


def test_a_log_is_read_in_pages_without_a_gap_and_then_followed(machines: Machines) -> None:
    task_id = enqueue(machines)
    token = claim(machines)
    append(machines, task_id, token, 0, b"a", b"", b"c")
    append(machines, task_id, token, 4, b"behind a gap")
    machines.pass_time(100)

    assert follow(machines, task_id, 0, 0) == m.Logged(6, columns.pack([]), token, False)
    assert follow(machines, task_id, token, 0, limit=2) == m.Logged(6, columns.pack([b"a", b""]), 0, False)
    assert follow(machines, task_id, token, 2) == m.Logged(6, columns.pack([b"c"]), 0, False)
    assert follow(machines, task_id, token, 3) is None
    machines.pass_time(SETTLED_MS)
    append(machines, task_id, token, 3, b"d")
    machines.pass_time(10)
    assert told(machines) == m.Logged(6, columns.pack([b"d", b"behind a gap"]), 0, False)


def test_who_follows_learns_of_the_next_claim_and_of_the_end(machines: Machines) -> None:
    task_id = enqueue(machines)
    first = claim(machines)
    assert follow(machines, task_id, first, 0) is None
    ask(machines, m.Conclude(8, FAILED, 0, task_id, columns.pack_u64([first])))
    second = claim(machines)
    answer = told(machines)
    assert answer == m.Logged(6, columns.pack([]), second, False)

    assert follow(machines, task_id, second, 0) is None
    machines.pass_time(SETTLED_MS)
    complete(machines, task_id, second, b"result")
    machines.pass_time(10)
    assert told(machines) == m.Logged(6, columns.pack([]), 0, True), "results are no entries"


def test_the_log_of_an_earlier_claim_can_be_read_at_any_time(machines: Machines) -> None:
    task_id = enqueue(machines)
    first = claim(machines)
    append(machines, task_id, first, 0, b"early")
    ask(machines, m.Conclude(8, FAILED, 0, task_id, columns.pack_u64([first])))
    second = claim(machines)
    append(machines, task_id, first, 1, b"late")
    machines.pass_time(100)
    assert follow(machines, task_id, first, 0) == m.Logged(6, columns.pack([b"early", b"late"]), second, False)


def test_no_log_of_no_task_and_of_no_claim(machines: Machines) -> None:
    task_id, = machines.mint.mint(machines.now_ms, 1, 0)
    answer = follow(machines, task_id, 0, 0)
    assert isinstance(answer, m.Failed) and answer.code == "no_such_task" and ids.to_text(task_id) in answer.text
    answer = follow(machines, enqueue(machines), 1 << 32, 0)
    assert isinstance(answer, m.Failed) and answer.code == "no_such_claim" and answer.is_definite


def test_an_entry_that_one_copy_has_is_on_a_majority_before_it_is_shown(machines: Machines) -> None:
    task_id = enqueue(machines)
    token = claim(machines)
    machines.is_lost = lambda message: isinstance(message, (m.Append, *EXCHANGES))
    machines.ask(machines.names[0], m.Append(4, 1, task_id, token, 0, columns.pack([b"a"])), b"actor")
    machines.pass_time(100)
    machines.ask(machines.names[0], m.ReadLog(6, task_id, token, 0, 9, 0), b"first")
    machines.pass_time(100)
    machines.is_deaf = machines.names[0]
    assert machines.answers_to(b"first") == [m.Logged(6, columns.pack([b"a"]), 0, False)]
    assert follow(machines, task_id, token, 0) == m.Logged(6, columns.pack([b"a"]), 0, False)


# -- word ------------------------------------------------------------------------------------------


A, B = b"a" * 20, b"b" * 20


def test_word_is_used_up_by_the_first_change() -> None:
    kept = Interests(Outbox("me", lambda now_ms: None))
    kept.add(0, ("n1", 7), [A, B])
    kept.add(1, ("n2", 8), [A])
    kept.stirred[A] = None

    assert kept.take() == {("n1", 7): [A], ("n2", 8): [A]}
    assert kept.stirred == {} and kept.take() == {}
    assert [*kept.watchers] == [B]


def test_word_is_forgotten_after_a_time_unless_it_is_left_anew() -> None:
    kept = Interests(Outbox("me", lambda now_ms: None))
    kept.add(0, ("n1", 7), [A])
    kept.add(0, ("n2", 8), [B])
    kept.add(KEPT_MS - 1, ("n1", 7), [A])
    kept.add(KEPT_MS, ("n3", 9), [])
    assert [*kept.watchers] == [A]
    kept.add(2 * KEPT_MS, ("n3", 9), [])
    assert kept.watchers == {}


def test_there_is_only_so_much_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interests, "TASKS_MAX", 1)
    kept = Interests(Outbox("me", lambda now_ms: None))
    kept.add(0, ("n1", 7), [A, B])
    kept.add(0, ("n2", 8), [A])
    assert kept.watchers == {A: {("n1", 7): KEPT_MS, ("n2", 8): KEPT_MS}}
