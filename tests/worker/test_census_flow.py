"""The census as a workflow on real processes: killed when all is read, it is gone on with from there."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

import skuld_py
from skuld_py.client.client import Client
from skuld_py.demo import census
from skuld_py.embedded.local import LocalCluster
from system.conftest import linger

PATIENCE_S = 200.0
pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]


def await_exhausted(client: Client, id: str, entry: str) -> None:
    """Look at a workflow whenever the coordination log has grown, until an input brings no more."""
    for _ in client.follow_log(follow_s=PATIENCE_S):
        if entry in client.workflow(id).exhausted:
            return
    raise AssertionError("the input was never exhausted")


def await_gone(client: Client, id: str) -> None:
    """Until no task of a killed workflow is left; each look waits at a node, not here."""
    deadline = time.monotonic() + PATIENCE_S
    while client.workflow(id).left:
        assert time.monotonic() < deadline, client.workflow(id)
        linger(client)


def archives(place: Path) -> list[Path]:
    place.mkdir()
    for number in range(4):
        with zipfile.ZipFile(place / f"{number}.jar", "w") as made:
            made.writestr("acme/Same.class", b"x")
            made.writestr("acme/Other.class", b"%d" % (number % 2))
            made.writestr(f"acme/p{number}/Own.class", b"y" * number)
    (place / "broken.zip").write_text("no archive")
    return census.find_archives(place)


def test_its_totals_are_those_of_an_independent_count_though_it_was_killed_and_resumed(
        cluster: LocalCluster, tmp_path: Path) -> None:
    found = archives(tmp_path / "archives")
    old, new = (census.workflow(id, str(tmp_path / "archives"), str(tmp_path / "out"), groups=2)
                for id in ("census-old", "census-new"))
    with Client(cluster.addresses, timeout_s=30) as client:
        client.submit_workflow(old)
        worker = cluster.start_worker("", "skuld_py.demo.census", "--workflows", "--slots", "6",
                                      environment={"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"})
        await_exhausted(client, "census-old", "archives")
        assert client.kill_workflow("census-old", "to be resumed").state == "killed"
        new.resume_from(old, finished={"archives", "read"})
        client.submit_workflow(new)
        assert client.await_workflow("census-new", timeout_s=PATIENCE_S).state == "completed"
        await_gone(client, "census-old")
        definition = new.definition()
        assert client.count("wf.census-old.read", states=("completed",)) == 2
        assert definition.order == ("tables", "join", "duplicates", "report")
        report, = client.list(definition.queue("report"))
        files = {Path(file.path).name: Path(file.path) for file in skuld_py.output_files(report.id, client=client)}
        worker.terminate()
    summary = census.Summary.from_json(files["report.json"].read_text())
    assert summary.totals == census.count_independently(found)
    assert len(summary.conflicts) == 4 and files["packages.svg"].exists()
