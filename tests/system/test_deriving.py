"""A real node whose placement takes as long as the test says: it goes on with the log meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skuld_py import Client
from skuld_py.cluster.log.commands import Leave, PrepareJoin
from skuld_py.cluster.log.entries import decode
from skuld_py.cluster.log.play import Outcome
from skuld_py.config import Parameters
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.runtime.zookeeper.clusters import create_cluster
from skuld_py.runtime.zookeeper.log_following import command, follow

TOP = Path(__file__).resolve().parents[2]
PARAMETERS = Parameters("slow", "id-of-slow", partitions=2, replicas=1)
SERVE = """
import sys, time
from pathlib import Path
from skuld_py.config.scaling import Scaling
from skuld_py.runtime import loop
from skuld_py.runtime.server import Place, serve

hosts, port, data, gate = sys.argv[1:]
computed = loop.computed

def slowly(asked):
    while not Path(gate).exists():
        time.sleep(0.02)
    return computed(asked)

loop.computed = slowly
serve(hosts, "slow", Place("127.0.0.1", int(port)), Path(data), session_ms=2000,
      on_ready=lambda name: print("ready", flush=True), scaling=Scaling(versions=True))
"""


def wait(is_so: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.cluster
def test_a_node_goes_on_with_the_log_while_its_placement_is_worked_out(tmp_path: Path) -> None:
    port, gate = held_port(wait, "127.0.0.1"), tmp_path / "gate"
    name = f"127.0.0.1:{port}"
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        create_cluster(server.hosts, PARAMETERS)

        def lives() -> list[str]:
            entries = [decode(raw).command for _, raw in follow(server.hosts, "slow", is_endless=False)]
            return [each.joiner for each in entries if isinstance(each, PrepareJoin)]
        arguments = [server.hosts, str(port), str(tmp_path / "data"), str(gate)]
        with subprocess.Popen([sys.executable, "-c", SERVE, *arguments], cwd=TOP, stdout=subprocess.PIPE,
                              text=True) as node, Client([name], timeout_s=30) as skuld:
            try:
                assert node.stdout is not None and node.stdout.readline() == "ready\n"
                life, = lives()
                assert command(server.hosts, PARAMETERS, Leave(life)).outcome is Outcome.APPLIED
                wait(lambda: len(lives()) == 2)  # it has read that, and comes in anew
                assert [each.owners for each in skuld.status().partitions] == [(), ()]

                gate.touch()

                wait(lambda: [each.owners for each in skuld.status().partitions] == [(name,), (name,)])
            finally:
                node.kill()
