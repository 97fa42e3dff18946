"""Nodes are upgraded one by one under load, and back, and up again for good: no call and no task fails for it.

The next release is made of this one: with one more field in a message, one more message, and the rules that bring
both. What this release does with the ones behind it, it does so with the one to come.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

import skuld_py
from skuld_py import Client, Refused
from skuld_py.config import PROTOCOL_VERSION, PROTOCOLS, RULES
from skuld_py.embedded import process, python
from skuld_py.embedded.local import LocalCluster
from system.conftest import SKEW_MS, await_leaders, linger
from system.light_worker import doze, square
from system.load import at_work

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

NEXT = RULES + 1
WORKER = Path(__file__).with_name("light_worker.py")
PACE_S, DOZE_S, LEASE_S = 0.5, 12.0, 30.0
"""Between two tasks for the worker; how long every fourth takes, so that its lease is renewed; its lease."""
PATIENT = ("--timing-grant", "8s", "--timing-request", "10s", "--timing-behind", "10s", "--timing-silence", "10s",
           "--timing-ending", "10s", "--timing-handover", "10s")
GRACE_S = 60.0
"""What is tried here is how nodes stop, and not how they take each other for dead on a slow machine."""
PATCHES: dict[str, tuple[tuple[str, str], ...]] = {
    "config/__init__.py": ((f"RULES = {RULES}\n", f"RULES = {NEXT}\n"),
                  (f"PROTOCOLS = {PROTOCOLS}", f"PROTOCOLS = {(*PROTOCOLS, NEXT)}")),
    "model/messages/greetings.py": (
        ("    protocol: int = fields.number(1, default=1, since=3)\n"
         '    release: str = fields.text(64, default="", since=3)\n',
         "    protocol: int = fields.number(1, default=1, since=3)\n"
         '    release: str = fields.text(64, default="", since=3)\n'
         f"    nods: int = fields.number(default=0, since={NEXT})\n"),),
    "model/messages/clocks.py": (
        ("@attrs.frozen\nclass ToldTime",
         f"@attrs.frozen\nclass Nod(Message):\n    is_promise = False\n    since = {NEXT}\n"
         "    depth: int = fields.number()\n\n\n@attrs.frozen\nclass ToldTime"),),
    "model/messages/__init__.py": (
        ('"Recalled", "Retire",\n)', '"Recalled", "Retire", "Nod",\n)'),
        ('("AskTime", "ToldTime")', '("AskTime", "Nod", "ToldTime")')),
    "node/knowledge/view.py": (
        ("        self.release = release\n", "        self.release = release\n        self.nods = 0\n"),),
    "node/leadership/gossip.py": (
        ("                self._outbox.send(name, message)\n",
         "                self._outbox.send(name, message)\n"
         f"                if view.protocol >= {NEXT}:\n"
         "                    self._outbox.send(name, m.messages_nod(1))\n"),),
    "node/leadership/requests.py": (
        ("view.protocol, view.release))", "view.protocol, view.release, view.nods))"),
        ("            m.Sync: self._sync,", "            m.Nod: self._nod, m.Sync: self._sync,"),
        ("    def _sync(self,", "    def _nod(self, now_ms: int, peer: str, message: m.Nod) -> None:\n"
         "        self._view.nods += message.depth\n\n    def _sync(self,")),
}


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the next release is."""
    place = tmp_path_factory.mktemp("next")
    package = place / "skuld_py"
    shutil.copytree(Path(skuld_py.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, patches in PATCHES.items():
        text = (package / name).read_text()
        for old, new in patches:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new.replace("m.messages_nod", "m.Nod"))
        (package / name).write_text(text)
    return place


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, skew_ms=SKEW_MS, session_ms=2_000, node_options=PATIENT) as made:
        with Client(made.addresses, timeout_s=30) as client:
            await_leaders(client)
        yield made


def change(cluster: LocalCluster, index: int, program: Path | None) -> None:
    """Have a node run another release."""
    cluster.stop_node(index, grace_s=GRACE_S)
    cluster.run_by(index, program)
    cluster.start_node(index)
    with Client(cluster.addresses, timeout_s=30) as client:
        await_leaders(client)


def await_rules(cluster: LocalCluster, *wanted: int) -> None:
    """Wait until every node says which rules the program of each knows."""
    deadline = time.monotonic() + 60
    for node in cluster.addresses:
        with Client(node, timeout_s=30) as client:
            while {row.name: row.rules for row in client.status().nodes} != dict(
                    zip(cluster.addresses, wanted, strict=True)):
                assert time.monotonic() < deadline, client.status().nodes
                time.sleep(0.1)


