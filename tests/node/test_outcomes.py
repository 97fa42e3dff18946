"""How claims and tasks end otherwise than by completion, on real machines: what a leader takes, and from whom."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, Retry
from skuld_py.model.events import Received, Session, SessionChanged
from skuld_py.model.history import (
    CLAIMS_FOR_LIFE,
    CLAIMS_MAX,
    FAILED,
    RELEASED,
    SNOOZED,
    TOO_MANY_CLAIMS,
    ClaimRecord,
    History,
    death_of,
    decode_history,
    ending_of,
    revival_of,
    token_of,
)
from skuld_py.model.outcomes import ERROR_SEQ, RESULT_SEQ, entries_of, result_of
from skuld_py.model.retrying import pause_ms
from skuld_py.model.state import State
from skuld_py.model.task import LogEntry, view
from skuld_py.node.claims.verdicts import open_claim
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.vnode import Vnode
from skuld_py.simulation.world.disk import MemoryStore

LEASE_MS = 20_000
POLICY = Retry(max_attempts=2, backoff_ms=3_000, jitter_percent=0)


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def leader_of(machines: Machines) -> tuple[str, Vnode]:
    name = machines.documents[0][1].leader
    return name, machines.nodes[name].view.vnodes[0]


def enqueue(machines: Machines, retry: Retry = POLICY) -> bytes:
    task_id, = machines.mint.mint(machines.now_ms, 1, machines.random.getrandbits(32))
    batch = m.TaskBatch(Header("q", retry=retry).encode(), task_id, columns.pack([b"x"]))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    return task_id


def ask(machines: Machines, message: m.Message, wait_ms: int = 200) -> m.Message:
    """The answer of a node that does not lead."""
    name = next(name for name in machines.names if name != leader_of(machines)[0])
    before = len(machines.answers_to(b"me"))
    machines.ask(name, message, b"me")
    machines.pass_time(wait_ms)
    answer, = machines.answers_to(b"me")[before:]
    return answer


def claim(machines: Machines, holder: str = "w") -> tuple[bytes, int] | None:
    """Id and token."""
    answer = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, holder))
    assert isinstance(answer, m.Claimed)
    return (answer.batches[0].ids, answer.batches[0].first_token) if answer.batches else None


def claimed(machines: Machines) -> tuple[bytes, int]:
    held = claim(machines)
    assert held is not None
    return held


def conclude(machines: Machines, kind: int, row: tuple[bytes, int], delay_ms: int = -1, error: bytes = b"") -> int:
    """When the task may be claimed again; 0 when the claim is lost."""
    errors = columns.pack([error] if error else [])
    answer = ask(machines, m.Conclude(3, kind, delay_ms, row[0], columns.pack_u64([row[1]]), errors))
    assert isinstance(answer, m.Renewed) and not answer.unknown
    return columns.unpack_u64(answer.ends)[0]


def renew(machines: Machines, row: tuple[bytes, int]) -> m.Renewed:
    answer = ask(machines, m.Renew(4, LEASE_MS, row[0], columns.pack_u64([row[1]])))
    assert isinstance(answer, m.Renewed)
    return answer


def complete(machines: Machines, row: tuple[bytes, int], result: bytes = b"") -> None:
    results = columns.pack([result] if result else [])
    answer = ask(machines, m.Complete(5, 0, 0, row[0], columns.pack_u64([row[1]]), b"", results))
    assert isinstance(answer, m.Acked)


def cancel(machines: Machines, task_id: bytes) -> None:
    assert isinstance(ask(machines, m.Cancel(6, 0, 0, task_id)), m.Acked)


def revive(machines: Machines, task_id: bytes) -> m.Revival:
    answer = ask(machines, m.Revive(7, task_id))
    assert isinstance(answer, m.Revived)
    return m.Revival(answer.outcomes[0])


def history(machines: Machines, task_id: bytes) -> History:
    """What every copy knows alike."""
    replicas = [node.view.vnodes[0].replica for node in machines.nodes.values()]
    records = {bytes(replica.histories([task_id]).get(replica.prefix + task_id, b"")) for replica in replicas}
    assert len(records) == 1
    return decode_history(records.pop() or None)


def entries(machines: Machines, task_id: bytes) -> dict[tuple[int, int], bytes]:
    answer = ask(machines, m.Get(8, task_id))
    assert isinstance(answer, m.Got)
    return entries_of(answer.tasks[0])


# -- ending a claim ------------------------------------------------------------------------------


def test_a_failed_task_waits_as_its_policy_says_and_is_claimed_again(machines: Machines) -> None:
    task_id = enqueue(machines)
    row = claimed(machines)
    before_ms = machines.now_ms

    until_ms = conclude(machines, FAILED, row, error=b"why")

    assert before_ms <= until_ms - POLICY.backoff_ms <= machines.now_ms
    for node in machines.nodes.values():
        found = node.view.vnodes[0].replica.outcomes(task_id, [(row[1], ERROR_SEQ)])
        assert found == [(row[1], ERROR_SEQ, b"why")]
    assert entries(machines, task_id) == {(row[1], ERROR_SEQ): b"why"}
    assert claim(machines) is None
    machines.pass_time(until_ms - machines.now_ms)
    assert claimed(machines)[0] == task_id


def test_the_last_failure_leaves_a_task_dead_until_it_is_revived_with_new_attempts(machines: Machines) -> None:
    task_id = enqueue(machines)
    for _ in range(POLICY.max_attempts):
        assert revive(machines, task_id) is m.Revival.NOT_DEAD
        conclude(machines, FAILED, claimed(machines), 0)
    assert claim(machines) is None

    assert revive(machines, task_id) is m.Revival.REVIVED
    assert revive(machines, task_id) is m.Revival.REVIVED, "the same question again, before anybody claimed it"
    assert history(machines, task_id).round == 1
    for _ in range(POLICY.max_attempts):
        assert conclude(machines, FAILED, claimed(machines), 0)
    assert claim(machines) is None and len(history(machines, task_id).claims.entries) == 4


def test_lapsed_leases_use_up_attempts_and_released_and_snoozed_claims_do_not(machines: Machines) -> None:
    task_id = enqueue(machines)
    for _ in range(3):
        conclude(machines, RELEASED, claimed(machines), 0)
        conclude(machines, SNOOZED, claimed(machines), 0)
    for _ in range(POLICY.max_attempts):
        assert claimed(machines)[0] == task_id
        machines.pass_time(LEASE_MS + machines.parameters.skew_ms)

    assert claim(machines) is None
    assert revive(machines, task_id) is m.Revival.REVIVED
    assert claimed(machines)[0] == task_id


def test_a_snoozed_task_comes_back_when_it_was_to(machines: Machines) -> None:
    enqueue(machines)
    row = claimed(machines)

    until_ms = conclude(machines, SNOOZED, row, 5_000)
    machines.pass_time(until_ms - machines.now_ms - 300)
    assert claim(machines) is None
    machines.pass_time(200)

    assert claimed(machines) == (row[0], row[1] + 1)


@pytest.mark.parametrize("kind", [RELEASED, SNOOZED, FAILED])
def test_to_say_it_again_is_the_same_word_and_another_word_comes_too_late(machines: Machines, kind: int) -> None:
    task_id = enqueue(machines)
    row = claimed(machines)
    until_ms = conclude(machines, kind, row, 0)
    known = history(machines, task_id)

    assert until_ms and conclude(machines, kind, row, 60_000) == until_ms
    assert conclude(machines, 1 + kind % 3, row, 0) == 0
    assert history(machines, task_id) == known


@pytest.mark.parametrize("kind", [RELEASED, SNOOZED, FAILED])
def test_a_word_that_comes_after_the_lease_or_from_an_older_claim_changes_nothing(machines: Machines,
                                                                                 kind: int) -> None:
    task_id = enqueue(machines, Retry(max_attempts=5))
    late = claimed(machines)
    machines.pass_time(LEASE_MS)
    known = history(machines, task_id)

    assert conclude(machines, kind, late, 0, b"late") == 0
    machines.pass_time(machines.parameters.skew_ms)
    newer = claimed(machines)
    assert conclude(machines, kind, late, 0, b"late") == 0

    assert history(machines, task_id).claims.entries[late[1]] == known.claims.entries[late[1]]
    assert entries(machines, task_id) == {}
    assert columns.unpack_u64(renew(machines, newer).ends)[0]


def test_a_word_is_for_the_newest_claim_even_while_an_older_lease_would_last(machines: Machines) -> None:
    task_id = enqueue(machines, Retry(max_attempts=5))
    row = claimed(machines)
    conclude(machines, RELEASED, row, 0)
    newer = claimed(machines)

    assert conclude(machines, FAILED, row, 0) == 0
    assert conclude(machines, FAILED, (task_id, newer[1] + 1), 0) == 0
    assert conclude(machines, FAILED, newer, 0)


def test_only_the_newest_claim_of_an_open_task_is_open_whatever_leases_are_known() -> None:
    def claim(kind: int = 0, end_ms: int = 90) -> ClaimRecord:
        return ClaimRecord(1, Max(end_ms), ending_of(kind), "w")

    def is_open(token: int, done_ms: int = 0, **claims: ClaimRecord) -> bool:
        known = LatticeMap({int(name[1:]): each for name, each in claims.items()})
        return open_claim(History(Min((done_ms, 7)) if done_ms else Min(), known), token, 50) is not None

    assert is_open(8, _7=claim(), _8=claim()) and not is_open(7, _7=claim(), _8=claim())
    assert not is_open(7, _7=claim(), _8=claim(RELEASED)), "a newer claim was granted, though it is over"
    assert not is_open(8, _8=claim(FAILED))
    assert not is_open(8, _8=claim(end_ms=49)) and is_open(8, _8=claim(end_ms=50))
    assert not is_open(8, 40, _8=claim()) and not is_open(9, _8=claim())


def test_a_failure_answered_by_too_few_is_not_told_as_done(machines: Machines) -> None:
    enqueue(machines)
    row = claimed(machines)
    machines.is_lost = lambda message: isinstance(message, m.Amend)

    answer = ask(machines, m.Conclude(3, FAILED, -1, row[0], columns.pack_u64([row[1]])), wait_ms=6_000)

    assert isinstance(answer, m.Failed) and not answer.is_definite


def test_a_question_whose_answer_was_lost_is_not_told_that_the_claim_is(machines: Machines) -> None:
    enqueue(machines)
    row = claimed(machines)
    lost: list[m.Message] = []

    def loses_the_first(message: m.Message) -> bool:
        if isinstance(message, m.Renewed) and not lost:
            lost.append(message)
            return True
        return False
    machines.is_lost = loses_the_first

    answer = ask(machines, m.Conclude(3, FAILED, 0, row[0], columns.pack_u64([row[1]])), wait_ms=2_000)

    assert lost and isinstance(answer, m.Renewed) and columns.unpack_u64(answer.ends)[0]


# -- completing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [
    lambda machines, row: conclude(machines, FAILED, row, 0), lambda machines, row: cancel(machines, row[0]),
    lambda machines, row: conclude(machines, RELEASED, row, 0)])
def test_completion_goes_before_whatever_else_happened(
        machines: Machines, end: Callable[[Machines, tuple[bytes, int]], object]) -> None:
    task_id = enqueue(machines, Retry(max_attempts=1))
    row = claimed(machines)
    end(machines, row)

    complete(machines, row, b"all the same")

    assert history(machines, task_id).completion.value is not None
    assert entries(machines, task_id) == {(row[1], RESULT_SEQ): b"all the same"}
    assert claim(machines) is None
    assert revive(machines, task_id) is m.Revival.NOT_DEAD
    counts = [node.view.vnodes[0].replica.filing.tally.row(b"q") for node in machines.nodes.values()]
    assert [row[State.COMPLETED] for row in counts] == [1] * 3


def results_shown(machines: Machines, task_id: bytes) -> tuple[bytes | None, bytes]:
    """By a read, and by a wait for the end."""
    got, awaited = ask(machines, m.Get(8, task_id)), ask(machines, m.Await(9, task_id, 0))
    assert isinstance(got, m.Got) and isinstance(awaited, m.Awaited)
    row, = got.tasks
    logged = [LogEntry(*key, data) for key, data in entries_of(row).items()]
    return (view(row.id, row.body.unpack()[0], decode_history(row.history), logged).result,
            awaited.results.unpack()[0])


@pytest.mark.parametrize("late, shown", [(b"", b"new"), (b"old", b"old")])
def test_a_result_that_was_shown_does_not_vanish_behind_an_earlier_completion_without_one(
        machines: Machines, late: bytes, shown: bytes) -> None:
    """An older claim's completion, on its way since before, came when that of the newer one had been read."""
    task_id = enqueue(machines)
    old = claimed(machines)
    for seq in range(2):  # so much that a read ends before what stands behind it
        entry = columns.pack([b"x" * 60_000] * 15)
        assert isinstance(ask(machines, m.Append(3, 0, task_id, old[1], 15 * seq, entry)), m.Acked)
    machines.pass_time(LEASE_MS + machines.parameters.skew_ms)
    new = claimed(machines)
    begun_ms = machines.now_ms
    machines.pass_time(100)
    complete(machines, new, b"new")
    assert results_shown(machines, task_id) == (b"new", b"new")

    slow = m.Complete(4, 0, begun_ms, task_id, columns.pack_u64([old[1]]), b"", columns.pack([late]))
    for name in machines.names:
        machines.give(name, Received(machines.names[0], slow))
    machines.pass_time(100)

    assert history(machines, task_id).completion.value == (begun_ms, old[1])
    assert results_shown(machines, task_id) == (shown, shown)


