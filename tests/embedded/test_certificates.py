"""Certificates for ZooKeeper: each is for one use and one host, and signed by the authority that it should be."""

from __future__ import annotations

import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skuld_py.embedded import certificates
from skuld_py.embedded.zookeeper_tls import ServerTls
from skuld_py.errors import Refused

HOSTS = ("zk1.example.org", "10.0.0.1", "fd77::1")


def text_of(path: Path) -> str:
    return subprocess.run(["openssl", "x509", "-in", str(path), "-noout", "-text"], capture_output=True, text=True,
                          check=True).stdout


def is_signed(path: Path, authority: Path, purpose: str) -> bool:
    return subprocess.run(["openssl", "verify", "-purpose", purpose, "-CAfile", str(authority), str(path)],
                          capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    assert certificates.make(directory, HOSTS, 30) == [directory / each for each in (*HOSTS, "client")]
    return directory


def test_a_server_has_a_certificate_for_its_host(made: Path) -> None:
    for host, words in zip(HOSTS, ("DNS:zk1.example.org", "IP Address:10.0.0.1", "IP Address:FD77:0:0:0:0:0:0:1"),
                           strict=True):
        ServerTls(made / host).check(host, is_one_of_several=True)
        for name in ("server.pem", "quorum.pem"):
            assert words in text_of(made / host / name)


def test_a_client_s_certificate_is_none_for_a_server_and_none_among_servers(made: Path) -> None:
    client, server = made / "client" / "client.pem", made / HOSTS[0]

    assert is_signed(client, server / "ca.pem", "sslclient")
    assert not is_signed(client, server / "ca.pem", "sslserver")
    assert not is_signed(client, server / "quorum-ca.pem", "sslclient")
    assert is_signed(server / "quorum.pem", server / "quorum-ca.pem", "sslclient")
    assert not is_signed(server / "server.pem", server / "quorum-ca.pem", "sslclient")


def test_who_signs_stays_and_keys_are_their_owner_s_alone(made: Path) -> None:
    assert {path.relative_to(made).as_posix() for path in made.rglob("*.key")} == {
        "authority/ca.key", "authority/quorum-ca.key"}
    assert {path.name for path in (made / "client").iterdir()} == {"client.pem", "ca.pem"}
    for path in made.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.is_dir()


def test_made_again_certificates_are_new_and_by_the_same_authority(made: Path) -> None:
    before, authority = (made / HOSTS[0] / "server.pem").read_text(), (made / "authority" / "ca.pem").read_text()
    certificates.make(made, (HOSTS[0], "zk9"), 60)

    assert (made / HOSTS[0] / "server.pem").read_text() != before
    assert (made / "zk9" / "ca.pem").read_text() == authority
    assert is_signed(made / "zk9" / "server.pem", made / HOSTS[0] / "ca.pem", "sslserver")


@pytest.mark.parametrize("host", ["", "a/b", "..", "client", "authority", "-x", "a\nDNS:b", "*.org", "a,b"])
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(Refused, match=r"host: .* is no name or address") as refused:
        certificates.make(tmp_path, ["zk1", host], 30)

    assert refused.value.code == "bad_host" and not any(tmp_path.iterdir())


def test_without_openssl_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Refused, match="install it"):
        certificates.make(tmp_path / "made", ["zk1"], 30)


def test_servers_of_an_ensemble_trust_another_authority_than_their_clients_do() -> None:
    text = ServerTls(Path("/etc/zü tls")).configuration("zk1", 2181, is_one_of_several=True)
    rows: dict[str, Any] = dict(line.split("=", 1) for line in text.splitlines())

    assert "clientPort" not in rows and rows["secureClientPort"] == "2181" and rows["ssl.clientAuth"] == "need"
    assert rows["sslQuorum"] == "true" and rows["ssl.quorum.clientAuth"] == "need"
    assert rows["ssl.trustStore.location"] == "/etc/z\\u00fc\\u0020tls/ca.pem"
    assert rows["ssl.quorum.trustStore.location"] == "/etc/z\\u00fc\\u0020tls/quorum-ca.pem"
    assert rows["ssl.quorum.keyStore.location"] == "/etc/z\\u00fc\\u0020tls/quorum.pem"


@pytest.mark.parametrize("name", ["server.pem", "ca.pem", "quorum.pem", "quorum-ca.pem"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_that_is_no_use_is_named(made: Path, tmp_path: Path, name: str, is_there: bool) -> None:
    for path in (made / HOSTS[1]).iterdir():
        if path.name != name or is_there:
            (tmp_path / path.name).write_text("no PEM" if path.name == name else path.read_text())

    with pytest.raises(Refused, match=rf"tls: .*/{name} is no use \(.+\); 'skuld certificates'"):
        ServerTls(tmp_path).check(HOSTS[1], is_one_of_several=True)


@pytest.mark.parametrize("name", ["server.pem", "quorum.pem"])
def test_the_directory_of_another_host_is_no_use(made: Path, tmp_path: Path, name: str) -> None:
    for path in (made / HOSTS[1]).iterdir():
        (tmp_path / path.name).write_bytes((made / HOSTS[0] / name if path.name == name else path).read_bytes())

    with pytest.raises(Refused, match=rf"tls: .*/{name} is no use \(.* not valid for '{HOSTS[1]}'\)"):
        ServerTls(tmp_path).check(HOSTS[1], is_one_of_several=True)


def test_a_server_s_own_connection_is_sealed_or_none(made: Path) -> None:
    import socket

    near, far = socket.socketpair()
    far.close()
    with pytest.raises((ssl.SSLError, OSError)):
        ServerTls(made / HOSTS[1]).sealed(near, HOSTS[1])
    assert near.fileno() == -1


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x"])
def test_a_place_that_cannot_be_written_is_named(place: str) -> None:
    with pytest.raises(Refused, match=f"to: cannot write {place}/") as refused:
        certificates.make(Path(place), ["a"], 30)
    assert refused.value.code == "not_written"
