"""What the README and the page on operating show, done on this machine: real servers, real nodes, a real worker.

Lines are typed as they stand, but for ports and directories, which are those of the test. What runs until it is
stopped goes to the background, and the next line comes when it has said that it is ready.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manual import written
from manual.written import TOP

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SKULD = [sys.executable, "-m", "skuld_py"]
PORTS = {"2181": 0, "13000": 1, "13001": 2, "13002": 3, "13003": 4}
"""Ports that the pages name, and which of the test's stands for each."""
READY = {"zookeeper": "is ready at", "node": "is ready", "top": "pipelines", "--follow": "applied"}
"""What runs until it is stopped, and what it says when it goes."""
ELSEWHERE = {"worker", "gateway", "token", "promote", "reorder", "force-epoch", "restore", "backup"}
"""The worker is below, with Spark; tests/gateway has the next two, with tokens and certificates. Whether a node
has a vote in a partition, so that it may lead it, is chance; tests/node/scripts has those that do. The last three
are for what is lost: tests/system/test_recovery and test_backup lose it."""
BACKED_UP = "/var/lib/skuld/13000"
"""The data of a node that goes back to a backup: of tests/system/test_backup, too."""
KEYED = re.compile(r" --(?:cluster|client)-key \S+")
"""The clusters here have no keys; tests/system has those that have."""
WITHIN_S = 120.0


class Place:
    """A directory, ports, and what runs there in the background."""

    def __init__(self, directory: Path, ports: list[int]) -> None:
        self.directory = directory
        self._ports = ports
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("SKULD")} | {
            "PYTHONPATH": str(TOP), "SKULD_NODES": f"127.0.0.1:{ports[1]},127.0.0.1:{ports[2]}",
            "SKULD_ZOOKEEPER": f"127.0.0.1:{ports[0]}", "SKULD_TIMEOUT": "20s"}
        self.running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}

    def here(self, text: str) -> str:
        """A text of a page with this place's ports and directories."""
        text = re.sub(r"\b(2181|1300\d)\b", lambda port: str(self._ports[PORTS[port[1]]]), text)
        return text.replace("/data/", f"{self.directory}/")

    def run(self, *command: str) -> str:
        """What a command prints that must succeed."""
        ran = subprocess.run(command, cwd=self.directory, env=self._environment, capture_output=True, text=True,
                             timeout=WITHIN_S, check=False)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def begin(self, name: str, command: list[str], says: str) -> None:
        """Start what goes on, and wait until it says so."""
        path = self.directory / f"{len(self.running)}.said"
        with path.open("wb") as said:
            process = subprocess.Popen(command, cwd=self.directory, env=self._environment, stdout=said,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.running[name] = process, path
        until(lambda: says in path.read_text() or process.poll() is not None)
        assert process.poll() is None and says in path.read_text(), f"{command}: {path.read_text()}"

    def end(self, name: str) -> None:
        """Stop it, and wait until it is gone."""
        process, _ = self.running[name]
        process.terminate()
        process.wait(WITHIN_S)


def until(look: Callable[[], object]) -> None:
    """Look until it is so. A look reads a file, or is a command."""
    deadline = time.monotonic() + WITHIN_S
    while not look():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.05)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Ports that are neighbours, as a cluster of ``skuld dev`` has them."""
    made = Place(tmp_path, neighbouring_ports(len(PORTS)))
    try:
        yield made
    finally:
        for process, _ in reversed(made.running.values()):
            process.terminate()
        for process, _ in made.running.values():
            process.wait(WITHIN_S)


def neighbouring_ports(count: int) -> list[int]:
    """Some that nobody listens at."""
    for first in range(22_000, 32_000, 100):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in (*range(first, first + count), first + 1 + 80):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))
    raise AssertionError("no neighbouring ports are free")


def test_the_session_of_the_page_on_operating(place: Place) -> None:
    lines = [place.here(KEYED.sub("", " ".join(line.words))).split() for line in written.lines()
             if line.place.startswith("operating.md") and ELSEWHERE.isdisjoint(line.words[1:3])
             and BACKED_UP not in line.words]
    assert len(lines) >= 13

    for words in lines:
        says = next((READY[word] for word in words if word in READY), None)
        if words[1:3] == ["cluster", "forget"]:
            place.end(words[-1].rpartition(":")[2])
        if says is None:
            place.run(*SKULD, *words[1:])
            continue
        port = words[words.index("--port") + 1] if "--port" in words else " ".join(words)
        place.begin(port, [*SKULD, *words[1:]], says)
        if len(place.running) == 4:
            until(lambda: "cluster waits" not in place.run(*SKULD, "status"))
    assert place.here("127.0.0.1:13002") not in place.run(*SKULD, "status")


@pytest.mark.spark
def test_the_first_steps_of_the_readme(place: Place) -> None:
    app, first_steps = (block.text for block in written.blocks("python") if block.page == "README.md")
    (place.directory / "app.py").write_text(app)
    dev, = (line.words for line in written.lines()
            if line.words[:2] == ("skuld", "dev") and line.place.startswith("README.md"))

    place.begin("dev", [*SKULD, *dev[1:], "--port", place.here("13000")], "Ctrl-C stops everything")
    shown = place.run(sys.executable, "-c", place.here(first_steps))
    task_id = re.findall(r"[0-9a-v]{32}", shown)[0]
    result = place.run(*SKULD, "results", task_id, "--wait", "110s")

    count = len(Path("/etc/hosts").read_text().splitlines())
    assert result == f'{task_id}\t{{"lines":{count}}}\n'
