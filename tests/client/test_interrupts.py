"""Threads that are interrupted, run out of time or find their client closed; and what becomes of the others."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import zmq

from client.doors import Scripted, node_in_memory, scripted
from patience import in_time
from skuld_py import Client, Refused, Retry, SkuldError, Uncertain
from skuld_py.client import connection, pursuit
from skuld_py.client.claims import ClaimName
from skuld_py.client.minting import Minter
from skuld_py.config import Limits
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import RELEASED, token_of
from skuld_py.wire import multipart
from skuld_py.wire.codec import Envelope, decode, encode

R = TypeVar("R")
LONG_S = 20
BODY = encode_body(Header("q").encode(), b"x")
NAME = ClaimName(b"1" * 20, token_of(1, 7))


class SoftLimit(Exception):
    """What a task runner raises in a thread whose time is over."""


def acked(_: int, message: m.Message) -> m.Message:
    if isinstance(message, m.Renew | m.Conclude):
        return m.Renewed(0, columns.pack_u64([99] * (len(message.ids) // 20)), b"")
    if isinstance(message, m.Claim):
        return m.Claimed(0, 0, (m.ClaimBatch(NAME.id, NAME.token, 99, columns.pack([BODY])),))
    return m.Acked(0, 2)


def eventually(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.002)


def within(seconds: float, called: Callable[[], R]) -> R:
    """What a call gives, in a thread of its own; it must end in time."""
    ended: Future[R] = Future()

    def run() -> None:
        try:
            ended.set_result(called())
        except BaseException as problem:
            ended.set_exception(problem)
    threading.Thread(target=run, daemon=True).start()
    return ended.result(seconds)


class Threads:
    """Threads that can be interrupted by number."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(64)
        self._idents: list[int] = []

    def start(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        begun = threading.Event()

        def run() -> Any:
            self._idents.append(threading.get_ident())
            begun.set()
            return call(*args, **kwargs)
        future = self._pool.submit(run)
        assert begun.wait(LONG_S)
        return future

    def interrupt(self, number: int) -> None:
        ident = ctypes.c_ulong(self._idents[number])
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SoftLimit)) == 1


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made._pool.shutdown(cancel_futures=True)


Scene = tuple[Client, Scripted, list[Future[Any]]]


@contextmanager
def waiting(threads: Threads, *, timeout_s: float = LONG_S) -> Iterator[Scene]:
    """A client of a door that is shut, one call under way and three that wait for their turn."""
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=timeout_s) as client:
        calls = [threads.start(client.enqueue, "q", b"0")]
        eventually(lambda: len(door.asked) == 1)
        calls += [threads.start(client.enqueue, "q", str(n).encode()) for n in (1, 2, 3)]
        eventually(lambda: any(len(party.members) == 3 for lane in client._lanes.values() for party in lane.open))
        yield client, door, calls


@pytest.mark.parametrize("struck", [1, 2, 3])
def test_who_is_interrupted_in_the_queue_takes_nobody_with_him(threads: Threads, struck: int) -> None:
    with waiting(threads) as (client, door, calls):
        threads.interrupt(struck)
        assert isinstance(calls[struck].exception(LONG_S), SoftLimit)
        door.is_open.set()

        assert len({call.result(LONG_S) for n, call in enumerate(calls) if n != struck}) == 3
        assert client.enqueue("q", b"later")
        sent = [payload for message in door.asked if isinstance(message, m.Enqueue)
                for batch in message.batches for payload in batch.payloads.unpack()]
    assert sorted(sent) == sorted([b"later", *(str(n).encode() for n in range(4) if n != struck)])


