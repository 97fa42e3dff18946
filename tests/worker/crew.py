"""Workers of workflows as real processes that are killed and replaced, and what a workflow wrote."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from subprocess import Popen

from skuld_py.client.client import Client
from skuld_py.client.flows import LogLine
from skuld_py.embedded.local import LocalCluster

SLOTS, LEASE_S = 8, 2
PATIENCE_S = 120.0


def log_until(client: Client, last: int, first: int = 0) -> list[LogLine]:
    """The coordination log from one entry to another. It is waited for: the node that is asked may be behind the
    one that told of the last entry's effect."""
    lines = []
    for line in client.follow_log(first, follow_s=PATIENCE_S):
        lines.append(line)
        if line.position >= last:
            return lines
    raise AssertionError(f"entry {last} did not come, {lines[-1:]} is the last one")


def rows(place: Path) -> list[tuple[int, int]]:
    files = [*place.glob("task=*/part*")]
    assert len(files) == 1
    return sorted((row["number"], row["square"]) for row in map(json.loads, files[0].read_text().splitlines()))


class Crew:
    """Workers of workflows, by their names. What is killed is replaced."""

    def __init__(self, cluster: LocalCluster, place: Path, app: str) -> None:
        self._cluster, self._place, self._app = cluster, place, app
        self._running: dict[str, Popen[bytes]] = {}
        self._count = 0

    def start(self) -> None:
        name = f"crew-{self._count}"
        self._count += 1
        self._running[name] = self._cluster.start_worker(
            "", self._app, "--workflows", "--lease", f"{LEASE_S}s", "--slots", str(SLOTS), "--holder", name,
            working_directory=self._place)

    def kill(self, name: str) -> None:
        self._running.pop(name).send_signal(signal.SIGKILL)
        self.start()

    def kill_all(self) -> None:
        for name in [*self._running]:
            self.kill(name)

    def kill_other_than(self, name: str) -> None:
        self.kill(next(each for each in self._running if each != name))

    def stop(self) -> None:
        for worker in self._running.values():
            worker.terminate()
