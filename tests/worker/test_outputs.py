"""What tasks write through their context, in a worker on a real cluster: published when they are completed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skuld_py
from skuld_py.calls.results import encode_result
from skuld_py.client.client import Client
from skuld_py.client.options import Retry
from skuld_py.embedded.local import LocalCluster
from skuld_py.output.output import Outputs
from skuld_py.output.performing import store_of
from skuld_py.worker.context import TaskContext
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

Eventually = Callable[[Callable[[], bool]], None]


@skuld_py.task(name="outputs.note")
def note(context: TaskContext, path: str, text: str) -> int:
    context.output(path).write_json("part.json", [text])
    return len(text)


@skuld_py.task(name="outputs.note_later")
async def note_later(context: TaskContext, path: str, text: str) -> None:
    context.output(path).write_json("part.json", [text])


@skuld_py.task(name="outputs.spoil")
def spoil(context: TaskContext, path: str) -> None:
    context.output(path).write_json("part.json", [1])
    os.symlink("/nowhere", f"{context.output(path).path}/dangling")


@pytest.fixture
def worker(cluster: LocalCluster, queue: str, tmp_path: Path) -> Iterator[RunningWorker]:
    lines: list[str] = []
    engine = FakeEngine()
    running = RunningWorker(Worker(cluster.addresses, queue, engine, slots=2, report=lines.append,
                                   renewer_log=tmp_path / "renewer.log"), engine, lines)
    yield running
    running.worker.stop()
    running.end()


def part(path: Path, task: object) -> Any:
    return json.loads((path / f"task={task}" / "part.json").read_text())


def test_what_functions_write_is_published_and_a_crash_of_another_worker_mended(
    client: Client, queue: str, tmp_path: Path, eventually: Eventually, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "data"
    crashed = client.enqueue(queue, b"")
    claim = client.claim_one(queue, lease_s=30)
    assert claim is not None
    outputs = Outputs(claim.id, claim.token, lambda: None, store_of)
    outputs.open(str(path), "").write_json("part.json", ["crashed"])
    client.complete(claim, encode_result(outputs.sealed(7)))
    lost = path / "_claims" / str(crashed) / str(claim.token - 1)
    lost.mkdir()
    request.getfixturevalue("worker")

    tasks = [client.enqueue(queue, each.call(str(path), "text")) for each in (note, note_later)]

    eventually(lambda: len([*path.glob("task=*")]) == 3 and not [*path.glob("_claims/*")])
    assert [part(path, task) for task in (crashed, *tasks)] == ["crashed", "text", "text"]
    assert client.results([crashed, *tasks]) == [7, 4, None]
    assert [client.get(task).outputs[0].path for task in tasks] == [str(path)] * 2
    assert skuld_py.output_files(tasks[0], client=client)[0].path == f"{path}/task={tasks[0]}/part.json"


@pytest.mark.usefixtures("worker")
def test_an_output_that_cannot_be_sealed_fails_its_attempt(client: Client, queue: str, tmp_path: Path) -> None:
    task = client.enqueue(queue, spoil.call(str(tmp_path / "data")), retry=Retry(1))

    client.ends([task], wait_s=60)

    assert client.get(task).death == "exhausted" and b"dangling" in (client.get(task).error or b"")
    assert not [*(tmp_path / "data").glob("task=*")]