def test_who_asks_for_all_and_is_interrupted_lets_another_ask_for_the_same_tasks(threads: Threads) -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=LONG_S) as client:
        first = threads.start(client.enqueue, "q", b"0")
        eventually(lambda: len(door.asked) == 1)
        calls = [threads.start(client.enqueue, "q", str(n).encode()) for n in (1, 2, 3)]
        eventually(lambda: any(len(party.members) == 3 for lane in client._lanes.values() for party in lane.open))
        threads.interrupt(0)
        assert isinstance(first.exception(LONG_S), SoftLimit)
        eventually(lambda: len(door.asked) == 2)
        party = next(party for lane in client._lanes.values() for party in lane.open if party.items is not None)
        assert party.driver is not None
        driver = threads._idents.index(party.driver.thread)
        threads.interrupt(driver)
        eventually(lambda: len(door.asked) == 3)
        door.is_open.set()
        made = [call.result(LONG_S) for n, call in enumerate(calls, 1) if n != driver]

        once, again = door.asked[1:3]
        assert isinstance(once, m.Enqueue) and isinstance(again, m.Enqueue)
        assert once.batches == again.batches and {*made} < {*ids.split(once.batches[0].ids)}


def test_who_asks_alone_and_is_interrupted_holds_nobody_up(threads: Threads) -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=LONG_S) as client:
        alone = threads.start(client.enqueue, "q", b"0")
        eventually(lambda: len(door.asked) == 1)
        threads.interrupt(0)
        assert isinstance(alone.exception(LONG_S), SoftLimit)
        door.is_open.set()

        assert client.enqueue("q", b"1") and not client._lanes and not client._connection._calls


def test_who_reads_for_all_and_is_interrupted_lets_another_read(threads: Threads) -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=LONG_S) as client:
        reading = threads.start(client.claim, "q", wait_s=LONG_S)
        eventually(lambda: len(door.asked) == 1)
        others = [threads.start(client.complete, NAME), threads.start(client.renew, NAME)]
        eventually(lambda: len(door.asked) == 3)
        threads.interrupt(0)
        assert isinstance(reading.exception(LONG_S), SoftLimit)
        door.is_open.set()

        assert [call.result(LONG_S) for call in others] == [2, None]
        client.renew(NAME)  # behind all that was sent before
        assert sum(isinstance(message, m.Complete | m.Renew) for message in door.asked) == 3, "none is asked again"


def check_out_of_time(client: Client, door: Scripted, errors: list[BaseException | None]) -> None:
    assert isinstance(errors[0], Uncertain)
    assert all(isinstance(error, SkuldError) for error in errors)
    payloads = {payload for message in door.asked if isinstance(message, m.Enqueue)
                for batch in message.batches for payload in batch.payloads.unpack()}
    for number, error in enumerate(errors):
        if isinstance(error, Refused):
            assert str(number).encode() not in payloads
    door.is_open.set()
    assert client.enqueue("q", b"later")


def test_a_call_has_its_time_from_when_it_is_made_and_a_turn_that_never_comes_is_refused(threads: Threads) -> None:
    def waited() -> float:
        with waiting(threads, timeout_s=2) as (client, door, calls):
            began = time.monotonic()
            errors = [call.exception(LONG_S) for call in calls]
            took_s = time.monotonic() - began
            check_out_of_time(client, door, errors)
        return took_s
    in_time(3.5, waited)  # who asks for all has what he waited for besides


def test_who_waits_for_a_turn_waits_no_longer_than_he_has_time(threads: Threads) -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=LONG_S) as client:
        first = threads.start(client.enqueue, "q", b"0")
        eventually(lambda: len(door.asked) == 1)
        client._timeout_s = 0.3
        with pytest.raises(Refused) as refusal:
            client.enqueue("q", b"1")
        assert refusal.value.code == "unsent" and not first.done()
        door.is_open.set()
        assert first.result(LONG_S)


def test_a_claim_that_waits_holds_nobody_up(threads: Threads) -> None:
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        held = threads.start(client.claim, "none", wait_s=LONG_S)
        eventually(lambda: client._connection._reader is not None and bool(client._connection._calls))
        began = time.monotonic()
        for _ in range(10):
            made = client.enqueue("q", b"x")
            assert client.get(made).payload == b"x"

        assert time.monotonic() - began < LONG_S / 2, "who sends waits for who reads"
        assert not held.done()


