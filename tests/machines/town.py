"""A cluster with keys over machines: three of ZooKeeper, some of nodes, a gateway, a worker, and two where people
are: ``client``, of those who use it, and ``desk``, of who operates it.

It is the one world of real processes on machines: fault runs play in it.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from machines.disk import Disk
from machines.machine import Machine, entered, site
from machines.node import PORT, Node, host_of
from machines.program import Program, start_all
from skuld_py.embedded import python
from skuld_py.keys.files import read_cluster_key
from skuld_py.runtime.zookeeper.servers import Servers

NAME = "town"
ZOOKEEPERS, OTHERS = ("zk1", "zk2", "zk3"), ("gateway", "worker", "client", "desk")
SESSION_MS = 2_000
SKEW_MS = 500
_CLIENTS = {"load": ("producer", "worker", "reader"), "gateway": ("admin",),
            "worker": ("worker", "producer", "reader")}
"""Their roles."""


@attrs.frozen
class Shape:
    """What a town is like. ``ipv6``: whether nodes are found by their IPv6 addresses. ``has_disks``: whether each
    node has a disk of its own, which can lose its power and be full."""

    nodes: int = 3
    replicas: int = 3
    partitions: int = 8
    ipv6: bool = False
    has_disks: bool = False

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of all machines."""
        return (*ZOOKEEPERS, *(f"n{number}" for number in range(1, self.nodes + 1)), *OTHERS)


