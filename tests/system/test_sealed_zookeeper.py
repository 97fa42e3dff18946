"""A keyed cluster on three ZooKeeper servers that speak TLS only, and let in only whom they know by name: tasks
from enqueue to completion, also when a server is lost; and strangers get nothing, and are told why."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from skuld_py import Client
from skuld_py.embedded import process, python
from skuld_py.embedded.ports import held_port
from skuld_py.keys.files import read_client_key
from system.conftest import await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

SITE = f"127.{100 + os.getpid() // 250 % 100}.{os.getpid() % 250}"
"""An ensemble's ports are fixed, so addresses differ from one run to the next."""
SERVERS = [f"{SITE}.{number}" for number in (1, 2, 3)]
PORT, NODES = 2181, 3


@attrs.define
class Site:
    """``running``: by name."""

    place: Path
    running: dict[str, subprocess.Popen[bytes]] = attrs.field(factory=dict)
    addresses: list[str] = attrs.field(factory=list)

    @property
    def registry(self) -> str:
        return ",".join(f"{host}:{PORT}" for host in SERVERS)

    @property
    def shown(self) -> dict[str, str]:
        """What all verbs take from the environment."""
        client = self.place / "tls" / "client"
        return {"SKULD_ZOOKEEPER": self.registry, "SKULD_ZOOKEEPER_CA": str(client / "ca.pem"),
                "SKULD_ZOOKEEPER_CERT": str(client / "client.pem"), "SKULD_ZOOKEEPER_USER": "prod",
                "SKULD_ZOOKEEPER_PASSWORD_FILE": str(self.place / "password"),
                "SKULD_CLUSTER": "sealed", "SKULD_CLUSTER_KEY": str(self.place / "cluster.key")}

    def start(self, name: str, arguments: Sequence[str]) -> None:
        self.running[name] = process.spawn(python.module_command("skuld_py", arguments), log=self.log(name),
                                           environment={**python.environment(), **self.shown})

    def start_server(self, host: str) -> None:
        self.start(host, ["zookeeper", "--data", str(self.place / host), "--host", host, "--port", str(PORT),
                          "--ensemble", ",".join(SERVERS), "--tls", str(self.place / "tls" / host), "--users",
                          str(self.place / "users")])

    def log(self, name: str) -> Path:
        return self.place / f"{name}.log"

    def await_word(self, name: str, word: str, since: int = 0, timeout_s: float = 180) -> None:
        deadline = time.monotonic() + timeout_s
        while word not in self.log(name).read_text()[since:]:
            assert self.running[name].poll() is None, self.log(name).read_text()[-4_000:]
            assert time.monotonic() < deadline, self.log(name).read_text()[-4_000:]
            time.sleep(0.05)

    def verb(self, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run one; an empty value takes a variable away."""
        environment = {**python.environment(), **self.shown, **changed}
        return subprocess.run(
            [sys.executable, "-m", "skuld_py", *arguments], capture_output=True, text=True, timeout=120,
            check=False, env={name: value for name, value in environment.items() if value})

    def done(self, *arguments: str) -> str:
        ran = self.verb(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refused(self, *arguments: str, **changed: str) -> str:
        ran = self.verb(*arguments, **changed)
        assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
        return ran.stderr


def private(path: Path, text: str) -> Path:
    path.touch(0o600)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("sealed"))
    private(made.place / "password", "s3cret\n")
    private(made.place / "users", "prod:s3cret\n")
    try:
        made.done("certificates", "--to", str(made.place / "tls"), "--host", ",".join(SERVERS))
        for host in SERVERS:
            made.start_server(host)
        for host in SERVERS:
            made.await_word(host, "zookeeper is ready")
        made.done("cluster", "create", "sealed", "--secure", "--partitions", "4", "--skew", "1s",
                  "--cluster-key", str(made.place / "cluster.key"))
        made.done("keys", "make", "all", "--role", "admin", "--role", "worker", "--role", "producer", "--to",
                  str(made.place / "client.key"))
        for number in range(NODES):
            port = held_port(made, "127.0.0.1")
            made.addresses.append(f"127.0.0.1:{port}")
            made.start(f"node-{number}", ["node", "--port", str(port), "--session", "4s", "--data",
                                          str(made.place / f"data-{number}")])
        for number in range(NODES):
            made.await_word(f"node-{number}", "is ready")
        yield made
    finally:
        for each in made.running.values():
            process.stop(each, grace_s=0)


def live(site: Site, queue: str) -> None:
    """A task, from enqueue to completion."""
    with Client(site.addresses, key=read_client_key(site.place / "client.key"), timeout_s=60) as client:
        await_leaders(client, 120)
        task, = client.enqueue_many(queue, [b"work"])
        claim, = client.claim(queue, n=1, wait_s=30)
        client.complete(claim)
        assert claim.id == task and client.get(task).state == "completed"


def test_the_life_of_a_task_and_the_verbs_of_operators(site: Site) -> None:
    live(site, "lives")

    assert all(address in site.done("members") for address in site.addresses)
    assert "all" in site.done("keys", "list")
    assert "goes by rules" in site.done("cluster", "rules", "sealed")


def test_a_stranger_is_told_why_it_gets_nothing(site: Site) -> None:
    others = site.place / "others"
    site.done("certificates", "--to", str(others), "--host", SERVERS[0])
    asked = ("cluster", "rules", "sealed", "--timeout", "3s")
    none = {"SKULD_ZOOKEEPER_CA": "", "SKULD_ZOOKEEPER_CERT": ""}

    assert "speaks TLS only" in site.refused(*asked, **none)
    assert "wants a certificate" in site.refused(*asked, SKULD_ZOOKEEPER_CERT="")
    assert "does not take the certificate in" in site.refused(
        *asked, SKULD_ZOOKEEPER_CERT=str(others / "client" / "client.pem"))
    assert "is not by an authority in" in site.refused(
        *asked, SKULD_ZOOKEEPER_CA=str(others / "client" / "ca.pem"))
    assert "lets in nobody without a name" in site.refused(
        *asked, SKULD_ZOOKEEPER_USER="", SKULD_ZOOKEEPER_PASSWORD_FILE="")
    assert "does not know this name and password" in site.refused(*asked, SKULD_ZOOKEEPER_USER="eve")
    assert "shows this cluster to its owner only" in site.refused(*asked, SKULD_CLUSTER_KEY="")


def test_a_client_s_certificate_is_worth_nothing_among_servers(site: Site) -> None:
    def outcome(own: Path) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(own)
        try:
            with socket.create_connection((SERVERS[0], 3_888), 10) as raw, context.wrap_socket(raw) as sealed:
                sealed.settimeout(3)
                sealed.sendall(b"\xff")  # of a greeting that is never ended
                return "ended" if sealed.recv(1) == b"" else "answered"
        except TimeoutError:
            return "heard"
        except OSError as problem:
            return f"broken off: {problem}"

    tls = site.place / "tls"
    assert outcome(tls / SERVERS[1] / "quorum.pem") == "heard"
    assert "ALERT" in outcome(tls / "client" / "client.pem").upper()


def test_a_server_is_lost_and_comes_back(site: Site) -> None:
    process.stop(site.running[SERVERS[0]], grace_s=0)
    live(site, "two-of-three")

    since = len(site.log(SERVERS[0]).read_text())
    site.start_server(SERVERS[0])
    site.await_word(SERVERS[0], "zookeeper is ready", since)
    live(site, "three-of-three")
