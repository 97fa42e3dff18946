"""What connections may have in flight, on real sockets that speak ZMTP by hand: bounds that are enforced."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.model import columns
from skuld_py.model.columns import Column
from skuld_py.model.messages import Got, Greet, TaskRow
from skuld_py.runtime import connections, files, peeking, transport
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.transport import Transport
from skuld_py.wire.codec import Envelope, encode

ENVELOPE = 256 << 10
LIMITS = Limits(message_bytes=ENVELOPE)
WAIT_S = 120.0
SLACK = 64 << 20
"""More than the kernel's buffers take, and what is sent between two looks."""


@contextlib.contextmanager
def listening(limits: Limits = DEFAULT_LIMITS) -> Iterator[Transport]:
    """A node's transport, with the memory of a node: the tests' own process may be large. It asks for no
    heartbeats, which those who speak by hand do not answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "_HEARTBEAT_MS", 0)
        made = Transport("anna", "test", "127.0.0.1", 0, limits)
    with contextlib.closing(made) as opened:
        opened.connections._memory_bytes = peeking.own_bytes() + connections.MEMORY_BYTES
        yield opened


@pytest.fixture
def node() -> Iterator[Transport]:
    with listening(LIMITS) as opened:
        yield opened


@contextlib.contextmanager
def speaker(at: Transport) -> Iterator[socket.socket]:
    """A connection that has introduced itself as a DEALER."""
    with socket.create_connection(("127.0.0.1", at.port), WAIT_S) as raw:
        raw.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
        ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"
        exactly(raw, 64)
        raw.sendall(b"\x04" + bytes([len(ready)]) + ready)
        exactly(raw, exactly(raw, 2)[1])
        yield raw


def exactly(raw: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        part = raw.recv(count - len(got))
        assert part, "it was cut"
        got += part
    return got


def pour(raw: socket.socket, part: bytes, at: Transport | None = None) -> int:
    """Send for ever, a part for each look of the node; gives how much could be sent before the connection was
    cut."""
    sent, end_s = 0, time.monotonic() + WAIT_S
    with contextlib.suppress(OSError):
        while time.monotonic() < end_s:
            raw.sendall(part)
            sent += len(part)
            if at is not None:
                await_looks(at, 1)
        raise AssertionError(f"{sent} bytes were taken, and the connection still stands")
    return sent


def await_looks(at: Transport, count: int) -> None:
    seen: list[float] = []

    def have_been() -> bool:
        if at.connections._looked_s not in seen:
            seen.append(at.connections._looked_s)
        return len(seen) > count
    wait_until(have_been)


def wait_until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def receive(at: Transport) -> list[list[bytes]]:
    """The next messages, which must come."""
    arrived: list[list[bytes]] = []
    wait_until(lambda: bool(arrived.extend(frames for _, frames, _ in at.receive(100)) or arrived))
    return arrived


MORE = b"\x03" + struct.pack(">Q", ENVELOPE) + bytes(ENVELOPE)
"""A frame behind which another one comes."""


def test_a_stranger_s_message_without_an_end_is_cut() -> None:
    with listening() as node:
        assert node.connections.stranger_bytes + SLACK < node.connections.known_bytes
        with speaker(node) as raw:
            sent = pour(raw, 16 * MORE, node)

        assert sent < node.connections.stranger_bytes + SLACK
        assert node.connections.cut.greedy == 1


def test_so_is_that_of_one_that_has_sent_messages(node: Transport) -> None:
    with speaker(node) as raw:
        for _ in range(3):
            raw.sendall(b"\0\5hello")
            assert receive(node) == [[b"hello"]]
        sent = pour(raw, MORE, node)

    assert node.connections.known_bytes > node.connections.stranger_bytes
    assert sent < node.connections.known_bytes + SLACK
    assert node.connections.cut.greedy == 1


def test_others_are_served_meanwhile(node: Transport) -> None:
    with speaker(node) as raw, zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(f"tcp://127.0.0.1:{node.port}")
        pouring = threading.Thread(target=pour, args=(raw, MORE, node))
        pouring.start()
        for number in range(50):
            frames = encode(Envelope("", "test", (Greet(number),)))
            dealer.send_multipart(frames)
            assert receive(node) == [frames]
        pouring.join()

    assert node.connections.cut.greedy == 1


def test_small_frames_which_cost_more_than_their_bytes_are_cut_for_the_memory_they_take(
        monkeypatch: pytest.MonkeyPatch, node: Transport) -> None:
    node.connections._memory_bytes = peeking.own_bytes() + (64 << 20)
    monkeypatch.setattr(node.connections, "stranger_bytes", 1 << 40)

    with speaker(node) as raw:
        pour(raw, b"\1\1x" * 20_000)

    assert node.connections.cut.for_memory >= 1
    wait_until(lambda: peeking.own_bytes() < node.connections._memory_bytes)


SENDER = """
import sys, zmq
with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
    dealer.connect(sys.argv[1])
    dealer.send(bytes(int(sys.argv[3])))
    sys.stdin.readline()
    for _ in range(int(sys.argv[2]) - 1):
        dealer.send(bytes(int(sys.argv[3])))
