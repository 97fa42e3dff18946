"""Where workers lose their claims: a town of machines, one of which is the worker's, with all that it starts.

This process goes onto the machine of the clients for as long as the town stands: it asks the nodes as anybody
would. The town, the worker and its JVM are shared by all runs that do not end them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import psutil

from machines.machine import Machine, site
from machines.program import Program
from machines.town import NAME, Shape, Town
from skuld_py.client.claims import ClaimName
from skuld_py.client.client import Client
from skuld_py.embedded import python
from skuld_py.model.ids import TaskId
from skuld_py.model.proofs import proofs_of
from skuld_py.runtime.zookeeper.clusters import read_parameters

QUEUE = "held"
LEASE_S = 3.0
TESTS = Path(__file__).resolve().parents[2]
APP = "faults.workers.app"
OPTIONS = ("--slots", "2", "--lease", f"{LEASE_S:g}s", "--grace", "0s", "--master", "local[2]", "--stall", "6s")
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
_NEW_NETWORK = 0x40000000


@attrs.define(eq=False)
class Stage:
    """``start``: starts a worker on ``queue`` and does not wait. ``cut`` keeps it from hearing the cluster,
    ``mend`` undoes that. ``claim_key``: what claims are proved with. ``place``: where its tasks write."""

    place: Path
    client: Client
    claim_key: bytes
    start: Callable[[], subprocess.Popen[bytes]]
    cut: Callable[[], None]
    mend: Callable[[], None]
    queue: str = QUEUE
    _worker: subprocess.Popen[bytes] | None = None

    @property
    def worker(self) -> subprocess.Popen[bytes]:
        """The worker, which is started when none runs."""
        if self._worker is None or self._worker.poll() is not None:
            self._worker = self.start()
        return self._worker

    def tree(self) -> dict[str, list[int]]:
        """Processes by what they are to the worker: ``worker``, ``renewer``, ``jvm``, and ``others`` below."""
        found: dict[str, list[int]] = {"worker": [self.worker.pid], "renewer": [], "jvm": [], "others": []}
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.worker.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    found[_kind(child)].append(child.pid)
        return found

    def stale(self, task: TaskId, token: int) -> ClaimName:
        """A claim's name, as its holder has it."""
        return ClaimName(task, token, proofs_of(self.claim_key, [task], [token.to_bytes(8, "big")]))


def _kind(child: psutil.Process) -> str:
    if "java" in child.name():
        return "jvm"
    return "renewer" if "skuld_py.worker.renewer" in child.cmdline() else "others"


@contextlib.contextmanager
def town_stage(place: Path) -> Iterator[tuple[Stage, Town]]:
    """A stage in a town of its own; nothing of it is left afterwards. Needs root."""
    with site(Shape().machines) as machines:
        town = Town(place, machines, Shape())
        machine = machines["worker"]
        with _standing_on(machines["client"]):
            try:
                town.build()
                claim_key = bytes.fromhex(read_parameters(town.registry, NAME).claim_key)
                with Client(town.addresses, holder="campaign", key=town.key("load"), timeout_s=20) as client:
                    work = place / "work"
                    work.mkdir()
                    yield Stage(work, client, claim_key, lambda: _start(town, machine), machine.cut,
                                machine.mend), town
            finally:
                with contextlib.suppress(RuntimeError):
                    machine.lose_power()
                town.destroy()


def _start(town: Town, machine: Machine) -> subprocess.Popen[bytes]:
    worker = Program(machine, town.place / "worker.log", [
        "worker", "--nodes", ",".join(town.addresses), "--client-key", str(town.key("worker")), "--queue", QUEUE,
        "--app", APP, "--app", "skuld_py.demo.census", "--directory", str(town.place / "spark"), *OPTIONS],
        {"PYTHONPATH": python.search_path(str(TESTS)), **QUICK_JAVA})
    worker.launch()
    assert worker.process is not None
    return worker.process


@contextlib.contextmanager
def _standing_on(machine: Machine) -> Iterator[None]:
    """This thread, and those that it starts, are on a machine."""
    library = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/var/run/netns/{machine.namespace}", os.O_RDONLY)
    try:
        _enter(library, there)
        yield
    finally:
        _enter(library, before)
        os.close(there)
        os.close(before)


def _enter(library: ctypes.CDLL, network: int) -> None:
    if library.setns(network, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "this process cannot go onto a machine")
