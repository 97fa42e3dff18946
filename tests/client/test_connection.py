"""A call over real sockets ends in what is known, sync and async; the rules by themselves: ``test_pursuit``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from client.doors import Script, Scripted, scripted
from skuld_py import Refused, SkuldError, Uncertain
from skuld_py.client import pursuit
from skuld_py.client.async_connection import AsyncConnection
from skuld_py.client.connection import Connection
from skuld_py.model import messages as m

Outcome = m.Message | SkuldError
Call = Callable[..., list[Outcome]]


def blocking(addresses: list[str], *, is_idempotent: bool, timeout_s: float, calls: int = 1) -> list[Outcome]:
    connection = Connection(addresses)
    outcomes: list[Outcome] = []
    for number in range(calls):
        try:
            outcomes.append(connection.call(m.Count(99 + number, ""), timeout_s, is_idempotent=is_idempotent))
        except SkuldError as error:
            outcomes.append(error)
    connection.close()
    return outcomes


def awaited(addresses: list[str], *, is_idempotent: bool, timeout_s: float, calls: int = 1) -> list[Outcome]:
    async def all_of_them() -> list[Outcome]:
        connection = AsyncConnection(addresses)
        outcomes: list[Outcome] = []
        for number in range(calls):
            try:
                outcomes.append(await connection.call(m.Count(99 + number, ""), timeout_s,
                                                      is_idempotent=is_idempotent))
            except SkuldError as error:
                outcomes.append(error)
        await connection.close()
        return outcomes
    return asyncio.run(all_of_them())


def failed(code: str, is_definite: bool) -> m.Failed:
    return m.Failed(99, code, "words", is_definite)


COUNTED = m.Counted(99, b"", b"", ())
both = pytest.mark.parametrize("call", [blocking, awaited])


@both
@pytest.mark.parametrize(("script", "is_idempotent", "timeout_s", "kind"), [
    (lambda n, _: COUNTED, True, 5, m.Counted),
    (lambda n, _: failed("bad_w", True), True, 5, Refused),
    (lambda n, _: failed("uncertain", False), False, 5, Uncertain),
    (lambda n, _: failed("busy", True) if n < 3 else COUNTED, False, 5, m.Counted),
    (lambda n, _: None, False, 0.5, Uncertain),
    (lambda n, _: None if n == 1 else COUNTED, True, 5, m.Counted),
], ids=["answered", "refused", "in doubt", "busy, then answered", "silent", "silent, then answered"])
def test_a_call_ends_in_what_is_known(call: Call, script: Script, is_idempotent: bool,
                                      timeout_s: float, kind: type) -> None:
    with scripted(script) as door:
        outcome, = call([door.address], is_idempotent=is_idempotent, timeout_s=timeout_s)

    assert type(outcome) is kind


@both
def test_nobody_there_is_a_definite_refusal(call: Call) -> None:
    outcome, = call(["127.0.0.1:1"], is_idempotent=True, timeout_s=0.3)

    assert isinstance(outcome, Refused) and outcome.code == "unreachable"


@both
def test_a_silent_node_is_passed_over_for_a_while(call: Call) -> None:
    with scripted(lambda n, _: None) as deaf, scripted(lambda n, _: COUNTED) as well:
        outcomes = call([well.address, deaf.address], is_idempotent=True, timeout_s=5, calls=6)

    assert [type(outcome) for outcome in outcomes] == [m.Counted] * 6
    assert len(deaf.asked) == 1


def member(door: Scripted) -> m.MemberRow:
    host, port = door.address.split(":")
    return m.MemberRow(door.address, host, int(port))


def test_a_client_learns_new_members_while_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "GREETING_S", 0.0)
    with scripted(lambda n, _: COUNTED) as late, scripted(lambda n, _: COUNTED) as given:
        connection = Connection([given.address])
        for number in range(200):
            connection.call(m.Count(99 + number, ""), 5, is_idempotent=True)
            given.members = (member(given), member(late))
        connection.close()
    assert given.greetings > 1 and late.asked and late.greetings


def test_an_asynchronous_client_learns_new_members_while_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "GREETING_S", 0.0)

    async def story() -> None:
        connection = AsyncConnection([given.address])
        for number in range(200):
            await connection.call(m.Count(99 + number, ""), 5, is_idempotent=True)
            given.members = (member(given), member(late))
        await connection.close()
    with scripted(lambda n, _: COUNTED) as late, scripted(lambda n, _: COUNTED) as given:
        asyncio.run(story())
    assert given.greetings > 1 and late.asked and late.greetings


@both
@pytest.mark.parametrize("address", ["", "here", "127.0.0.1:0", "127.0.0.1:99999", ":1"])
def test_an_address_that_is_none_is_refused(call: Call, address: str) -> None:
    with pytest.raises(Refused, match="node"):
        call([address], is_idempotent=True, timeout_s=1)