def test_of_several_results_without_that_of_the_completion_the_newest_claim_s_stands() -> None:
    entries = {(1, RESULT_SEQ): b"a", (3, RESULT_SEQ): b"c", (4, ERROR_SEQ): b"d", (5, 0): b"e"}

    assert result_of((50, 2), entries) == b"c"
    assert result_of((50, 1), entries) == b"a"
    assert result_of(None, entries) is None
    assert result_of((50, 2), {(2, 0): b"a"}) is None


def test_of_two_results_of_one_claim_every_copy_keeps_the_same(machines: Machines) -> None:
    task_id = enqueue(machines)
    row = claimed(machines)
    for result in (b"b", b"a", b"c"):
        complete(machines, row, result)

    assert entries(machines, task_id) == {(row[1], RESULT_SEQ): b"a"}
    roots = {node.view.vnodes[0].replica.tree.root for node in machines.nodes.values()}
    assert len(roots) == 1


def test_of_two_results_of_one_claim_copies_that_heard_different_ones_agree() -> None:
    rows = [(bytes(ids.ID_BYTES), 1 << 32)]
    one, two = (Replica(0, MemoryStore(), 0) for _ in range(2))
    for replica, results in ((one, (b"b", b"a", b"c")), (two, (b"c", b"b", b"a"))):
        for result in results:
            replica.note_outcomes(RESULT_SEQ, [rows[0][0]], [rows[0][1]], [result])

    assert one.tree.root == two.tree.root
    assert one.outcomes(rows[0][0], [(1 << 32, RESULT_SEQ)]) == [(1 << 32, RESULT_SEQ, b"a")]


