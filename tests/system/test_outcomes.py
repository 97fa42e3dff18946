"""Claims that fail, tasks that are cancelled and die and come back: both clients against real processes."""

from __future__ import annotations

import asyncio

import pytest

from gateway.asking import until_true
from skuld_py import AsyncClient, Claim, Client, Fenced, Refused, Retry
from skuld_py.embedded.local import LocalCluster
from system.conftest import claim_all_async

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
TWICE = Retry(max_attempts=2, backoff_s=0)


def is_cancelled_at_renewal(client: Client, claim: Claim) -> bool:
    """The leader may be the one of three that has not heard of it yet."""
    client.renew(claim)
    return claim.is_cancelled


def test_a_life_of_failures_with_the_blocking_client(shared: LocalCluster, queue: str) -> None:
    with Client(shared.addresses) as client:
        task_id = client.enqueue(queue, b"x", retry=TWICE)
        first = client.claim_one(queue)
        assert first is not None
        client.snooze(first, 0.2)
        second = client.claim_one(queue, wait_s=10)
        assert second is not None and second.token > first.token
        client.fail(second, "disk full")
        third = client.claim_one(queue, wait_s=10)
        assert third is not None
        assert client.fail_many([second, third], ["disk full", "again"]) == [True, True]
        with pytest.raises(Fenced):
            client.snooze(third, 1)

        assert client.claim(queue, wait_s=1) == []
        task = client.get(task_id)
        assert [claim.outcome for claim in task.claims] == ["snoozed", "failed", "failed"]
        assert (task.error, task.result) == (b"again", None)

        client.retry(task_id)
        fourth = client.claim_one(queue, wait_s=10)
        assert fourth is not None
        client.cancel(task_id)
        until_true(lambda: is_cancelled_at_renewal(client, fourth))
        client.release(fourth)
        assert client.claim(queue, wait_s=1) == []
        with pytest.raises(Refused, match="cancelled"):
            client.retry(task_id)
        client.complete(fourth, b"all the same")
        assert client.results([task_id]) == [b"all the same"]


def test_a_life_of_failures_with_the_asynchronous_client(shared: LocalCluster, queue: str) -> None:
    async def live() -> None:
        async with AsyncClient(shared.addresses) as client:
            ids = await client.enqueue_many(queue, [b"x"] * 20, retry=Retry(max_attempts=1))
            claims = await claim_all_async(client, queue, 20)
            await asyncio.gather(*(client.fail(claim, f"error {index}") for index, claim in enumerate(claims)))
            errors = {claim.id: f"error {index}".encode() for index, claim in enumerate(claims)}
            assert {task.id: task.error for task in await client.get_many(ids)} == errors
            assert await client.claim(queue, wait_s=1) == []

            await client.retry(*ids[:11])
            await client.cancel(*ids[11:])
            again = await claim_all_async(client, queue, 11)
            assert sorted(claim.id for claim in again) == ids[:11]
            await client.retry(*ids[:3])
            assert {task.state for task in await client.get_many(ids[:3])} == {"claimed"}
            await asyncio.gather(*(client.complete(claim, bytes(claim.id)) for claim in again))
            with pytest.raises(Refused, match="not_dead"):
                await client.retry(*ids[:3])
            assert await client.results(ids) == [*ids[:11], *[None] * 9]
    asyncio.run(live())
