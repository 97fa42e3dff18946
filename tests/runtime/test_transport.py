"""Transports on real sockets: both directions, and everything that must be dropped instead of waited for."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from skuld_py.config import FAREWELL_PROTOCOL, PROTOCOL_VERSION, PROTOCOLS, Limits
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model.messages import Acked, Append, Failed, Got, Greet, Greeted, Invite, Message, TaskRow
from skuld_py.runtime import door as doors
from skuld_py.runtime.connections import Counters
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.transport import FAREWELL, Traffic, Transport
from skuld_py.wire.codec import FRAMES_MAX, Envelope, decode, encode

pytestmark = pytest.mark.usefixtures("memory_of_a_node")

WAIT_S = 60.0
CLUSTER = "test"
SMALL = Limits(message_bytes=64 << 10)


@contextlib.contextmanager
def transport(name: str, limits: Limits = SMALL) -> Iterator[Transport]:
    opened = Transport(name, CLUSTER, "127.0.0.1", 0, limits)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def pair() -> Iterator[tuple[Transport, Transport]]:
    """Two that are connected to each other."""
    with transport("anna") as anna, transport("bert") as bert:
        anna.set_peers(addresses(anna, bert))
        bert.set_peers(addresses(anna, bert))
        insist(lambda: anna.send("bert", [Invite(0)]), bert)
        insist(lambda: bert.send("anna", [Invite(0)]), anna)
        yield anna, bert


def addresses(anna: Transport, bert: Transport) -> dict[str, tuple[str, int]]:
    return {"anna": ("127.0.0.1", anna.port), "bert": ("127.0.0.1", bert.port)}


def take(at: Transport, timeout_s: float = WAIT_S) -> tuple[bytes, list[bytes]]:
    """The next message, which must come."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        at.wait(max(1, int((deadline - time.monotonic()) * 1000)))
        for arrived in at.receive(1):
            return arrived[:2]
    raise AssertionError("nothing arrived")