@pytest.mark.parametrize("kind", [RELEASED, SNOOZED, FAILED])
def test_nothing_ends_the_claim_of_a_completed_task(machines: Machines, kind: int) -> None:
    enqueue(machines)
    row = claimed(machines)
    complete(machines, row)

    assert conclude(machines, kind, row, 0) == 0
    assert not columns.unpack_u64(renew(machines, row).ends)[0]


# -- cancelling ----------------------------------------------------------------------------------


def test_a_cancelled_task_is_granted_to_nobody_and_stays_so(machines: Machines) -> None:
    task_id = enqueue(machines)
    cancel(machines, task_id)

    assert claim(machines) is None
    assert revive(machines, task_id) is m.Revival.CANCELLED
    assert claim(machines) is None


def test_a_leader_that_missed_the_cancelling_is_told_by_its_followers(machines: Machines) -> None:
    task_id = enqueue(machines)
    machines.is_deaf = leader_of(machines)[0]
    machines.ask(next(name for name in machines.names if name != machines.is_deaf), m.Cancel(6, 2, 0, task_id))
    machines.pass_time(50)
    machines.is_deaf = ""
    _, vnode = leader_of(machines)
    assert vnode.replica.filing.heads("q", None, 9), "it knows nothing yet"

    machines.is_lost = lambda message: isinstance(message, m.Cancel)
    assert claim(machines) is None
    assert not vnode.replica.filing.heads("q", None, 9)


