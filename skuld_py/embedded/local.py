"""A whole cluster on this machine: ZooKeeper, nodes and workers as real processes, for tests, demos, laptops.

Invariants:

* ``start`` returns when every node has said that it is ready and, when the caller gave a way to ask, every
  partition is led; or it raises, saying what is missing, and leaves no process.
* Every process dies with this one, however that dies.
* A node keeps its address and its data from one start to the next, also over two lives of this object on one
  directory: to the cluster it is the same node.

The processes are started by the command line that people use, so what runs here is what runs anywhere. This room
knows no client; a caller that waits for leaders passes ``what_is_missing``, which is given the nodes' addresses
and the file of the clients' key, and says what is missing, or an empty text.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from skuld_py.embedded import process, python
from skuld_py.embedded.java import find_java
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused

HOST = "127.0.0.1"
CREATE_TIMEOUT_S, CREATE_TRIES = 20.0, 3
UNCERTAIN = 3
"""The exit status of a command whose answer was lost: a busy machine breaks a connection that is young."""
LOOK_S = 0.05
_READY_GATEWAY = re.compile(rb"gateway (https?://\S+) is ready\n")

WhatIsMissing = Callable[[Sequence[str], Path | None], str]


@attrs.define
class _Node:
    port: int
    directory: Path
    running: subprocess.Popen[bytes] | None = None
    log_start: int = 0
    program: Path | None = None
    """Where another release of this package is, for this node to run."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory.with_suffix(".log")

    @property
    def is_running(self) -> bool:
        return self.running is not None and self.running.poll() is None


