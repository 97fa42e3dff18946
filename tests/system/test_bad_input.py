"""Garbage on the wire and wrong addresses: a clear answer or none, nothing stored, the node stays up."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
import zmq

from skuld_py import Client, Refused
from skuld_py.embedded.local import LocalCluster
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.wire.codec import Envelope, decode, encode
from system.conftest import await_leaders

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One node: what is tested here is its door."""
    with LocalCluster(tmp_path_factory.mktemp("single"), nodes=1, partitions=2, replicas=1) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


@pytest.fixture
def dealer(single: LocalCluster) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as made:
        made.linger = 0
        made.rcvtimeo = 5_000
        made.connect(f"tcp://{single.addresses[0]}")
        yield made


def is_well(cluster: LocalCluster) -> bool:
    """The node serves, and holds nothing."""
    with Client(cluster.addresses) as client:
        return client.count() == 0


def ask(dealer: zmq.Socket[bytes], frames: list[bytes]) -> m.Failed:
    dealer.send_multipart(frames)
    answer = decode(dealer.recv_multipart()).messages[0]
    assert isinstance(answer, m.Failed)
    return answer


def test_garbage_is_survived(single: LocalCluster, dealer: zmq.Socket[bytes]) -> None:
    dice = random.Random(11)
    for _ in range(500):
        dealer.send_multipart([dice.randbytes(dice.randrange(2_000)) for _ in range(dice.randrange(1, 6))])
    valid = encode(Envelope("", "local", (m.Count(1, ""),)))
    for _ in range(500):
        broken = bytearray(valid[0])
        broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        dealer.send_multipart([bytes(broken)])

    assert is_well(single)


def test_a_plain_tcp_connection_that_talks_http_is_survived(single: LocalCluster) -> None:
    host, port = single.addresses[0].split(":")
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: skuld\r\n\r\n" * 50)

    assert is_well(single)


def test_a_wrong_cluster_is_told_both_names(single: LocalCluster, dealer: zmq.Socket[bytes]) -> None:
    answer = ask(dealer, encode(Envelope("", "other", (m.Count(7, ""),))))

    assert (answer.request, answer.code, answer.is_definite) == (7, "wrong_cluster", True)
    assert "local" in answer.text and "other" in answer.text


def test_a_client_may_not_speak_as_a_node(single: LocalCluster, dealer: zmq.Socket[bytes]) -> None:
    batch = m.TaskBatch(Header("q").encode(), bytes(20), columns.pack([b"x"]))

    answer = ask(dealer, encode(Envelope("", "local", (m.Replicate(8, (batch,)),))))

    assert (answer.request, answer.code) == (8, "forbidden")
    assert is_well(single)


def test_a_stranger_that_says_it_is_a_node_is_not_heard(single: LocalCluster, dealer: zmq.Socket[bytes]) -> None:
    batch = m.TaskBatch(Header("q").encode(), bytes(20), columns.pack([b"x"]))
    dealer.send_multipart(encode(Envelope("10.9.9.9:13000", "local", (m.Replicate(8, (batch,)),))))

    assert is_well(single)


@pytest.mark.parametrize(("at", "value", "field"), [
    (1, True, "w"), (1, -1, "w"), (1, 1.0, "w"), (1, None, "w"), (2, b"", "batches"), (2, {}, "batches")])
def test_wrong_types_are_named(single: LocalCluster, dealer: zmq.Socket[bytes], at: int, value: object,
                               field: str) -> None:
    """Positional fields of an Enqueue, replaced one by one."""
    batch = m.TaskBatch(Header("q").encode(), bytes(20), columns.pack([b"x"]))
    frames = encode(Envelope("", "local", (m.Enqueue(9, 0, (batch,)),)))
    header = msgpack.unpackb(frames[0])
    header[-1][0][1 + at] = value

    answer = ask(dealer, [msgpack.packb(header), *frames[1:]])

    assert answer.request == 9 and answer.is_definite and field in answer.text
    assert is_well(single)


def test_an_oversized_payload_is_refused_by_the_node_too(single: LocalCluster, dealer: zmq.Socket[bytes]) -> None:
    with Client(single.addresses) as client:
        task_id = client.new_ids()[0]
    batch = m.TaskBatch(Header("q").encode(), task_id, columns.pack([bytes((1 << 20) + 1)]))

    answer = ask(dealer, encode(Envelope("", "local", (m.Enqueue(3, 0, (batch,)),))))

    assert answer.is_definite and "payload" in answer.text
    assert is_well(single)


@pytest.mark.parametrize(("change", "words"), [
    ({"--port": None}, ["in use", "--port"]),
    ({"--cluster": "unheard-of"}, ["unheard-of", "local"]),
    ({"--zookeeper": "127.0.0.1:9"}, ["127.0.0.1:9"]),
    ({"--host": "0.0.0.0"}, ["loopback"]),
])
def test_a_node_that_cannot_start_says_why(single: LocalCluster, tmp_path: Path, change: dict[str, str | None],
                                           words: list[str]) -> None:
    taken = single.addresses[0].rpartition(":")[2]
    options = {"--cluster": "local", "--zookeeper": single.zookeeper_hosts, "--host": "127.0.0.1", "--port": taken,
               "--data": str(tmp_path / "data")}
    options.update({name: value for name, value in change.items() if value is not None})
    command = [sys.executable, "-m", "skuld_py", "node"]

    ended = subprocess.run([*command, *(word for pair in options.items() for word in pair)],
                           capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    for word in words:
        assert word.lstrip("-") in ended.stderr, ended.stderr
    with pytest.raises(Refused), Client("127.0.0.1:9", timeout_s=0.2) as client:
        client.count()
