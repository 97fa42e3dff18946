"""What a queue is asked for, row by row, through both Python clients, over HTTP and from the command line.

Each row is written once, against ``doors.Door``, and runs on three real nodes through all of them. What Skuld's
own suite had beside these is in ``ELSEWHERE``: row by row the test that says the same here.
"""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.asking import Asker
from node.script import read
from skuld_py import AsyncClient, Client
from skuld_py.embedded.local import LocalCluster
from system.conftest import SKEW_MS
from system.doors import Door, Held, Http, Python, Shell, Told

TESTS = Path(__file__).parents[1]
STATES = ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")
NOBODY = "0" * 32
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def gateway(shared: LocalCluster) -> Asker:
    return Asker(shared.start_gateway()[0])


@pytest.fixture(params=[*(pytest.param(name, marks=pytest.mark.slow) for name in ("sync", "async")), "http",
                        pytest.param("cli", marks=pytest.mark.slow)])
def door(request: pytest.FixtureRequest, shared: LocalCluster, gateway: Asker) -> Iterator[Door]:
    with asyncio.Runner() as runner:
        if request.param == "http":
            yield Http(gateway)
        elif request.param == "cli":
            yield Shell(shared.addresses)
        elif request.param == "sync":
            with Client(shared.addresses) as client:
                yield Python(client, runner)
        else:
            awaited = AsyncClient(shared.addresses)
            yield Python(awaited, runner)
            runner.run(awaited.close())


def one(door: Door, queue: str, lease_s: float = 30) -> Held:
    """The next task, waited for."""
    held = door.claim(queue, lease_s=lease_s, wait_s=PATIENCE_S)
    assert held, f"{queue}: nothing was granted: {door.depths(queue)}"
    return held[0]


def granted(door: Door, queue: str, count: int) -> list[Held]:
    """So many claims at least, however many come at a time; more are asked for, to be held for long."""
    held: list[Held] = []
    while len(held) < count:
        more = door.claim(queue, n=count + 5, lease_s=600, wait_s=10)
        assert more, f"{len(held)} were granted, {count} are expected"
        held += more
    return held