"""


def test_who_sends_whole_messages_within_the_bound_is_never_cut(node: Transport) -> None:
    """Of which nothing but the first is received for a while."""
    size, count = ENVELOPE - 1, node.connections.known_bytes // ENVELOPE - 1
    arguments = f"tcp://127.0.0.1:{node.port}", str(count), str(size)
    with subprocess.Popen([sys.executable, "-c", SENDER, *arguments], stdin=subprocess.PIPE) as sender:
        arrived = receive(node)
        assert sender.stdin is not None
        sender.stdin.close()
        time.sleep(20 * connections.TICK_S)
        while len(arrived) < count:
            arrived += receive(node)

    assert {len(frames[0]) for frames in arrived} == {size} and len(arrived) == count
    assert node.connections.cut == connections.Counters()


def test_there_are_only_so_many_connections(node: Transport) -> None:
    node.connections.most = 3
    with contextlib.ExitStack() as held:
        known = held.enter_context(speaker(node))
        known.sendall(b"\0\5hello")
        receive(node)
        others = [held.enter_context(speaker(node)) for _ in range(5)]
        wait_until(lambda: node.connections.cut.too_many >= 3)

        cut = [raw for raw in others if is_cut(raw)]
        known.sendall(b"\0\5there")
        assert receive(node) == [[b"there"]]
        assert cut == others[: len(cut)] and len(cut) >= 3, "the oldest first"


def test_when_there_are_too_many_the_client_that_was_silent_for_longest_makes_room_and_no_node(
        node: Transport) -> None:
    node.connections.most = 3
    with contextlib.ExitStack() as held:
        bert, idle, busy = [held.enter_context(speaker(node)) for _ in range(3)]
        greet(node, bert, b"Bert_")
        node.mark_peer(greet(node, bert, b"Bert!"), "bert")
        leaving = node.connections._clients[greet(node, idle, b"idle!")]
        greet(node, busy, b"busy!")
        newcomer = held.enter_context(speaker(node))
        greet(node, newcomer, b"newer")
        wait_until(lambda: leaving.is_cut)
        for raw in (bert, busy, newcomer):
            greet(node, raw, b"there")


def test_a_node_s_name_keeps_one_connection_and_no_more(node: Transport) -> None:
    node.connections.most = 3
    with contextlib.ExitStack() as held:
        *forged, bert = [held.enter_context(speaker(node)) for _ in range(3)]
        clients = [greet(node, raw, b"Bert!") for raw in (*forged, bert)]
        named = [node.connections._clients[client] for client in clients]
        for client in clients:
            node.mark_peer(client, "bert")
        held.enter_context(speaker(node))
        wait_until(lambda: node.connections.cut.too_many == 1)
        held.enter_context(speaker(node))
        wait_until(lambda: node.connections.cut.too_many == 2)

        wait_until(lambda: named[0].is_cut)
        assert not named[2].is_cut
        greet(node, bert, b"there")


def greet(at: Transport, raw: socket.socket, word: bytes) -> bytes:
    """Have a connection say so; gives the client that said it."""
    raw.sendall(b"\0\5" + word)
    arrived: list[Arrival] = []
    wait_until(lambda: bool(arrived.extend(at.receive(1)) or arrived))
    (client, frames, _), = arrived
    assert frames == [word]
    return client


ANSWER = Got(1, (TaskRow(bytes(20), columns.pack([bytes(200_000)]), b"", b"", b"", Column()),))


def answer_until_it_is_dropped(at: Transport, client: bytes) -> None:
    dropped, end_s = at.traffic.to_lost_client, time.monotonic() + WAIT_S
    while at.traffic.to_lost_client == dropped:
        assert time.monotonic() < end_s, "any number of answers is kept"
        at.answer(client, [ANSWER])


def untaken(at: Transport, client: bytes) -> int:
    """What waits for a client that was answered and nobody else."""
    connection = at.connections._clients[client]
    flow = peeking.flow_of(connection.number, connection.cookie)
    assert flow is not None
    return at.traffic.answered * 200_000 - flow.acknowledged


def test_answers_that_nobody_reads_are_kept_up_to_the_bound_and_who_reads_again_is_answered(
        monkeypatch: pytest.MonkeyPatch, node: Transport) -> None:
    monkeypatch.setattr(connections, "DEAF_S", 1e9)
    with speaker(node) as raw:
        client = greet(node, raw, b"hello")
        answer_until_it_is_dropped(node, client)
        answered = node.traffic.answered

        assert 0 < untaken(node, client) <= node.connections.known_bytes
        exactly(raw, answered * 200_000)
        node.answer(client, [ANSWER])
        assert node.traffic.answered == answered + 1
    assert node.connections.cut == connections.Counters()


def test_who_takes_nothing_of_its_answers_is_cut_and_who_reads_is_not(
        monkeypatch: pytest.MonkeyPatch, node: Transport) -> None:
    monkeypatch.setattr(connections, "DEAF_S", 1e9)
    with speaker(node) as reading, speaker(node) as deaf:
        reader, other = greet(node, reading, b"hello"), greet(node, deaf, b"hello")
        answer_until_it_is_dropped(node, reader)
        exactly(reading, node.traffic.answered * 200_000)
        answer_until_it_is_dropped(node, other)
        connection = node.connections._clients[other]
        far_s = time.monotonic()
        end_s = far_s + WAIT_S
        node.connections._look(far_s, 0)
        while not node.connections.cut.deaf:
            assert time.monotonic() < end_s
            far_s += 2e9
            node.connections._look(far_s, 0)

        assert connection.is_cut and not node.connections._clients[reader].is_cut
        before = node.traffic.to_lost_client
        node.answer(other, [ANSWER])
        assert node.traffic.to_lost_client == before + 1
        node.answer(reader, [ANSWER])
        exactly(reading, 200_000)
    assert node.connections.cut == connections.Counters(deaf=1)


def test_who_does_not_read_is_cut_for_the_memory_it_takes_and_not_who_is_heard(
        monkeypatch: pytest.MonkeyPatch) -> None:
    size = [0]
    monkeypatch.setattr(connections, "DEAF_S", 1e9)
    monkeypatch.setattr(connections, "GIVE_BACK_S", 1e9)
    monkeypatch.setattr(peeking, "own_bytes", lambda: size[0])
    with listening(Limits(message_bytes=2 << 20)) as node, speaker(node) as honest, speaker(node) as deaf:
        connection = node.connections._clients[greet(node, honest, b"hello")]
        client = greet(node, deaf, b"hello")
        guilty = node.connections._clients[client]
        answer_until_it_is_dropped(node, client)
        honest.sendall(b"\2" + struct.pack(">Q", 2 << 20) + bytes(2 << 20))
        wait_until(lambda: brought(connection) > 2 << 20)
        size[0] = node.connections._memory_bytes + connections.SLACK_BYTES
        wait_until(lambda: node.connections.cut.for_memory > 0)
        await_looks(node, 3)

        assert node.connections.cut == connections.Counters(for_memory=1)
        assert guilty.is_cut and not connection.is_cut
        assert receive(node) == [[bytes(2 << 20)]]


MADE_OF_IT = connections.FRAME_FACTOR
"""What libzmq makes of the bytes of empty frames."""


def test_as_many_strangers_are_cut_in_one_look_as_the_excess_needs_and_nobody_else(
        monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [0]
    monkeypatch.setattr(connections, "GIVE_BACK_S", 1e9)
    monkeypatch.setattr(peeking, "own_bytes", lambda: sizes.pop(0) if len(sizes) > 1 else sizes[0])
    with listening() as node, contextlib.ExitStack() as held:
        honest, silent, *greedy = [held.enter_context(speaker(node)) for _ in range(7)]
        heard = node.connections._clients[greet(node, honest, b"hello")]
        honest.sendall(b"\2" + struct.pack(">Q", 500_000) + bytes(400_000))
        wait_until(lambda: brought(heard) > 400_000)
        strangers = [bring(node, raw, count) for raw, count in zip(
            greedy, (1_000_000, 900_000, 800_000, 700_000, 600_000), strict=True)]
        too_much = node.connections._memory_bytes + MADE_OF_IT * 2_700_000 - 100_000
        sizes[:] = [too_much, too_much, 0]  # of one look, before and behind what is given back
        wait_until(lambda: len(sizes) == 1)
        await_looks(node, 2)

        assert node.connections.cut == connections.Counters(for_memory=3)
        assert [each.is_cut for each in strangers] == [True, True, True, False, False]
        sizes[:] = [1 << 40]
        await_looks(node, 2)
        assert node.connections.cut == connections.Counters(for_memory=5)
        honest.sendall(bytes(100_000))
        assert receive(node) == [[bytes(500_000)]]
        greet(node, silent, b"hello")


def test_an_estimate_that_is_too_high_spares_the_others_only_for_a_while(
        monkeypatch: pytest.MonkeyPatch) -> None:
    size = [0]
    monkeypatch.setattr(connections, "GIVE_BACK_S", 1e9)
    monkeypatch.setattr(peeking, "own_bytes", lambda: size[0])
    with listening() as node, speaker(node) as one, speaker(node) as other:
        first, second = bring(node, one, 2_000_000), bring(node, other, 1_000_000)
        size[0] = node.connections._memory_bytes + 1
        wait_until(lambda: first.is_cut)
        size[0] += connections.SPARE_BYTES
        await_looks(node, 2)
        assert not second.is_cut and MADE_OF_IT * 2_000_000 > 2 * connections.SPARE_BYTES
        size[0] += 1
        wait_until(lambda: second.is_cut)

    assert node.connections.cut == connections.Counters(for_memory=2)


def test_a_node_that_has_too_much_looks_each_time(monkeypatch: pytest.MonkeyPatch, node: Transport) -> None:
    """Also when a look has cost much, and it grows no more."""
    monkeypatch.setattr(connections, "SHARE", 1e12)
    monkeypatch.setattr(connections, "GROWTH_BYTES", 1 << 60)
    with speaker(node):
        wait_until(lambda: bool(node.connections._open))
        node.connections._memory_bytes = 0
        await_looks(node, 2)


def test_a_look_for_which_the_machine_stood_still_costs_no_more(
        monkeypatch: pytest.MonkeyPatch, node: Transport) -> None:
    """What it costs puts off the next one."""
    flow_of, stands_s = peeking.flow_of, 1.0
    stood: list[float] = []

    def slowly(number: int, cookie: bytes) -> peeking.Flow | None:
        time.sleep(stands_s)
        stood.append(time.monotonic())
        return flow_of(number, cookie)
    monkeypatch.setattr(peeking, "flow_of", slowly)
    with speaker(node):
        wait_until(lambda: bool(stood) and node.connections._looked_s > stood[0])
    assert node.connections._cost_s < stands_s


def test_what_was_brought_and_not_read_by_the_end_is_never_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()) as theirs, server.accept()[0] as mine:
        theirs.sendall(bytes(100_000))
        cookie = peeking.cookie_of(mine.fileno(), server.getsockname()[1])
        assert cookie is not None
        assert peeking.end(mine.fileno(), cookie)
        assert mine.recv(1_000_000) == b""


def bring(at: Transport, raw: socket.socket, count: int) -> connections.Connection:
    """Have a stranger bring so many bytes of a message that does not end."""
    before = {each.number: brought(each) for each in list(at.connections._open.values())}
    raw.sendall(b"\1\0" * (count // 2))
    found: list[connections.Connection] = []
    wait_until(lambda: bool(found.extend(
        each for each in list(at.connections._open.values())
        if brought(each) >= before.get(each.number, 0) + count) or found))
    return found[0]


def brought(connection: connections.Connection) -> int:
    flow = peeking.flow_of(connection.number, connection.cookie)
    assert flow is not None
    return flow.brought


def test_who_cannot_be_counted_is_heard_and_not_answered(node: Transport) -> None:
    with socket.create_connection(("127.0.0.1", node.port), WAIT_S) as old:
        old.sendall(b"\xff" + bytes(8) + b"\x7f\x01\x05" + bytes(2))  # a DEALER of ZMTP 2
        client = greet(node, old, b"hello")
        node.answer(client, [ANSWER])

    assert (node.traffic.answered, node.traffic.to_lost_client) == (0, 1)


FILES = """
import resource, sys
from skuld_py.runtime import files
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
files.allow_files(1)
soft, now = resource.getrlimit(resource.RLIMIT_NOFILE)
wanted = files.OWN_FILES + 2 * files.CONNECTIONS_MAX
assert now == hard and soft == (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)), (soft, hard)
files.allow_files(1)
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, now)
"""


def test_a_process_takes_the_files_that_it_may_have() -> None:
    """In a process of its own."""
    ran = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stderr


def is_cut(raw: socket.socket) -> bool:
    raw.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        try:
            while raw.recv(4_096):
                pass
        except OSError as problem:
            if isinstance(problem, TimeoutError):
                raise
        return True
    return False


def test_what_is_said_in_small_messages_adds_up_to_nothing(node: Transport) -> None:
    with speaker(node) as raw:
        for _ in range(200):
            long = b"\2" + struct.pack(">Q", 300) + bytes(300)
            raw.sendall(b"\0\5hello\1\1a\0\2bb\1\xff" + bytes(255) + long)
            arrived = 0
            while arrived < 3:
                arrived += len(receive(node))
        (number, connection), = node.connections._open.items()
        flow = peeking.flow_of(number, connection.cookie)

    assert flow is not None
    assert 0 <= flow.brought - connection.taken < 200, "a greeting"


def test_a_file_that_is_another_socket_by_now_is_left_alone(node: Transport) -> None:
    with speaker(node) as raw, socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as mine, server.accept()[0] as theirs:
            gone = connections.Connection(mine.fileno(), b"12345678", time.monotonic())
            node.connections._open[mine.fileno()] = gone
            node.connections._end(gone, "greedy", "a test")
            mine.sendall(b"hello")
            assert exactly(theirs, 5) == b"hello"
            node.connections._open[mine.fileno()] = gone
            node.connections._look(time.monotonic(), 0)
            assert mine.fileno() not in node.connections._open
        raw.sendall(b"\0\5hello")
        assert receive(node) == [[b"hello"]]


def test_the_bounds_are_those_that_are_printed() -> None:
    with listening() as made:
        known, stranger = made.connections.known_bytes, made.connections.stranger_bytes
        most = made.connections.most
    page = (Path(connections.__file__).parents[1] / "manual" / "guarantees.md").read_text(encoding="utf-8")
    guarantees = " ".join(page.split())
    known, stranger = known - connections.SLACK_BYTES, stranger - connections.SLACK_BYTES
    printed = (f"at most {known >> 20} MiB, {stranger >> 20} MiB before its first message, and so are answers that"
               f" it has not read; {files.CONNECTIONS_MAX:,} connections together bring a node to"
               f" {connections.MEMORY_BYTES >> 20} MiB")

    assert printed in guarantees
    assert f"has nothing of them for {connections.DEAF_S:g} s" in guarantees
    assert f"some {files.CONNECTIONS_MAX // 4} workers" in guarantees
    assert f"looks {1 / connections.TICK_S:.0f} times a second when half of that is taken" in guarantees
    assert 0 < most <= files.CONNECTIONS_MAX


def test_a_newcomer_that_has_the_file_of_one_that_is_gone_is_told_from_it(node: Transport) -> None:
    """Files are used again at once; that the one before has gone may be heard only after the newcomer spoke."""
    with speaker(node) as raw:
        wait_until(lambda: bool(node.connections._open))
        (number, connection), = node.connections._open.items()
        node.connections._open[number] = connections.Connection(number, b"12345678", time.monotonic())
        raw.sendall(b"\0\5hello")
        assert receive(node) == [[b"hello"]]
        client, = node.connections._clients
        assert node.connections._open[number].cookie == connection.cookie

        node.connections._note_gone(number)
        assert node.connections.has_room(client, 100)