class LocalCluster:
    """ZooKeeper and ``nodes`` nodes below ``directory``. ``ports`` are the nodes'; free ones are picked.
    ``node_options`` are more of ``skuld node``'s; with ``gateway``, the options of one, it is started too.
    ``is_keyed``: the cluster has keys, and ``key`` is the file of one that may do everything. ``schedulers``: as
    many run beside the nodes, which know them."""

    def __init__(self, directory: Path, nodes: int = 3, partitions: int = 8, replicas: int = 3,
                 skew_ms: int = 1000, session_ms: int = 4000, *, name: str = "local",
                 ports: Sequence[int] = (), zookeeper_port: int = 0,
                 what_is_missing: WhatIsMissing | None = None, node_options: Sequence[str] = (),
                 gateway: Sequence[str] | None = None, is_keyed: bool = False,
                 schedulers: int = 0) -> None:
        if ports and len(ports) != nodes:
            raise Refused("bad_ports", f"ports: {len(ports)} are given for {nodes} nodes")
        self.name = name
        self._directory = directory.absolute()
        self._shape = {"partitions": str(partitions), "replicas": str(replicas), "skew": f"{skew_ms}ms"}
        self._session_ms = session_ms
        self._wanted = (nodes, tuple(ports), zookeeper_port)
        self._nodes: list[_Node] = []
        self._workers: dict[subprocess.Popen[bytes], Path] = {}  # ended ones too
        self._log_starts: dict[subprocess.Popen[bytes], int] = {}  # of archivers: an earlier life's log goes on
        self._gateways: list[subprocess.Popen[bytes]] = []
        self._zookeeper: ZooKeeperServer | None = None
        self._what_is_missing = what_is_missing
        self._node_options = tuple(node_options)
        self._schedulers: dict[int, subprocess.Popen[bytes] | None] = dict.fromkeys(
            held_port(self, HOST) for _ in range(schedulers))
        self._gateway = gateway
        self._is_keyed = is_keyed
        self._cluster_key = self._directory / "cluster.key" if is_keyed else None
        self.gateway_url = ""

    @property
    def addresses(self) -> list[str]:
        """Where the nodes listen."""
        return [node.address for node in self._nodes]

    @property
    def ports(self) -> list[int]:
        """The nodes' ports."""
        return [node.port for node in self._nodes]

    @property
    def zookeeper_hosts(self) -> str:
        """The connection string of the ZooKeeper."""
        if self._zookeeper is None:
            raise Refused("not_started", "this cluster is not running; start it first")
        return self._zookeeper.hosts

    @property
    def key(self) -> Path | None:
        """The key file that clients show; None for a cluster without keys."""
        return self._directory / "client.key" if self._is_keyed else None

    @property
    def cluster_key(self) -> Path | None:
        """The key file of nodes and operators; None for a cluster without keys."""
        return self._cluster_key

    def node_log(self, index: int) -> Path:
        """What a node has printed."""
        return self._nodes[index].log

    def worker_log(self, worker: subprocess.Popen[bytes]) -> Path:
        """What a worker of this cluster has printed."""
        return self._workers[worker]

    def node_process_id(self, index: int) -> int | None:
        """The process of a node that runs."""
        node = self._nodes[index]
        return node.running.pid if node.running is not None and node.is_running else None

    def gateway_log(self, index: int) -> Path:
        """What a gateway has printed, in the order they were started."""
        return self._directory / f"gateway-{index}.log"

    def start(self, timeout_s: float = 60.0) -> None:
        """Start what is not running and wait until it serves."""
        deadline = time.monotonic() + timeout_s
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._start_zookeeper(timeout_s)
            for port, running in self._schedulers.items():
                if running is None or running.poll() is not None:
                    self._launch_scheduler(port)
            for index, node in enumerate(self._nodes):
                if not node.is_running:
                    self._launch(index)
            if self._gateway is not None and not self._gateways:
                self._launch_gateway(self._gateway)
            self._await(self._what_nodes_miss, deadline)
            if self._what_is_missing is not None:
                self._await(self._what_the_cluster_misses, deadline)
            if self._gateway is not None:
                self.gateway_url = self._await_gateway(0, deadline)
        except BaseException:
            self.stop(grace_s=0)
            raise

    def stop(self, grace_s: float = 10.0) -> None:
        """End everything: workers first, so that they can give back what they hold."""
        _stop_all([*self._workers, *self._gateways], grace_s)
        self._gateways.clear()
        schedulers = [running for running in self._schedulers.values() if running is not None]
        _stop_all([*schedulers, *(node.running for node in self._nodes if node.running is not None)], grace_s)
        if self._zookeeper is not None:
            self._zookeeper.stop(min(grace_s, 5.0))

    def kill_node(self, index: int) -> None:
        """End a node at once, as a power cut would."""
        running = self._nodes[index].running
        if running is not None:
            process.stop(running, grace_s=0)

    def kill_zookeeper(self) -> None:
        """End ZooKeeper at once; ``start`` has it back with what it had stored."""
        if self._zookeeper is not None:
            self._zookeeper.stop(0)

    def kill_scheduler(self, index: int) -> None:
        """End a scheduler at once."""
        running = [*self._schedulers.values()][index]
        if running is not None:
            process.stop(running, grace_s=0)

    def scheduler_log(self, index: int) -> Path:
        """What a scheduler has printed."""
        return self._directory / f"scheduler-{[*self._schedulers][index]}.log"

    def stop_node(self, index: int, grace_s: float = 10.0) -> None:
        """Have a node end cleanly: it hands over what it leads first."""
        running = self._nodes[index].running
        if running is not None:
            process.stop(running, grace_s)

    def stop_nodes(self, grace_s: float = 10.0) -> None:
        """Have all nodes end cleanly at once; ZooKeeper goes on. ``start`` starts them again."""
        _stop_all([node.running for node in self._nodes if node.running is not None], grace_s)

    def run_by(self, index: int, program: Path | None) -> None:
        """From its next start on a node runs the release of this package that is in a directory; None: this
        one."""
        self._nodes[index].program = program

    def start_node(self, index: int, timeout_s: float = 30.0) -> None:
        """Start a node that was stopped or killed, and wait until it is a member again."""
        if not self._nodes[index].is_running:
            self._launch(index)
        self._await(self._what_nodes_miss, time.monotonic() + timeout_s, only=index)

    def add_node(self, timeout_s: float = 30.0) -> int:
        """Start one node more, and wait until it is a member; gives its index."""
        port = held_port(self, HOST)
        self._nodes.append(_Node(port, self._directory / f"node-{port}"))
        (self._directory / "ports.json").write_text(json.dumps(
            [int(self.zookeeper_hosts.rpartition(":")[2]), *(node.port for node in self._nodes)]))
        self.start_node(len(self._nodes) - 1, timeout_s)
        return len(self._nodes) - 1

    def secure(self, cluster_key: Path) -> None:
        """From their next start on, nodes show this key: the cluster was given keys. Clients are still to get
        theirs."""
        self._cluster_key = cluster_key

    def wipe_node(self, index: int) -> None:
        """Delete what a node that does not run has stored."""
        shutil.rmtree(self._nodes[index].directory)

    def start_worker(self, queue: str, app: str | Sequence[str], *options: str,
                     working_directory: Path | None = None,
                     environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a worker process for a queue, or none (``--workflows`` is among the options then); ``app`` names
        the modules with its task functions.

        It is not waited for: a task that is enqueued now is run once the worker is ready. ``options`` are
        those of ``skuld worker``; modules are found in ``working_directory`` too.
        """
        index = len(self._workers)
        modules = [app] if isinstance(app, str) else app
        arguments = ["worker", "--nodes", ",".join(self.addresses), *(["--queue", queue] if queue else []),
                     "--directory", str(self._directory / f"worker-{index}")]
        for module in modules:
            arguments += ["--app", module]
        log = self._directory / f"worker-{index}.log"
        worker = self._spawn([*arguments, *options], log, working_directory, environment)
        self._workers[worker] = log
        return worker

    def start_archiver(self, root: Path, *options: str) -> subprocess.Popen[bytes]:
        """Start ``skuld archive`` for a root, with these options; the nodes must have ``--archive``."""
        log = self._directory / f"archiver-{len(self._workers)}.log"
        start = log.stat().st_size if log.exists() else 0
        archiver = self._spawn(["archive", str(root), "--nodes", ",".join(self.addresses), *options], log)
        self._workers[archiver] = log
        self._log_starts[archiver] = start
        return archiver

    def said_by(self, archiver: subprocess.Popen[bytes]) -> str:
        """The end of what an archiver has printed, and none before it did in that file."""
        return process.tail(self._workers[archiver], start=self._log_starts[archiver])

    def start_gateway(self, *options: str, timeout_s: float = 30.0) -> tuple[str, subprocess.Popen[bytes]]:
        """Start an HTTP gateway and wait until it serves; gives its URL, and its process.

        ``options`` are those of ``skuld gateway``; without a port a free one is picked.
        """
        index = self._launch_gateway(options)
        return self._await_gateway(index, time.monotonic() + timeout_s), self._gateways[index]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop(grace_s=10.0 if kind is None else 0.0)

    def _spawn(self, arguments: Sequence[str], log: Path, working_directory: Path | None = None,
               environment: Mapping[str, str] | None = None, package: Path | None = None
               ) -> subprocess.Popen[bytes]:
        first = [str(each) for each in (package, working_directory) if each is not None]
        shown = {} if self.key is None else {"SKULD_CLIENT_KEY": str(self.key)}
        if package is not None:
            shown["PYTHONSAFEPATH"] = "1"  # this one may be in the working directory, which would go first
        return process.spawn(python.module_command("skuld_py", arguments), log=log,
                             environment={**_untold(python.environment(*first)), **shown, **(environment or {})},
                             working_directory=working_directory)

    def _launch(self, index: int) -> None:
        node = self._nodes[index]
        node.log_start = node.log.stat().st_size if node.log.exists() else 0
        node.running = self._spawn(
            ["node", "--cluster", self.name, "--zookeeper", self.zookeeper_hosts, "--host", HOST,
             "--port", str(node.port), "--data", str(node.directory), "--session", f"{self._session_ms}ms",
             *self._cluster_key_option(), *self._node_options,
             *(word for port in self._schedulers for word in ("--scheduler", f"{HOST}:{port}"))],
            node.log, package=node.program)

    def _launch_scheduler(self, port: int) -> None:
        keys = ["--data", str(self._directory / f"scheduler-{port}")] if self._is_keyed else []
        self._schedulers[port] = self._spawn(
            ["scheduler", "--cluster", self.name, "--zookeeper", self.zookeeper_hosts, "--host", HOST,
             "--port", str(port), *keys, *self._cluster_key_option()], self._directory / f"scheduler-{port}.log")

    def _cluster_key_option(self) -> list[str]:
        return [] if self.cluster_key is None else ["--cluster-key", str(self.cluster_key)]

    def _launch_gateway(self, options: Sequence[str]) -> int:
        log = self.gateway_log(len(self._gateways))
        log.unlink(missing_ok=True)
        command = ["gateway", "--nodes", ",".join(self.addresses), "--port", "0", *options]
        self._gateways.append(self._spawn(command, log))
        return len(self._gateways) - 1

    def _await_gateway(self, index: int, deadline: float) -> str:
        log = self.gateway_log(index)
        while not (found := _READY_GATEWAY.search(log.read_bytes())):
            if self._gateways[index].poll() is not None or time.monotonic() > deadline:
                raise self._failure("the gateway has not started", log)
            time.sleep(LOOK_S)
        return found[1].decode()

    def _start_zookeeper(self, timeout_s: float) -> None:
        if self._zookeeper is not None and self._zookeeper.is_running:
            return
        count, ports, zookeeper_port = self._wanted
        kept = self._directory / "ports.json"
        if kept.exists():
            zookeeper_port, *chosen = json.loads(kept.read_text())
        else:
            chosen = list(ports) or [held_port(self, HOST) for _ in range(count)]
        if self._zookeeper is None:
            self._hold(chosen)
            self._nodes = [_Node(port, self._directory / f"node-{port}") for port in chosen]
            self._zookeeper = ZooKeeperServer(self._directory / "zookeeper", zookeeper_port, java=find_java())
        self._zookeeper.start(timeout_s)
        if not kept.exists():
            self._create(timeout_s)
            kept.write_text(json.dumps([int(self.zookeeper_hosts.rpartition(":")[2]), *chosen]))

    def _hold(self, ports: Sequence[int]) -> None:
        """Hold the ports that were chosen before; if one is taken, the process that wants it says so."""
        for port in ports:
            with contextlib.suppress(OSError):
                held_port(self, HOST, port)

    def _create(self, timeout_s: float) -> None:
        options = [word for name, value in self._shape.items() for word in (f"--{name}", value)]
        if self.key is not None:
            options += ["--secure", *self._cluster_key_option(), "--first-client", str(self.key)]
        log = self._directory / "create.log"
        for _ in range(CREATE_TRIES):
            start = log.stat().st_size if log.exists() else 0
            status = self._creation(options, log, timeout_s)
            said = process.tail(log, start=start)
            if status == 0 or "[cluster_exists]" in said:
                return
            if status != UNCERTAIN:
                break
        raise Refused("cluster_failed", f"the cluster could not be created:\n{said}", log=str(log))

    def _creation(self, options: Sequence[str], log: Path, timeout_s: float) -> int | None:
        """How creating the cluster ended; None when it took too long. Of an earlier try that died, or whose answer
        was lost, it may be there."""
        running = self._spawn(["cluster", "create", self.name, "--zookeeper", self.zookeeper_hosts, *options], log)
        try:
            return running.wait(min(timeout_s, CREATE_TIMEOUT_S))
        except subprocess.TimeoutExpired:
            process.stop(running, grace_s=0)
            return None

    def _await(self, missing: Callable[[int | None], str], deadline: float, only: int | None = None) -> None:
        """Look until nothing is missing; a node that ended is not waited for."""
        while words := missing(only):
            for index, node in enumerate(self._nodes):
                if not node.is_running and only in (None, index):
                    status = node.running.returncode if node.running is not None else "?"
                    raise self._failure(f"node {node.address} ended with status {status}", node.log)
            if time.monotonic() > deadline:
                raise self._failure(f"still missing: {words}", self._nodes[only or 0].log)
            time.sleep(LOOK_S)

    def _what_nodes_miss(self, only: int | None) -> str:
        silent = [node.address for index, node in enumerate(self._nodes)
                  if only in (None, index) and not _says_ready(node)]
        return f"the word of {', '.join(silent)} that they are ready" if silent else ""

    def _what_the_cluster_misses(self, only: int | None) -> str:
        assert self._what_is_missing is not None
        return self._what_is_missing(self.addresses, self.key)

    def _failure(self, what: str, log: Path) -> Refused:
        return Refused("cluster_failed", f"the cluster in {self._directory} is not ready; {what}. The end of"
                       f" {log}:\n{process.tail(log)}", log=str(log))


def _untold(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without defaults for typed commands: here the arguments say all, and a program reads the
    output. A wrong clock is no option, and stays."""
    kept = {name: value for name, value in environment.items()
            if not name.startswith("SKULD_") or name.startswith("SKULD_WRONG_TIME")}
    return {**kept, "SKULD_CONFIG": os.devnull}


def _says_ready(node: _Node) -> bool:
    with contextlib.suppress(FileNotFoundError), node.log.open("rb") as log:
        log.seek(node.log_start)
        return b" is ready" in log.read()
    return False


def _stop_all(processes: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """Ask all to end at once, then wait for one after the other, so that the grace is spent once."""
    deadline = time.monotonic() + grace_s
    for running in processes:
        if grace_s > 0 and running.poll() is None:
            running.send_signal(signal.SIGTERM)
    for running in processes:
        if grace_s > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(max(0.0, deadline - time.monotonic()))
        process.stop(running, grace_s=0)