def refused(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(Told, match=f"^{code}$"):
        call()


def until(is_so: Callable[[], bool]) -> None:
    """Ask until it is so; each look is a request."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"


# -- queues and order --------------------------------------------------------------------------------


def test_a_queue_gives_its_own_tasks_and_no_others(door: Door, queue: str) -> None:
    mine, others = door.enqueue(queue, b"mine"), door.enqueue(f"{queue}-2", b"theirs")

    assert one(door, queue).id == mine and door.claim(queue) == []
    assert one(door, f"{queue}-2").id == others


def test_higher_priorities_go_first_and_the_older_among_equals(
    door: Door, queue: str, shared: LocalCluster
) -> None:
    with Client(shared.addresses) as client:  # ids of one partition, in which the order is exact
        ids = [str(made) for made in client.new_ids(4)]
    for task_id, priority in zip(ids, (0, 7, -2147483648, 7), strict=True):
        door.enqueue(queue, b"x", priority=priority, id=task_id)

    assert [one(door, queue).id for _ in ids] == [ids[1], ids[3], ids[0], ids[2]]


def test_who_waits_gets_the_task_that_becomes_claimable(door: Door, queue: str) -> None:
    begun = time.monotonic()
    task_id = door.enqueue(queue, b"x", after_s=1.0)

    early = door.claim(queue)
    started = time.monotonic()
    assert not early or started - begun >= 1.0 - SKEW_MS / 1000
    held, = early or door.claim(queue, wait_s=20)
    assert held.id == task_id and time.monotonic() - started < 10


def test_nothing_is_claimed_from_a_paused_queue(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x")

    assert door.pause(queue) == [] and queue in door.paused()
    assert door.claim(queue, wait_s=0.3) == []
    assert door.resume(queue) == [] and queue not in door.paused()
    assert one(door, queue).id == task_id


# -- dependencies ------------------------------------------------------------------------------------


def test_a_task_is_claimed_after_all_that_it_waits_for_are_done(door: Door, queue: str) -> None:
    needed = [door.enqueue(f"{queue}-needed", b"x") for _ in range(2)]
    waiting = door.enqueue(queue, b"last", deps=needed)

    assert door.claim(queue, wait_s=0.3) == [] and door.get(waiting).state == "blocked"
    door.complete(one(door, f"{queue}-needed"))
    assert door.claim(queue, wait_s=0.3) == []
    door.complete(one(door, f"{queue}-needed"))

    assert one(door, queue).id == waiting


@pytest.mark.parametrize(("policy", "state"), [("wait", "blocked"), ("fail", "dead"), ("ignore", "waiting")])
def test_what_becomes_of_it_when_one_of_them_is_cancelled_says_its_policy(
    door: Door, queue: str, policy: str, state: str
) -> None:
    needed, done = (door.enqueue(f"{queue}-needed", b"x") for _ in range(2))
    task_id = door.enqueue(queue, b"x", deps=[needed], on_dep_failure=policy)
    follower = door.enqueue(queue, b"x", deps=[done], on_dep_failure=policy)

    door.cancel(needed)
    door.complete(one(door, f"{queue}-needed"))
    until(lambda: door.get(follower).state == "waiting" and door.get(task_id).state == state)

    assert door.get(task_id).death == ("dep_failed" if policy == "fail" else None)


def test_a_task_that_nobody_knows_is_waited_for_until_the_deadline(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", deps=[NOBODY[:-1] + "g"], on_dep_failure="fail", dep_wait_s=0)

    until(lambda: door.get(task_id).state == "dead")
    assert door.get(task_id).death == "dep_unknown"


# -- time --------------------------------------------------------------------------------------------


def test_a_task_is_not_claimed_before_its_time(door: Door, queue: str) -> None:
    enqueued = time.monotonic()
    task_id = door.enqueue(queue, b"x", after_s=1.5)

    def is_early() -> bool:
        return time.monotonic() - enqueued < 1.5 - SKEW_MS / 1000
    assert door.get(task_id).state == "scheduled" or not is_early()
    early = door.claim(queue)
    assert not early or not is_early()
    assert (early or [one(door, queue)])[0].id == task_id
    assert not is_early()


def test_a_task_that_nobody_claims_in_time_expires(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", after_s=0.5, within_s=1.0)

    until(lambda: door.get(task_id).state == "dead")
    assert (door.get(task_id).death, door.claim(queue)) == ("expired", [])


def test_what_fails_as_often_as_it_may_is_dead_with_its_error_until_it_is_retried(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", max_attempts=2, backoff_s=0)
    for error in ("first", "second"):
        door.fail(one(door, queue), error)

    dead = door.get(task_id)
    assert (dead.state, dead.death, dead.error) == ("dead", "exhausted", b"second")
    assert dead.outcomes == ("failed", "failed") and door.claim(queue, wait_s=0.3) == []
    door.retry(task_id)
    held = one(door, queue)
    assert held.id == task_id
    door.retry(task_id)
    assert door.get(task_id).state == "claimed", "to ask again is no second retry"
    door.complete(held)
    refused("not_dead", lambda: door.retry(task_id))


def test_a_failed_task_rests_as_its_policy_says(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", backoff_s=1.5)
    held = one(door, queue)
    failed = time.monotonic()
    door.fail(held, "no")

    def is_resting() -> bool:
        return time.monotonic() - failed < 1.5 * 0.9 - SKEW_MS / 1000
    assert door.get(task_id).state == "scheduled" or not is_resting()
    assert one(door, queue).id == task_id
    assert not is_resting()


def test_a_task_that_kills_its_workers_is_stopped_by_the_count_of_its_claims(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"poison", max_attempts=2)
    for _ in range(2):
        assert one(door, queue, lease_s=0.2).id == task_id

    until(lambda: door.get(task_id).state == "dead")
    assert door.get(task_id).outcomes == ("", "") and door.get(task_id).death == "exhausted"


# -- outcomes ----------------------------------------------------------------------------------------


def test_a_completion_has_a_result_and_is_for_good(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x")
    held = one(door, queue)

    door.complete(held, b"42")
    door.complete(held, b"42")
    door.cancel(task_id)

    done = door.get(task_id)
    assert (done.state, done.result, done.outcomes) == ("completed", b"42", ("completed",))
    assert door.claim(queue, wait_s=0.3) == []


def test_what_is_released_is_claimed_again_at_once_and_what_is_snoozed_later(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", max_attempts=1)
    door.release(one(door, queue))
    door.snooze(one(door, queue), 0.5)

    assert door.get(task_id).state == "scheduled"
    door.complete(one(door, queue))
    assert door.get(task_id).outcomes == ("released", "snoozed", "completed")


def test_what_is_cancelled_is_claimed_by_nobody(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x")
    door.cancel(task_id)

    assert door.claim(queue, wait_s=0.3) == [] and door.get(task_id).state == "cancelled"
    refused("cancelled", lambda: door.retry(task_id))


def test_who_holds_a_cancelled_task_may_still_complete_it(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x")
    held = one(door, queue)
    door.cancel(task_id)
    door.renew(held, 30)

    assert door.get(task_id).state == "claimed"
    door.complete(held)
    assert door.get(task_id).state == "completed"


# -- keys --------------------------------------------------------------------------------------------


def test_tasks_of_one_key_are_worked_on_one_after_another_the_oldest_first(door: Door, queue: str) -> None:
    ids = [door.enqueue(queue, b"x", key="k") for _ in range(3)]
    other = door.enqueue(queue, b"x", key="other")
    held = door.claim(queue, n=10, wait_s=5)
    while len(held) < 2:
        held += door.claim(queue, n=10, wait_s=5)

    assert {each.id for each in held} == {ids[0], other} and door.claim(queue, wait_s=0.3) == []
    door.fail(next(each for each in held if each.id == ids[0]), "no", retry_in_s=0)
    for task_id in ids:
        following = one(door, queue)
        assert following.id == task_id and door.claim(queue, wait_s=0.2) == []
        door.complete(following)


def test_a_unique_name_is_one_task_and_who_comes_second_gets_its_id(door: Door, queue: str) -> None:
    first = door.enqueue(queue, b"first", unique="report")
    second = door.enqueue(queue, b"second", unique="report")

    assert door.enqueue(f"{queue}-2", b"x", unique="report") != first
    if second == first:  # else the hour ended between the two
        assert door.count(queue) == 1 and door.get(first).payload == b"first"
    else:
        assert door.enqueue(queue, b"third", unique="report") == second and door.count(queue) == 2


# -- limits ------------------------------------------------------------------------------------------


def test_of_a_limited_queue_so_many_are_held_at_once_and_no_more(door: Door, queue: str) -> None:
    ids = {door.enqueue(queue, b"x") for _ in range(5)}
    assert door.limit(queue, concurrency=2) == [] and door.limits(queue) == {"concurrency": 2}

    held = granted(door, queue, 2)
    assert len(held) == 2 and door.claim(queue, n=5, wait_s=0.3) == []
    door.complete(held[0])
    held += granted(door, queue, 1)
    assert len(held) == 3 and door.claim(queue, n=5, wait_s=0.3) == []

    assert door.unlimit(queue) == [] and door.limits(queue) == {}
    held += granted(door, queue, 2)
    assert len(held) == 5 and {each.id for each in held} == ids


def test_claims_of_before_a_limit_are_counted_and_go_on(door: Door, queue: str) -> None:
    for _ in range(3):
        door.enqueue(queue, b"x")
    held = one(door, queue, lease_s=600)
    assert door.limit(queue, concurrency=1) == []

    assert door.claim(queue, n=3, wait_s=0.3) == []
    door.renew(held, 600)
    door.complete(held)
    assert len(granted(door, queue, 1)) == 1 and door.claim(queue, n=3, wait_s=0.3) == []


def test_limits_are_set_all_together(door: Door, queue: str) -> None:
    assert door.limit(queue, concurrency=2, rate=90, per_s=60, key_concurrency=3) == []
    assert door.limits(queue) == {"concurrency": 2, "rate": 90, "window_ms": 60_000, "burst": 2,
                                  "key_concurrency": 3}

    assert door.limit(queue, rate=1, burst=7) == []
    assert door.limits(queue) == {"rate": 1, "window_ms": 1_000, "burst": 7}
    assert door.unlimit(queue) == [] and door.limits(queue) == {}


def test_of_a_queue_with_a_rate_no_more_are_claimed_than_it_gives(door: Door, queue: str) -> None:
    """Nothing is said of how long it takes at most: machines may be slow."""
    ids = {door.enqueue(queue, b"x") for _ in range(8)}
    assert door.limit(queue, rate=3, burst=2) == []

    begun = time.monotonic()
    held = granted(door, queue, len(ids))
    assert time.monotonic() - begun >= (len(ids) - 2) / 3 * 0.99
    assert sorted(each.id for each in held) == sorted(ids)


def test_of_each_key_so_many_are_held_at_once_as_its_queue_says(door: Door, queue: str) -> None:
    assert door.limit(queue, key_concurrency=2) == []
    ids = [door.enqueue(queue, b"x", key="k") for _ in range(4)]
    other = door.enqueue(queue, b"x", key="other")

    held = {each.id: each for each in granted(door, queue, 3)}
    assert {*held} == {ids[0], ids[1], other} and door.claim(queue, n=5, wait_s=0.3) == []
    door.complete(held[ids[0]])
    third, = granted(door, queue, 1)
    assert third.id == ids[2] and door.claim(queue, n=5, wait_s=0.3) == []


# -- periodic tasks and groups -----------------------------------------------------------------------


def test_a_schedule_makes_a_task_at_each_tick_until_it_is_removed(door: Door, queue: str) -> None:
    assert door.put_schedule(queue, queue, b"tick", every_s=0.2) == []

    first, second = one(door, queue), one(door, queue)
    assert (first.payload, second.payload) == (b"tick", b"tick") and first.id < second.id
    assert queue in door.schedules() and door.remove_schedule(queue) == []
    assert queue not in door.schedules()
    while door.claim(queue, n=100, wait_s=1):
        pass
    assert door.claim(queue, wait_s=1) == []
    refused("no_such_schedule", lambda: door.remove_schedule(queue))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_stands_behind_a_group_reads_its_results(shared: LocalCluster, queue: str, kind: str) -> None:
    """In Python only: a group is made of enqueues with dependencies."""
    with asyncio.Runner() as runner, Client(shared.addresses) as blocking:
        awaited = AsyncClient(shared.addresses)
        steps, then = [(f"{queue}-parts", b"part")] * 5, (queue, b"sum")
        made = runner.run(awaited.chord(steps, then)) if kind == "async" else blocking.chord(steps, then)
        runner.run(awaited.close())
        assert blocking.claim(queue, wait_s=0.3) == []

        for number, held in enumerate(blocking.claim(f"{queue}-parts", n=5, wait_s=5), 1):
            blocking.complete(held, str(number))
        last = blocking.claim_one(queue, wait_s=10)
        assert last is not None
        parts = blocking.results(made.steps)

    assert last.id == made.then and sorted(int(part or b"0") for part in parts) == [1, 2, 3, 4, 5]


# -- logs and reading --------------------------------------------------------------------------------


def test_a_log_is_numbered_and_read_up_to_its_first_gap(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x")
    first = one(door, queue)
    assert [door.append(first, seq, entry) for seq, entry in ((0, b"a"), (2, b"c"), (0, b"a"))] == [1, 3, 1]
    assert door.get(task_id).logs == ((b"a",),)
    refused("conflict", lambda: door.append(first, 0, b"b"))
    door.append(first, 1, b"b")
    door.release(first)
    second = one(door, queue)
    door.append(second, 0, b"again")

    assert door.get(task_id).logs == ((b"a", b"b", b"c"), (b"again",))


def test_who_waits_for_a_task_is_told_how_it_ended(door: Door, queue: str) -> None:
    done, dying = door.enqueue(queue, b"x"), door.enqueue(queue, b"x", after_s=0.5, within_s=1.0)
    assert door.ends(done, 0) == ("", None)
    door.complete(one(door, queue), b"42")

    assert (door.ends(done, 20), door.ends(dying, 20)) == (("completed", b"42"), ("dead", None))


def test_what_a_producer_gave_is_read_as_it_was(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, "Zürich \N{GRINNING FACE}".encode(), priority=-7, headers={"trace": "7"})

    task = door.get(task_id)
    assert (task.payload.decode(), task.priority, task.headers) == ("Zürich \N{GRINNING FACE}", -7, {"trace": "7"})
    assert (task.queue, task.state, task.outcomes) == (queue, "waiting", ())
    refused("no_such_task", lambda: door.get(NOBODY))


def test_the_same_id_is_the_same_task_and_other_content_is_refused(door: Door, queue: str) -> None:
    task_id = door.enqueue(queue, b"x", w=3)

    assert door.enqueue(queue, b"x", id=task_id) == task_id
    refused("conflict", lambda: door.enqueue(queue, b"y", id=task_id))
    assert door.count(queue) == 1


def test_tasks_are_counted_by_state(door: Door, queue: str) -> None:
    for _ in range(3):
        door.enqueue(queue, b"x")
    door.enqueue(queue, b"x", after_s=600)
    door.cancel(door.enqueue(queue, b"x"))
    door.complete(one(door, queue))
    held = one(door, queue)

    assert door.depths(queue) == {**dict.fromkeys(STATES, 0), "completed": 1, "claimed": 1, "waiting": 1,
                                  "scheduled": 1, "cancelled": 1}
    assert door.count(queue) == 5 and held.payload == b"x"


# -- the original's own cluster tests ----------------------------------------------------------------


def test_ten_tasks_are_counted_and_listed_in_the_order_of_their_ids(door: Door, queue: str) -> None:
    """C2 to C5: what is on all three copies is counted and listed, whole."""
    ids = [door.enqueue(queue, f"{number}".encode(), w=3) for number in range(10)]

    assert door.count(queue) == 10
    assert door.list(queue) == sorted((task_id, f"{number}".encode()) for number, task_id in enumerate(ids))


def test_a_task_is_enqueued_read_claimed_and_completed(door: Door, queue: str) -> None:
    """C1, C6, C8, C9, K1."""
    task_id = door.enqueue(queue, b"hi there", w=3)
    fresh = door.get(task_id)
    held = one(door, queue, lease_s=300)
    claimed = door.get(task_id)
    door.complete(held)

    assert (fresh.payload, fresh.outcomes, claimed.outcomes) == (b"hi there", (), ("",))
    assert held.id == task_id and door.get(task_id).outcomes == ("completed",)


def test_a_claim_that_lapsed_is_granted_again_after_the_skew_bound(door: Door, queue: str) -> None:
    """K2: neither while it is held, nor within the bound after it."""
    task_id = door.enqueue(queue, b"x", w=3)
    asked = time.monotonic()
    first = one(door, queue, lease_s=1)

    early = door.claim(queue)
    assert not early or time.monotonic() - asked >= 1
    second = early[0] if early else one(door, queue)
    assert time.monotonic() - asked >= 1
    assert second.id == first.id == task_id and second.token > first.token
    assert door.get(task_id).payload == b"x" and len(door.get(task_id).outcomes) == 2
    refused("fenced", lambda: door.renew(first, 30))


def test_a_claim_that_lapsed_may_still_complete_its_task(door: Door, queue: str) -> None:
    """K3, T19, T20."""
    task_id = door.enqueue(queue, b"x")
    held = one(door, queue, lease_s=0.05)
    until(lambda: door.get(task_id).state == "waiting")

    door.complete(held)

    assert door.get(task_id).state == "completed" and door.claim(queue, wait_s=0.3) == []


def test_a_hundred_tasks_are_each_claimed_once(door: Door, queue: str, shared: LocalCluster) -> None:
    """X1."""
    with Client(shared.addresses) as client:
        ids = {str(made) for made in client.enqueue_many(queue, [b"x"] * 100, w=3)}
    claimed: list[str] = []
    while held := door.claim(queue, n=20, lease_s=100, wait_s=1):
        claimed += [each.id for each in held]

    assert len(claimed) == len({*claimed}) == 100 and {*claimed} == ids


REPLICA, LAWS, IDS = "partition/test_replica.py::", "crdt/test_laws.py::", "model/test_ids.py::"
LMDB, TRANSPORT, VERBS = "runtime/test_lmdb_store.py::", "runtime/test_transport.py::", "gateway/test_verbs.py::"
MERKLE, CLAIMING = "partition/test_merkle.py::", "node/test_claiming.py::"
VETO = REPLICA + "test_a_grant_is_vetoed_by_any_other_claim_that_may_be_held"
JOIN = LAWS + "test_merge_is_commutative_associative_idempotent_and_forgets_nothing"
ELSEWHERE = {
    **dict.fromkeys(("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8"), JOIN),
    "T9": CLAIMING + "test_a_claim_is_renewed_until_its_end_and_not_a_moment_later",
    "T10": CLAIMING + "test_a_lapsed_claim_is_granted_again_after_the_skew_bound_and_not_before",
    "T11": CLAIMING + "test_ids_of_a_batch_are_checked_for_their_partition",
    "T12": REPLICA + "test_a_completed_task_is_vetoed_even_when_its_very_claim_is_known",
    **dict.fromkeys(("T13", "T14", "T15", "T16", "T17"), VETO),
    "T18": REPLICA + "test_two_replicas_that_swap_their_histories_are_equal",
    "T19": "node/scripts/outcomes.txt::completion goes before whatever else happened",
    "T20": REPLICA + "test_a_completed_task_is_vetoed_even_when_its_very_claim_is_known",
    "Q1": REPLICA + "test_the_same_id_with_another_body_is_refused_and_nothing_changes",
    "Q2": REPLICA + "test_the_head_of_a_queue_is_the_highest_priority_then_the_oldest",
    "S1": LMDB + "test_what_is_no_store_is_refused_and_let_go",
    "S2": JOIN,
    "S3": REPLICA + "test_indexes_and_counts_follow_from_the_data",
    "S4": LMDB + "test_scans_and_seeks_keep_to_their_bounds",
    "F1": IDS + "test_ids_rise_whatever_the_clock_does",
    "F2": IDS + "test_ids_rise_whatever_the_clock_does",
    "F3": IDS + "test_the_route_alone_decides_the_partition",
    "N1": "wire/test_codec.py::test_every_message_comes_back_equal_and_in_the_same_bytes",
    "N2": TRANSPORT + "test_peers_send_to_each_other_all_messages_of_a_call_in_one_envelope",
    "N3": TRANSPORT + "test_a_client_is_answered_on_its_own_connection",
    "N4": "node/test_storing.py::",
    "N5": CLAIMING + "test_a_claim_goes_on_without_a_peer_that_is_silent_until_the_claim_s_own_deadline",
    "U1": "node/test_granting.py::test_the_best_task_over_all_partitions_comes_first",
    "C7": VERBS + "test_the_routes_of_the_original",
    "C10": VERBS + "test_the_routes_of_the_original",
    "C11": VERBS + "test_the_routes_of_the_original",
    "C12": VERBS + "test_an_unknown_task_is_404",
    "L1": "simulation/test_campaign.py::test_every_promise_is_kept",
    "L2": "simulation/test_campaign.py::test_every_promise_is_kept",
    "X2": "system/test_kill.py::test_a_node_is_killed_under_load",
    "M1": MERKLE + "test_the_tree_is_that_of_a_scan_after_any_changes_and_during_any_draft",
    "M2": "partition/test_exchange.py::",
}
"""Rows of the original's suite, by their kind and number, and what says the same of this one. F4, U3 and U4 were
benchmarks and helpers that nothing here has; M are the tests of its tree library."""


@pytest.mark.parametrize("row", ELSEWHERE)
def test_what_the_original_tested_elsewhere_is_tested_here(row: str) -> None:
    file, _, name = ELSEWHERE[row].partition("::")
    names = {node.name for node in ast.walk(ast.parse((TESTS / file).read_text()))
             if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
             } if file.endswith(".py") else {script.title for script in read(TESTS / file)}

    assert names and (not name or name in names), f"{file} has no {name}"