def test_closing_ends_what_is_under_way_and_all_that_comes_after(threads: Threads) -> None:
    with waiting(threads) as (client, _, calls):
        calls.append(threads.start(client.claim, "q", wait_s=LONG_S))
        calls.append(threads.start(client.ends, [bytes(20)], wait_s=LONG_S))
        eventually(lambda: len(client._connection._calls) == 3)
        began = time.monotonic()
        client.close()
        errors = [call.exception(LONG_S) for call in calls]

        assert time.monotonic() - began < LONG_S / 2
        assert {error.code for error in errors if isinstance(error, SkuldError)} == {"closed"}
        assert [type(error) for error in errors] == [Uncertain, Refused, Refused, Refused, Uncertain, Uncertain]


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("call", [
    lambda client: client.enqueue("q", b"x"), lambda client: client.enqueue_many("q", [b"x"]),
    lambda client: client.claim("q"), lambda client: client.complete(NAME), lambda client: client.renew(NAME),
    lambda client: client.fail(NAME), lambda client: client.release(NAME), lambda client: client.get(bytes(20)),
    lambda client: client.new_ids(), lambda client: client.count(), lambda client: [*client.list()],
    lambda client: client.status(), lambda client: client.retry(bytes(20)), lambda client: client.pause("q"),
], ids=range(14))
def test_every_call_of_a_closed_client_says_so(call: Callable[[Client], object], is_used: bool) -> None:
    with scripted(acked) as door:
        client = Client(door.address)
        if is_used:
            client.enqueue("q", b"x")
        client.close()
        client.close()
        with pytest.raises(Refused) as refusal:
            call(client)
    assert refusal.value.code == "closed"


def test_a_message_that_was_half_sent_spoils_none_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, asked = multipart.put, list[m.Message]()

    def torn(socket: Any, frames: list[bytes]) -> None:
        monkeypatch.setattr(multipart, "put", note)
        socket.send(frames[0], multipart.SNDMORE | multipart.DONTWAIT)
        raise KeyboardInterrupt

    def note(socket: Any, frames: list[bytes]) -> None:
        whole(socket, frames)
        asked.extend(each for each in decode(frames).messages if not isinstance(each, m.Greet))
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        client.enqueue("q", b"x")
        monkeypatch.setattr(multipart, "put", torn)
        with pytest.raises(KeyboardInterrupt):
            client.enqueue("q", b"y")

        assert client.count("q") == 1 and client.enqueue("q", b"z")
        assert [task.payload for task in client.list("q")] == [b"x", b"z"]
        assert len(asked) == 3, "each was understood when it was asked first"


def torn_by(monkeypatch: pytest.MonkeyPatch, strike: Callable[[], object]) -> None:
    """Have something happen once, between the first and the second frame of what is read next."""
    whole = zmq.Socket.recv

    def recv(socket: Any, *args: Any, **options: Any) -> Any:
        frame = whole(socket, *args, **options)
        if getattr(frame, "more", False):
            monkeypatch.setattr(zmq.Socket, "recv", whole)
            strike()
        return frame
    monkeypatch.setattr(zmq.Socket, "recv", recv)


def a_result_that_answers(client: Client) -> bytes:
    """A task whose result is a message of nodes, if somebody takes it for one: it acknowledges whatever comes."""
    answers, = encode(Envelope("", "test", tuple(m.Acked(number, 2) for number in range(1, 3_000))))
    task_id = client.enqueue("q", b"x")
    client.complete(client.claim("q")[0], answers)
    return task_id


