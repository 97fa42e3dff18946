"""Plain and async functions in a worker, on a real cluster: without Spark, and what they say of their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.client.client import Client
from skuld_py.client.options import Retry
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

Eventually = Callable[[Callable[[], bool]], None]
Start = Callable[..., RunningWorker]


class Noted:
    """What the functions below note of themselves, of one test."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.begun = threading.Semaphore(0)
        self.stopped: list[str] = []
        self.inside = self.most_inside = 0
        self.gate = threading.Event()


NOTED = Noted()


@skuld_py.task(name="plain.add")
def add(a: int, b: int = 1) -> int:
    return a + b


class Lazy(dict[str, int]):
    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __getitem__(self, key: str) -> int:
        raise OSError("the rows are gone")

    keys: Any = __iter__


@skuld_py.task(name="plain.give_lazily")
def give_lazily() -> Lazy:
    return Lazy()


@skuld_py.task(name="plain.on_spark")
def on_spark(spark: FakeEngine, number: int) -> int:
    return number + spark.starts


@skuld_py.task(name="plain.note")
def note(name: str) -> None:
    NOTED.order.append(name)


@skuld_py.task(name="plain.hold_up")
def hold_up() -> None:
    NOTED.begun.release()
    NOTED.gate.wait(60)


@skuld_py.task(name="plain.doze")
async def doze(context: TaskContext, seconds: float) -> str:
    NOTED.inside += 1
    NOTED.most_inside = max(NOTED.most_inside, NOTED.inside)
    NOTED.begun.release()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        NOTED.stopped.append(context.name)
        raise
    finally:
        NOTED.inside -= 1
    return f"{threading.current_thread().name}, {context.attempt}"


@skuld_py.task(name="plain.doze_too_long", timeout_s=0.3)
async def doze_too_long() -> None:
    await asyncio.sleep(60)


@skuld_py.task(name="plain.fail")
async def fail_awaited() -> None:
    raise ValueError("awaited in vain")


@skuld_py.task(name="plain.snooze")
def snooze(context: TaskContext, seconds: float) -> int:
    if context.attempt < 3:
        with contextlib.suppress(Exception):
            raise skuld_py.Snooze(seconds)
    return context.attempt


@skuld_py.task(name="plain.give_up")
async def give_up() -> None:
    raise skuld_py.Dead("no such customer")


@skuld_py.task(name="plain.picky", retry=Retry(3, backoff_s=0, on=OSError, never=(FileNotFoundError,)))
def picky(kind: str) -> None:
    raise {"on": ConnectionError, "never": FileNotFoundError, "other": ValueError}[kind](kind)


@skuld_py.task(name="plain.march")
def march(context: TaskContext, steps: int) -> int:
    begun: int = context.resumed or 0
    for step in range(begun, steps):
        context.checkpoint(step + 1)
        if step == begun == 0:
            raise skuld_py.Snooze(0)
        if step == 1:
            NOTED.begun.release()
            while True:
                context.check()
                time.sleep(0.01)
        if step == 2:
            raise ValueError("the third step")
    return begun


@skuld_py.task(name="plain.forever")
def forever() -> None:
    try:
        while True:
            time.sleep(0.01)
    except ClaimLost:
        NOTED.stopped.append("forever")
        raise


@skuld_py.task(name="plain.vandalize")
def vandalize(context: Any) -> None:
    context.journal = None


@skuld_py.task(name="plain.grab")
def grab(seconds: int) -> None:
    NOTED.begun.release()
    ctypes.PyDLL(None).sleep(seconds)  # with the interpreter's lock


@attrs.define
class Trap:
    number: int

    def __attrs_post_init__(self) -> None:
        raise SystemExit(4)


@skuld_py.task(name="plain.tread")
def tread(trap: Trap) -> None:
    """Never called: its argument cannot be made."""


@skuld_py.task(name="plain.tread_awaited")
async def tread_awaited(trap: Trap) -> None:
    """Never called either."""


@pytest.fixture
def start(cluster: LocalCluster, queue: str, tmp_path: Path) -> Iterator[Start]:
    global NOTED  # noqa: PLW0603 - each test has its own; the tasks find it by name
    NOTED = Noted()
    with contextlib.ExitStack() as ends:
        def begin(queues: str = queue, *, missing: str | None = None, **options: Any) -> RunningWorker:
            lines: list[str] = []
            engine = FakeEngine()
            engine.missing = missing
            worker = Worker(cluster.addresses, queues, engine, renewer_log=tmp_path / "renewer.log",
                            report=lines.append, **{"lease_s": 5.0, "grace_s": 20.0, **options})
            running = RunningWorker(worker, engine, lines)
            ends.callback(running.end)
            ends.callback(worker.stop)
            ends.callback(NOTED.gate.set)
            return running

        yield begin


