"""More connections than there are files for: who is cut, who is let in, and how a node ends that cannot go on."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from skuld_py.config import Parameters
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.keys.pair import fresh
from skuld_py.model.messages import Greet, Greeted
from skuld_py.runtime import peeking
from skuld_py.runtime.handshakes import Handshakes
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.threads import HelperFailed
from skuld_py.runtime.transport import Transport
from skuld_py.runtime.zookeeper.clusters import create_cluster
from skuld_py.wire.codec import Envelope, decode, encode

WAIT_S = 90.0


@pytest.fixture
def node() -> Iterator[Transport]:
    with contextlib.closing(Transport("anna", "test", "127.0.0.1", 0)) as opened:
        yield opened


@pytest.fixture
def held() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def silent(held: contextlib.ExitStack, at: Transport, count: int) -> list[socket.socket]:
    """Connections that say nothing, and that the node knows of."""
    known = len(at.connections._open)
    made = [held.enter_context(socket.create_connection(("127.0.0.1", at.port), WAIT_S)) for _ in range(count)]
    wait_until(lambda: len(at.connections._open) >= known + count)
    return made


def wait_until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_all_that_are_too_many_are_cut_in_one_look(node: Transport, held: contextlib.ExitStack) -> None:
    looks: list[int] = []
    make_room = node.connections._make_room

    def counted() -> None:
        before = node.connections.cut.too_many
        make_room()
        looks.append(node.connections.cut.too_many - before)
    silent(held, node, 8)
    node.connections._make_room = counted  # type: ignore[method-assign]
    node.connections.most = 3
    held.enter_context(socket.create_connection(("127.0.0.1", node.port), WAIT_S))
    wait_until(lambda: node.connections.cut.too_many >= 6)

    assert max(looks) >= 5


def test_while_those_that_were_cut_have_not_gone_nobody_new_is_let_in(
        node: Transport, held: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    node.connections.most = 8
    monkeypatch.setattr(peeking, "end", lambda number, cookie: True)  # and libzmq does not hear of it
    made = silent(held, node, 11)
    gate = node.connections._gate
    assert gate is not None
    wait_until(lambda: gate.is_shut)
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", node.port), 0.2)

    for raw in made[:4]:
        raw.close()
    wait_until(lambda: not gate.is_shut)
    silent(held, node, 1)


def test_what_cannot_be_cut_now_is_cut_later(
        node: Transport, held: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    end, tried = peeking.end, list[int]()

    def end_the_second_time(number: int, cookie: bytes) -> bool:
        tried.append(number)
        return len(tried) > 1 and end(number, cookie)
    monkeypatch.setattr(peeking, "end", end_the_second_time)
    node.connections.most = 1
    silent(held, node, 2)
    wait_until(lambda: len(node.connections._open) == 1)

    assert tried[0] == tried[1] and node.connections.cut.too_many == 1


def test_a_node_is_told_by_what_a_thread_of_its_transport_failed(
        node: Transport, held: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError(24, "Too many open files")
    monkeypatch.setattr(peeking, "own_bytes", fail)
    held.enter_context(socket.create_connection(("127.0.0.1", node.port), WAIT_S))

    with pytest.raises(HelperFailed, match=r"skuld-connections-\d+ failed, .* Too many open files; start"):
        turn(node)


def turn(node: Transport) -> None:
    """Wait as a node does, for as long as a test may take."""
    end_s = time.monotonic() + WAIT_S / 3
    while time.monotonic() < end_s:
        node.wait(1_000)
        node.receive(100)


def test_a_node_is_told_that_nobody_answers_its_handshakes(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Handshakes, request: list[bytes]) -> list[bytes]:
        raise ValueError("planted")
    monkeypatch.setattr(Handshakes, "_answer", fail)
    cluster, me = fresh(), fresh()
    made = Transport("anna", "test", "127.0.0.1", 0, keyring=Keyring(cluster, me))
    with contextlib.closing(made), zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.curve_publickey, dealer.curve_secretkey = me.public.encode(), me.secret.encode()
        dealer.curve_serverkey = cluster.public.encode()
        dealer.connect(f"tcp://127.0.0.1:{made.port}")
        with pytest.raises(HelperFailed, match=r"skuld-handshakes failed, .* ValueError: planted"):
            turn(made)


DEAF = """
import socket
from skuld_py.runtime import peeking
from skuld_py.runtime.transport import Transport