def test_what_is_left_of_a_message_that_was_half_read_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        task_id = a_result_that_answers(client)
        torn_by(monkeypatch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.results([task_id])
        heard, hand_out = list[m.Message](), client._connection._hand_out

        def hear(answer: m.Message) -> None:
            heard.append(answer)
            hand_out(answer)
        monkeypatch.setattr(client._connection, "_hand_out", hear)

        assert client.count("q") == 1
        assert not any(isinstance(answer, m.Acked) for answer in heard)
        assert [task.id for task in client.list("q")] == [task_id]


def test_a_handler_that_asks_while_an_answer_is_being_read_holds_nobody_up(
        monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        task_id = a_result_that_answers(client)
        torn_by(monkeypatch, lambda: counted.append(client.count("q")))

        outcome = within(LONG_S, lambda: client.results([task_id]))

        assert len(outcome) == 1 and counted == [1]
        assert client.count("q") == 1


def test_a_payload_is_no_request_though_a_handler_asks_while_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, read = multipart.put, list[str]()
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        victim = client.enqueue("victims", b"precious")
        cluster = client._connection.greet(1).cluster
        cancels, = encode(Envelope("", cluster, (m.Cancel(1 << 40, 0, 0, victim, b""),)))

        def handled(socket: Any, frames: list[bytes]) -> None:
            """A handler comes in where nothing can be looked at before the next frame is sent."""
            monkeypatch.setattr(multipart, "put", whole)
            socket.send(frames[0], multipart.SNDMORE | multipart.DONTWAIT)
            read.append(client.get(victim).state)
            whole(socket, frames[1:])
        monkeypatch.setattr(multipart, "put", handled)
        made = client.enqueue("users", cancels)

        assert read == ["waiting"] and client.get(victim).state == "waiting"
        assert [(task.id, task.payload) for task in client.list("users")] == [(made, cancels)]


class Socket:
    """Of a message of two frames, between which somebody comes in."""

    closed = False

    def __init__(self, come_in: Callable[[], None]) -> None:
        self._come_in = come_in
        self._frames = [SimpleNamespace(bytes=b"first", more=True), SimpleNamespace(bytes=b"another", more=False)]

    def recv(self, *_: object, **__: object) -> SimpleNamespace:
        if len(self._frames) == 1:
            self._come_in()
        return self._frames.pop(0)


def test_frames_of_two_messages_are_not_taken_for_one() -> None:
    reader = connection.Connection(["127.0.0.1:1"])

    def read_on() -> None:
        reader._half_read = None
    socket: Any = Socket(read_on)

    assert reader._take_frames(socket) == []
    assert reader._half_read == (socket,), "and what is left of the other is dropped"


def test_sockets_that_were_left_half_sent_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEFT_MAX", 2)
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        client.count("q")
        asker = client._connection
        first = asker._sockets[address]
        for _ in range(4):
            asker._half_sent = asker._sockets[address]
            assert client.count("q") == 0
        assert len(asker._left) == 2 and first.closed
        assert len(asker._descriptors) == 3


def connected(socket: zmq.Socket[Any], node: str, limits: Limits, key: None, dial: Any = connection.dial) -> None:
    """Dial, and wait until the other side is there."""
    dial(socket, node, limits)
    assert socket.poll(LONG_S * 1_000, zmq.POLLOUT)


def test_what_comes_while_a_message_is_sent_over_another_socket_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A descriptor tells of an answer once, and the call that sent may have heard of it already."""
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        client.count("q")
        asker, drained = client._connection, list[object]()
        drain = asker._drain

        def note(*sockets: zmq.Socket[bytes]) -> None:
            drained.extend(sockets)
            drain(*sockets)

        def read(*args: Any, read: Any = asker._read) -> None:
            drained.append("read")
            read(*args)
        monkeypatch.setattr(asker, "_drain", note)
        monkeypatch.setattr(asker, "_read", read)
        monkeypatch.setattr(connection, "dial", connected)
        half = asker._half_sent = asker._sockets[address]
        assert client.count("q") == 0
        assert drained[:2] == [half, asker._sockets[address]]


def struck_within(called: Callable[[], object], strike: Callable[[], object], at: int) -> bool:
    """Call, and have something happen before one of the calls that it makes, the number ``at``; says whether there
    was that one. So a signal's handler comes in: between any two calls, and nowhere else."""
    left = [at]

    def look(frame: object, event: str, _: object) -> None:
        if event in ("call", "c_call"):
            left[0] -= 1
            if not left[0]:
                sys.setprofile(None)
                strike()
    sys.setprofile(look)
    try:
        called()
    finally:
        sys.setprofile(None)
    return left[0] <= 0


def test_a_handler_that_mints_while_ids_are_minted_makes_none_twice() -> None:
    def mint_twice(at: int) -> bool:
        minter, made = Minter(random.Random(1)), list[bytes]()

        def mint(now_ms: int) -> None:
            made.extend(minter.mint(0, now_ms, 3, lane=7))
        mint(1_000)
        is_in = struck_within(lambda: mint(1_001), lambda: mint(1_002), at)
        mint(1_000)
        assert len({*made}) == len(made) == 9 + 3 * is_in
        return is_in
    at = next(at for at in range(1, 1_000) if not within(LONG_S, partial(mint_twice, at)))
    assert at > 10


def test_a_handler_that_is_granted_claims_while_others_are_noted_holds_nobody_up(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursuit, "GRANTED_MAX", 1)
    granted = [m.Claimed(1, 0, (m.ClaimBatch(bytes([number]) * 20, 1, 1, columns.pack([b""])),))
               for number in range(3)]

    def note_twice(at: int) -> bool:
        nodes = pursuit.Nodes(["a:1"])
        nodes.note_answered("a:1", granted[0])
        is_in = struck_within(lambda: nodes.note_answered("a:1", granted[1]),
                              lambda: nodes.note_answered("b:1", granted[2]), at)
        assert len(nodes._granted) == 1
        return is_in
    at = next(at for at in range(1, 1_000) if not within(LONG_S, partial(note_twice, at)))
    assert at > 5


def test_a_signal_s_handler_may_use_the_client_whose_call_it_interrupts() -> None:
    made: list[bytes] = []
    with node_in_memory() as address, Client(address, timeout_s=LONG_S) as client:
        before = signal.signal(signal.SIGUSR1, lambda *_: made.append(client.enqueue("q", b"by the handler")))
        try:
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            assert client.claim("none", wait_s=1.5) == []
            timer.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert client.get(made[0]).payload == b"by the handler"


def test_a_claim_whose_answer_comes_late_is_given_back_by_the_next_call() -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=0.3) as client:
        with pytest.raises(Uncertain):
            client.claim("q")
        door.is_open.set()
        eventually(lambda: not door._kept)
        client.complete(NAME)
        eventually(lambda: any(isinstance(message, m.Conclude) for message in door.asked))

        given_back, = (message for message in door.asked if isinstance(message, m.Conclude))
        assert (given_back.kind, given_back.ids) == (RELEASED, b"1" * 20)
        assert columns.unpack_u64(given_back.tokens) == (NAME.token,)
        client.complete(NAME)
        assert not client._connection._debts


def test_what_is_given_back_is_asked_for_until_it_is_answered() -> None:
    answers = iter([m.Failed(0, "busy", "words", True), None, m.Renewed(0, columns.pack_u64([0]), b"\0" * 8)])

    def script(n: int, message: m.Message) -> m.Message | None:
        if isinstance(message, m.Conclude):
            return next(answers, acked(n, message))
        return acked(n, message)
    with scripted(script, is_open=False) as door, Client(door.address, timeout_s=0.3) as client:
        with pytest.raises(Uncertain):
            client.claim("q")
        door.is_open.set()
        client._timeout_s = LONG_S
        for _ in range(6):
            client.complete(NAME)
            for debt in client._connection._debts.values():
                debt.sent = 0.0
        eventually(lambda: client.complete(NAME) == 2 and not client._connection._debts)
        assert sum(isinstance(message, m.Conclude) for message in door.asked) >= 4


def test_a_claim_that_an_interrupt_took_from_its_caller_is_given_back(threads: Threads) -> None:
    with scripted(acked, is_open=False) as door, Client(door.address, timeout_s=LONG_S) as client:
        call = threads.start(client.claim, "q")
        eventually(lambda: len(door.asked) == 1)
        threads.interrupt(0)
        assert isinstance(call.exception(LONG_S), SoftLimit)
        door.is_open.set()
        eventually(lambda: client.complete(NAME) == 2
                   and any(isinstance(message, m.Conclude) for message in door.asked))


def test_an_attempt_that_no_worker_saw_does_not_count() -> None:
    is_open = threading.Event()
    is_open.set()
    with node_in_memory(is_open) as address, Client(address) as client:
        client.enqueue_many("q", [b"x"] * 20, retry=Retry(max_attempts=1))
        for _ in range(3):
            is_open.clear()
            client._timeout_s = 0.05
            with pytest.raises(Uncertain):
                client.claim("q", n=5, lease_s=60)
            client._timeout_s = LONG_S
            is_open.set()
            assert client.count("q") == 20, "what is late comes before this, and is given back"

        eventually(lambda: client.count("q", states=["waiting"]) == 20)
        assert len(client.claim("q", n=20)) == 20