def test_the_holder_of_a_cancelled_task_learns_it_by_renewing(machines: Machines) -> None:
    task_id = enqueue(machines)
    row = claimed(machines)
    assert not renew(machines, row).cancelled

    cancel(machines, task_id)
    answer = renew(machines, row)

    assert columns.unpack_u64(answer.cancelled) == (0,) and columns.unpack_u64(answer.ends)[0] > machines.now_ms
    assert conclude(machines, RELEASED, row, 0)
    assert claim(machines) is None


# -- reviving ------------------------------------------------------------------------------------


def test_only_a_dead_task_is_revived(machines: Machines) -> None:
    unknown = machines.mint.mint(machines.now_ms, 1, 0)[0]
    task_id = enqueue(machines, Retry(max_attempts=1))
    assert revive(machines, unknown) is m.Revival.NO_TASK
    assert revive(machines, task_id) is m.Revival.NOT_DEAD
    row = claimed(machines)
    assert revive(machines, task_id) is m.Revival.NOT_DEAD, "its last attempt is under way"
    conclude(machines, FAILED, row, 0)
    assert revive(machines, task_id) is m.Revival.REVIVED
    row = claimed(machines)
    assert row[0] == task_id
    complete(machines, row)
    assert revive(machines, task_id) is m.Revival.NOT_DEAD


