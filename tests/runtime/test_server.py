"""One real node process: it serves, it leaves when told to, and it refuses what is not its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import zmq
from kazoo.client import KazooClient

from skuld_py.cluster.log.commands import Leave
from skuld_py.cluster.log.entries import decode as decode_entry
from skuld_py.config import Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.document import Member
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages import Greet, Greeted
from skuld_py.model.registration import Registration
from skuld_py.node.life.identity import IDENTITY_KEY, begin_start
from skuld_py.runtime.agreement import STORE_FORMAT, check_expected
from skuld_py.runtime.lmdb_store import LmdbStore
from skuld_py.runtime.server import claim_directory, log_ready, log_start
from skuld_py.runtime.zookeeper.clusters import create_cluster, read_names
from skuld_py.runtime.zookeeper.log_following import follow
from skuld_py.wire.codec import Envelope, decode, encode

pytestmark = pytest.mark.cluster

TOP = Path(__file__).resolve().parents[2]
SERVE = """
import sys
from pathlib import Path
from skuld_py.errors import SkuldError
from skuld_py.runtime.server import Place, serve
hosts, cluster, port, data, host = sys.argv[1:]
try:
    serve(hosts, cluster, Place(host, int(port)), Path(data), session_ms=2000,
          on_ready=lambda name: print("ready", flush=True))
except SkuldError as refusal:
    sys.exit(f"{refusal.code}")
