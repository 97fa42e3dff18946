"""A site of machines does what fault runs rely on: it joins, cuts, stops and ends, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from machines.ground import lacks
from machines.machine import PREFIX, Machine, entered, ip, remove_stale, site
from machines.network import Network, between

MISSING = lacks()
pytestmark = [pytest.mark.cluster, pytest.mark.slow,
              pytest.mark.skipif(bool(MISSING), reason=f"NOTHING WAS TESTED. This machine lacks: {MISSING}")]
SERVE = "import socket, sys; server = socket.create_server((sys.argv[1], 99))\nwhile True: server.accept()"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 99), 1)"


def reaches(one: Machine, other: Machine) -> bool:
    command = [*entered(one.namespace), sys.executable, "-c", CONNECT, other.host]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def until(is_so: Callable[[], bool]) -> None:
    """Fails by the test's own timeout."""
    while not is_so():
        time.sleep(0.05)


def processes(machine: Machine) -> list[str]:
    return ip("netns", "pids", machine.namespace).split()


def test_a_cut_is_between_those_it_names_and_a_pulled_cable_cuts_off_from_all(tmp_path: Path) -> None:
    with site(["a", "b", "c"]) as machines:
        a, b, c = machines.values()
        network, server = Network(a.site), b.spawn([sys.executable, "-c", SERVE, b.host], tmp_path / "log")
        until(lambda: reaches(a, b))

        network.cut(between([a.host], [b.host]))
        assert not reaches(a, b) and reaches(c, b) and network.dropped() > 0
        network.heal()
        assert reaches(a, b)

        b.cut()
        assert not reaches(a, b) and not reaches(c, b)
        b.mend()
        until(lambda: reaches(a, b))
        b.lose_power()
        server.wait()


def test_all_that_runs_on_a_machine_stands_still_and_ends_with_it(tmp_path: Path) -> None:
    with site(["a", "b"]) as machines:
        started = [machine.spawn(["bash", "-c", "sleep 1000 & wait"], tmp_path / "log")
                   for machine in machines.values()]
        a, b = machines.values()
        until(lambda: len(processes(a)) == len(processes(b)) == 2)

        def states(machine: Machine) -> list[str]:
            return [Path(f"/proc/{each}/stat").read_text().rpartition(") ")[2][0] for each in processes(machine)]
        a.freeze()
        until(lambda: states(a) == ["T", "T"])
        assert "T" not in states(b)
        a.thaw()
        until(lambda: "T" not in states(a))

        a.lose_power()
        assert processes(a) == [] and len(processes(b)) == 2
    for each in started:
        assert each.wait() != 0


def test_a_site_leaves_nothing_behind_and_removes_what_a_dead_maker_left() -> None:
    left = f"{PREFIX}999999999-0-a"
    ip("netns", "add", left)
    with site(["a"]) as machines:
        remove_stale()
        names = ip("netns", "list")
        assert machines["a"].namespace in names and left not in names
    assert machines["a"].site not in ip("netns", "list")