def test_who_asks_again_is_told_that_a_task_is_revived_though_others_have_claimed_it_since(
        machines: Machines) -> None:
    task_id = enqueue(machines, Retry(max_attempts=1))
    conclude(machines, FAILED, claimed(machines), 0)
    assert revive(machines, task_id) is m.Revival.REVIVED
    row = claimed(machines)
    known = history(machines, task_id)

    assert revive(machines, task_id) is m.Revival.REVIVED
    assert history(machines, task_id) == known, "it began anew once"
    renew(machines, row)


@pytest.mark.parametrize(("claims", "outcome"), [
    (CLAIMS_FOR_LIFE - 1, m.Revival.REVIVED), (CLAIMS_FOR_LIFE, m.Revival.TOO_OLD)])
def test_a_task_that_was_claimed_too_often_over_its_rounds_is_revived_no_more(
        machines: Machines, claims: int, outcome: m.Revival) -> None:
    """Its history would fit no page of an election, and then nobody could lead its partition."""
    task_id = enqueue(machines)
    holder = "h" * 200
    lived = History(claims=LatticeMap({token_of(1, number): ClaimRecord(1, Max(2), ending_of(SNOOZED, 3), holder)
                                       for number in range(1, claims + 1)}),
                    revived=revival_of(7, token_of(1, 1)), died=death_of(7, TOO_MANY_CLAIMS))
    for name in machines.names:
        machines.nodes[name].view.vnodes[0].replica.join_history(machines.now_ms, task_id, lived, None)

    assert revive(machines, task_id) is outcome
    assert len(lived.encode()) * (claims + CLAIMS_MAX) // claims < DEFAULT_LIMITS.page_bytes * 3 // 4


def test_of_several_tasks_each_is_told_its_own(machines: Machines) -> None:
    dead, alive = enqueue(machines, Retry(max_attempts=1)), b""
    conclude(machines, FAILED, claimed(machines), 0)
    alive = enqueue(machines)

    answer = ask(machines, m.Revive(7, alive + dead + alive))

    assert isinstance(answer, m.Revived)
    assert list(answer.outcomes) == [m.Revival.NOT_DEAD, m.Revival.REVIVED, m.Revival.NOT_DEAD]


# -- the pause -----------------------------------------------------------------------------------


