"""A cluster with keys over twelve machines: three of ZooKeeper, five of nodes, a gateway, a worker, two of
clients."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from machines.disk import SmallDisk
from machines.machine import Machine, site
from skuld_py.embedded import process, python

ZOOKEEPERS, NODES = ("zk1", "zk2", "zk3"), ("n1", "n2", "n3", "n4", "n5")
OTHERS = ("gateway", "worker", "client", "desk")
PORT, PARTITIONS, READY_S = 13_000, 8, 60.0
SMALL_MIB = 192
"""Of the node that has a small disk."""
LOOK_S = 0.05


@attrs.define(eq=False)
class Town:
    """``place``: where files are. ``ipv6``: whether nodes are found by their IPv6 addresses."""

    place: Path
    machines: dict[str, Machine]
    disk: SmallDisk
    ipv6: bool = False
    story: list[str] = attrs.field(factory=list)
    began: float = attrs.field(factory=time.monotonic)

    def say(self, words: str) -> None:
        """Tell what happens, with its time."""
        line = f"{time.monotonic() - self.began:7.1f} s  {words}"
        self.story.append(line)
        print(line, flush=True)

    def host(self, name: str) -> str:
        """By what a machine is found."""
        machine = self.machines[name]
        return machine.host6 if self.ipv6 else machine.host

    def address(self, node: str) -> str:
        """A node as clients dial it."""
        return f"[{self.host(node)}]:{PORT}" if self.ipv6 else f"{self.host(node)}:{PORT}"

    def name(self, node: str) -> str:
        """A node as the cluster calls it."""
        return f"{self.host(node)}:{PORT}"

    @property
    def addresses(self) -> list[str]:
        """Of all nodes."""
        return [self.address(node) for node in NODES]

    @property
    def registry(self) -> str:
        """Of all ZooKeeper servers."""
        return ",".join(f"{self.machines[name].host}:2181" for name in ZOOKEEPERS)

    def key(self, name: str) -> Path:
        """A key file."""
        return self.place / f"{name}.key"

    def data(self, node: str) -> Path:
        """Where a node keeps its data."""
        return self.disk.place / "data" if node == "n4" else self.place / f"{node}-data"

    def log(self, name: str) -> Path:
        """What a machine's program says."""
        return self.place / f"{name}.log"

    # -- building --------------------------------------------------------------------------------

    def build(self) -> None:
        """Start everything, one machine after the other, and wait until it is ready."""
        servers = ",".join(self.machines[name].host for name in ZOOKEEPERS)
        for name in ZOOKEEPERS:
            self.machines[name].skuld(["zookeeper", "--data", str(self.place / name), "--host",
                                       self.machines[name].host, "--ensemble", servers], self.log(name))
        for name in ZOOKEEPERS:
            self.await_word(name, "zookeeper is ready")
        self.operate("cluster", "create", "town", "--secure", "--partitions", str(PARTITIONS), "--skew", "1s",
                     "--cluster-key", str(self.key("cluster")))
        for name, *roles in (("load", "producer", "worker", "reader"), ("gateway", "admin"),
                             ("worker", "worker", "producer", "reader")):
            self.operate("keys", "make", name, *(word for role in roles for word in ("--role", role)), "--to",
                         str(self.key(name)), "--cluster", "town", "--cluster-key", str(self.key("cluster")))
        for node in NODES:
            self.start_node(node)
        for node in NODES:
            self.await_word(node, "is ready")
        self.say("built")

    def start_node(self, node: str) -> None:
        """Start a node on its machine."""
        self.machines[node].skuld(
            ["node", "--cluster", "town", "--zookeeper", self.registry, "--host", self.host(node), "--port",
             str(PORT), "--data", str(self.data(node)), "--session", "2s", "--cluster-key",
             str(self.key("cluster"))], self.log(node))

    def operate(self, *arguments: str) -> str:
        """Do a verb at the operator's desk, and give what it says."""
        return self.at_desk(*python.module_command("skuld_py", [*arguments, "--zookeeper", self.registry]))

    def at_desk(self, *command: str, key: str = "", timeout_s: float = 60.0,
                search_path: Sequence[str] = ()) -> str:
        """Run a program at the desk to its end, and give what it says."""
        shown = {"SKULD_CLIENT_KEY": str(self.key(key))} if key else {}
        done = subprocess.run(
            ["ip", "netns", "exec", self.machines["desk"].namespace, *command], capture_output=True, text=True,
            timeout=timeout_s, check=False, env={**python.environment(*search_path), **shown})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def await_word(self, name: str, word: str, since: int = 0, timeout_s: float = READY_S) -> None:
        """Until a machine's program has said so."""
        log, deadline = self.log(name), time.monotonic() + timeout_s
        while not (log.exists() and word.encode() in log.read_bytes()[since:]):
            running = self.machines[name].running
            assert any(each.poll() is None for each in running), f"{name} ended:\n{process.tail(log)}"
            assert time.monotonic() < deadline, f"{name} does not say {word!r}:\n{process.tail(log)}"
            time.sleep(LOOK_S)

    def start_gateway(self) -> tuple[str, str, Path]:
        """Start the gateway, which speaks TLS; gives its URL, a token for readers, and what its certificate is
        checked by."""
        host, certificate, private = self.host("gateway"), self.place / "chain.pem", self.place / "private.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=town",
             "-addext", f"subjectAltName=IP:{host}", "-keyout", str(private), "-out", str(certificate)],
            check=True, capture_output=True)
        made = json.loads(self.at_desk(*python.module_command(
            "skuld_py", ["token", "desk", "--scope", "read", "--json"])))
        tokens = self.place / "tokens.toml"
        tokens.write_text(f'[[token]]\nname = "desk"\nsha256 = "{made["sha256"]}"\nscopes = ["read"]\n')
        tokens.chmod(0o600)
        self.machines["gateway"].skuld(
            ["gateway", "--nodes", ",".join(self.addresses), "--client-key", str(self.key("gateway")), "--host",
             host, "--tokens", str(tokens), "--certificate", str(certificate), "--key", str(private)],
            self.log("gateway"))
        self.await_word("gateway", "is ready")
        return f"https://{host}:13080", made["token"], certificate

    def start_worker(self, app: str, *search_path: str) -> None:
        """Start the worker."""
        self.machines["worker"].skuld(
            ["worker", "--nodes", ",".join(self.addresses), "--client-key", str(self.key("worker")), "--queue",
             "sums", "--app", app, "--directory", str(self.place / "spark")], self.log("worker"),
            environment={"PYTHONPATH": python.search_path(*search_path)})

    # -- who leads -------------------------------------------------------------------------------

    def lines(self) -> list[dict[str, Any]]:
        """What the clients have said so far."""
        with contextlib.suppress(FileNotFoundError):
            said = self.log("client").read_text().splitlines()
            return [json.loads(line) for line in said if line.startswith("{") and line.endswith("}")]
        return []

    def await_leaders(self, since: float, is_true: Callable[[Sequence[str]], bool],
                      timeout_s: float = 60.0) -> float:
        """Seconds after ``since`` at which all partitions are led, and by whom is as wished."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for line in self.lines():
                if line["what"] == "leaders" and line["at"] >= since and all(line["leaders"]) and is_true(
                        line["leaders"]):
                    return float(line["at"]) - since
            assert self.machines["client"].running[-1].poll() is None, process.tail(self.log("client"), 4_000)
            time.sleep(LOOK_S)
        told = [line for line in self.lines() if line["what"] == "leaders"]
        raise AssertionError(f"after {timeout_s} s: {told[-1:]}")


@contextlib.contextmanager
def town(place: Path, *, ipv6: bool = False) -> Iterator[Town]:
    """All of it, built; gone afterwards."""
    disk = SmallDisk(place / "small", SMALL_MIB)
    try:
        with site((*ZOOKEEPERS, *NODES, *OTHERS)) as machines:
            made = Town(place, machines, disk, ipv6)
            made.build()
            yield made
    finally:
        disk.remove()
