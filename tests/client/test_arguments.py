"""What a caller gives is checked before it travels with others: his fault is his alone, and text ids are ids."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from client.doors import node_in_memory, scripted
from skuld_py import AsyncClient, Client, Fenced, Refused, SkuldError, Uncertain
from skuld_py.client.claims import Claim, ClaimName
from skuld_py.errors import Corrupt, Malformed
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId, to_text
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.testing import MemoryClient

ID = TaskId(b"1" * 20)
GOOD = ClaimName(ID, FIRST_TOKEN + 7)
BAD: dict[str, tuple[Any, str]] = {
    "an id too short": (ClaimName(b"1" * 19, FIRST_TOKEN), "bad_id"),
    "text that is no id": (ClaimName("nonsense", FIRST_TOKEN), "bad_id"),
    "an id of another type": (ClaimName(5, FIRST_TOKEN), "bad_id"),  # type: ignore[arg-type]
    "no id": (SimpleNamespace(token=FIRST_TOKEN), "bad_claim"),
    "a token below": (ClaimName(ID, -1), "bad_token"),
    "token 0": (ClaimName(ID, 0), "bad_token"),
    "a token of no claim": (ClaimName(ID, FIRST_TOKEN - 1), "bad_token"),
    "a token beyond": (ClaimName(ID, 1 << 63), "bad_token"),
    "a token of another type": (ClaimName(ID, "7"), "bad_token"),  # type: ignore[arg-type]
    "a proof too short": (ClaimName(ID, FIRST_TOKEN, b"1234567"), "bad_proof"),
    "text that is no proof": (ClaimName(ID, FIRST_TOKEN, "nonsense"), "bad_proof"),
    "a proof of another type": (ClaimName(ID, FIRST_TOKEN, 5), "bad_proof"),  # type: ignore[arg-type]
    "a token that is a bool": (ClaimName(ID, True), "bad_token"),
    "no claim": (None, "bad_claim"),
}
VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "complete": lambda client, claim: client.complete(claim),
    "complete_many": lambda client, claim: client.complete_many([GOOD, claim]),
    "fail": lambda client, claim: client.fail(claim),
    "fail_many": lambda client, claim: client.fail_many([GOOD, claim]),
    "renew": lambda client, claim: client.renew(claim),
    "renew_many": lambda client, claim: client.renew_many([GOOD, claim]),
    "release": lambda client, claim: client.release(GOOD, claim),
    "snooze": lambda client, claim: client.snooze(claim, 1),
    "update": lambda client, claim: client.update(claim, b"x", seq=0),
}


def acked(_: int, message: m.Message) -> m.Message:
    if isinstance(message, m.Renew | m.Conclude):
        return m.Renewed(0, columns.pack_u64([99] * (len(message.ids) // 20)), b"")
    return m.Acked(0, 2)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("bad", BAD)
def test_what_names_no_claim_is_refused_before_it_is_sent(bad: str, verb: str) -> None:
    claim, code = BAD[bad]
    with scripted(acked) as door, Client(door.address) as client:
        with pytest.raises(Refused) as refusal:
            VERBS[verb](client, claim)
        assert refusal.value.code == code and not door.asked


@pytest.mark.parametrize("verb", VERBS)
def test_a_claim_may_be_named_by_the_text_of_its_id(verb: str) -> None:
    with MemoryClient() as client:
        client.enqueue("q", b"x")
        held, = client.claim("q")
        VERBS[verb](_Only(client, held), ClaimName(to_text(held.id), held.token, held.proof.hex()))

        with pytest.raises(Refused, match=str(held.id)) as refusal:
            client.renew(ClaimName(to_text(held.id), held.token + 9, held.proof.hex()))
        assert refusal.value.code == "unknown_claim"


class _Only:
    """A client for whom the good claim is the one that is held."""

    def __init__(self, client: MemoryClient, held: Claim) -> None:
        self._client, self._held = client, held

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            def real(given: Any) -> Any:
                if isinstance(given, list):
                    return list(map(real, given))
                return self._held if given is GOOD else given
            return getattr(self._client, verb)(*map(real, args), **kwargs)
        return call


@pytest.mark.parametrize("w", [True, 1.0, "1", -1, 10])
@pytest.mark.parametrize("call", [
    lambda client, w: client.enqueue("q", b"x", w=w), lambda client, w: client.enqueue_many("q", [b"x"], w=w),
    lambda client, w: client.complete(GOOD, w=w), lambda client, w: client.complete_many([GOOD], w=w),
    lambda client, w: client.update(GOOD, b"x", seq=0, w=w), lambda client, w: client.cancel(ID, w=w),
], ids=["enqueue", "enqueue_many", "complete", "complete_many", "update", "cancel"])
def test_a_number_of_owners_is_a_number(call: Callable[[Client, Any], Any], w: Any) -> None:
    with scripted(acked) as door, Client(door.address) as client:
        with pytest.raises(Refused) as refusal:
            call(client, w)
        assert refusal.value.code == "bad_w" and not door.asked


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_claim_among_good_ones_is_the_fault_of_its_thread_alone(bad: str) -> None:
    claim, code = BAD[bad]
    with node_in_memory() as address, Client(address) as client, ThreadPoolExecutor(12) as threads:
        client.enqueue_many("q", [b"x"] * 10)
        barrier = threading.Barrier(11)

        def complete(named: Any) -> None:
            barrier.wait(60)
            client.complete(named)
        good = [threads.submit(complete, held) for held in client.claim("q", n=10)]
        guilty = threads.submit(complete, claim)

        error = guilty.exception(10)
        assert isinstance(error, Refused) and error.code == code
        assert [call.exception(10) for call in good] == [None] * 10
        assert client.count("q", states=["completed"]) == 10


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_claim_among_good_ones_is_the_fault_of_its_coroutine_alone(bad: str) -> None:
    claim, code = BAD[bad]

    async def outcomes(address: str) -> list[Any]:
        async with AsyncClient(address) as client:
            await client.enqueue_many("q", [b"x"] * 3)
            held = await client.claim("q", n=3)
            return await asyncio.gather(*map(client.complete, [*held, claim]), return_exceptions=True)
    with node_in_memory() as address:
        *good, guilty = asyncio.run(outcomes(address))

    assert good == [1] * 3 and isinstance(guilty, Refused) and guilty.code == code


def test_two_updates_of_a_claim_at_once_never_have_one_number() -> None:
    async def both(client: AsyncClient) -> list[Any]:
        async with client:
            await client.enqueue("q", b"x")
            held, = await client.claim("q")
            found = await asyncio.gather(client.update(held, b"a"), client.update(held, b"b"),
                                         return_exceptions=True)
            found.append(await client.update(held, b"c"))
            return [*found, [entry.data async for entry in client.log(held.id)]]
    with node_in_memory() as address:
        first, refused, then, log = asyncio.run(both(AsyncClient(address)))

    assert (first, then, log) == (1, 2, [b"a", b"c"])
    assert isinstance(refused, Refused) and refused.code == "update_under_way"


def test_an_update_that_was_given_up_lets_the_next_one_go() -> None:
    async def story(address: str) -> int:
        async with AsyncClient(address) as client:
            held = Claim(ID, FIRST_TOKEN, "q", 0, b"", 99, 99.0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.update(held, b"a"), 0.1)
            door.script = acked
            return await client.update(held, b"a")
    with scripted(lambda *_: None) as door:
        assert asyncio.run(story(door.address)) == 1


def test_an_update_that_was_interrupted_lets_the_next_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt
    with MemoryClient() as client:
        client.enqueue("q", b"x")
        held, = client.claim("q")
        with monkeypatch.context() as struck:
            struck.setattr(client, "_perform", interrupted)
            with pytest.raises(KeyboardInterrupt) as raised:
                client.update(held, b"a")

        assert client.update(held, b"a") == 1 and raised.value.__traceback__ is not None


@pytest.mark.parametrize("seconds", ["30", True, 1e308, float("nan"), object()])
def test_a_duration_is_a_number_of_seconds(seconds: Any) -> None:
    with MemoryClient() as client:
        for call in (lambda: client.claim("q", lease_s=seconds), lambda: client.claim("q", wait_s=seconds),
                     lambda: client.snooze(GOOD, seconds), lambda: client.renew_many([GOOD], lease_s=seconds)):
            with pytest.raises(Refused, match="bad_duration"):
                call()


def test_entries_of_a_log_are_bytes_or_text() -> None:
    with MemoryClient() as client:
        client.enqueue("q", b"x")
        claim, = client.claim("q")
        client.update(claim, "half-way")
        client.update(claim, ["there", b"nearly"])
        assert [entry.data for entry in client.log(claim.id)] == [b"half-way", b"there", b"nearly"]
        for wrong in (7, None, ["\ud800"], [None]):
            with pytest.raises(Refused, match="bad_entry"):
                client.update(claim, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("node", ["http://127.0.0.1:1", "127.0.0.1", "a b:1", "127.0.0.1:\u0661", ":1", "h:0",
                                  "h:65536"])
def test_what_is_no_address_is_refused_with_an_example(node: str) -> None:
    with pytest.raises(Refused, match=r"is not HOST:PORT, such as 127\.0\.0\.1:13000"):
        Client([node])


def test_an_ipv6_address_is_wanted_in_brackets() -> None:
    with pytest.raises(Refused, match=r"'::1:13000' is not HOST:PORT, such as \[::1\]:13000: an IPv6 address"):
        Client(["::1:13000"])


@pytest.mark.parametrize("error", [
    Refused("code", "why", field=7), Uncertain("deadline", "no answer"), Fenced("lost", token=1),
    Malformed("field", "problem"), Corrupt("body", b"key")])
def test_errors_come_back_from_other_processes_as_they_were(error: SkuldError) -> None:
    back = pickle.loads(pickle.dumps(error))

    assert type(back) is type(error) and str(back) == str(error) and vars(back) == vars(error)
    assert back.args == error.args and copy.copy(error).code == error.code