def test_the_pause_grows_by_its_factor_up_to_its_longest_and_jitters_by_data() -> None:
    plain = Retry(backoff_ms=100, factor_percent=300, backoff_max_ms=2_000, jitter_percent=0)
    task_ids = [bytes([n]) * ids.ID_BYTES for n in range(200)]
    jittered = Retry(backoff_ms=1_000, jitter_percent=10)

    assert [pause_ms(plain, attempts, task_ids[0], 7) for attempts in range(1, 6)] == [100, 300, 900, 2_000, 2_000]
    assert pause_ms(Retry(backoff_ms=0), 900, task_ids[0], 7) == 0
    drawn = [pause_ms(jittered, 1, task_id, 7) for task_id in task_ids]
    assert drawn == [pause_ms(jittered, 1, task_id, 7) for task_id in task_ids]
    assert 900 <= min(drawn) < 920 and 1_080 < max(drawn) <= 1_100 and len(dict.fromkeys(drawn)) > 100


@pytest.mark.parametrize("lost", [m.Renewed, m.Amended])
@pytest.mark.parametrize("kind", [FAILED, SNOOZED, RELEASED])
def test_what_a_leader_may_have_recorded_before_it_was_deposed_is_not_refused(
        machines: Machines, kind: int, lost: type[m.Message]) -> None:
    """Asked again it said that it did not lead, and that was taken for its word on the first time as well."""
    enqueue(machines)
    task_id, token = claimed(machines)
    machines.is_lost = lambda message: isinstance(message, lost)
    coordinator = next(name for name in machines.names if name != leader_of(machines)[0])
    machines.ask(coordinator, m.Conclude(3, kind, 5_000, task_id, columns.pack_u64([token])), b"holder")
    machines.pass_time(100)
    for name in machines.names:
        machines.give(name, SessionChanged(Session.LOST))
    machines.is_lost = lambda message: False
    machines.pass_time(6_000)

    assert all(decode_history(store.get("history", b"\0\0" + task_id)).claims.entries[token].kind == kind
               for store in machines.stores.values())
    answer, = machines.answers_to(b"holder")
    assert isinstance(answer, m.Failed) and not answer.is_definite


def coordinator_of(machines: Machines) -> str:
    return next(name for name in machines.names if name != leader_of(machines)[0])


def test_what_a_leader_did_when_it_was_asked_first_is_not_refused_at_the_second_asking(machines: Machines) -> None:
    """The task was completed between a renewal and its repetition, whose answer was taken for one on both."""
    enqueue(machines)
    task_id, token = claimed(machines)
    end_ms = history(machines, task_id).claims.entries[token].end.value
    machines.is_lost = lambda message: isinstance(message, m.Renewed)
    machines.ask(coordinator_of(machines), m.Renew(4, 2 * LEASE_MS, task_id, columns.pack_u64([token])), b"holder")
    complete(machines, (task_id, token))
    machines.is_lost = lambda message: False
    machines.pass_time(1_000)

    assert history(machines, task_id).claims.entries[token].end.value > end_ms
    answer, = machines.answers_to(b"holder")
    assert isinstance(answer, m.Renewed)
    assert list(columns.unpack_u64(answer.unknown)) == [0]


def test_a_revival_is_not_refused_at_the_second_asking_though_the_task_has_ended_since(machines: Machines) -> None:
    task_id = enqueue(machines, Retry(max_attempts=1))
    conclude(machines, FAILED, claimed(machines), 0)
    machines.is_lost = lambda message: isinstance(message, m.Revived)
    machines.ask(coordinator_of(machines), m.Revive(7, task_id), b"friend")
    machines.pass_time(20)
    complete(machines, claimed(machines))
    machines.is_lost = lambda message: False
    machines.pass_time(1_000)

    assert history(machines, task_id).round == 1
    answer, = machines.answers_to(b"friend")
    assert isinstance(answer, m.Revived)
    assert list(answer.outcomes) == [m.Revival.UNKNOWN]


