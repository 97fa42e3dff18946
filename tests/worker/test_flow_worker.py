"""A worker that runs the steps of a workflow, on a real cluster, with an engine that waits to order."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skuld_py
from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.worker import Worker
from skuld_py.worker.workflows.children import Calls, packed
from skuld_py.worker.workflows.cluster import ClientCluster
from skuld_py.worker.workflows.plans import Standing
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.definition.writing import digest_of, text_of
from skuld_py.workflow.segments import root_ids
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

Eventually = Callable[[Callable[[], bool]], None]
Start = Callable[..., RunningWorker]


@skuld_py.task(name="flows.pair", batch=2)
def pair(what: Any) -> Any:
    return [what, f"{what}'"]


@skuld_py.task(name="flows.last")
def last(what: Any) -> Any:
    return what


@skuld_py.task(name="flows.hold")
def hold() -> None:
    assert goes_on.wait(60)


goes_on = threading.Event()


@pytest.fixture
def flow(client: Client, queue: str, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A workflow of two steps, whose submission is known to all."""
    definition = read({"id": queue[-60:].strip("-"), "edges": [["in", "pair"], ["pair", "last"]], "catalog": {
        "in": {"kind": "input", "function": "flows.none"},
        "pair": {"kind": "function", "function": "flows.pair"},
        "last": {"kind": "function", "function": "flows.last"}}})
    plan = client.enqueue(definition.queue("plan"), text_of(definition).encode())
    standing = Standing("live", str(plan), digest_of(definition))
    monkeypatch.setattr(ClientCluster, "standing", lambda self, workflow: standing)
    return definition


def draw(client: Client, flow: Definition, values: list[Any], step: str = "pair") -> None:
    """Roots, straight in the queue of a step."""
    made = root_ids(flow.id, "in", 0, len(values), time.time_ns() // 1_000_000)
    standing = ClientCluster.standing(None, flow.id)  # type: ignore[arg-type]
    calls = Calls(flow.entries[step], standing.life)
    client.enqueue_many(flow.queue(step), [calls.payload(packed(value), root, "in") for value, root in zip(
        values, made, strict=True)], ids=made, **calls.options)


@pytest.fixture
def start(cluster: LocalCluster, flow: Definition, tmp_path: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as ends:
        def begin(*steps: str, **options: Any) -> RunningWorker:
            lines: list[str] = []
            engine = FakeEngine()
            worker = Worker(cluster.addresses, ",".join(map(flow.queue, steps)), engine, lease_s=10.0,
                            grace_s=20.0, renewer_log=tmp_path / "renewer.log", report=lines.append, **options)
            running = RunningWorker(worker, engine, lines)
            ends.callback(running.end)
            ends.callback(worker.stop)
            ends.callback(engine.gate.set)
            return running

        yield begin


def completed(client: Client, flow: Definition, step: str) -> int:
    return client.count(flow.queue(step), states=("completed",))


def test_while_one_batch_emits_the_next_ones_run_and_are_written(
        client: Client, flow: Definition, start: Start, eventually: Eventually,
        monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, store = threading.Event(), Client.enqueue_many

    def slow(self: Client, queue: str, *args: Any, **options: Any) -> Any:
        if queue == flow.queue("last"):
            assert goes_on.wait(60)
        return store(self, queue, *args, **options)

    monkeypatch.setattr(Client, "enqueue_many", slow)
    draw(client, flow, list("abcdef"))
    running = start("pair", slots=1)

    eventually(lambda: completed(client, flow, "pair") == 6)

    assert len(running.engine.jobs) >= 3 and not client.count(flow.queue("last"))
    goes_on.set()
    eventually(lambda: client.count(flow.queue("last")) == 12)


def test_a_worker_that_stops_has_enqueued_what_it_completed(
        client: Client, flow: Definition, start: Start, eventually: Eventually) -> None:
    draw(client, flow, list(range(20)))
    running = start("pair", "last", slots=2)
    eventually(lambda: completed(client, flow, "pair") > 4)
    running.worker.stop()
    running.end()

    assert client.count(flow.queue("last")) == 2 * completed(client, flow, "pair")


def test_a_feeder_takes_no_slot_and_gives_none_back(
        client: Client, flow: Definition, start: Start, eventually: Eventually) -> None:
    client.enqueue(flow.queue("feed"), hold.call())
    running = start("feed", "last", slots=1)
    eventually(lambda: running.has_said("flows.hold"))
    eventually(lambda: running.worker._beside == 1)
    draw(client, flow, [1, 2], "last")
    eventually(lambda: completed(client, flow, "last") == 2)
    assert completed(client, flow, "feed") == 0

    goes_on.set()
    eventually(lambda: completed(client, flow, "feed") == 1)
    eventually(lambda: running.worker._beside == 0 and not running.worker._running)
    assert running.worker._claimer._shares._permits - running.worker._claimed_ahead == 1