class Town:
    """``place``: where files are."""

    def __init__(self, place: Path, machines: Mapping[str, Machine], shape: Shape) -> None:
        self.place = place
        self.machines = machines
        self.shape = shape
        servers = ",".join(machines[name].host for name in ZOOKEEPERS)
        self.zookeepers = [Program(machines[name], place / f"{name}.log", [
            "zookeeper", "--data", str(place / name), "--host", machines[name].host, "--ensemble", servers])
            for name in ZOOKEEPERS]
        self.nodes = [self._node(machine) for name, machine in machines.items() if name.startswith("n")]
        self._others: list[Program] = []

    def _node(self, machine: Machine) -> Node:
        directory = self.place / machine.name
        disk = Disk(directory.with_suffix(".image"), directory) if self.shape.has_disks else None
        host = host_of(machine, self.shape.ipv6)
        return Node(machine, directory.with_suffix(".log"), [
            "node", "--cluster", NAME, "--zookeeper", self._servers, "--host", host, "--port", str(PORT), "--data",
            str(directory / "data"), "--session", f"{SESSION_MS}ms", "--cluster-key", str(self.key("cluster"))],
            directory=directory, disk=disk, ipv6=self.shape.ipv6)

    @property
    def addresses(self) -> list[str]:
        """Where clients dial the nodes."""
        return [node.address for node in self.nodes]

    @property
    def _servers(self) -> str:
        return ",".join(f"{self.machines[name].host}:2181" for name in ZOOKEEPERS)

    @property
    def registry(self) -> Servers:
        """All ZooKeeper servers, as the owner of the cluster asks them."""
        return Servers(self._servers, lambda: read_cluster_key(self.key("cluster")).logins)

    @property
    def registry_logs(self) -> list[Path]:
        """Where the servers keep their transactions."""
        return [self.place / name / "data" for name in ZOOKEEPERS]

    def key(self, name: str) -> Path:
        """A key file: the cluster's, or a client's."""
        return self.place / f"{name}.key"

    # -- building and taking down ----------------------------------------------------------------

    def build(self) -> None:
        """Start everything, until every node is a member."""
        start_all(self.zookeepers)
        self.operate("cluster", "create", NAME, "--secure", "--partitions", str(self.shape.partitions),
                     "--replicas", str(self.shape.replicas), "--skew", f"{SKEW_MS}ms", "--cluster-key",
                     str(self.key("cluster")))
        for name, roles in _CLIENTS.items():
            self.operate("keys", "make", name, *(word for role in roles for word in ("--role", role)), "--to",
                         str(self.key(name)), "--cluster", NAME, "--cluster-key", str(self.key("cluster")))
        for node in self.nodes:
            if node.disk is not None:
                node.disk.make()
        start_all(self.nodes)

    def restore(self) -> None:
        """Whatever the faults did: everything runs again."""
        for group in (self.zookeepers, self.nodes):
            for program in group:
                program.machine.mend()
                program.resume()
            start_all([program for program in group if not program.is_running()])
        for node in self.nodes:
            node.may_end = False

    def stop(self) -> None:
        """All nodes, politely and at once, then ZooKeeper."""
        for node in self.nodes:
            if node.is_running() and node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.stop()
        for server in self.zookeepers:
            server.stop()

    def destroy(self) -> None:
        """Whatever is left, at once; never raises."""
        for program in (*self._others, *self.zookeepers, *self.nodes):
            with contextlib.suppress(Exception):
                program.kill()
        for node in self.nodes:
            with contextlib.suppress(Exception):
                if node.disk is not None:
                    node.disk.unmount()

    def unasked_ends(self) -> list[str]:
        """Nodes that ended although nothing the scenario did lets them."""
        return [line for node in self.nodes for line in node.ended]

    # -- who operates and uses it ----------------------------------------------------------------

    def operate(self, *arguments: str) -> str:
        """Do a verb at the operator's desk, and give what it says."""
        return self.at_desk(*python.module_command("skuld_py", [*arguments, "--zookeeper", self._servers]))

    def at_desk(self, *command: str, key: str = "", timeout_s: float = 60.0,
                search_path: Sequence[str] = ()) -> str:
        """Run a program at the desk to its end, and give what it says."""
        shown = {"SKULD_CLIENT_KEY": str(self.key(key))} if key else {}
        done = subprocess.run(
            [*entered(self.machines["desk"].namespace), *command], capture_output=True, text=True,
            timeout=timeout_s, check=False, env={**python.environment(*search_path), **shown})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start_gateway(self) -> tuple[str, str, Path]:
        """Start the gateway, which speaks TLS; gives its URL, a token for readers, and what its certificate is
        checked by."""
        host = self.machines["gateway"].host
        certificate, private = self.place / "chain.pem", self.place / "private.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=town",
             "-addext", f"subjectAltName=IP:{host}", "-keyout", str(private), "-out", str(certificate)],
            check=True, capture_output=True)
        made = json.loads(self.at_desk(*python.module_command(
            "skuld_py", ["token", "desk", "--scope", "read", "--json"])))
        tokens = self.place / "tokens.toml"
        tokens.write_text(f'[[token]]\nname = "desk"\nsha256 = "{made["sha256"]}"\nscopes = ["read"]\n')
        tokens.chmod(0o600)
        gateway = self._other("gateway", [
            "gateway", "--nodes", ",".join(self.addresses), "--client-key", str(self.key("gateway")), "--host",
            host, "--tokens", str(tokens), "--certificate", str(certificate), "--key", str(private)])
        gateway.start()
        return f"https://{host}:13080", made["token"], certificate

    def start_worker(self, app: str, *search_path: str) -> None:
        """Start the worker, and do not wait."""
        worker = self._other("worker", [
            "worker", "--nodes", ",".join(self.addresses), "--client-key", str(self.key("worker")), "--queue",
            "sums", "--app", app, "--directory", str(self.place / "spark")])
        worker.variables = {"PYTHONPATH": python.search_path(*search_path)}
        worker.launch()

    def _other(self, name: str, arguments: Sequence[str]) -> Program:
        self._others.append(Program(self.machines[name], self.place / f"{name}.log", arguments))
        return self._others[-1]


@contextlib.contextmanager
def town(place: Path, shape: Shape) -> Iterator[Town]:
    """All of it, built; gone afterwards."""
    with site(shape.machines) as machines:
        made = Town(place, machines, shape)
        try:
            made.build()
            yield made
        finally:
            made.destroy()