def test_what_a_deposed_leader_may_have_done_is_not_refused_by_the_next_one(machines: Machines) -> None:
    enqueue(machines)
    task_id, token = claimed(machines)
    machines.is_lost = lambda message: isinstance(message, m.Renewed)
    coordinator = coordinator_of(machines)
    machines.ask(coordinator, m.Renew(4, 2 * LEASE_MS, task_id, columns.pack_u64([token])), b"holder")
    complete(machines, (task_id, token))
    for state in (Session.LOST, Session.CONNECTED):
        for name in machines.names:
            machines.give(name, SessionChanged(state))
        machines.pass_time(100)
    machines.is_lost = lambda message: False
    machines.pass_time(6_000)

    answer, = machines.answers_to(b"holder")
    assert isinstance(answer, m.Renewed)
    assert list(columns.unpack_u64(answer.unknown)) == [0]


def test_what_no_leader_was_asked_twice_is_refused(machines: Machines) -> None:
    enqueue(machines)
    task_id, token = claimed(machines)
    leader, _ = leader_of(machines)
    coordinator = next(name for name in machines.names if name != leader)
    machines.give(leader, SessionChanged(Session.LOST))
    machines.reads_failing = 10_000
    machines.ask(coordinator, m.Conclude(3, FAILED, 0, task_id, columns.pack_u64([token])), b"holder")
    machines.pass_time(6_000)

    answer, = machines.answers_to(b"holder")
    assert isinstance(answer, m.Failed) and (answer.code, answer.is_definite) == ("no_leader", True)


# -- cancelling what is not there ----------------------------------------------------------------------


def test_what_is_enqueued_where_an_unknown_task_was_to_be_cancelled_lives(machines: Machines) -> None:
    unknown = machines.mint.mint(machines.now_ms, 1, 0)[0]

    answer = ask(machines, m.Cancel(6, 0, 0, unknown))

    assert isinstance(answer, m.Failed) and answer.is_definite
    assert (answer.code, ids.to_text(unknown) in answer.text) == ("no_such_task", True)
    assert not any(store.rows("history") for store in machines.stores.values())
    assert not any(node._reads.interests.watchers for node in machines.nodes.values()), "nobody waits for it"
    batch = m.TaskBatch(Header("q").encode(), unknown, columns.pack([b"x"]))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    assert claimed(machines)[0] == unknown


def test_where_one_task_is_unknown_none_is_cancelled(machines: Machines) -> None:
    known, unknown = enqueue(machines), machines.mint.mint(machines.now_ms, 1, 0)[0]

    answer = ask(machines, m.Cancel(6, 0, 0, known + unknown))

    assert isinstance(answer, m.Failed) and answer.code == "no_such_task"
    assert claimed(machines)[0] == known


def test_a_task_is_cancelled_also_where_it_is_not_known_yet(machines: Machines) -> None:
    leader, _ = leader_of(machines)
    other = next(name for name in machines.names if name != leader)
    machines.is_lost = lambda message: isinstance(message, m.Replicate | m.Compare)
    machines.is_deaf = leader
    task_id, = machines.mint.mint(machines.now_ms, 1, 7)
    batch = m.TaskBatch(Header("q").encode(), task_id, columns.pack([b"x"]))
    machines.ask(other, m.Enqueue(1, 1, (batch,)), b"me")
    machines.pass_time(50)
    machines.is_deaf = ""
    known = [name for name, store in machines.stores.items() if store.rows("body")]
    assert known == [other]

    machines.ask(other, m.Cancel(6, 3, 0, task_id), b"actor")
    machines.pass_time(200)

    assert isinstance(machines.answers_to(b"actor")[-1], m.Acked)
    assert all(store.rows("history") for store in machines.stores.values())


def test_many_tasks_are_cancelled_by_one_request(machines: Machines) -> None:
    made = machines.mint.mint(machines.now_ms, 2 * m.ENDS_MAX + 1, 7)
    batch = m.TaskBatch(Header("q").encode(), b"".join(made), columns.pack([b"x"] * len(made)))
    assert isinstance(ask(machines, m.Enqueue(1, 0, (batch,))), m.Acked)
    unknown = machines.mint.mint(machines.now_ms, 1, 7)[0]

    refused = ask(machines, m.Cancel(6, 0, 0, b"".join([*made, unknown])))
    assert isinstance(refused, m.Failed) and refused.text.startswith("ids: 1 were")
    assert isinstance(ask(machines, m.Cancel(6, 0, 0, b"".join(made))), m.Acked)

    assert claim(machines) is None