print("left", flush=True)
"""

NODE = "127.0.0.1:13000"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as running:
        create_cluster(running.hosts, Parameters("served", "id-of-served", partitions=2, replicas=1))
        yield running


def free_port() -> int:
    return held_port(free_port, "127.0.0.1")


def start(hosts: str, cluster: str, port: int, data: Path, host: str = "127.0.0.1") -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SERVE, hosts, cluster, str(port), str(data), host], cwd=TOP,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_node_serves_until_a_signal_then_ends_well(server: ZooKeeperServer, tmp_path: Path) -> None:
    port = free_port()
    folder = "/skuld/served/members"
    zookeeper = KazooClient(hosts=server.hosts)
    zookeeper.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        with start(server.hosts, "served", port, tmp_path / "data") as node:
            assert node.stdout is not None
            try:
                assert node.stdout.readline() == "ready\n"
                pulses = zookeeper.get_children(folder)
                assert [pulse.partition("~")[0] for pulse in pulses] == [f"127.0.0.1:{port}"]
                assert json.loads(zookeeper.get(f"{folder}/{pulses[0]}")[0])["port"] == port
                assert greet(port).cluster == "served"
                node.send_signal(number)
                assert node.stdout.readline() == "left\n"
                assert node.wait(60) == 0
            finally:
                node.kill()
        assert zookeeper.get_children(folder) == []
        last = list(follow(server.hosts, "served", is_endless=False))[-1]
        assert decode_entry(last[1]).command == Leave(pulses[0])
    zookeeper.stop()
    zookeeper.close()


def greet(port: int) -> Greeted:
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.RCVTIMEO, 10_000)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send_multipart(encode(Envelope("", "", (Greet(1),))))
        answer = decode(client.recv_multipart()).messages[0]
        assert isinstance(answer, Greeted)
        return answer


def test_a_forgotten_node_with_the_only_copies_does_not_start(server: ZooKeeperServer, tmp_path: Path) -> None:
    port = free_port()
    with start(server.hosts, "served", port, tmp_path / "data") as node:
        assert node.stdout is not None and node.stdout.readline() == "ready\n"
        node.terminate()
    zookeeper = KazooClient(hosts=server.hosts)
    zookeeper.start()
    try:
        zookeeper.delete(f"/skuld/served/nodes/127.0.0.1:{port}")
    finally:
        zookeeper.stop()
        zookeeper.close()

    with start(server.hosts, "served", port, tmp_path / "data") as node:
        assert node.communicate(timeout=60)[1].strip().endswith("forgotten")


def test_a_node_that_cannot_be_one_says_why(server: ZooKeeperServer, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        started = {"unknown_cluster": start(server.hosts, "nowhere", 1, tmp_path / "a"),
                   "port_in_use": start(server.hosts, "served", taken.getsockname()[1], tmp_path / "b")}
        said = {code: node.communicate(timeout=60)[1].strip() for code, node in started.items()}
    assert said == {code: code for code in said}
    assert not (tmp_path / "a").exists()


def test_who_mistyped_the_address_starts_again_on_the_same_directory(
        server: ZooKeeperServer, tmp_path: Path) -> None:
    create_cluster(server.hosts, Parameters("typed", "id-of-typed", partitions=2, replicas=1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = start(server.hosts, "typed", taken.getsockname()[1], tmp_path / "b")
        assert node.communicate(timeout=60)[1].strip() == "port_in_use"
    with start(server.hosts, "typed", free_port(), tmp_path / "a") as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            names = read_names(server.hosts, "typed")
            port = int(names[0].rpartition(":")[2])
            node = start(server.hosts, "typed", port, tmp_path / "b", "localhost")
            assert node.communicate(timeout=60)[1].strip() == "address_in_use"
            with start(server.hosts, "typed", free_port(), tmp_path / "b") as node:
                try:
                    assert node.stdout is not None
                    assert node.stdout.readline() == "ready\n"
                finally:
                    node.terminate()
        finally:
            other.terminate()


@pytest.mark.parametrize(("field", "value"), [("partitions", 16), ("replicas", 1), ("skew_ms", 900)])
def test_data_filled_by_others_is_refused_with_both_values(tmp_path: Path, field: str, value: int) -> None:
    store, made = LmdbStore(tmp_path, 1 << 20), Parameters("mine", "id-1")
    claim_directory(store, made, tmp_path, NODE)
    with pytest.raises(Refused, match="other_parameters") as caught:
        claim_directory(store, attrs.evolve(made, **{field: value}), tmp_path, NODE)
    claim_directory(store, made, tmp_path, NODE)

    assert caught.value.message.startswith(f"{field}: {tmp_path} was filled with {getattr(made, field)},"
                                           f" cluster mine has {value}; ")
    store.close()


def test_a_directory_of_before_takes_the_parameters_it_is_started_with(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, 1 << 20)
    store.put_many("meta", [(b"cluster", b"id-1")])
    claim_directory(store, Parameters("mine", "id-1"), tmp_path, NODE)
    with pytest.raises(Refused, match="other_parameters"):
        claim_directory(store, Parameters("mine", "id-1", partitions=2), tmp_path, NODE)
    store.close()


@pytest.mark.parametrize("written", [b"2", b"17", b"0", b"x"])
def test_a_directory_that_a_newer_release_has_written_is_refused(tmp_path: Path, written: bytes) -> None:
    store, made = LmdbStore(tmp_path, 1 << 20), Parameters("mine", "id-1")
    claim_directory(store, made, tmp_path, NODE)
    assert store.get("meta", b"format") == b"%d" % STORE_FORMAT == b"1"
    claim_directory(store, made, tmp_path, NODE)
    store.put_many("meta", [(b"format", written)])

    with pytest.raises(Refused, match=r"was written by a newer release.*start the newer release") as refused:
        claim_directory(store, made, tmp_path, NODE)
    assert refused.value.code == "newer_data"
    store.close()


def test_a_command_line_that_expects_another_cluster_is_refused_with_both_values() -> None:
    check_expected(Parameters("mine", "id-1"), {"partitions": 8, "replicas": None})
    with pytest.raises(Refused, match="other_parameters") as caught:
        check_expected(Parameters("mine", "id-1"), {"partitions": 8, "replicas": 5})
    assert caught.value.message.startswith("replicas: the command line says 5, cluster mine has 3; ")


@pytest.mark.parametrize("expected", [3, 5, None])
def test_who_expects_the_copies_of_now_or_of_creation_is_right(expected: int | None) -> None:
    check_expected(Parameters("mine", "id-1"), {"replicas": expected}, lambda: 5)


def test_who_expects_neither_is_told_how_many_are_kept_now() -> None:
    with pytest.raises(Refused, match="the command line says 4, cluster mine has 5"):
        check_expected(Parameters("mine", "id-1"), {"replicas": 4}, lambda: 5)
    with pytest.raises(Refused, match="partitions: the command line says 4"):
        check_expected(Parameters("mine", "id-1"), {"partitions": 4, "replicas": 5}, lambda: 5)


def test_rules_that_this_program_does_not_know_are_refused() -> None:
    with pytest.raises(Refused, match="rules: cluster mine goes by rules 9, this program knows rules up to"):
        check_expected(Parameters("mine", "id-1", rules=9), {})


def test_data_of_another_node_is_refused_with_both_names(tmp_path: Path) -> None:
    store, made = LmdbStore(tmp_path, 1 << 20), Parameters("mine", "id-1")
    claim_directory(store, made, tmp_path, NODE)
    with pytest.raises(Refused, match="wrong_data") as caught:
        claim_directory(store, made, tmp_path, "localhost:13000")
    claim_directory(store, made, tmp_path, NODE)

    assert f"holds the data of node {NODE}, not of localhost:13000; " in caught.value.message
    store.close()


def test_a_directory_from_before_takes_the_name_that_it_is_started_with(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, 1 << 20)
    store.put_many("meta", [(b"cluster", b"id-1")])
    claim_directory(store, Parameters("mine", "id-1"), tmp_path, NODE)
    with pytest.raises(Refused, match="wrong_data"):
        claim_directory(store, Parameters("mine", "id-1"), tmp_path, "localhost:13000")
    store.close()


def test_data_of_another_cluster_is_refused_with_both_names(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, 1 << 20)
    claim_directory(store, Parameters("mine", "id-1"), tmp_path, NODE)
    claim_directory(store, Parameters("renamed", "id-1"), tmp_path, NODE)
    with pytest.raises(Refused, match="wrong_data") as caught:
        claim_directory(store, Parameters("mine", "id-2"), tmp_path, NODE)
    assert "id-1" in caught.value.message
    assert "id-2" in caught.value.message
    store.close()


def test_a_new_directory_is_no_error_and_another_one_s_is(caplog: pytest.LogCaptureFixture) -> None:
    registered = Registration("127.0.0.1", 13000, "a", 7)
    for stored in (None, b"\0\0\0\0\0\0\0\7b"):
        store = MemoryStore()
        if stored is not None:
            store.put_many("meta", [(IDENTITY_KEY, stored)])
        log_start(NODE, begin_start(store, registered, "c", 2))

    (new, new_text), (other, other_text) = [
        (record.levelname, record.getMessage()) for record in caplog.records]
    assert (new, other) == ("WARNING", "ERROR")
    assert "data directory is new: it fills from the other nodes" in new_text
    assert "does not trust its memory of all partitions" in other_text


def test_the_line_of_a_start_names_timings_that_are_not_those_of_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for timing in (DEFAULT_TIMING, attrs.evolve(DEFAULT_TIMING, gossip_ms=77)):
        log_ready(Parameters("c", "id"), Member("h:1", "h", 1, "b"), Path("data"), 4_000, None, timing)

    assert caplog.messages[0].endswith("ended tasks kept for ever")
    assert caplog.messages[1].endswith("ended tasks kept for ever, gossip 77 ms")
    assert [vars(record)["facts"]["timings"] for record in caplog.records] == [{}, {"gossip_ms": 77}]
