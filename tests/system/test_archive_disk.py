"""The disk of an archive fills up, becomes read-only and vanishes, below real nodes: what was told is archived or
on the nodes, each fault is said in a line, and an archiver that goes on goes on when the disk is back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster
from system.small_disk import Disk, a_disk
from system.test_archive_kills import PROGRAM, archived, cluster, ended, left

__all__ = ["cluster"]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]
if os.geteuid() != 0 or sys.platform != "linux":
    pytest.skip("only root can mount: NOT TESTED is an archive whose disk is full, read-only or gone",
                allow_module_level=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with a_disk(tmp_path) as made:
        yield made


def command_of(disk: Disk, cluster: LocalCluster, *options: str) -> list[str]:
    return disk.within(sys.executable, "-c", PROGRAM, "archive", str(disk.root), "--json", "--nodes",
                       ",".join(cluster.addresses), *options)


def once(disk: Disk, cluster: LocalCluster) -> str:
    """What a run says that fails."""
    ran = subprocess.run(command_of(disk, cluster), capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
    return ran.stderr


def until(running: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next of these that it tells of."""
    assert running.stdout is not None
    for line in running.stdout:
        said: dict[str, Any] = json.loads(line)
        if said["event"] == event:
            return said
    raise AssertionError(f"it ended, and said of no {event}")


def test_a_disk_that_is_full_or_read_only_or_gone_loses_nothing(disk: Disk, cluster: LocalCluster) -> None:
    with Client(cluster.addresses, timeout_s=30) as client:
        told = ended(client, 6)
        assert "No space left on device" in once(disk, cluster)
        assert told <= archived(disk.seen) | left(client)
        assert left(client)

        disk.may_be_written(False)
        assert "Read-only file system; name another one, or mend" in once(disk, cluster)
        assert told <= archived(disk.seen) | left(client)

        disk.may_be_written(True)
        disk.holds(64 << 10)
        with subprocess.Popen(command_of(disk, cluster, "--every", "1s", "--wait", "20s"), text=True,
                              stdout=subprocess.PIPE) as running:
            assert until(running, "done")["waiting"] == []
            assert archived(disk.seen) == told and client.count() == 0
            disk.goes()
            told |= ended(client, 1)
            assert "No such file or directory" in until(running, "failed")["message"]
            assert list(disk.root.iterdir()) == []

            disk.comes_back()
            while client.count():
                until(running, "done")
            running.terminate()
        assert archived(disk.seen) == told


def test_a_run_on_the_empty_place_of_a_disk_that_is_gone_is_refused(disk: Disk, cluster: LocalCluster) -> None:
    with Client(cluster.addresses, timeout_s=30) as client:
        told = ended(client, 1)
        assert subprocess.run(command_of(disk, cluster), check=False).returncode == 0
        told |= ended(client, 1)
        disk.goes()

        assert "has another archive than this cluster's; if its disk is not mounted" in once(disk, cluster)

        disk.comes_back()
        assert told <= archived(disk.seen) | left(client)