node = Transport("anna", "test", "127.0.0.1", 0)
def fail():
    raise OSError("planted")
peeking.own_bytes = fail
for _ in range(600):
    socket.create_connection(("127.0.0.1", node.port), 10).close()
node.close()
print("closed")
"""


def test_a_transport_closes_after_its_watcher_has_failed() -> None:
    """In a process of its own: libzmq would wait for ever for who hears its news."""
    assert run(DEAF) == "closed"


def run(program: str, *arguments: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60,
                         check=True)
    return ran.stdout.strip()


MAY_HAVE = """
import logging, resource, sys
from skuld_py.errors import Refused
from skuld_py.runtime import files

logging.basicConfig(stream=sys.stdout, format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
try:
    files.allow_files(2)
    print(files.connections_most(2))
except Refused as refusal:
    print(refusal)
"""


def test_doors_share_the_files_that_a_process_may_have() -> None:
    warning, most = run(MAY_HAVE, "1024").splitlines()

    assert int(most) == 208
    assert "may have 1024 files open" in warning and "208 connections at each of its two ports" in warning
    assert "LimitNOFILE=8192" in warning


def test_with_as_many_files_as_it_wants_a_node_says_nothing_of_them() -> None:
    assert run(MAY_HAVE, "8192") == "2000"


def test_with_too_few_files_no_node_starts() -> None:
    assert run(MAY_HAVE, "511").startswith("files: this process may have 511 files open, and a node needs 512")


def test_its_own_size_is_known_when_there_are_no_more_files() -> None:
    peeking.own_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        assert peeking.own_bytes() > 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


NODE = """
import resource, sys
from pathlib import Path
from skuld_py.runtime.server import Place, serve

resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))
hosts, port, data = sys.argv[1:]
serve(hosts, "flooded", Place("127.0.0.1", int(port)), Path(data), session_ms=2000,
      on_ready=lambda name: print(name, flush=True))
"""


@pytest.mark.cluster
@pytest.mark.slow
def test_a_node_with_few_files_is_reached_in_a_flood_and_ends_in_its_time(
        tmp_path: Path, held: contextlib.ExitStack) -> None:
    zookeeper = held.enter_context(ZooKeeperServer(tmp_path / "zookeeper"))
    create_cluster(zookeeper.hosts, Parameters("flooded", "id-of-flooded", partitions=2, replicas=1))
    port = held_port(held, "127.0.0.1")
    command = [sys.executable, "-c", NODE, zookeeper.hosts, str(port), str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        held.callback(node.kill)
        assert node.stdout is not None and node.stdout.readline()
        most, greeted = 0, 0
        for _ in range(3):
            flood(held, port, 600)
            most = max(most, len(os.listdir(f"/proc/{node.pid}/fd")))
            greeted += is_greeted(port)
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0
    assert greeted == 3 and most < 600


def flood(held: contextlib.ExitStack, port: int, count: int) -> None:
    """So many connections at once, which say nothing and stay."""
    for _ in range(count):
        raw = held.enter_context(socket.socket())
        raw.setblocking(False)
        raw.connect_ex(("127.0.0.1", port))


def is_greeted(port: int) -> bool:
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.linger = 0
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send_multipart(encode(Envelope("", "", (Greet(1),))))
        return bool(client.poll(10_000)) and isinstance(decode(client.recv_multipart()).messages[0], Greeted)