def insist(send: Callable[[], None], at: Transport) -> None:
    """Send until one arrives, as a machine does, and let nothing of it be left over."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        send()
        at.wait(20)
        if at.receive(100):
            while at.receive(100):
                at.wait(20)
            return
    raise AssertionError("never arrived")


@contextlib.contextmanager
def client_of(at: Transport) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.setsockopt(zmq.RCVTIMEO, int(WAIT_S * 1000))
        dealer.connect(f"tcp://127.0.0.1:{at.port}")
        yield dealer


def ask(dealer: zmq.Socket[bytes], *messages: Message) -> None:
    dealer.send_multipart(encode(Envelope("", CLUSTER, messages)))


# -- what goes through ------------------------------------------------------------------------------


def test_peers_send_to_each_other_all_messages_of_a_call_in_one_envelope(
        pair: tuple[Transport, Transport]) -> None:
    anna, bert = pair
    invites = [Invite(number) for number in range(3)]
    anna.send("bert", invites)
    bert.send("anna", invites[:1])

    assert decode(take(bert)[1]) == Envelope("anna", CLUSTER, tuple(invites))
    assert decode(take(anna)[1]) == Envelope("bert", CLUSTER, tuple(invites[:1]))


def test_clients_are_said_farewell_once_and_neither_peers_nor_those_who_do_not_know_it() -> None:
    with (transport("anna") as anna, transport("bert") as bert, client_of(anna) as old, client_of(anna) as known,
          client_of(anna) as late):
        bert.set_peers(addresses(anna, bert))
        insist(lambda: bert.send("anna", [Invite(0)]), anna)
        bert.send("anna", [Invite(0)])
        peer, _ = take(anna)
        anna.note_protocol(peer, PROTOCOL_VERSION)
        anna.mark_peer(peer, "bert")
        for dealer, protocols in ((old, PROTOCOLS[:1]), (known, (FAREWELL_PROTOCOL, PROTOCOLS[0]))):
            for protocol in protocols:
                dealer.send_multipart(encode(Envelope("", CLUSTER, (Greet(1),), protocol)))
                anna.note_protocol(take(anna)[0], protocol)
        sent = anna.traffic.answered

        anna.bid_farewell()
        assert decode(known.recv_multipart()).messages == (FAREWELL,)
        ask(late, Greet(3))
        anna.note_protocol(take(anna)[0], FAREWELL_PROTOCOL)
        anna.bid_farewell()
        assert decode(late.recv_multipart()).messages == (FAREWELL,)
        assert anna.traffic.answered - sent == 2 and not old.poll(20)


def test_a_client_is_answered_on_its_own_connection() -> None:
    with transport("anna") as anna, client_of(anna) as one, client_of(anna) as other:
        for dealer, number in ((one, 1), (other, 2)):
            ask(dealer, Greet(number))
        for _ in range(2):
            client, frames = take(anna)
            greet = decode(frames).messages[0]
            assert isinstance(greet, Greet)
            anna.answer(client, [Acked(greet.request, 3), Failed(greet.request, "code", "text", True)])
        for dealer, number in ((one, 1), (other, 2)):
            answers = (Acked(number, 3), Failed(number, "code", "text", True))
            assert decode(dealer.recv_multipart()) == Envelope("anna", CLUSTER, answers)
        assert anna.traffic.answered == 2


def test_each_is_written_to_in_the_protocol_that_it_understands() -> None:
    claimed = Greeted(1, "n", "c", 1, 1, 1, 0, 1, (), protocol=9, release="x")
    with transport("anna") as anna, client_of(anna) as client:
        for protocol, told in ((PROTOCOLS[0], (1, "")), (PROTOCOL_VERSION, (9, "x"))):
            ask(client, Greet(1))
            origin = take(anna)[0]
            anna.note_protocol(origin, protocol)
            anna.answer(origin, [claimed])
            answer = decode(client.recv_multipart())
            assert answer.version == protocol
            assert [(each.protocol, each.release) for each in answer.messages] == [told]  # type: ignore[attr-defined]


def test_peers_are_written_to_in_one_protocol(pair: tuple[Transport, Transport]) -> None:
    anna, bert = pair
    for protocol in PROTOCOLS:
        anna.protocol = protocol
        anna.send("bert", [Invite(1)])
        assert decode(take(bert)[1]).version == protocol


def test_receive_takes_no_more_than_asked_for_and_no_more_than_fits() -> None:
    with transport("anna") as anna, client_of(anna) as client:
        for number in range(20):
            client.send_multipart([b"%d" % number, bytes(30_000)])
        client.send_multipart([b"last"])
        arrived: list[tuple[bytes, ...]] = [take(anna)]
        while arrived[-1][1] != [b"last"]:
            anna.wait(int(WAIT_S * 1000))
            batch = anna.receive(3)
            assert len(batch) <= 3
            arrived += batch
            assert len(anna.receive(0)) == 0
        assert [each[1][0] for each in arrived] == [b"%d" % number for number in range(20)] + [b"last"]
        for _ in range(20):
            client.send_multipart([bytes(50_000)])
        client.send_multipart([b"last"])
        taken: list[int] = []
        while sum(taken) < 21:
            anna.wait(int(WAIT_S * 1000))
            taken.append(len(anna.receive(100)))
        assert max(taken) <= 3  # twice the largest message, and the one that crosses the line


# -- what is dropped --------------------------------------------------------------------------------


def test_messages_to_strangers_are_counted_not_raised(pair: tuple[Transport, Transport]) -> None:
    anna, _ = pair
    before = anna.traffic.sent
    anna.send("nobody", [Invite(0)])
    anna.send("anna", [Invite(0)])
    anna.answer(b"nobody", [Acked(1, 1)])
    assert anna.traffic.to_unknown_peer == 2
    assert anna.traffic.to_lost_client == 1
    assert anna.traffic.sent == before

    anna.set_peers({})
    anna.send("bert", [Invite(0)])
    assert anna.traffic.to_unknown_peer == 3


def test_a_client_that_left_is_dropped() -> None:
    with transport("anna") as anna:
        with client_of(anna) as dealer:
            ask(dealer, Greet(1))
            client, _ = take(anna)
        deadline = time.monotonic() + WAIT_S
        while not anna.traffic.to_lost_client and time.monotonic() < deadline:
            anna.answer(client, [Acked(1, 1)])
            anna.wait(10)
        assert anna.traffic.to_lost_client


def test_a_peer_that_is_not_there_never_blocks() -> None:
    with socket.socket() as deaf, transport("anna") as anna:
        deaf.bind(("127.0.0.1", 0))  # bound, so that nobody else has it, and not listening
        anna.set_peers({"bert": deaf.getsockname(), "none": ("no host", 7)})
        for _ in range(5_000):
            anna.send("bert", [Invite(0)])
        anna.send("none", [Invite(0)])
        assert anna.traffic.to_silent_peer == 5_000
        assert anna.traffic.to_unknown_peer == 1
        assert anna.traffic.sent == 0


def test_a_peer_that_does_not_read_never_blocks(pair: tuple[Transport, Transport]) -> None:
    anna, _ = pair
    filler = Append(1, 1, bytes(20), 1 << 32, 0, columns.pack([bytes(60_000)]))
    anna.traffic = Traffic()
    while not anna.traffic.to_silent_peer:
        anna.send("bert", [filler])
    assert anna.traffic.sent > 0, "some went out before the queue was full; libzmq promises no number"


def test_a_peer_that_restarts_at_its_address_is_found_again() -> None:
    with transport("anna") as anna:
        with transport("bert") as bert:
            port = bert.port
            anna.set_peers({"bert": ("127.0.0.1", port)})
            insist(lambda: anna.send("bert", [Invite(0)]), bert)
        again = Transport("bert", CLUSTER, "127.0.0.1", port, SMALL)
        insist(lambda: anna.send("bert", [Invite(0)]), again)
        again.close()


def test_a_peer_is_dialled_from_the_address_one_listens_at() -> None:
    with socket.create_server(("127.0.0.1", 0)) as peer:
        peer.settimeout(WAIT_S)
        anna = Transport("anna", CLUSTER, "127.0.1.1", 0, SMALL)
        try:
            anna.set_peers({"bert": peer.getsockname()})
            dialled, source = peer.accept()
            dialled.close()
            assert source[0] == "127.0.1.1"
        finally:
            anna.close()


def test_a_peer_that_moves_is_found_at_its_new_address(pair: tuple[Transport, Transport]) -> None:
    anna, _ = pair
    with transport("bert") as moved:
        anna.set_peers({"bert": ("127.0.0.1", moved.port)})
        insist(lambda: anna.send("bert", [Invite(0)]), moved)


def test_what_is_too_large_together_goes_in_parts_and_what_is_too_large_alone_is_dropped(
        pair: tuple[Transport, Transport]) -> None:
    anna, bert = pair
    part = Append(1, 1, bytes(20), 1 << 32, 0, columns.pack([bytes(30_000)]))
    before = anna.traffic.sent
    anna.send("bert", [part] * 5)
    received: list[Message] = []
    while len(received) < 5:
        received += decode(take(bert)[1]).messages
    assert received == [part] * 5
    assert anna.traffic.sent - before > 1

    anna.send("bert", [Append(1, 1, bytes(20), 1 << 32, 0, columns.pack([bytes(70_000)])), part])
    assert decode(take(bert)[1]).messages == (part,)
    assert anna.traffic.too_large == 1


def test_who_waits_for_an_answer_that_is_too_large_is_told(pair: tuple[Transport, Transport]) -> None:
    anna, bert = pair
    row = TaskRow(bytes(20), columns.pack([bytes(70_000)]), b"", b"", b"", columns.pack([]))

    anna.send("bert", [Got(7, (row,)), Invite(3)])

    failed, invite = [message for _ in range(2) for message in decode(take(bert)[1]).messages]
    assert isinstance(failed, Failed)
    assert (failed.request, failed.code, failed.is_definite) == (7, "too_large", True)
    assert invite == Invite(3)
    assert anna.traffic.too_large == 1


def test_a_frame_beyond_the_limit_cuts_its_connection_and_no_other() -> None:
    with transport("anna") as anna, client_of(anna) as rude, client_of(anna) as polite:
        rude.send_multipart([bytes(SMALL.message_bytes + 1)])
        ask(polite, Greet(1))
        assert decode(take(anna)[1]).messages == (Greet(1),)
        anna.wait(50)
        assert anna.receive(10) == []


def test_a_message_of_too_many_frames_is_dropped_in_parts_and_its_connection_is_cut(
        caplog: pytest.LogCaptureFixture) -> None:
    too_many = FRAMES_MAX + 50_000
    with transport("anna") as anna, client_of(anna) as rude, client_of(anna) as polite:
        ask(rude, Greet(1))
        culprit, _ = take(anna)
        rude.send_multipart([b""] * too_many)
        insist_on_a_part(anna)
        ask(polite, Greet(2))
        parts, arrived = 0, list[Arrival]()
        while anna.clients._is_amid:
            anna.wait(None)
            arrived += anna.receive(10)
            parts += 1
        assert too_many // doors._BATCH_FRAMES <= parts < 100, "all at once, or one by one"
        (client, frames), = [each[:2] for each in arrived] or [take(anna)]
        assert decode(frames).messages == (Greet(2),) and client != culprit
        assert anna.connections.cut == Counters(too_long=1)
        assert anna.malformed == 1 and anna.traffic.received == 2
    assert f"more than {FRAMES_MAX} frames" in caplog.text


def insist_on_a_part(at: Transport) -> None:
    """Receive until the beginning of a message that is too long has come, and nothing else."""
    deadline = time.monotonic() + WAIT_S
    while not at.clients._is_amid:
        assert time.monotonic() < deadline
        at.wait(int(WAIT_S * 1000))
        assert at.receive(10) == []


def test_a_message_of_as_many_frames_as_may_be_is_taken_and_the_connection_stands() -> None:
    with transport("anna") as anna, client_of(anna) as client:
        client.send_multipart([b""] * FRAMES_MAX)
        assert take(anna)[1] == [b""] * FRAMES_MAX
        assert anna.connections.cut == Counters()
        ask(client, Greet(1))
        assert decode(take(anna)[1]).messages == (Greet(1),)


def test_a_batch_takes_no_more_frames_than_a_turn_has_time_for() -> None:
    with transport("anna") as anna, client_of(anna) as client:
        for _ in range(3 * doors._BATCH_FRAMES // FRAMES_MAX):
            client.send_multipart([b""] * FRAMES_MAX)
        client.send_multipart([b"last"])
        taken: list[list[bytes]] = []
        while taken[-1:] != [[b"last"]]:
            anna.wait(int(WAIT_S * 1000))
            batch = [frames for _, frames, _ in anna.receive(100)]
            assert sum(map(len, batch)) <= doors._BATCH_FRAMES + FRAMES_MAX
            taken += batch
        assert len(taken) == 3 * doors._BATCH_FRAMES // FRAMES_MAX + 1


def test_garbage_on_the_port_harms_nobody() -> None:
    with transport("anna") as anna, client_of(anna) as client:
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 8, b"\xff" + bytes(8) + b"\x7f"):
            with socket.create_connection(("127.0.0.1", anna.port)) as connection:
                connection.sendall(garbage)
        ask(client, Greet(1))
        assert decode(take(anna)[1]).messages == (Greet(1),)


# -- waiting ----------------------------------------------------------------------------------------


def test_waking_ends_the_present_wait_or_the_next_and_no_later_one() -> None:
    with transport("anna") as anna:
        for _ in range(3):
            anna.wake()
        started = time.monotonic()
        anna.wait(60_000)
        assert time.monotonic() - started < 50
        anna.wait(20)
        assert time.monotonic() - started >= 0.02

        timer = threading.Timer(0.05, anna.wake)
        timer.start()
        anna.wait(None)
        timer.join()


def test_waking_a_full_pipe_or_a_closed_transport_is_harmless() -> None:
    with transport("anna") as anna:
        for _ in range(100_000):
            anna.wake()
        while_full = time.monotonic()
        anna.wait(60_000)
        assert time.monotonic() - while_full < 50
    anna.wake()
    anna.close()


# -- refusals ---------------------------------------------------------------------------------------


def test_a_port_in_use_is_named_with_its_remedy() -> None:
    with transport("anna") as anna, pytest.raises(Refused, match="port_in_use") as caught:
        Transport("bert", CLUSTER, "127.0.0.1", anna.port)
    assert str(anna.port) in caught.value.message
    assert "another port" in caught.value.message


@pytest.mark.parametrize(("host", "code"), [
    ("0.0.0.0", "insecure_host"), ("192.0.2.7", "insecure_host"), ("8.8.8.8", "insecure_host"),
    ("::", "insecure_host"), ("", "bad_host"), ("no such host", "bad_host"), ("a" * 300, "bad_host")])
def test_hosts_that_are_not_loopback_are_refused(host: str, code: str) -> None:
    with pytest.raises(Refused, match=code) as caught:
        Transport("anna", CLUSTER, host, 0)
    assert "127.0.0.1" in caught.value.message


def test_a_port_out_of_range_is_refused() -> None:
    with pytest.raises(Refused, match="bad_port"):
        Transport("anna", CLUSTER, "127.0.0.1", 70_000)


def test_a_name_of_the_loopback_is_as_good_as_its_address() -> None:
    for host in ("localhost", "127.0.0.1", "::1"):
        Transport("anna", CLUSTER, host, 0).close()


BREAKS_OFF = """
import time, zmq
from skuld_py.runtime.transport import Transport

node = Transport("anna", "test", "127.0.0.1", 0)
with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
    dealer.linger = 0
    dealer.connect(f"tcp://127.0.0.1:{node.port}")
    for _ in range(60):
        if dealer.poll(100, zmq.POLLOUT):
            dealer.send(bytes(300_000))
    time.sleep(0.5)
time.sleep(3)  # heartbeats of the connection are due meanwhile
assert node.receive(100)
node.close()
"""


def test_a_connection_that_breaks_while_much_of_it_waits_ends_nobody() -> None:
    """In a process of its own: libzmq would abort it."""
    ran = subprocess.run([sys.executable, "-c", BREAKS_OFF], capture_output=True, text=True, timeout=60,
                         check=False)

    assert ran.returncode == 0, ran.stderr
