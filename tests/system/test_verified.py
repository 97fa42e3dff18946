"""``skuld verify`` on a real cluster that is led through bad states one after another, and back.

Each state is waited for: a node learns of a death, a lost session or an operator's wish within seconds. What is
asked then is the command itself, with its exit status; a state counts when the status, the service and all its
words are right at once. Between two states the cluster is well again, so that none is seen for another.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.failures import REFUSED
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.runtime.wrong_time import ALLOWED, FILE, YES
from system.conftest import SKEW_MS

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1_200)]
OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORKFLOW = {"id": "idle", "edges": [["lines", "words"], ["words", "count"]], "catalog": {
    "lines": {"kind": "input", "files": "/nowhere/*.txt"}, "words": {"kind": "function", "function": "shop:words"},
    "count": {"kind": "output", "path": "/nowhere/count"}}}


class Watch:
    """Who asks how a cluster is, and notes which states were seen."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.seen: list[str] = []

    def do(self, *words: str, at: int = 0) -> Result:
        """A verb, which must succeed."""
        done = self.ask(*words, at=at)
        assert done.exit_code == 0, done.output
        return done

    def ask(self, *words: str, at: int = 0) -> Result:
        """A verb, at this node."""
        return CliRunner().invoke(main, [*words, "--nodes", self._cluster.addresses[at]], prog_name="skuld")

    def see(self, state: str, status: int, service: str, *words: str, at: int = 0, timeout_s: float = 90) -> None:
        """Wait until ``verify`` tells of the state, in both its forms."""
        deadline, told, level = time.monotonic() + timeout_s, "", -1
        while not (level == status and all(word in told for word in words)):
            assert time.monotonic() < deadline, f"{state}: {level}: {told}"
            asked = self.ask("verify", "--json", at=at)
            facts = json.loads(asked.stdout)
            level, told = asked.exit_code, facts["words"]
            if facts.get("service", service) != service:
                level = -1
        line = self.ask("verify", at=at)
        if line.exit_code == status:  # it may have gone on meanwhile, by an election say
            assert line.stdout.startswith(("OK: ", "WARNING: ", "CRITICAL: ", "UNKNOWN: ")[status]), line.stdout
        self.seen.append(state)
        sys.stdout.write(f"\n{state}: {status} {told}\n")

    def see_well(self) -> None:
        """Wait until there is nothing to say."""
        self.see("well", OK, "full", "4 of 4 partitions full")


@contextmanager
def wrong_time(file: Path) -> Iterator[None]:
    """Nodes that are started meanwhile read their time through the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE, str(file))
        patch.setenv(ALLOWED, YES)
        yield


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[LocalCluster]:
    """One node of a cluster that wants three."""
    with LocalCluster(tmp_path / "cluster", nodes=1, partitions=4, replicas=3, skew_ms=SKEW_MS,
                      session_ms=2_000) as made:
        yield made


def hold(watch: Watch, node: str) -> None:
    """What operators hold."""
    watch.do("freeze", "--reason", "new switch")
    watch.see("frozen", WARNING, "full", "are frozen by", "new switch", "skuld unfreeze")
    watch.do("unfreeze")
    watch.see_well()
    watch.do("quarantine", node, "--reason", "disk errors")
    watch.see("quarantine", WARNING, "full", "told not to trust a node", node, "disk errors")
    watch.do("quarantine", node, "--off")
    watch.see_well()
    watch.do("solo", "--reason", "for now")
    watch.see("solo", WARNING, "full", "solo: no other node gets a vote", "skuld solo --off")
    watch.do("solo", "--off")
    watch.see_well()
    watch.do("pause", "mails")
    watch.see("paused", WARNING, "full", "queue mails is paused")
    watch.do("resume", "mails")
    watch.see_well()


def lose_nodes(watch: Watch, cluster: LocalCluster) -> None:
    """One node, a majority, all."""
    second, third = cluster.addresses[1:3]
    cluster.kill_node(2)
    watch.see("a node down", WARNING, "full", "1 node is down", third)
    promoted = watch.ask("promote", third)
    assert "0 partitions changed" in promoted.output, "nobody is led by a node that is down"
    assert promoted.exit_code == REFUSED, "refused everywhere"
    cluster.kill_node(1)
    watch.see("no majority", CRITICAL, "unavailable", "cannot elect a leader", second, third, "force-epoch")
    cluster.kill_node(0)
    watch.see("no node", UNKNOWN, "", "no node answers")
    for index in range(3):
        cluster.start_node(index)
    watch.see_well()


def freeze_process(watch: Watch, cluster: LocalCluster) -> None:
    """A node that stands still."""
    process_id = cluster.node_process_id(2)
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)
    try:
        watch.see("a node stands still", WARNING, "full", cluster.addresses[2])
    finally:
        os.kill(process_id, signal.SIGCONT)
    watch.see_well()


def set_clock_wrong(watch: Watch, cluster: LocalCluster, file: Path) -> None:
    """A node whose clock is far from the others'."""
    cluster.stop_node(2)
    file.write_text(json.dumps({"offset_ms": 60_000, "rate_ppm": 0}))
    with wrong_time(file):
        cluster.start_node(2)
    watch.see("a wrong clock", WARNING, "full", f"node {cluster.addresses[2]}: clock", "ahead", "set it right")
    cluster.stop_node(2)
    cluster.start_node(2)
    watch.see_well()


def test_verify_is_right_in_bad_states_of_a_real_cluster(alone: LocalCluster, tmp_path: Path) -> None:
    cluster, watch = alone, Watch(alone)
    watch.see("too few nodes", CRITICAL, "unavailable", "the cluster waits for 2 more nodes", "skuld node")
    cluster.add_node()
    cluster.add_node()
    watch.see_well()

    hold(watch, cluster.addresses[1])
    (tmp_path / "idle.json").write_text(json.dumps(WORKFLOW))
    watch.do("workflow", "submit", str(tmp_path / "idle.json"))
    watch.see("starved", WARNING, "full", "workflow idle waits, no slot works on it")
    watch.do("workflow", "kill", "idle")
    watch.see_well()

    lose_nodes(watch, cluster)
    freeze_process(watch, cluster)
    set_clock_wrong(watch, cluster, tmp_path / "time.json")

    cluster.kill_zookeeper()
    watch.see("no ZooKeeper", CRITICAL, "enqueue-only", "has no session with ZooKeeper", "a leader")
    cluster.start()
    watch.see_well()

    assert len(dict.fromkeys(watch.seen)) >= 12


def test_one_copy_that_was_chosen_is_told_and_is_no_warning(tmp_path: Path) -> None:
    """A monitor of such a cluster has nothing to say until something else is wrong."""
    with LocalCluster(tmp_path / "cluster", nodes=1, partitions=4, replicas=1, skew_ms=SKEW_MS,
                      session_ms=2_000) as cluster:
        watch = Watch(cluster)
        watch.see("one copy", OK, "full", "4 of 4 partitions full", "each task has one copy", "cluster replicas")
        watch.do("freeze", "--reason", "new switch")
        watch.see("one copy, and frozen", WARNING, "full", "each task has one copy", "are frozen by")