def test_a_plain_function_needs_no_engine_and_one_of_spark_starts_it(
    start: Start, client: Client, queue: str
) -> None:
    running = start()
    assert client.results([client.enqueue(queue, add.call(2, b=3))], wait_s=60) == [5]
    assert client.results([client.enqueue(queue, doze.call(0))], wait_s=60) == ["event loop, 1"]
    assert running.engine.starts == 0

    assert client.results([client.enqueue(queue, on_spark.call(2))], wait_s=60) == [3]
    assert running.engine.starts == 1 and running.has_said("ready in")


def test_while_spark_starts_what_waits_for_it_keeps_no_slot_from_plain_tasks(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(slots=2)
    running.engine.may_start.clear()
    patient = client.enqueue_many(queue, [on_spark.call(number) for number in range(3)])
    eventually(lambda: client.depths()[queue].claimed >= 2)

    assert client.results([client.enqueue(queue, add.call(2))], wait_s=20) == [3]
    assert client.depths()[queue].claimed <= 4
    running.engine.may_start.set()
    assert client.results(patient, wait_s=60) == [1, 2, 3]


def test_without_spark_installed_plain_functions_run_and_others_fail_with_the_remedy(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(missing="this task needs pyspark: pip install")
    poor = client.enqueue(queue, on_spark.call(2), retry=Retry(1))

    assert client.results([client.enqueue(queue, add.call(2))], wait_s=60) == [3]
    eventually(lambda: client.get(poor).state == "dead")
    assert b"pip install" in (client.get(poor).error or b"") and running.engine.starts == 0


def test_a_result_that_fails_when_it_is_read_leaves_its_task_dead(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    start(slots=1)
    task = client.enqueue(queue, give_lazily.call())

    eventually(lambda: client.get(task).state == "dead")
    assert b"OSError: the rows are gone" in (client.get(task).error or b"")
    assert client.results([client.enqueue(queue, add.call(2))], wait_s=60) == [3]


def test_what_is_raised_around_a_function_fails_its_task_and_frees_its_slot(
    start: Start, client: Client, queue: str
) -> None:
    payloads = [skuld_py.call(name, {"number": 1}) for name in ("plain.tread", "plain.tread_awaited")]
    tasks = client.enqueue_many(queue, payloads, retry=Retry(1))
    start(slots=1)

    assert [end.state for end in client.ends(tasks, wait_s=60)] == ["dead", "dead"]
    assert {client.get(task).error for task in tasks} == {b"SystemExit: 4"}
    assert client.results([client.enqueue(queue, add.call(2))], wait_s=60) == [3]


def test_a_task_that_holds_the_interpreter_for_longer_than_a_lease_costs_nobody_a_claim(
    start: Start, client: Client, queue: str
) -> None:
    running = start(slots=2, lease_s=3.0)
    neighbour = client.enqueue(queue, hold_up.call())
    assert NOTED.begun.acquire(timeout=60)
    grabber = client.enqueue(queue, grab.call(4))
    assert NOTED.begun.acquire(timeout=60)
    NOTED.gate.set()

    assert client.results([grabber, neighbour], wait_s=60) == [None, None]
    assert [len(client.get(task).claims) for task in (grabber, neighbour)] == [1, 1]
    assert not running.has_said("lost")


def test_a_worker_does_not_go_on_without_the_thread_that_writes(
    start: Start, client: Client, queue: str
) -> None:
    client.enqueue(queue, vandalize.call())
    running = start()

    assert running.end() == 1
    assert running.has_said("the thread scribe failed, and no worker goes on without it: AttributeError")


def test_an_engine_that_cannot_be_loaded_ends_the_worker_and_that_is_said(
    start: Start, client: Client, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: FakeEngine) -> None:
        raise FileNotFoundError("the current directory")

    monkeypatch.setattr(FakeEngine, "start", fail)
    client.enqueue(queue, on_spark.call(2))
    running = start()

    assert running.end() == 1
    assert running.has_said("Spark does not start: FileNotFoundError: the current directory")


def test_an_engine_that_dies_takes_no_plain_function_along(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(slots=3)
    assert client.results([client.enqueue(queue, on_spark.call(2))], wait_s=60) == [3]
    task = client.enqueue(queue, hold_up.call())
    NOTED.begun.acquire(timeout=60)

    running.engine.has_ended = True
    eventually(lambda: running.engine.starts == 2)
    NOTED.gate.set()

    assert client.results([task], wait_s=60) == [None] and len(client.get(task).claims) == 1


def test_async_functions_run_side_by_side_in_one_thread(start: Start, client: Client, queue: str) -> None:
    start(slots=20)
    tasks = [client.enqueue(queue, doze.call(1.0)) for _ in range(20)]

    assert client.results(tasks, wait_s=60) == ["event loop, 1"] * 20
    assert NOTED.most_inside > 5


def test_an_async_function_is_cancelled_with_its_task_and_its_neighbour_goes_on(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(slots=2, lease_s=3.0)
    task, neighbour = client.enqueue(queue, doze.call(60)), client.enqueue(queue, doze.call(3))
    for _ in range(2):
        NOTED.begun.acquire(timeout=60)
    token = client.get(task).claims[0].token

    client.cancel(task)
    eventually(lambda: NOTED.stopped == [f"{task}:{token}"])
    eventually(lambda: running.has_said("given back: the task was cancelled"))
    assert client.results([neighbour], wait_s=60) == ["event loop, 1"]
    assert running.engine.cancelled == []


@pytest.mark.parametrize(("function", "words"), [(doze_too_long, b"timeout"), (fail_awaited, b"awaited in vain"),
                                                 (give_up, b"no such customer")])
def test_an_async_function_fails_as_others_do(
    start: Start, client: Client, queue: str, eventually: Eventually, function: Any, words: bytes
) -> None:
    task = client.enqueue(queue, function.call(), retry=Retry(1))
    start()

    eventually(lambda: client.get(task).state == "dead")

    dead = client.get(task)
    assert words in (dead.error or b"") and dead.death == ("permanent" if function is give_up else "exhausted")


def test_a_limit_given_by_the_call_ends_an_attempt(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = forever.send_with(client, queue=queue, timeout_s=0.3, retry=Retry(1))()
    start()

    eventually(lambda: client.get(task).state == "dead")

    assert (client.get(task).error or b"").startswith(b"timeout") and NOTED.stopped == ["forever"]


def test_a_function_that_snoozes_is_run_again_later_and_it_costs_no_attempt(
    start: Start, client: Client, queue: str
) -> None:
    task = client.enqueue(queue, snooze.call(0.2), retry=Retry(1))
    start()

    assert client.results([task], wait_s=60) == [3]
    claims = client.get(task).claims
    assert [claim.outcome for claim in claims] == ["snoozed", "snoozed", "completed"]
    assert all(claim.until_ms is not None and claim.until_ms <= later.start_ms
               for claim, later in pairwise(claims))


@pytest.mark.parametrize(("kind", "attempts", "death"), [("on", 3, "exhausted"), ("never", 1, "permanent"),
                                                         ("other", 1, "permanent")])
def test_a_policy_says_which_errors_are_tried_again(
    start: Start, client: Client, queue: str, eventually: Eventually, kind: str, attempts: int, death: str
) -> None:
    task = picky.send_with(client, queue=queue)(kind)
    start()

    eventually(lambda: client.get(task).state == "dead")

    assert (len(client.get(task).claims), client.get(task).death) == (attempts, death)


def test_a_task_goes_on_from_its_checkpoint_however_its_claim_ended(
    start: Start, client: Client, queue: str
) -> None:
    """Put off by itself, given back by a worker that stops, and dead by its policy until it is revived."""
    task_id = client.enqueue(queue, march.call(4), retry=Retry(1))
    running = start(grace_s=0.0)
    assert NOTED.begun.acquire(timeout=60)
    running.worker.stop()
    running.end()
    given_back = client.get(task_id)
    assert given_back.checkpoint is not None and given_back.checkpoint.value == 2
    assert (given_back.claims[0].outcome, given_back.claims[-1].outcome) == ("snoozed", "released")

    start()
    assert client.ends([task_id], wait_s=30)[0].state == "dead"
    client.retry(task_id)
    assert client.results([task_id], wait_s=30) == [3]
    done = client.get(task_id)
    assert done.checkpoint is not None and (done.checkpoint.value, done.checkpoint.token) == (
        4, done.completed_token)


def test_queues_are_served_by_weight_and_an_empty_one_costs_nothing(
    start: Start, client: Client, queue: str
) -> None:
    heavy, light, empty = (f"{queue[:150]}-{name}" for name in ("heavy", "light", "empty"))
    tasks = [*client.enqueue_many(heavy, [note.call("heavy")] * 400),
             *client.enqueue_many(light, [note.call("light")] * 400)]
    start(f"{heavy}:3,{light},{empty}:9", slots=1)

    client.results(tasks, wait_s=60)
    assert 180 < NOTED.order[:400].count("heavy") < 390, "three to one, but for what was found at first"
    assert client.results([client.enqueue(empty, add.call(1))], wait_s=60) == [2]


def test_what_was_claimed_ahead_of_a_task_that_takes_long_is_given_back(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(slots=1)
    client.results(client.enqueue_many(queue, [add.call(1)] * 50), wait_s=60)
    stuck = client.enqueue(queue, hold_up.call(), priority=9)
    NOTED.begun.acquire(timeout=60)
    behind = client.enqueue_many(queue, [add.call(1)] * 5)

    eventually(lambda: all(client.get(task).state == "waiting" for task in behind))
    assert all(claim.outcome == "released" for task in behind for claim in client.get(task).claims)
    assert sum(len(client.get(task).claims) for task in behind), "they were claimed ahead"
    time.sleep(2.5)  # longer than anything is held back
    assert all(client.get(task).state == "waiting" for task in behind)
    NOTED.gate.set()
    assert client.results([stuck, *behind], wait_s=60) == [None] + [2] * 5
    assert not running.has_said("lost")
