"""The cluster in memory: its time, its workers, and that it is light to import. Its verbs: tests/client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

import skuld_py
from skuld_py import Fenced, Refused, Retry, TaskContext
from skuld_py.client.reading import Depth
from skuld_py.testing import AsyncMemoryClient, MemoryClient, MemoryCluster

NOW = 1_900_000_000.0
SKEW_S = 2.0


@skuld_py.task(queue="sums")
def add(spark: Any, context: TaskContext, a: int, b: int) -> int:
    context.log(f"adding to {a}")
    return a + b


@skuld_py.task(queue="sums", priority=3)
def add_again(spark: Any, context: TaskContext, times: int) -> int:
    for number in range(times):
        add.send(number, number)
    return times


@skuld_py.task(queue="sums")
def fail(spark: Any, context: TaskContext, words: str) -> None:
    raise ValueError(words)


@skuld_py.task(queue="sums")
def see(spark: Any, context: TaskContext) -> list[Any]:
    return [spark, context.attempt, context.queue, context.is_lost]


@skuld_py.task(queue="sums")
def sleep(spark: Any, context: TaskContext) -> list[bool]:
    before = context.is_lost
    spark.advance(7_200)
    return [before, context.is_lost]


@skuld_py.task(queue="sums")
def add_all(spark: Any, context: TaskContext) -> int:
    return sum(int(result or b"0") for result in context.results())


def test_functions_are_steps_and_read_the_results_of_those_before() -> None:
    client = MemoryClient(now=NOW)
    _, total = client.chord([add.step(number, 1) for number in range(1_100)], add_all.step())
    doubled, = client.chain([add_all.step()], deps=[total])

    names = [ran.name for ran in client.run_until_empty("sums")]
    assert names.count("skuld:join") == 2 and len(names) == 1_100 + 2 + 2
    assert client.results([total, doubled]) == [sum(range(1, 1_101))] * 2
    assert add.step(1, 2) == ("sums", add.call(1, 2))


def test_time_stands_still_until_it_is_moved() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"x")
    claim = client.claim_one("q", lease_s=60)
    assert claim is not None and claim.end_ms == round(NOW * 1000) + 60_000
    remaining_s = claim.remaining_s

    assert client.claim_one("q") is None
    client.advance(59)
    assert claim.remaining_s == pytest.approx(remaining_s - 59)
    assert client.claim_one("q") is None
    client.advance(2)
    assert client.claim_one("q") is None, "clocks of a cluster may differ by two seconds"
    client.advance(1)
    again = client.claim_one("q")
    assert again is not None and again.token > claim.token
    with pytest.raises(Fenced):
        client.renew(claim)


def test_who_waits_for_a_task_moves_the_time() -> None:
    client = MemoryClient(now=NOW)

    assert client.claim("q", wait_s=30) == []
    assert client.cluster.steady_s() == NOW + 30


def test_who_waits_for_a_lease_to_end_gets_the_task_when_it_does() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"x")
    client.claim("q", lease_s=10)

    assert len(client.claim("q", wait_s=30)) == 1
    assert client.cluster.steady_s() - NOW == 10 + SKEW_S


def test_a_day_passes_quickly_and_the_node_still_leads() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"x")
    client.advance(86_400)

    assert client.claim_one("q") is not None


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_time_moves_forward_only(seconds: float) -> None:
    with pytest.raises(Refused, match="seconds"):
        MemoryClient().advance(seconds)


def test_two_clients_share_a_cluster_and_two_clusters_nothing() -> None:
    cluster = MemoryCluster(NOW)
    first, second = cluster.client(holder="first"), MemoryClient(holder="second", cluster=cluster)
    first.enqueue("q", b"x")
    claim = second.claim_one("q")

    assert claim is not None
    assert [made.holder for made in first.get(claim.id).claims] == ["second"]
    assert MemoryClient(now=NOW).count() == 0


def test_tasks_are_run_until_none_waits_in_their_order() -> None:
    client = MemoryClient()
    with skuld_py.using(client):
        ids = [add.send(1, 2), add_again.send(2)]
    with skuld_py.using(client):
        ran = client.run_until_empty("sums")

    assert [(each.name.partition(":")[2], each.value) for each in ran] == [
        ("add_again", 2), ("add", 3), ("add", 0), ("add", 2)]
    task = client.get(ids[0])
    assert task.is_completed and task.result == 3
    assert [b"adding to 1" in entry for entry in task.claims[0].log] == [True]


def test_a_function_gets_the_spark_of_the_test_and_a_real_context() -> None:
    client, spark = MemoryClient(), "spark"
    see.send_with(client=client)()

    assert client.run_until_empty("sums", spark=spark)[0].value == ["spark", 1, "sums", False]


def test_a_lease_ends_by_the_clock_of_the_test() -> None:
    client = MemoryClient(now=NOW)
    sleep.send_with(client=client)()

    assert client.run_until_empty("sums", spark=client)[0].value == [False, True]


def test_an_error_is_raised_and_its_task_is_tried_again_when_its_policy_says() -> None:
    client = MemoryClient()
    failing = fail.send_with(client=client, priority=1)("no such day")
    add.send_with(client=client)(1, 1)

    with pytest.raises(ValueError, match="no such day"):
        client.run_until_empty("sums")
    assert client.depths()["sums"] == Depth(1, 0, 0, scheduled=1)
    claim, = client.get(failing).claims
    assert claim.outcome == "failed" and (claim.error or b"").startswith(b"ValueError: no such day\n")
    client.advance(2)
    with pytest.raises(ValueError, match="no such day"):
        client.run_until_empty("sums")
    assert len(client.get(failing).claims) == 2


def test_or_it_is_told_and_the_others_run() -> None:
    client = MemoryClient()
    with skuld_py.using(client):
        fail.send_with(priority=1)("no such day")
        add.send(1, 1)
    failed, added = client.run_until_empty("sums", raises=False)

    assert isinstance(failed.error, ValueError) and added.value == 2
    assert client.depths()["sums"] == Depth(0, 0, 1, scheduled=1)


def test_what_is_no_call_is_an_error_of_the_task() -> None:
    client = MemoryClient()
    client.enqueue("sums", b"no call")
    client.enqueue("other", add.call(1, 1))
    ran = client.run_until_empty("sums", raises=False)

    assert [(each.name, type(each.error)) for each in ran] == [("", Refused)]
    assert (client.get(ran[0].id).error or b"").startswith(b"Refused: ")
    assert client.depths()["other"].waiting == 1


async def _sent() -> int:
    async with AsyncMemoryClient() as client:
        task_id = await add.send_with(client=client)(1, 2)
        assert (await client.get(task_id)).queue == "sums"
        return await client.count("sums")


def test_the_awaited_one_has_the_same_verbs() -> None:
    assert asyncio.run(_sent()) == 1


def test_it_loads_neither_spark_nor_sockets_nor_the_simulation() -> None:
    code = ("import sys, skuld_py.testing as t; t.MemoryClient().enqueue('q', b'x');"
            "print([name for name in ('pyspark', 'zmq', 'kazoo', 'lmdb', 'skuld_py.simulation.cluster',"
            " 'skuld_py.runtime') if name in sys.modules])")

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("lease_s", [30, 1_200, 1_790, 3_600, 14_400])
def test_a_renewed_claim_has_one_holder_however_long_its_lease(lease_s: int) -> None:
    """Renewed by the leader in part, counted as a whole by its holder, it used to have two."""
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"x")
    claim = client.claim("q", lease_s=lease_s)[0]
    for _ in range(3):
        client.advance(lease_s / 3)
        client.renew(claim, lease_s=lease_s)
        assert claim.remaining_s > lease_s * 0.99

    client.advance(claim.remaining_s - 0.001)
    assert client.claim("q") == []
    client.advance(lease_s * 0.01 + SKEW_S)
    assert client.claim("q")[0].token > claim.token


def test_hundreds_of_renewals_cost_a_lease_nothing() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"x")
    claim = client.claim("q", lease_s=1)[0]
    for _ in range(2_000):
        client.advance(0.5)
        client.renew(claim, lease_s=1)

    assert claim.remaining_s > 0.99


def test_an_expired_task_is_not_retried_only_to_expire_again() -> None:
    with MemoryClient() as client:
        until = client.cluster.steady_s() + 600
        exhausted, expired = (client.enqueue("q", b"x", retry=Retry(max_attempts=1), expires=until) for _ in "ab")
        client.fail(client.claim_one("q"), "for good")
        client.retry(exhausted)
        client.advance(1_000)

        for dead in (exhausted, expired):
            with pytest.raises(Refused) as refusal:
                client.retry(dead)
            assert refusal.value.code == "expired" and client.get(dead).state == "dead"


def test_a_unique_name_stands_for_its_task_whatever_becomes_of_it() -> None:
    with MemoryClient(now=NOW) as client:
        client.advance(1_000)
        asked_ms = client.cluster.wall_ms()
        cancelled, dead = (client.enqueue("q", b"first", unique=name, retry=Retry(max_attempts=1))
                           for name in ("cancelled", "dead"))
        assert {client.get(each).enqueued_ms for each in (cancelled, dead)} == {asked_ms}
        assert client.get(client.enqueue("q", b"plain", priority=-1)).enqueued_ms == asked_ms
        client.cancel(cancelled)
        claim = client.claim_one("q")
        assert claim is not None and claim.id == dead
        client.fail(claim)

        again = {name: client.enqueue("q", b"second", unique=name) for name in ("cancelled", "dead")}
        assert all(each.is_duplicate for each in again.values())
        assert [client.get(each).state for each in (cancelled, dead)] == ["cancelled", "dead"]
        client.retry(dead)
        assert client.get(dead).state == "waiting" and client.get(dead).payload == b"first"
        client.advance(3_600)
        assert not client.enqueue("q", b"third", unique="cancelled").is_duplicate


def test_a_unique_name_overtakes_nobody_and_is_listed_by_the_time_of_its_asking() -> None:
    with MemoryClient(now=NOW) as client:
        made: list[bytes] = []
        for number in range(4):
            client.advance(60)
            made.append(client.enqueue("q", b"x", unique="n" if number == 2 else None))
        asked = [client.get(task_id).enqueued_ms for task_id in made]
        assert made[2] < made[0] and asked == sorted(asked)

        for since, wanted in zip(asked, ({*made}, {*made[1:]}, {*made[2:]}, {made[3]}), strict=True):
            assert {task.id for task in client.list(since=since / 1000)} == wanted
            assert {task.id for task in client.list(until=since / 1000)} == {*made} - wanted
        assert [claim.id for claim in client.claim("q", n=4)] == made


def test_a_name_is_of_one_key() -> None:
    with MemoryClient(now=NOW) as client:
        made = [client.enqueue("q", b"x", unique="n", key=key) for key in ("a", "b", None, "a")]

        assert [each.is_duplicate for each in made] == [False, False, False, True]
        assert made[3] == made[0] and len({*made}) == 3


@skuld_py.task(queue="sums")
def plain_add(a: int, b: int = 1) -> int:
    return a + b


@skuld_py.task(queue="sums")
async def awaited(context: TaskContext, number: int) -> list[Any]:
    await asyncio.sleep(0)
    return [context.queue, number]


@skuld_py.task(queue="sums")
def not_yet(context: TaskContext) -> int:
    if context.attempt == 1:
        raise skuld_py.Snooze(60)
    return context.attempt


@skuld_py.task(queue="sums", retry=Retry(5, never=KeyError))
def never(error: str) -> None:
    raise {"dead": skuld_py.Dead("no such customer"), "key": KeyError("k"), "value": ValueError("v")}[error]


def test_a_function_gets_what_it_names_in_memory_too() -> None:
    client = MemoryClient()
    for payload in (plain_add.call(2), awaited.call(3)):
        client.enqueue("sums", payload)

    assert [ran.value for ran in client.run_until_empty("sums")] == [3, ["sums", 3]]


def test_an_async_function_is_run_within_an_async_test() -> None:
    client = MemoryClient()

    async def test() -> list[Any]:
        await awaited.asend_with(AsyncMemoryClient(cluster=client.cluster))(4)
        return [ran.value for ran in client.run_until_empty("sums")]

    assert asyncio.run(test()) == [["sums", 4]]


def test_a_task_that_snoozes_waits_until_the_test_moves_the_time() -> None:
    client = MemoryClient()
    task = not_yet.send_with(client=client, retry=Retry(1))()

    ran, = client.run_until_empty("sums")
    assert (ran.snoozed_s, ran.error, client.get(task).state) == (60.0, None, "scheduled")
    client.advance(60)
    assert [ran.value for ran in client.run_until_empty("sums")] == [2]


@pytest.mark.parametrize(("error", "state", "is_final"), [
    ("dead", "dead", True), ("key", "dead", True), ("value", "scheduled", False)])
def test_what_a_function_raises_says_what_becomes_of_its_task(error: str, state: str, is_final: bool) -> None:
    client = MemoryClient()
    task = never.send_with(client=client)(error)

    ran, = client.run_until_empty("sums", raises=False)
    assert (ran.is_final, ran.args, client.get(task).state) == (is_final, [error], state)
    assert client.get(task).death == ("permanent" if is_final else "")
    with pytest.raises(skuld_py.Dead if error == "dead" else (KeyError, ValueError)):
        never.send_with(client=client)(error)
        client.run_until_empty("sums")
