"""A workflow of five steps, on real processes of which one after the other is killed: it is whole, once.

The run of all tests plays ``ROOTS`` roots; the thousand of the design's acceptance:

    FLOW_ROOTS=1000 python -m pytest tests/worker/test_flow_kills.py
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from skuld_py.cli.main import main
from skuld_py.client.client import Client
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.journal import decode_entry
from skuld_py.workflow.definition.reading import read
from worker.crew import Crew, log_until, rows

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOTS = int(os.environ.get("FLOW_ROOTS", "100"))
PATIENCE_S = 90.0 + ROOTS / 2
APP = '''
import skuld_py

@skuld_py.task(name="kills.numbers")
def numbers(count):
    return range(1, count + 1)

@skuld_py.task(name="kills.pair")
def pair(number):
    return [number, -number]

@skuld_py.task(name="kills.square")
def square(number, by):
    return {"number": number, "square": number * number * by}

def is_negative(row):
    return row["number"] < 0
'''


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """One with keys, and with schedulers beside its nodes."""
    with LocalCluster(tmp_path / "cluster", what_is_missing=what_is_missing, is_keyed=True, schedulers=2) as made:
        yield made


@pytest.fixture
def crew(cluster: LocalCluster, tmp_path: Path) -> Iterator[Crew]:
    made = Crew(cluster, tmp_path, "kills_app")
    for _ in range(3):
        made.start()
    yield made
    made.stop()


def test_whatever_is_killed_each_root_is_complete_each_output_is_written_once_and_sealed_once(
        cluster: LocalCluster, crew: Crew, tmp_path: Path) -> None:
    (tmp_path / "kills_app.py").write_text(APP)
    definition = read({
        "id": "kills",
        "edges": [["numbers", "pair"], ["pair", "square"], ["square", "below"], ["square", "above"]],
        "catalog": {
            "numbers": {"kind": "input", "function": "kills.numbers", "parameters": {"count": ROOTS},
                        "max_pending": max(8, ROOTS // 5), "root_timeout_s": 2},
            "pair": {"kind": "function", "function": "kills.pair", "attempts": 100},
            "square": {"kind": "function", "function": "kills.square", "parameters": {"by": 3}, "attempts": 100},
            "below": {"kind": "output", "path": str(tmp_path / "below")},
            "above": {"kind": "output", "path": str(tmp_path / "above")}},
        "conditions": [{"from": "square", "to": ["below"], "when": "kills_app:is_negative"},
                       {"from": "square", "to": ["above"], "when": ["not", "kills_app:is_negative"]}]})
    acts: list[tuple[float, Callable[[str], None]]] = [
        (0.1, crew.kill_other_than), (0.3, crew.kill), (0.5, lambda feeds: cluster.kill_node(0)),
        (0.6, lambda feeds: cluster.kill_scheduler(0)), (0.7, crew.kill_other_than),
        (0.8, lambda feeds: cluster.start_node(0))]

    shown = ""
    with Client(cluster.addresses, timeout_s=30, key=cluster.key) as client:
        feeder, = client.submit_workflow(definition).feeders.values()
        for entry in client.log(feeder, follow_s=PATIENCE_S):
            said = decode_entry(entry.data)
            while acts and said["kind"] == "progress" and said["done"] >= acts[0][0] * ROOTS:
                holder = next(each.holder for each in client.get(feeder).claims if each.token == entry.token)
                acts.pop(0)[1](holder)
            if said["kind"] == "progress" and not shown:
                shown = CliRunner().invoke(
                    main, ["workflow", "status", "kills", "--nodes", ",".join(cluster.addresses)],
                    env={"SKULD_CLIENT_KEY": str(cluster.key)}).output
        assert "input numbers: " in shown and "roots drawn" in shown
        status = client.await_workflow("kills", timeout_s=PATIENCE_S)
        assert status.state == "completed"
        applied = Counter(line.kind for line in log_until(client, status.since) if line.outcome == "applied")
        assert client.result(feeder) == {"completed": ROOTS}
        assert client.result(status.plan, wait_s=PATIENCE_S)["state"] == "completed"

    assert rows(tmp_path / "above") == [(number, 3 * number * number) for number in range(1, ROOTS + 1)]
    assert rows(tmp_path / "below") == sorted((-number, 3 * number * number) for number in range(1, ROOTS + 1))
    assert (applied["exhaust-input"], applied["seal-output"]) == (1, 2)
    for number in (0, 1):
        assert "decided allocation-1" in cluster.scheduler_log(number).read_text()
