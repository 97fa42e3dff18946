"""A client speaks what all nodes understand, as they say when they are greeted, and says when it is nothing."""

from __future__ import annotations

import asyncio

import msgpack
import pytest
import zmq

from skuld_py.client.async_client import AsyncClient
from skuld_py.client.async_connection import AsyncConnection
from skuld_py.client.claims import ClaimName
from skuld_py.client.client import Client
from skuld_py.client.connection import Connection
from skuld_py.client.frames import decoded, encoded, is_farewell
from skuld_py.client.pursuit import GREETING_S, NOT_READY, Nodes
from skuld_py.config import DEFAULT_LIMITS, GREETING_PROTOCOL, PROTOCOL_VERSION, PROTOCOLS
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.wire.codec import Envelope, decode, encode
from tests.client.doors import NODE, Door

COUNT = m.Count(7, "")


def told(protocol: int) -> m.Greeted:
    return m.Greeted(1, NODE, "memory", 1, 1, 1, 0, 1, (), protocol)


def spoken_to(answered: int, *, is_async: bool) -> list[tuple[type[m.Message], int]]:
    """What a door hears from a client that it tells this protocol."""
    door = Door()

    def serve(client: bytes, message: m.Message) -> None:
        number: int = message.request  # type: ignore[attr-defined]
        door.say(client, m.Greeted(number, NODE, "memory", 1, 1, 1, 0, 1, (), answered)
                 if isinstance(message, m.Greet) else m.Acked(number, 1))
    with door.serving(serve, lambda: None):
        if is_async:
            async def count() -> None:
                connection = AsyncConnection([door.address])
                await connection.call(m.Count(connection.next_request(), ""), 10.0, is_idempotent=True)
                await connection.close()
            asyncio.run(count())
        else:
            connection = Connection([door.address])
            connection.call(m.Count(connection.next_request(), ""), 10.0, is_idempotent=True)
            connection.close()
    return door.spoken


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("answered", "spoken"), [(1, 1), (2, 1), (3, 3), (99, PROTOCOL_VERSION)])
def test_after_the_greeting_it_speaks_what_all_nodes_understand(answered: int, spoken: int,
                                                                is_async: bool) -> None:
    assert spoken_to(answered, is_async=is_async) == [(m.Greet, GREETING_PROTOCOL), (m.Count, spoken)]


def test_it_greets_in_a_protocol_whose_answer_says_what_is_spoken() -> None:
    """Otherwise it would never hear that the rules were raised."""
    nodes = Nodes(["a:1"])
    nodes.learn(["a:1"], 0.0, PROTOCOLS[0])

    assert decode(encoded(nodes, "c", COUNT)).version == PROTOCOLS[0]
    assert decode(encoded(nodes, "c", m.Greet(1))).version == GREETING_PROTOCOL
    assert nodes.is_greeting_due(GREETING_S)
    nodes.learn(["a:1"], GREETING_S, PROTOCOL_VERSION)
    assert decode(encoded(nodes, "c", COUNT)).version == PROTOCOL_VERSION


REFUSAL = m.Failed(0, "unknown_protocol", "the sender speaks protocol 9, this side 1; upgrade the older", True)


@pytest.mark.parametrize(("answer", "words"), [
    (encode(Envelope(NODE, "memory", (REFUSAL,), PROTOCOLS[0])), "the sender speaks protocol 9, this side 1"),
    ([msgpack.packb([PROTOCOL_VERSION + 1, "memory", NODE, []])],
     f"the sender speaks protocol {PROTOCOL_VERSION + 1}, this side 1 and 3")])
def test_that_nothing_is_spoken_by_both_is_no_silence(answer: list[bytes], words: str) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger, router.rcvtimeo = 0, 10_000
        port = router.bind_to_random_port("tcp://127.0.0.1")

        async def ask() -> None:
            asynchronous = AsyncConnection([f"127.0.0.1:{port}"])
            answering = asyncio.get_running_loop().run_in_executor(None, reply, router, answer)
            try:
                with pytest.raises(Refused, match=words) as refused:
                    await asynchronous.greet(1.0)
                assert refused.value.code == "unknown_protocol"
            finally:
                await answering
                await asynchronous.close()
        asyncio.run(ask())


def reply(router: zmq.Socket[bytes], answer: list[bytes]) -> None:
    client, *_ = router.recv_multipart()
    router.send_multipart([client, *answer])


def test_a_farewell_is_no_word_of_a_foreign_protocol() -> None:
    farewell, nodes = m.Failed(0, NOT_READY, "this node stops", True), Nodes(["a:1"])

    assert decoded(nodes, encode(Envelope(NODE, "memory", (farewell,))), DEFAULT_LIMITS) == (farewell,)
    assert is_farewell(farewell) and nodes.foreign == ""
    assert not is_farewell(REFUSAL) and not is_farewell(m.Failed(1, NOT_READY, "", True))


@pytest.mark.parametrize("message", [REFUSAL, told(3)])
def test_an_envelope_of_nothing_is_no_answer(message: m.Message) -> None:
    nodes = Nodes(["a:1"])
    assert decoded(nodes, encode(Envelope(NODE, "memory", ())), DEFAULT_LIMITS) == ()
    assert decoded(nodes, [b"\xc1"], DEFAULT_LIMITS) == ()
    assert nodes.foreign == ""
    assert decoded(nodes, encode(Envelope(NODE, "memory", (message,))), DEFAULT_LIMITS) == (message,)
    assert bool(nodes.foreign) is isinstance(message, m.Failed)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_checkpoint_is_refused_where_a_node_may_not_know_of_any_and_an_entry_is_not(is_async: bool) -> None:
    door, claim = Door(), ClaimName(bytes(20), FIRST_TOKEN, bytes(8))

    def serve(client: bytes, message: m.Message) -> None:
        number: int = message.request  # type: ignore[attr-defined]
        door.say(client, m.Greeted(number, NODE, "memory", 1, 1, 1, 0, 1, (), 1)
                 if isinstance(message, m.Greet) else m.Acked(number, 1))

    async def ask_async() -> None:
        async with AsyncClient([door.address]) as client:
            with pytest.raises(Refused, match="protocol 1") as refused:
                await client.update(claim, "entry", seq=0, checkpoint="half", number=0)
            assert refused.value.code == "unsupported"
            assert await client.update(claim, "entry", seq=0) == 1
    with door.serving(serve, lambda: None):
        if is_async:
            asyncio.run(ask_async())
        else:
            with Client([door.address]) as client:
                with pytest.raises(Refused, match="protocol 1") as refused:
                    client.update(claim, "entry", seq=0, checkpoint="half", number=0)
                assert refused.value.code == "unsupported"
                assert client.update(claim, "entry", seq=0) == 1
    assert [of for of, _ in door.spoken] == [m.Greet, m.Append]
