"""What a worker makes of batched tasks, on a real cluster, with an engine that crashes and dies to order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import skuld_py
from skuld_py.cli.main import main
from skuld_py.client.client import ClaimName, Client
from skuld_py.client.options import Retry
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.verbs.words import many
from skuld_py.worker.batches import desk
from skuld_py.worker.journal import decode_entry
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

Eventually = Callable[[Callable[[], bool]], None]
Start = Callable[..., RunningWorker]
ONCE = Retry(1)
LEASE_S = 3.0


@skuld_py.task(name="batches.score", batch=True, retry=Retry(3, backoff_s=0, on=OSError))
def score(what: Any, day: date | None = None) -> Any:
    """What the item says becomes of it; else what it was given, and what its annotation made of it."""
    if what == "fail":
        raise ValueError("no column 'amount'")
    if what == "forgive":
        raise ConnectionError("not now")
    if what == "snooze":
        raise skuld_py.Snooze(300)
    if what == "dead":
        raise skuld_py.Dead("no such customer")
    if what == "exit":
        raise SystemExit(0)
    if what == "object":
        return object()
    return [what, day]


@skuld_py.task(name="batches.other", batch=2)
def other(what: Any) -> Any:
    return what


@skuld_py.task(name="batches.single")
def single(what: Any) -> Any:
    return what


@pytest.fixture
def start(cluster: LocalCluster, queue: str, tmp_path: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as ends:
        def begin(**options: Any) -> RunningWorker:
            lines: list[str] = []
            engine = options.pop("engine", None) or FakeEngine()
            options = {"lease_s": LEASE_S, "grace_s": 20.0, "slots": 1, **options}
            worker = Worker(cluster.addresses, queue, engine, renewer_log=tmp_path / "renewer.log",
                            report=lines.append, **options)
            running = RunningWorker(worker, engine, lines)
            ends.callback(running.end)
            ends.callback(worker.stop)
            ends.callback(engine.gate.set)
            return running

        yield begin


def all_ended(client: Client, tasks: list[TaskId]) -> Callable[[], bool]:
    return lambda: all(task.state in ("completed", "dead") for task in client.get_many(tasks))


def test_tasks_of_a_batched_function_run_together_and_each_has_its_own_end(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    odd = {"fail": "ValueError: no column 'amount'", "dead": "no such customer", "exit": "SystemExit: 0",
           "object": "a plain value"}
    days = [date(2026, 11, number + 1) for number in range(20)]
    tasks = client.enqueue_many(queue, [score.call(number, day) for number, day in enumerate(days)])
    dead = {what: client.enqueue(queue, score.call(what), retry=ONCE) for what in odd}
    snoozed = client.enqueue(queue, score.call("snooze"))
    again = client.enqueue(queue, score.call("forgive"), retry=Retry(2, backoff_s=0))
    running = start()

    eventually(all_ended(client, [*tasks, *dead.values(), again]))
    eventually(lambda: client.get(snoozed).state == "scheduled")

    assert client.results(tasks) == [[number, day] for number, day in enumerate(days)]
    for what, words in odd.items():
        assert words in (client.get(dead[what]).error or b"").decode()
    error = (client.get(dead["fail"]).error or b"").decode()
    assert 'raise ValueError("no column' in error and "in score" in error and "skuld_py" not in error
    assert {client.get(dead[what]).death for what in ("fail", "dead", "object")} == {"permanent"}
    assert [claim.outcome for claim in client.get(again).claims] == ["failed", "failed"]
    assert all(claim.log == () for task in tasks for claim in client.get(task).claims)
    jobs = [len(job) for job in running.engine.jobs]
    assert sum(jobs) == 27 and len(jobs) < 12, jobs
    lines = [line for line in running.lines if line.startswith("batch of")]
    eventually(lambda: len([line for line in running.lines if line.startswith("batch of")]) == len(jobs))
    assert not any(str(task) in line for task in tasks for line in running.lines), "one line a batch, none an item"
    assert any("1 snoozed" in line for line in lines)


def test_an_item_that_takes_its_process_along_is_found_and_fails_alone(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    engine = FakeEngine()
    engine.gate.clear()
    first = client.enqueue(queue, score.call("wait"))
    running = start(engine=engine)
    eventually(lambda: bool(engine.jobs))
    tasks = client.enqueue_many(queue, [score.call(number) for number in range(15)])
    crasher = client.enqueue(queue, score.call("crash"), retry=ONCE)
    engine.gate.set()

    eventually(all_ended(client, [first, crasher, *tasks]))

    assert client.results(tasks) == [[number, None] for number in range(15)]
    dead = client.get(crasher)
    assert [claim.outcome for claim in dead.claims] == ["failed"] and dead.death == "exhausted"
    assert b"crashed: the Python process" in (dead.error or b"") and b"exited unexpectedly" in (dead.error or b"")
    assert {len(task.claims) for task in client.get_many(tasks)} == {1}
    assert ["crash"] in running.engine.jobs
    assert engine.starts == 1


def test_a_claim_that_is_lost_while_its_batch_runs_is_dropped_and_the_others_go_on(
    start: Start, client: Client, queue: str, eventually: Eventually,
    holders_name: Callable[[TaskId], ClaimName]
) -> None:
    engine = FakeEngine()
    engine.gate.clear()
    lost, cancelled, kept = client.enqueue_many(queue, [score.call("wait")] * 3)
    running = start(engine=engine, slots=3)
    eventually(lambda: ["wait"] * 3 in engine.jobs)
    client.release(holders_name(lost))
    client.cancel(cancelled)
    eventually(lambda: running.worker.counts.lost == 1)
    for _ in range(2):  # with a renewal that is asked for later the worker learns that a task is cancelled
        end_ms = client.get(kept).claims[0].end_ms
        eventually(lambda end_ms=end_ms: client.get(kept).claims[0].end_ms > end_ms)
    assert not engine.cancelled, "a batch goes on as long as one of its runs is wanted"
    engine.gate.set()

    eventually(all_ended(client, [lost, kept]))

    assert [claim.outcome for claim in client.get(lost).claims] == ["released", "completed"]
    assert [claim.outcome for claim in client.get(kept).claims] == ["completed"]
    eventually(lambda: client.get(cancelled).state == "cancelled")
    assert any("1 returned" in line and "1 lost" in line and "1 given back" in line for line in running.lines)


def test_when_the_engine_dies_under_a_batch_its_tasks_run_alone_afterwards(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    tasks = client.enqueue_many(queue, [score.call(what) for what in (1, "die", 2)], retry=Retry(1))
    running = start(slots=3)

    eventually(all_ended(client, tasks))

    one, killer, two = client.get_many(sorted(tasks))
    by_id = {task.id: task for task in (one, killer, two)}
    killer, others = by_id[tasks[1]], [by_id[tasks[0]], by_id[tasks[2]]]
    assert killer.state == "dead" and b"Spark's JVM ended (out of memory?)" in (killer.error or b"")
    assert [other.state for other in others] == ["completed"] * 2
    assert all(len(job) == 1 for job in running.engine.jobs[1:])
    assert decode_entry(killer.claims[0].log[0])["kind"] == "engine_died"


def test_tasks_of_other_functions_are_not_starved_by_batches(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    calls = [each.call(number) for number in range(60) for each in (score, other, single)]
    tasks = client.enqueue_many(queue, calls)
    running = start()

    eventually(all_ended(client, tasks))

    assert client.results(tasks)[1::3] == list(range(60)) == client.results(tasks)[2::3]
    assert max(len(job) for job in running.engine.jobs) > 1
    eventually(lambda: sum("completed" in line for line in running.lines if line.startswith("task")) == 60)


def test_a_worker_that_stops_gives_back_what_its_batch_did_not_end(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    engine = FakeEngine()
    engine.gate.clear()
    tasks = client.enqueue_many(queue, [score.call("wait")] * 3)
    running = start(engine=engine, grace_s=0.1)
    eventually(lambda: bool(engine.jobs))

    running.worker.stop()

    assert running.end() == 0
    assert all(claim.is_released for task in client.get_many(tasks) for claim in task.claims)
    assert len(engine.cancelled) == 1, "a job is cancelled once, not once an item"


def test_how_far_a_batch_is_is_told_once_for_all_of_its_tasks_and_seen_where_one_of_them_is_looked_at(
    start: Start, client: Client, cluster: LocalCluster, queue: str, eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "TOLD_S", 0.1)
    engine = FakeEngine()
    engine.gate.clear()
    engine.counted[":batch"] = {"jobs": 1, "stages": [0, 1], "tasks": [1, 4]}
    start(engine=engine, holder="anna")
    client.results(client.enqueue_many(queue, [score.call(number) for number in range(40)]), wait_s=60)
    ids = client.enqueue_many(queue, [score.call("wait")] * 40)
    eventually(lambda: any(batch.parts for worker in client.workers().workers for batch in worker.batches))

    batch, = (batch for worker in client.workers().workers for batch in worker.batches)
    words = f"{many(batch.tasks, 'task')} of batches.score"
    assert (batch.queue, batch.function, batch.ended) == (queue, "batches.score", 0)
    assert (batch.parts_done, batch.parts) == (1, 4)
    nodes = ["--nodes", ",".join(cluster.addresses)]
    seen = CliRunner().invoke(main, ["top", "--once", *nodes]).output
    assert seen.count("anna") == 1 and words in seen and "1/4" in seen
    held = next(task for task in client.get_many(ids) if task.state == "claimed")
    told = CliRunner().invoke(main, ["get", str(held.id), *nodes]).output
    assert f"its worker runs {words} together" in told and "1/4" in told
    assert all(not claim.log for task in client.get_many(ids) for claim in task.claims), "no task is told of it"

    engine.gate.set()
    eventually(all_ended(client, ids))
    eventually(lambda: not any(worker.batches for worker in client.workers().workers))
