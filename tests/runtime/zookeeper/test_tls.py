"""TLS to ZooKeeper, without one: who is trusted, which files are no use, and what is said when it fails."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import attrs
import pytest

from runtime.zookeeper.sealing import listening
from skuld_py.embedded import certificates
from skuld_py.errors import Refused
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.handler import Handler
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.runtime.zookeeper.tls import Tls, sealed
from skuld_py.runtime.zookeeper.unreached import check_names, unreached

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ours")
    certificates.make(directory, [HOST], 30)
    return directory


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("theirs")
    certificates.make(directory, [HOST], 30)
    return directory


def shown(directory: Path) -> Tls:
    return Tls(directory / "client" / "ca.pem", directory / "client" / "client.pem")


def connect(server: str, tls: Tls, host: str = HOST) -> ssl.SSLSocket:
    return sealed(tls, (HOST, int(server.rpartition(":")[2])), host, 10)


def test_a_server_of_the_authority_is_spoken_to(ours: Path) -> None:
    with listening(ours / HOST) as server, connect(server, shown(ours)) as connection:
        connection.sendall(b"ruok")
        assert connection.recv(100) == b"imok"


def test_authorities_of_the_system_are_none_of_ours(ours: Path, theirs: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(theirs / "client" / "ca.pem"))
    context = ssl.create_default_context()
    assert context.get_ca_certs(), "the system trusts it"

    with listening(theirs / HOST) as server, pytest.raises(Refused, match="is not by an authority in"):
        connect(server, shown(ours))


def test_a_server_is_called_as_its_certificate_says(ours: Path) -> None:
    with listening(ours / HOST) as server, pytest.raises(Refused, match="certificate of another host") as refused:
        connect(server, shown(ours), "localhost")

    assert refused.value.code == "wrong_server"


def test_a_client_s_certificate_makes_no_server(ours: Path, tmp_path: Path) -> None:
    shutil.copy(ours / "client" / "client.pem", tmp_path / "server.pem")
    shutil.copy(ours / "client" / "ca.pem", tmp_path / "ca.pem")

    with listening(tmp_path) as server, pytest.raises(Refused, match="zookeeper-ca: "):
        connect(server, shown(ours))


def test_a_certificate_that_is_over_is_said_to_be(ours: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ours, copy)
    authority = certificates.Authority(copy / "authority" / "ca.pem", copy / "authority" / "ca.key")
    authority.issue(copy / HOST / "server.pem", "serverAuth", -1, f"IP:{HOST}")

    with listening(copy / HOST) as server, pytest.raises(Refused, match=r"is not valid now .*renew it"):
        connect(server, shown(copy))


@pytest.mark.parametrize(("own", "words"), [
    ("plain", "zookeeper-ca: {} speaks TLS only; give the certificate"),
    ("no certificate", "zookeeper-cert: {} wants a certificate; give one"),
    ("of others", "zookeeper-cert: {} does not take the certificate in")])
def test_a_server_that_does_not_take_us_is_asked_why(ours: Path, theirs: Path, own: str, words: str) -> None:
    authority = ours / "client" / "ca.pem"
    tls = {"plain": None, "no certificate": Tls(authority),
           "of others": Tls(authority, theirs / "client" / "client.pem")}[own]

    with listening(ours / HOST) as server:
        assert unreached(Servers(server, tls=tls)).message.startswith(words.format(server))


def test_a_server_that_speaks_no_tls_is_named(ours: Path) -> None:
    with listening(None) as server:
        refusal = unreached(Servers(f"127.0.0.1:1,{server}/path", tls=shown(ours)))
        assert unreached(Servers(server)).code == "zookeeper_unreachable"

    assert refusal.message.startswith(f"zookeeper-ca: {server} does not answer in TLS")


def test_a_server_that_takes_us_and_one_that_is_silent_are_given_no_reason(ours: Path) -> None:
    with listening(ours / HOST) as server, socket.create_server((HOST, 0)) as silent:
        hosts = f"{server},{HOST}:{silent.getsockname()[1]}"
        assert unreached(Servers(hosts, tls=shown(ours))).code == "zookeeper_unreachable"


def test_a_verb_that_cannot_connect_says_why(ours: Path, theirs: Path) -> None:
    tls = attrs.evolve(shown(ours), authority=theirs / "client" / "ca.pem")

    with listening(ours / HOST) as server, pytest.raises(Refused, match="is not by an authority in"):
        clusters.read_names(Servers(server, tls=tls), "any", 1.0)


def test_files_that_are_no_use_are_named_before_one_dials(ours: Path, theirs: Path, tmp_path: Path) -> None:
    authority, own = ours / "client" / "ca.pem", ours / "client" / "client.pem"
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("rubbish")
    rubbish.chmod(0o600)
    exposed = tmp_path / "exposed"
    shutil.copy(own, exposed)
    exposed.chmod(0o644)
    locked = tmp_path / "locked"
    subprocess.run(["openssl", "pkey", "-in", str(own), "-aes128", "-passout", "pass:secret", "-out", str(locked)],
                   check=True, capture_output=True)
    locked.chmod(0o600)
    missing = tmp_path / "missing"
    for tls, words in (
            (Tls(missing), "zookeeper-ca: .*missing cannot be read: No such file"),
            (Tls(rubbish), "zookeeper-ca: .*rubbish holds no certificate"),
            (Tls(authority, missing), "zookeeper-cert: .*missing cannot be read"),
            (Tls(authority, rubbish), "zookeeper-cert: .*rubbish .* are not a certificate and its key"),
            (Tls(authority, missing, own), "zookeeper-cert: .*missing cannot be read"),
            (Tls(authority, own, missing), "zookeeper-cert-key: .*missing cannot be read"),
            (Tls(authority, own, theirs / "client" / "client.pem"), "zookeeper-cert-key: .* and its key"),
            (Tls(authority, exposed), "may be read by others"),
            (Tls(authority, exposed, exposed), "may be read by others"),
            (Tls(authority, own, locked), "zookeeper-cert-key: .*sealed with a password")):
        with pytest.raises(Refused, match=words):
            clusters.open_client(Servers("127.0.0.1:1", tls=tls), 1.0)


def test_why_a_connection_fails_is_logged_once_for_each_reason(ours: Path, theirs: Path,
                                                               caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler(shown(ours))
    with listening(theirs / HOST) as server:
        address = (HOST, int(server.rpartition(":")[2]))
        for _ in range(3):
            with pytest.raises(ConnectionError):  # which kazoo takes for a reason to try again
                handler.create_connection(address, HOST, 10)
        with pytest.raises(ConnectionError):
            Handler(Tls(Path("/missing"))).create_connection(address, HOST, 10)

    assert ["is not by an authority" in record.getMessage() for record in caplog.records] == [True, False]


def test_what_is_unsealed_is_read_though_nothing_more_arrives(ours: Path) -> None:
    handler = Handler(shown(ours))
    with listening(ours / HOST, answer=b"12345678") as server, connect(server, shown(ours)) as connection:
        connection.sendall(b"ruok")
        assert connection.recv(4) == b"1234"
        began = time.monotonic()
        assert handler.select([connection], [], [], 60)[0] == [connection]
        assert time.monotonic() - began < 30
        assert connection.recv(4) == b"5678"
        assert handler.select([connection], [], [], 0)[0] == []


def test_without_tls_a_socket_is_kazoo_s_own() -> None:
    handler = Handler(None)
    with socket.create_server((HOST, 0)) as listener:
        made = handler.create_connection(listener.getsockname(), HOST, 10, use_ssl=False)
        made.close()
    assert type(made) is socket.socket


def test_a_name_that_is_not_known_ends_a_thread_without_a_word(caplog: pytest.LogCaptureFixture,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    from kazoo.exceptions import SessionClosedRequireSaslError

    told: list[object] = []
    monkeypatch.setattr(threading, "excepthook", told.append)

    def loop() -> None:
        from skuld_py.runtime.zookeeper.handler import logger
        try:
            raise SessionClosedRequireSaslError()
        except SessionClosedRequireSaslError:
            logger.exception("Unhandled exception in connection loop")
            raise
    handler = Handler(None)
    with caplog.at_level(logging.DEBUG):
        handler.spawn(loop).join()

    assert handler.is_denied and not told and not caplog.records


def test_renewed_files_count_from_the_next_connection_on(ours: Path, theirs: Path, tmp_path: Path) -> None:
    client = tmp_path / "client"
    shutil.copytree(theirs / "client", client)
    handler = Handler(Tls(client / "ca.pem", client / "client.pem"))
    with listening(ours / HOST) as server:
        address = (HOST, int(server.rpartition(":")[2]))
        with pytest.raises(ConnectionError):
            handler.create_connection(address, HOST, 10)
        shutil.copytree(ours / "client", client, dirs_exist_ok=True)
        with handler.create_connection(address, HOST, 10) as connection:
            connection.sendall(b"ruok")
            assert connection.recv(100) == b"imok"


def test_a_server_whose_name_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(host: str, *_: object) -> list[object]:
        if host == "zk9":
            raise socket.gaierror("Name or service not known")
        return []
    monkeypatch.setattr(socket, "getaddrinfo", found)
    refusal = unreached(Servers("zk1:1,zk9:2181/skuld"))

    assert refusal.code == "zookeeper_unreachable"
    assert refusal.message.startswith("zookeeper: no address is known by the name in zk9:2181; check how it is")
    check_names(Servers("zk1:1,zk9:2181/skuld"))
    with pytest.raises(Refused, match=r"no address is known by the name in zk9:2181;"):
        check_names(Servers("zk9:2181/skuld"))
