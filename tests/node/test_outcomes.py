"""How claims and tasks end: what no client can say or see. All else is in ``scripts/outcomes.txt``."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import DEFAULT_RETRY, Header, Retry
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
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.outcomes import ERROR_SEQ, RESULT_SEQ, entries_of, result_of
from skuld_py.model.retrying import pause_ms
from skuld_py.model.task import LogEntry, view
from skuld_py.node.claims.verdicts import open_claim
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.vnode import Vnode

LEASE_MS = 20_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def leader_of(machines: Machines) -> tuple[str, Vnode]:
    name = machines.documents[0][1].leader
    return name, machines.nodes[name].view.vnodes[0]


def enqueue(machines: Machines, retry: Retry = DEFAULT_RETRY) -> bytes:
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


def claimed(machines: Machines) -> tuple[bytes, int]:
    """Id and token."""
    answer = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, "w"))
    assert isinstance(answer, m.Claimed)
    batch, = answer.batches
    return batch.ids, batch.first_token


def complete(machines: Machines, row: tuple[bytes, int], result: bytes) -> None:
    answer = ask(machines, m.Complete(5, 0, 0, row[0], columns.pack_u64([row[1]]), b"", columns.pack([result])))
    assert isinstance(answer, m.Acked)


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


# -- ending a claim ------------------------------------------------------------------------------


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


# -- completing ----------------------------------------------------------------------------------


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


def test_of_two_results_of_one_claim_copies_that_heard_different_ones_agree() -> None:
    rows = [(bytes(ids.ID_BYTES), 1 << 32)]
    one, two = (Replica(0, MemoryStore(), 0) for _ in range(2))
    for replica, results in ((one, (b"b", b"a", b"c")), (two, (b"c", b"b", b"a"))):
        for result in results:
            replica.note_outcomes(RESULT_SEQ, [rows[0][0]], [rows[0][1]], [result])

    assert one.tree.root == two.tree.root
    assert one.outcomes(rows[0][0], [(1 << 32, RESULT_SEQ)]) == [(1 << 32, RESULT_SEQ, b"a")]


# -- reviving ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("delay_ms", [-1, 60_000])
@pytest.mark.parametrize(("attempts", "is_final", "rests"), [
    (1, False, False), (2, True, False), (2, False, True)])
def test_behind_the_last_attempt_there_is_no_pause_and_so_its_time_is_that_of_the_death(
        machines: Machines, delay_ms: int, attempts: int, is_final: bool, rests: bool) -> None:
    task_id = enqueue(machines, Retry(max_attempts=attempts, backoff_ms=60_000, jitter_percent=0))
    _, token = claimed(machines)
    failed_ms = machines.now_ms

    ask(machines, m.Conclude(3, FAILED, delay_ms, task_id, columns.pack_u64([token]), is_final=is_final))

    until_ms = history(machines, task_id).claims.entries[token].until_ms
    assert (until_ms - failed_ms) // 60_000 == rests and until_ms >= failed_ms


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
