"""What is special to the client for asyncio: many calls at once, shared requests, cancelling, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from client.doors import Script, Scripted, node_in_memory, scripted
from skuld_py import AsyncClient, Fenced, Refused, Uncertain
from skuld_py.client.claims import ClaimName
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import RELEASED, token_of

BODY = encode_body(Header("q").encode(), b"x")
LATE = m.Claimed(0, 0, (m.ClaimBatch(b"1" * 20, 7, 99, columns.pack([BODY])),))
Story = Callable[[AsyncClient, Scripted], Awaitable[None]]


def acked(_: int, message: m.Message) -> m.Message:
    """Everything is stored; every renewal holds until 99."""
    if isinstance(message, m.Renew):
        return m.Renewed(0, columns.pack_u64([99] * (len(message.ids) // 20)), b"")
    return m.Acked(0, 2)


def tell(story: Story, script: Script = acked, *, is_open: bool = True) -> Scripted:
    """Run a story with a client of a scripted door."""
    with scripted(script, is_open=is_open) as door:
        async def told() -> None:
            async with AsyncClient(door.address, timeout_s=5) as client:
                await story(client, door)
        asyncio.run(told())
    return door


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.005)


def tasks_of(message: m.Message) -> int:
    assert isinstance(message, m.Enqueue)
    return sum(len(batch.ids) // 20 for batch in message.batches)


def test_calls_of_the_same_moment_are_one_request_and_each_gets_its_own_id() -> None:
    made: list[bytes] = []

    async def story(client: AsyncClient, _: Scripted) -> None:
        made.extend(await asyncio.gather(*(client.enqueue("q", str(n).encode()) for n in range(500))))
    door = tell(story)

    sent, = door.asked
    assert isinstance(sent, m.Enqueue)
    batch, = sent.batches
    assert ids.split(batch.ids) == made and len(set(made)) == 500
    assert batch.payloads.unpack() == [str(n).encode() for n in range(500)]


def test_queues_and_priorities_share_a_request_and_other_options_do_not() -> None:
    async def story(client: AsyncClient, _: Scripted) -> None:
        await asyncio.gather(client.enqueue("a", b"1"), client.enqueue("b", b"2"), client.enqueue("a", b"3"),
                             client.enqueue("a", b"4", priority=9), client.enqueue("a", b"5", w=3))
    door = tell(story)

    requests = sorted((sent for sent in door.asked if isinstance(sent, m.Enqueue)), key=lambda sent: sent.w)
    assert [request.w for request in requests] == [0, 3]
    assert {(Header.decode(batch.header).queue, Header.decode(batch.header).priority): batch.payloads.unpack()
            for batch in requests[0].batches} == {("a", 0): [b"1", b"3"], ("b", 0): [b"2"], ("a", 9): [b"4"]}


def test_while_a_request_is_under_way_calls_gather() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        first = asyncio.create_task(client.enqueue("q", b"0"))
        await eventually(lambda: len(door.asked) == 1)
        others = []
        for _ in range(20):
            others.append(asyncio.create_task(client.enqueue("q", b"x")))
            await asyncio.sleep(0)
        door.is_open.set()
        await asyncio.gather(first, *others)
    door = tell(story, is_open=False)

    assert list(map(tasks_of, door.asked)) == [1, 20]


def test_completions_and_renewals_travel_together_too() -> None:
    claims = [ClaimName(bytes([n]) * 20, token_of(1, n)) for n in range(1, 31)]

    async def story(client: AsyncClient, _: Scripted) -> None:
        await asyncio.gather(*(client.renew(claim, lease_s=9) for claim in claims))
        await asyncio.gather(*(client.complete(claim) for claim in claims))
    renewed, completed = tell(story).asked

    assert isinstance(renewed, m.Renew) and isinstance(completed, m.Complete)
    for message in (renewed, completed):
        assert [*zip(ids.split(message.ids), columns.unpack_u64(message.tokens), strict=True)] == [
            (claim.id, claim.token) for claim in claims]


def test_other_leases_and_other_copies_travel_apart() -> None:
    claims = {n: ClaimName(bytes([n]) * 20, token_of(1, n)) for n in (1, 2, 3)}

    async def story(client: AsyncClient, _: Scripted) -> None:
        await asyncio.gather(*(client.renew(claim, lease_s=n) for n, claim in claims.items()),
                             *(client.complete(claim, w=n) for n, claim in claims.items()))
    door = tell(story)

    renewals = {message.lease_ms: message.ids for message in door.asked if isinstance(message, m.Renew)}
    completions = {message.w: message.ids for message in door.asked if isinstance(message, m.Complete)}
    assert renewals == {n * 1_000: claim.id for n, claim in claims.items()}
    assert completions == {n: claim.id for n, claim in claims.items()}


def test_of_renewals_that_travel_together_each_has_its_own_end() -> None:
    def script(_: int, message: m.Message) -> m.Message:
        return m.Renewed(0, columns.pack_u64([99, 0, 0]), columns.pack_u64([2]))

    outcomes: list[Any] = []

    async def story(client: AsyncClient, _: Scripted) -> None:
        claims = [ClaimName(bytes([n]) * 20, token_of(1, n)) for n in (1, 2, 3)]
        outcomes.extend(await asyncio.gather(*map(client.renew, claims), return_exceptions=True))
    tell(story, script)

    assert list(map(type, outcomes)) == [type(None), Fenced, Uncertain]


def test_a_cancelled_call_leaves_the_others_of_its_request_alone() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        calls = [asyncio.create_task(client.enqueue("q", b"x")) for _ in range(3)]
        await eventually(lambda: len(door.asked) == 1)
        calls[0].cancel()
        await asyncio.sleep(0)
        door.is_open.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, ids.TaskId, ids.TaskId]
    assert list(map(tasks_of, tell(story, is_open=False).asked)) == [3]


def test_a_call_cancelled_before_it_left_is_not_sent() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        first = asyncio.create_task(client.enqueue("q", b"0"))
        await eventually(lambda: len(door.asked) == 1)
        waiting = [asyncio.create_task(client.enqueue("q", b"x")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        door.is_open.set()
        await asyncio.gather(first, *waiting, return_exceptions=True)
    assert list(map(tasks_of, tell(story, is_open=False).asked)) == [1, 2]


def claims_late(_: int, message: m.Message) -> m.Message:
    return LATE if isinstance(message, m.Claim) else acked(0, message)


def test_claims_that_come_for_a_cancelled_call_are_given_back() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        claiming = asyncio.create_task(client.claim("q", wait_s=60))
        await eventually(lambda: len(door.asked) == 1)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        door.is_open.set()
        await eventually(lambda: len(door.asked) == 2)
    back = tell(story, claims_late, is_open=False).asked[1]

    assert isinstance(back, m.Conclude)
    assert (back.kind, back.ids, columns.unpack_u64(back.tokens)) == (RELEASED, b"1" * 20, (7,))


def test_claims_that_come_after_the_deadline_are_given_back() -> None:
    async def story(_: AsyncClient, door: Scripted) -> None:
        async with AsyncClient(door.address, timeout_s=0.3) as hasty:
            with pytest.raises(Uncertain):
                await hasty.claim("q")
            door.is_open.set()
            await eventually(lambda: len(door.asked) == 2)
    assert isinstance(tell(story, claims_late, is_open=False).asked[1], m.Conclude)


def test_claims_that_come_in_the_very_moment_of_the_cancelling_are_given_back() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        claiming = asyncio.create_task(client.claim("q", wait_s=60))
        await eventually(lambda: len(door.asked) == 1)
        request, = client._connection._waiters
        client._connection._hand_out(m.Claimed(request, 0, LATE.batches))
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        await eventually(lambda: len(door.asked) == 2)
    silent = tell(story, lambda n, message: None if isinstance(message, m.Claim) else acked(n, message))

    assert isinstance(silent.asked[1], m.Conclude)


def test_all_first_calls_share_one_greeting() -> None:
    async def story(client: AsyncClient, _: Scripted) -> None:
        await asyncio.gather(*(client.enqueue("q", b"x", w=w) for w in range(1, 9)))
    assert tell(story).greetings == 1


def test_a_cancelled_first_call_does_not_take_the_greeting_with_it() -> None:
    async def story(client: AsyncClient, _: Scripted) -> None:
        first, second = (asyncio.create_task(client.count()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 0
    door = tell(story, lambda *_: m.Counted(0, b"", b"", ()))

    assert door.greetings == 1


def test_closing_says_of_each_call_what_is_known() -> None:
    async def story(_: AsyncClient, door: Scripted) -> None:
        client = AsyncClient(door.address)
        sent = asyncio.create_task(client.enqueue("q", b"0"))
        await eventually(lambda: len(door.asked) == 1)
        waiting, alone = (asyncio.create_task(client.enqueue("q", b"1")),
                          asyncio.create_task(client.claim("q", wait_s=3_600)))
        await eventually(lambda: len(door.asked) == 2)
        async with asyncio.timeout(20):
            await client.close()
            await client.close()
            outcomes = await asyncio.gather(sent, waiting, alone, client.enqueue("q", b"2"), client.count(),
                                            return_exceptions=True)
        assert list(map(type, outcomes)) == [Uncertain, Refused, Uncertain, Refused, Refused]
        assert {getattr(outcome, "code", "") for outcome in outcomes} == {"closed"}
    tell(story, is_open=False)


def test_who_calls_a_client_that_was_closed_unused_opens_nothing() -> None:
    async def story(_: AsyncClient, door: Scripted) -> None:
        client = AsyncClient(door.address)
        await client.close()
        try:
            with pytest.raises(Refused):
                await client.count()
            assert not client._connection._sockets
        finally:
            await client._connection.close()
    tell(story)


def test_who_waits_for_a_turn_waits_no_longer_than_he_has_time() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        first = asyncio.create_task(client.enqueue("q", b"0"))
        await eventually(lambda: len(door.asked) == 1)
        client._timeout_s = 0.3
        with pytest.raises(Refused) as refusal:
            await client.enqueue("q", b"1")
        assert refusal.value.code == "unsent" and not first.done()
        door.is_open.set()
        await first
    assert list(map(tasks_of, tell(story, is_open=False).asked)) == [1], "what was refused is not sent"


def test_who_travels_in_a_request_without_an_answer_waits_no_longer_than_he_has_time() -> None:
    async def story(client: AsyncClient, door: Scripted) -> None:
        stuck = client._connection.call

        async def call(message: m.Message, timeout_s: float, **options: Any) -> m.Message:
            return await stuck(message, 60, **options)
        client._connection.call = call  # type: ignore[method-assign]
        client._timeout_s = 0.3
        with pytest.raises(Uncertain) as doubt:
            await client.enqueue("q", b"0")
        assert doubt.value.code == "deadline" and len(door.asked) == 1
    tell(story, is_open=False)


def test_a_client_belongs_to_one_loop() -> None:
    with node_in_memory() as address, asyncio.Runner() as first, asyncio.Runner() as second:
        client = AsyncClient(address)
        assert first.run(client.count()) == 0
        with pytest.raises(Refused, match="loop"):
            second.run(client.count())
        first.run(client.close())


def test_one_conflict_among_many_is_its_callers_alone() -> None:
    async def story(address: str) -> list[Any]:
        async with AsyncClient(address) as client:
            taken = await client.enqueue("q", b"first")
            calls: list[Coroutine[Any, Any, Any]] = [client.enqueue("q", b"x") for _ in range(50)]
            calls.insert(20, client.enqueue("q", b"other", id=taken))
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert await client.count("q") == 51
            return outcomes
    with node_in_memory() as address:
        outcomes = asyncio.run(story(address))

    assert isinstance(outcomes.pop(20), Refused)
    assert len(set(outcomes)) == 50
    assert all(isinstance(outcome, ids.TaskId) for outcome in outcomes)
