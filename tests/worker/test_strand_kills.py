"""On real processes: workers and a scheduler die at once while several feeders draw; an id is submitted again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skuld_py.client.client import Client
from skuld_py.cluster.log.commands import Gc
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused
from skuld_py.runtime.zookeeper.clusters import read_parameters
from skuld_py.runtime.zookeeper.log_following import command
from skuld_py.worker.journal import decode_entry
from worker.crew import PATIENCE_S, Crew, log_until, rows

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROWS, PARTS = 30, 4
APP = '''
import skuld_py
from skuld_py.workflow.definition.sources import Page

class Topic:
    def __init__(self, rows, parts):
        self.rows, self.parts = rows, parts
    def partitions(self):
        return [str(part) for part in range(self.parts)]
    def begin(self, partition):
        return 0
    def read(self, partition, offset, most):
        end = min(self.rows, offset + min(most, 7))
        return Page([int(partition) * 1_000 + number for number in range(offset, end)], end, end == self.rows)
    def commit(self, offsets):
        pass

def topic(rows, parts):
    return Topic(rows, parts)

@skuld_py.task(name="strand_kills.square")
def square(number, by):
    return {"number": number, "square": number * number * by}
'''


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """One with schedulers beside its nodes."""
    with LocalCluster(tmp_path / "cluster", what_is_missing=what_is_missing, schedulers=2) as made:
        yield made


@pytest.fixture
def crew(cluster: LocalCluster, tmp_path: Path) -> Iterator[Crew]:
    (tmp_path / "strand_kills_app.py").write_text(APP)
    made = Crew(cluster, tmp_path, "strand_kills_app")
    for _ in range(2):
        made.start()
    yield made
    made.stop()


def definition(place: Path, by: int = 3) -> dict[str, Any]:
    """Numbers of four partitions by two feeders; their squares; the output."""
    return {"id": "strands", "edges": [["numbers", "square"], ["square", "kept"]], "catalog": {
        "numbers": {"kind": "input", "offsets": "strand_kills_app:topic", "most": 2,
                    "parameters": {"rows": ROWS, "parts": PARTS}, "max_pending": 24, "root_timeout_s": 2},
        "square": {"kind": "function", "function": "strand_kills.square", "parameters": {"by": by},
                   "attempts": 100},
        "kept": {"kind": "output", "path": str(place / "kept")}}}


def whole(by: int) -> list[tuple[int, int]]:
    numbers = [part * 1_000 + number for part in range(PARTS) for number in range(ROWS)]
    return [(number, by * number * number) for number in sorted(numbers)]


def await_drawn(client: Client, feeder: bytes, least: int) -> None:
    """Until a feeder has told that so many of its roots are done."""
    for entry in client.log(feeder, follow_s=PATIENCE_S):
        said = decode_entry(entry.data)
        if said["kind"] == "progress" and said["done"] >= least:
            return
    raise AssertionError("it has told of nothing")


def test_workers_and_a_scheduler_die_at_once_and_each_value_is_fed_and_written_once(
        cluster: LocalCluster, crew: Crew, tmp_path: Path) -> None:
    acts: list[tuple[int, Callable[[], None]]] = [
        (10, crew.kill_all), (25, lambda: cluster.kill_scheduler(0)), (40, crew.kill_all)]
    with Client(cluster.addresses, timeout_s=30) as client:
        feeders = client.submit_workflow(definition(tmp_path)).feeders
        assert [*feeders] == ["numbers", "numbers:1"]
        for (least, act), feeder in zip(acts, [*feeders.values()] * 2, strict=False):
            await_drawn(client, feeder, least)
            act()
        ended = client.await_workflow("strands", timeout_s=PATIENCE_S)
        assert ended.state == "completed"
        applied = Counter(line.kind for line in log_until(client, ended.since) if line.outcome == "applied")
        done = [client.result(each) for each in feeders.values()]
    assert done == [{"completed": PARTS * ROWS // 2}] * 2
    assert rows(tmp_path / "kept") == whole(3)
    assert (applied["exhaust-input"], applied["seal-output"]) == (2, 1)


def test_submitted_killed_forgotten_and_submitted_again_the_next_life_alone_is_written(
        cluster: LocalCluster, crew: Crew, tmp_path: Path) -> None:
    parameters = read_parameters(cluster.zookeeper_hosts, cluster.name, 10)
    with Client(cluster.addresses, timeout_s=30) as client:
        lives = []
        for by in (3, 5):
            status = client.submit_workflow(definition(tmp_path, by))
            lives.append(status.life)
            await_drawn(client, status.feeders["numbers"], 1)
            client.kill_workflow("strands", "another one comes")
            assert client.submit_workflow(definition(tmp_path, by)).state == "killed"
            for _ in range(2):
                command(cluster.zookeeper_hosts, parameters, Gc())
        status = client.submit_workflow(definition(tmp_path, 7))
        assert len({*lives, status.life}) == 3
        for life in lives:
            for act in (lambda life: client.exhaust_input("strands", "numbers", life=life),
                        lambda life: client.kill_workflow("strands", life=life)):
                with pytest.raises(Refused) as raised:
                    act(life)
                assert raised.value.code == "other_life"
        ended = client.await_workflow("strands", timeout_s=PATIENCE_S)
        assert ended.state == "completed" and ended.life == status.life
        ends = [line.changed for line in log_until(client, ended.since, status.submitted)
                if line.kind in ("exhaust-input", "seal-output") and line.outcome == "applied"]
    assert rows(tmp_path / "kept") == whole(7)
    assert len(ends) == 3


def test_a_feeder_that_dies_between_the_end_of_the_last_input_and_the_seals_hinders_nothing(
        cluster: LocalCluster, crew: Crew, tmp_path: Path) -> None:
    """Nobody claims its task again: an input that is exhausted has no seats."""
    made = definition(tmp_path)
    made["catalog"]["numbers"]["most"] = 1
    with Client(cluster.addresses, timeout_s=30) as client:
        crew.stop()
        status = client.submit_workflow(made)
        assert client.exhaust_input("strands", "numbers", life=status.life).is_sealing
        assert client.count("wf.strands.seal") == 0
        crew.start()
        assert client.await_workflow("strands", timeout_s=PATIENCE_S).state == "completed"
    assert [*(tmp_path / "kept").glob("task=*/part*")]
