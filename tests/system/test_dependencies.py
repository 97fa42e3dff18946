"""Dependencies on real nodes: over partitions, with the leader of what is waited for killed in between."""

from __future__ import annotations

import asyncio

import pytest

from skuld_py import AsyncClient, Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId, partition_of
from system.conftest import await_leaders, claim_all_async

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
PARTITIONS = 8


def two_apart(client: Client) -> tuple[TaskId, TaskId]:
    """Ids of two partitions, which different nodes lead unless one node leads all."""
    leaders = [row.leader for row in client.status().partitions]
    first = client.new_ids(1)[0]
    at = partition_of(first, PARTITIONS)
    elsewhere = [each for each in range(PARTITIONS) if leaders[each] != leaders[at]]
    wanted = elsewhere or [each for each in range(PARTITIONS) if each != at]
    return first, next(then for then in iter(lambda: client.new_ids(1)[0], None)
                       if partition_of(then, PARTITIONS) in wanted)


def test_a_dependent_is_let_go_although_the_leader_of_what_it_needs_is_killed(cluster: LocalCluster) -> None:
    with Client(cluster.addresses, timeout_s=30) as client:
        first, then = two_apart(client)
        client.enqueue("then", b"2", id=then, deps=[first])
        assert client.get(then).state == "blocked"
        client.enqueue("first", b"1", id=first)
        claim = client.claim_one("first", lease_s=600, wait_s=30)
        assert claim is not None and client.claim("then", wait_s=0.5) == []

        index = cluster.addresses.index(await_leaders(client).partitions[partition_of(first, PARTITIONS)].leader)
        cluster.kill_node(index)
        client.complete(claim, b"done")
        held = client.claim_one("then", lease_s=600, wait_s=60)

        assert held is not None and held.id == then
        assert client.results([first]) == [b"done"], "who waited can read what it waited for"
        client.complete(held)
        cluster.start_node(index)
        await_leaders(client)


def test_a_join_a_chain_and_what_fails_with_the_asynchronous_client(calm: LocalCluster) -> None:
    async def live() -> None:
        async with AsyncClient(calm.addresses) as client:
            firsts = await client.enqueue_many("first", [b"x"] * 20)
            join = await client.enqueue("join", b"all", deps=firsts)
            tail = await client.enqueue("tail", b"last", deps=[join])
            doomed = await client.enqueue("doomed", b"x", deps=[firsts[0], tail], on_dep_failure="fail")
            states = {task.id: task.state async for task in client.list(states=["blocked"])}
            assert states == dict.fromkeys([join, tail, doomed], "blocked")

            for queue, count in (("first", 20), ("join", 1)):
                claims = await claim_all_async(client, queue, count)
                await asyncio.gather(*map(client.complete, claims))
            held, = await client.claim("tail", wait_s=10)
            assert held.id == tail
            assert {task.id: task.state async for task in client.list("tail")} == {tail: "claimed"}
            await client.cancel(tail)
            await client.release(held)
            dead = await client.get(doomed)
            for _ in range(100):
                if dead.state != "dead":
                    await client.claim("nothing-here", wait_s=0.1)
                    dead = await client.get(doomed)
            assert (dead.state, dead.death) == ("dead", "dep_failed")
    asyncio.run(live())
