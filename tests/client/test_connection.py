"""A call over real sockets ends in what is known, sync and async; the rules by themselves: ``test_pursuit``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from client.doors import Script, Scripted, scripted
from skuld_py import Refused, SkuldError, Uncertain
from skuld_py.client import async_connection as async_connections
from skuld_py.client import connection as connections
from skuld_py.client import pursuit
from skuld_py.client.async_connection import AsyncConnection
from skuld_py.client.connection import Connection
from skuld_py.client.lines import SURE, Lines
from skuld_py.model import messages as m

LONG_S = 30
Outcome = m.Message | SkuldError
Call = Callable[..., list[Outcome]]


def request(number: int, is_idempotent: bool) -> m.Message:
    """One that may be sent twice, and changes nothing; or one that may not."""
    return m.Count(number, "") if is_idempotent else m.Claim(number, "q", 1, 60_000, 0, "me")


def blocking(addresses: list[str], *, is_idempotent: bool, timeout_s: float, calls: int = 1,
             only: str = "", reached: Sequence[str] = ()) -> list[Outcome]:
    connection = Connection(addresses)
    outcomes: list[Outcome] = []
    for number, each in enumerate([*reached, *[only] * calls]):
        try:
            outcomes.append(connection.call(request(99 + number, is_idempotent), timeout_s,
                                            is_idempotent=is_idempotent, only=each))
        except SkuldError as error:
            outcomes.append(error)
    connection.close()
    return outcomes


def awaited(addresses: list[str], *, is_idempotent: bool, timeout_s: float, calls: int = 1,
            only: str = "", reached: Sequence[str] = ()) -> list[Outcome]:
    async def all_of_them() -> list[Outcome]:
        connection = AsyncConnection(addresses)
        outcomes: list[Outcome] = []
        for number, each in enumerate([*reached, *[only] * calls]):
            try:
                outcomes.append(await connection.call(request(99 + number, is_idempotent), timeout_s,
                                                      is_idempotent=is_idempotent, only=each))
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


@both
def test_a_node_that_is_asked_alone_has_nobody_answer_for_it(call: Call) -> None:
    with scripted(lambda n, _: None) as deaf, scripted(lambda n, _: COUNTED) as well:
        silent, = call([well.address, deaf.address], is_idempotent=True, timeout_s=0.3, only=deaf.address)
        nobody, = call([well.address], is_idempotent=True, timeout_s=0.3, only="127.0.0.1:1")
        spoken, = call([deaf.address, well.address], is_idempotent=True, timeout_s=LONG_S, only=well.address)

    assert isinstance(silent, Uncertain) and deaf.address in silent.message
    assert isinstance(nobody, Refused) and nobody.code == "unreachable" and "127.0.0.1:1 can" in nobody.message
    assert spoken == COUNTED and len(deaf.asked) == len(well.asked) == 1


def member(door: Scripted) -> m.MemberRow:
    host, port = door.address.split(":")
    return m.MemberRow(door.address, host, int(port))


@both
def test_a_client_greets_for_as_long_as_it_has_time(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connections, async_connections):
        monkeypatch.setattr(module, "FIRST_GREETING_S", 0.1)
    with scripted(lambda n, _: COUNTED) as door:
        door.deaf_to = 1
        outcome, = call([door.address], is_idempotent=True, timeout_s=LONG_S)
        assert outcome == COUNTED
        assert door.greetings == 2


@both
def test_what_may_be_asked_twice_is_asked_elsewhere_when_a_node_vanishes(
        call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "ATTEMPT_S", LONG_S)
    with scripted(lambda n, _: COUNTED) as one, scripted(lambda n, _: COUNTED) as other:
        one.vanishes_at = 2
        both_of_them = [one.address, other.address]  # else all calls may end before there is a line to one
        outcomes = call(both_of_them, is_idempotent=True, timeout_s=LONG_S, calls=8, reached=both_of_them)

    assert [type(outcome) for outcome in outcomes] == [m.Counted] * 10
    assert len(one.asked) == 2 and len(other.asked) == 9


@both
def test_what_may_not_is_in_doubt_when_its_node_vanishes(call: Call) -> None:
    with scripted(lambda n, _: COUNTED) as door:
        door.vanishes_at = 1
        outcome, = call([door.address], is_idempotent=False, timeout_s=LONG_S)

    assert isinstance(outcome, Uncertain) and outcome.code == "disconnected" and door.address in str(outcome)


@both
def test_a_node_that_has_said_farewell_answers_what_it_has_and_is_sent_nothing(call: Call) -> None:
    with scripted(lambda n, _: COUNTED) as leaver, scripted(lambda n, _: COUNTED) as stayer:
        leaver.is_leaving.set()
        outcomes = call([leaver.address, stayer.address], is_idempotent=False, timeout_s=LONG_S, calls=9)

    assert [type(outcome) for outcome in outcomes] == [m.Counted] * 9
    assert len(leaver.asked) <= 1 and len(stayer.asked) >= 8


def test_a_farewell_that_came_while_a_client_did_nothing_is_heeded() -> None:
    with scripted(lambda n, _: COUNTED) as leaver:
        connection = Connection([leaver.address])
        connection.call(m.Count(99, ""), LONG_S, is_idempotent=False)
        leaver.is_leaving.set()
        assert connection._sockets[leaver.address].poll(LONG_S * 1_000)
        with pytest.raises(Refused) as refusal:
            connection.call(m.Count(100, ""), 0.2, is_idempotent=False)
        connection.close()
    assert refusal.value.code == "unreachable" and len(leaver.asked) == 1


def test_a_farewell_that_came_while_the_event_loop_was_held_up_is_heeded() -> None:
    async def story() -> None:
        connection = AsyncConnection([leaver.address])
        await connection.call(m.Count(99, ""), LONG_S, is_idempotent=False)
        leaver.is_leaving.set()
        assert connection._sockets[leaver.address].poll(LONG_S * 1_000)
        with pytest.raises(Refused) as refusal:
            await connection.call(m.Count(100, ""), 0.2, is_idempotent=False)
        await connection.close()
        assert refusal.value.code == "unreachable"
    with scripted(lambda n, _: COUNTED) as leaver:
        asyncio.run(story())
    assert len(leaver.asked) == 1


def test_a_thread_that_waits_hears_of_a_broken_connection_though_another_one_found_it() -> None:
    """As one does that sends: it takes the news of the socket, and no descriptor tells it again."""
    with scripted(lambda n, _: None) as door, ThreadPoolExecutor(1) as threads:
        connection = Connection([door.address])
        connection.greet(LONG_S)
        door.vanishes_at = 2
        waiting = threads.submit(connection.call, request(99, False), LONG_S, is_idempotent=False)
        while not door.asked:
            time.sleep(0.002)
        with pytest.raises(Uncertain, match="broke"):
            connection.call(request(100, False), LONG_S, is_idempotent=False)
        with pytest.raises(Uncertain, match="broke"):
            waiting.result()
        connection.close()


def test_a_full_queue_is_not_taken_for_a_broken_connection() -> None:
    lines: Lines[str] = Lines()
    for request in range(SURE):
        lines.note(request, "socket")
    lines.note(SURE, "other")
    assert lines.broken("socket") == []
    lines.forget(0)
    assert lines.broken("socket") == [*range(1, SURE)] and lines.broken("socket") == []
    assert lines.broken("other") == [SURE]
    for request in range(2 * SURE):
        lines.note(request, "socket")
    assert len(lines.broken("socket", is_closed=True)) == 2 * SURE


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


@pytest.mark.parametrize("kind", [blocking, awaited])
def test_nobody_looks_long_for_a_reason_more_than_once(monkeypatch: pytest.MonkeyPatch, kind: Call) -> None:
    looks: list[float] = []

    def watched(refusal: Refused, nodes: object, key: object, seconds: float) -> Refused:
        looks.append(seconds)
        return refusal
    for module in (connections, async_connections):
        monkeypatch.setattr(module, "diagnosed", watched)
        monkeypatch.setattr(module, "FIRST_GREETING_S", 0.05)

    kind(["127.0.0.1:1"], is_idempotent=False, timeout_s=0.5, calls=2)
    assert looks == [0.3, 0.3, 0.3, 0.3], "the first greeting had no longer"
    looks.clear()
    monkeypatch.setattr(connections, "FIRST_GREETING_S", 0.6)
    monkeypatch.setattr(async_connections, "FIRST_GREETING_S", 0.6)
    kind(["127.0.0.1:1"], is_idempotent=False, timeout_s=0.7, calls=1)
    assert looks == [0.6, 0.3], "within the time of the call, and a glance beyond it"
