"""ZooKeeper and nodes as real processes that can be killed, paused, wiped and brought back, one by one.

Each node has an address of its own, so one port serves all. A node that ends without having been asked to is
remembered: unless the scenario announced it, that is a violation by itself, whatever the histories say.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from faults import network
from faults.disk import Disk
from faults.stores import copy_store
from skuld_py.config import Parameters
from skuld_py.embedded import process, python
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.runtime.wrong_time import ALLOWED, FILE, YES
from skuld_py.runtime.zookeeper.clusters import create_cluster

NAME = "faults"
SESSION_MS = 2_000
SKEW_MS = 500
READY_S = 40.0
GRACE_S = 15.0
LOOK_S = 0.02


@attrs.define(eq=False)
class NodeProcess:
    """One node: ``number`` from 1, its data, its disk (None: a plain directory)."""

    number: int
    port: int
    registry: str
    directory: Path
    disk: Disk | None
    may_end: bool = False
    """Whether the scenario expects this process to end by itself."""
    process: subprocess.Popen[bytes] | None = None
    ended: list[str] = attrs.field(factory=list)
    _log_start: int = 0

    def __str__(self) -> str:
        return f"n{self.number}"

    @property
    def host(self) -> str:
        """Where it listens and dials from."""
        return network.node_address(self.number)

    @property
    def address(self) -> str:
        """Its name in the cluster, too."""
        return f"{self.host}:{self.port}"

    @property
    def data(self) -> Path:
        """Where its store is."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """What it printed, over all its lives."""
        return self.directory.with_suffix(".log")

    @property
    def clock_file(self) -> Path:
        """What makes its time wrong."""
        return self.directory.with_suffix(".clock")

    def is_running(self) -> bool:
        """Whether its process exists; notes an end that nobody asked for."""
        if self.process is None:
            return False
        if self.process.poll() is None:
            return True
        if not self.may_end:
            self.ended.append(f"{self} ended by itself with status {self.process.returncode}:\n"
                              f"{process.tail(self.log)}")
        self.process = None
        return False

    def launch(self) -> None:
        """Start it, and do not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        wrong = {FILE: str(self.clock_file), ALLOWED: YES} if self.clock_file.exists() else {}
        command = python.module_command("skuld_py", [
            "node", "--cluster", NAME, "--zookeeper", self.registry, "--host", self.host, "--port",
            str(self.port), "--data", str(self.data), "--session", f"{SESSION_MS}ms"])
        self.process = process.spawn(command, log=self.log, environment={**python.environment(), **wrong})

    def await_ready(self) -> None:
        """Until it says that it is a member; raises when it ends instead."""
        deadline = time.monotonic() + READY_S
        while not self._says_ready():
            if not self.is_running():
                raise RuntimeError(f"{self} did not start:\n{process.tail(self.log)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self} is not ready after {READY_S} s:\n{process.tail(self.log)}")
            time.sleep(LOOK_S)
        if self.clock_file.exists() and b"FAULT TEST" not in self._said():
            raise RuntimeError(f"{self} takes no notice of {self.clock_file}")

    def start(self) -> None:
        """Start it and wait until it is a member."""
        self.launch()
        self.await_ready()

    def await_end(self, timeout_s: float) -> bool:
        """Whether it ended by itself in time, as the scenario announced."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process is not None:
                self.process.wait(timeout_s)
        return not self.is_running()

    def kill(self) -> None:
        """``kill -9``; also of a paused one."""
        self._end(0)

    def stop(self) -> None:
        """SIGTERM, and time to leave."""
        self._end(GRACE_S)

    def pause(self) -> None:
        """Stand still."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on as if nothing had been."""
        self._signal(signal.SIGCONT)

    def wipe(self) -> None:
        """Lose all data, as a disk that was replaced has."""
        shutil.rmtree(self.data)

    def copy(self) -> Path:
        """All data as they are at this moment, beside those that the node goes on with."""
        copy = self.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy_store(self.data, copy)
        return copy

    def put_back(self, copy: Path) -> None:
        """Have the data of a copy again, and nothing newer."""
        self.wipe()
        shutil.copytree(copy, self.data)

    def set_clock(self, offset_ms: int, rate_ppm: int) -> None:
        """Make its time wrong: the offset from its next start, the rate from now when it has this file."""
        fresh = self.clock_file.with_suffix(".new")
        fresh.write_text(json.dumps({"offset_ms": offset_ms, "rate_ppm": rate_ppm}))
        fresh.replace(self.clock_file)

    def _end(self, grace_s: float) -> None:
        if self.is_running() and self.process is not None:
            process.stop(self.process, grace_s)
            self.process = None

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running() and self.process is not None:
            self.process.send_signal(number)

    def _says_ready(self) -> bool:
        return b" is ready" in self._said()

    def _said(self) -> bytes:
        """What it has printed in its present life."""
        with contextlib.suppress(FileNotFoundError), self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read()
        return b""