def rules(cluster: LocalCluster, program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return by(program, "-m", "skuld_py", "cluster", "rules", cluster.name, "--zookeeper", cluster.zookeeper_hosts,
              "--json", *options)


def by(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run something of a release to its end."""
    return subprocess.run([sys.executable, "-P", *arguments], capture_output=True, text=True, timeout=60,
                          env=python.environment(str(program)), check=False)


def greeted(cluster: LocalCluster, program: Path) -> list[dict[str, object]]:
    """What each node tells a client of the next release, in what both speak."""
    script = ("import json, sys\nfrom skuld_py.client.connection import Connection\n"
              "from skuld_py.model.messages import Greet\n"
              "for node in sys.argv[1:]:\n    connection = Connection([node])\n    connection.greet(10.0)\n"
              "    told = connection.call(Greet(connection.next_request()), 10.0, is_idempotent=True)\n"
              "    print(json.dumps({'protocol': told.protocol, 'nods': told.nods}))\n")
    done = by(program, "-c", script, *cluster.addresses)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@attrs.define
class Work:
    """Tasks for a worker of this release, which it runs while nodes change theirs."""

    cluster: LocalCluster
    log: Path
    sent: list[bytes] = attrs.field(factory=list)
    is_over: threading.Event = attrs.field(factory=threading.Event)

    def send(self) -> None:
        """Send tasks until told to stop."""
        with Client(self.cluster.addresses, timeout_s=15) as client:
            for number in itertools.count():
                if self.is_over.wait(PACE_S):
                    return
                step = square.step(number) if number % 4 else doze.step(DOZE_S)
                self.sent.append(client.enqueue(*step))

    def judge(self, client: Client, timeout_s: float = 120) -> None:
        """Each was run once, to its end. A slow machine may lose the worker a claim, which lapses unseen."""
        deadline = time.monotonic() + timeout_s
        while left := [task for task in client.get_many(self.sent) if not task.is_completed]:
            assert time.monotonic() < deadline, left[:5]
            linger(client)
        tasks, said = client.get_many(self.sent), self.log.read_text()
        outcomes = [{*(claim.outcome for claim in task.claims)} - {"", "released"} for task in tasks]
        assert outcomes == [{"completed"}] * len(tasks), said
        assert Counter(re.findall(r"task (\w+) .*started", said)) == {str(task.id): 1 for task in tasks}, said


@contextmanager
def at_tasks(cluster: LocalCluster, log: Path) -> Iterator[Work]:
    """A worker and a sender of tasks at work while inside."""
    work = Work(cluster, log)
    command = [sys.executable, str(WORKER), ",".join(cluster.addresses), "group", str(LEASE_S)]
    worker = process.spawn(command, log=log, environment=python.environment())
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(work.send)
        try:
            yield work
            work.is_over.set()
            sending.result()
            with Client(cluster.addresses, timeout_s=30) as client:
                work.judge(client)
        finally:
            work.is_over.set()
            process.stop(worker, grace_s=0)


def test_a_cluster_goes_up_and_down_and_up_again_under_load(
        cluster: LocalCluster, following: Path, tmp_path: Path) -> None:
    with at_tasks(cluster, tmp_path / "worker.log"), at_work(cluster.addresses) as (load, _):
        for program in (following, None, following):
            for index in range(3):
                if (program, index) == (following, 2):
                    refused = rules(cluster, following, "--raise")
                    assert refused.returncode == 1 and f"node {cluster.addresses[2]} of cluster" in refused.stderr
                change(cluster, index, program)
                if index == 0:
                    await_rules(cluster, *((NEXT, RULES, RULES) if program else (RULES, NEXT, NEXT)))
        before = greeted(cluster, following)
        raised = rules(cluster, following, "--raise")
        assert raised.returncode == 0, raised.stderr
        with Client(cluster.addresses, timeout_s=30) as client:
            for _ in range(30):
                client.claim("nothing-here", wait_s=0.1)
        after = greeted(cluster, following)
    assert before == [{"protocol": PROTOCOL_VERSION, "nods": 0}] * 3, "what is newer travels to nobody"
    assert all(told["protocol"] == NEXT and told["nods"] for told in after), "all know them, so they travel"
    assert [str(error) for error in load.errors] == [], "each call is answered, and nothing is in doubt"
    _is_refused_now(cluster)


def _is_refused_now(cluster: LocalCluster) -> None:
    """The older release does not know the rules, and says so; the cluster goes on."""
    cluster.stop_node(1)
    cluster.run_by(1, None)
    with pytest.raises(Refused, match=f"rules up to {RULES}: upgrade it"):
        cluster.start_node(1)
    with Client(cluster.addresses, timeout_s=30) as client:
        client.enqueue("after", b"x")