class Cluster:
    """All processes of a run below ``directory``. ``is_enclosed``: in a network namespace of its own."""

    def __init__(self, directory: Path, count: int, replicas: int, partitions: int, *, is_enclosed: bool,
                 has_disks: bool) -> None:
        self.parameters = Parameters(NAME, secrets.token_hex(16), partitions, replicas, SKEW_MS,
                                     claim_key=secrets.token_hex(32))
        self.directory = directory
        self.has_disks = has_disks
        self._is_enclosed = is_enclosed
        host, port = ("0.0.0.0", 2181) if is_enclosed else ("127.0.0.1", 0)  # nothing but loopback is there
        self.zookeeper = ZooKeeperServer(directory / "zookeeper", port, host=host)
        self._count = count
        self.nodes: list[NodeProcess] = []

    @property
    def addresses(self) -> list[str]:
        """Where the nodes listen."""
        return [node.address for node in self.nodes]

    @property
    def registry(self) -> str:
        """Where this harness reaches ZooKeeper."""
        return self.zookeeper.hosts.replace("0.0.0.0", "127.0.0.1")

    def start(self) -> None:
        """Everything, until every node is a member."""
        self.zookeeper.start()
        create_cluster(self.registry, self.parameters)
        numbers = range(1, self._count + 1)
        hosts = [network.node_address(number) for number in numbers]
        port = 13_000 if self._is_enclosed else self._held_port(hosts)
        for number in numbers:
            place = self.directory / f"n{number}"
            disk = Disk(self.directory / f"n{number}.image", place) if self.has_disks else None
            self.nodes.append(NodeProcess(number, port, self._registry_of(number), place, disk))
            if disk is not None:
                disk.make()

    def launch(self) -> None:
        """All nodes, until each is a member."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.await_ready()

    def restore(self) -> None:
        """Whatever the faults did: everything runs again."""
        self.zookeeper.start()
        with contextlib.suppress(Exception):
            self.zookeeper.resume()
        for node in self.nodes:
            node.resume()
            if not node.is_running():
                node.launch()
        for node in self.nodes:
            node.await_ready()
            node.may_end = False

    def stop(self) -> None:
        """All nodes, politely and at once, then ZooKeeper."""
        for node in self.nodes:
            if node.is_running() and node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.stop()
        self.zookeeper.stop()

    def destroy(self) -> None:
        """Whatever is left, at once; never raises."""
        with contextlib.suppress(Exception):
            self.zookeeper.kill()
        for node in self.nodes:
            with contextlib.suppress(Exception):
                node.kill()
        for node in self.nodes:
            with contextlib.suppress(Exception):
                if node.disk is not None:
                    node.disk.unmount()

    def unasked_ends(self) -> list[str]:
        """Nodes that ended although nothing the scenario did lets them."""
        return [line for node in self.nodes for line in node.ended]

    def _held_port(self, hosts: Sequence[str]) -> int:
        """A port that is free at all of these addresses, for as long as this cluster lives."""
        while True:
            port = held_port(self, hosts[0])
            with contextlib.suppress(OSError):
                for host in hosts[1:]:
                    held_port(self, host, port)
                return port

    def _registry_of(self, number: int) -> str:
        if not self._is_enclosed:
            return self.registry
        return f"{network.registry_address(number)}:2181"
