"""What a worker does with its claims, on a real cluster, with an engine that dies and freezes to order."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import skuld_py
from family import family
from skuld_py.client.client import ClaimName, Client
from skuld_py.client.options import Retry
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.worker.apps import load_apps
from skuld_py.worker.context import TaskContext
from skuld_py.worker.journal import decode_entry
from skuld_py.worker.registry import encode_call
from skuld_py.worker.worker import Worker
from worker.running import FakeEngine, RunningWorker

pytestmark = [pytest.mark.cluster]

LEASE_S = 5.0
Eventually = Callable[[Callable[[], bool]], None]
HoldersName = Callable[[TaskId], ClaimName]


class Gate:
    """What a task of these tests stops at: it says that it is there and goes on when it may."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self.open = threading.Event()
        self.was_interrupted = threading.Event()


GATE = Gate()


@skuld_py.task(name="test.pass_gate")
def pass_gate(spark: FakeEngine, context: TaskContext) -> dict[str, int]:
    """Waits in small steps, so that an order to stop arrives."""
    context.log({"here": True})
    GATE.arrived.release()
    try:
        while not GATE.open.wait(0.01):
            pass
    except BaseException:
        GATE.was_interrupted.set()
        raise
    context.log({"through": True})
    return {"attempt": context.attempt}


@skuld_py.task(name="test.fail_twice")
def fail_twice(spark: FakeEngine, context: TaskContext) -> int:
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt} fails " + "\udc80" + "x" * 100_000 + " at last")
    return context.attempt


@skuld_py.task(name="test.give")
def give(spark: FakeEngine, context: TaskContext, value: Any) -> Any:
    return value


@skuld_py.task(name="test.give_much")
def give_much(spark: FakeEngine, context: TaskContext, count: int) -> bytes:
    return bytes(count)


@skuld_py.task(name="test.die_once")
def die_once(spark: FakeEngine, context: TaskContext) -> int:
    if context.attempt == 1:
        spark.has_ended = True
        raise ConnectionRefusedError
    return context.attempt


@skuld_py.task(name="test.kill")
def kill(spark: FakeEngine, context: TaskContext) -> None:
    """Takes the engine along, the first time when somebody else is there."""
    if context.attempt == 1:
        GATE.arrived.acquire(timeout=60)
    spark.has_ended = True
    raise ConnectionRefusedError


@skuld_py.task(name="test.stand_by")
def stand_by(spark: FakeEngine, context: TaskContext) -> int:
    """Goes on for ever the first time; then gives how often the engine was started."""
    if context.attempt == 1:
        GATE.arrived.release()
        while True:
            time.sleep(0.01)
    return spark.starts


@skuld_py.task(name="test.never_end", timeout_s=0.5)
def never_end(spark: FakeEngine, context: TaskContext) -> None:
    while True:
        time.sleep(0.01)


@skuld_py.task(name="test.give_object")
def give_object(spark: FakeEngine, context: TaskContext) -> object:
    return object()


@skuld_py.task(name="test.fail_always")
def fail_always(spark: FakeEngine, context: TaskContext) -> None:
    raise Refused("unknown_task", "of another cluster, perhaps")


@skuld_py.task(name="test.add")
def add(spark: FakeEngine, context: TaskContext, a: int, b: int) -> int:
    return a + b


Start = Callable[..., RunningWorker]


@pytest.fixture
def start(cluster: LocalCluster, queue: str, tmp_path: Path) -> Iterator[Start]:
    global GATE  # noqa: PLW0603 - each test has its own; the tasks find it by name
    GATE = Gate()
    with contextlib.ExitStack() as ends:
        def begin(**options: Any) -> RunningWorker:
            lines: list[str] = []
            engine = FakeEngine()
            options = {"lease_s": LEASE_S, "grace_s": 20.0, **options}
            worker = Worker(cluster.addresses, queue, engine, renewer_log=tmp_path / "renewer.log",
                            report=lines.append, **options)
            running = RunningWorker(worker, engine, lines)
            ends.callback(running.end)
            ends.callback(worker.stop)
            ends.callback(GATE.open.set)
            return running

        yield begin


def value_of(client: Client, task_id: TaskId) -> Any:
    """The result of a function that returned something plain."""
    return client.get(task_id).result


def is_completed(client: Client, task_id: TaskId) -> Callable[[], bool]:
    return lambda: client.get(task_id).is_completed


def test_tasks_are_run_and_their_results_recorded(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    tasks = [client.enqueue(queue, add.call(number, 1)) for number in range(20)]
    running = start(slots=4)

    eventually(lambda: all(task.is_completed for task in client.get_many(tasks)))

    assert [value_of(client, task) for task in tasks] == list(range(1, 21))
    assert {len(client.get(task).claims) for task in tasks} == {1}
    eventually(lambda: sum("completed" in line for line in running.lines) == 20)


@pytest.mark.slow
def test_a_lease_is_renewed_for_as_long_as_the_task_runs(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, pass_gate.call())
    start()
    GATE.arrived.acquire(timeout=60)
    claim = client.get(task).claims[0]

    eventually(lambda: client.get(task).claims[0].end_ms > claim.start_ms + 2 * 1000 * LEASE_S)
    GATE.open.set()
    eventually(is_completed(client, task))

    assert client.get(task).completed_token == claim.token


def is_renewer(child: psutil.Process) -> bool:
    """Whether it is one."""
    return "skuld_py.worker.renewer" in child.cmdline()


@pytest.mark.slow
def test_a_renewer_that_is_killed_is_replaced_in_time(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, pass_gate.call())
    start(lease_s=4.0)
    GATE.arrived.acquire(timeout=60)
    end_ms = client.get(task).claims[0].end_ms
    renewer = family(os.getpid(), is_renewer)[0]

    renewer.kill()
    eventually(lambda: client.get(task).claims[0].end_ms > end_ms)
    GATE.open.set()
    eventually(is_completed(client, task))

    assert value_of(client, task) == {"attempt": 1}


def test_a_lost_claim_is_cancelled_interrupted_and_never_completed(
    start: Start, client: Client, queue: str, eventually: Eventually,
    holders_name: HoldersName
) -> None:
    task = client.enqueue(queue, pass_gate.call())
    running = start(slots=1)
    GATE.arrived.acquire(timeout=60)
    stolen = client.get(task).claims[0].token

    client.release(holders_name(task))
    assert GATE.was_interrupted.wait(60)
    assert running.engine.cancelled == [f"{task}:{stolen}"]

    GATE.arrived.acquire(timeout=60)  # claimed again
    GATE.open.set()
    eventually(is_completed(client, task))
    claims = client.get(task).claims
    assert value_of(client, task) == {"attempt": 2}
    assert [claim.outcome for claim in claims] == ["released", "completed"]
    assert running.has_said("lost")


@pytest.mark.slow
def test_a_failing_task_is_failed_with_its_error_and_rests_as_its_policy_says(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, fail_twice.call(), retry=Retry(3, backoff_s=0.2, factor=3, jitter=0))
    running = start()

    eventually(is_completed(client, task))

    claims = client.get(task).claims
    assert [claim.outcome for claim in claims] == ["failed", "failed", "completed"]
    for number, claim, following, pause_ms in zip((1, 2), claims, claims[1:], (200, 600), strict=False):
        words, _, trace = (claim.error or b"").decode().partition("\n")
        assert words.startswith(f"ValueError: attempt {number} fails \\udc80xxx")
        assert words.endswith("xxx at last") and len(words) < 700
        assert 'raise ValueError(f"attempt' in trace and "in fail_twice" in trace and "skuld_py" not in trace
        assert claim.until_ms is not None and claim.until_ms - claim.end_ms <= pause_ms
        assert following.start_ms >= claim.until_ms
    assert client.get(task).result == 3
    assert sum(" failed after " in line for line in running.lines) == 2


def test_a_task_that_keeps_failing_dies_by_its_policy(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, fail_always.call(), retry=Retry(2, backoff_s=0))
    start()

    eventually(lambda: client.get(task).state == "dead")

    claims = client.get(task).claims
    assert [claim.outcome for claim in claims] == ["failed", "failed"]
    assert client.get(task).death == "exhausted"
    assert all(b"of another cluster" in (claim.error or b"") for claim in claims)


MUCH = DEFAULT_LIMITS.entry_bytes + 1


@pytest.mark.parametrize(("payload", "words"), [
    (b"hello", "no call"), (encode_call("test.unheard_of"), "--app"),
    (encode_call("test.add", 1), "argument: 'b'"),
    (give_object.call(), "a plain value"), (give_much.call(MUCH), "Write the data below context.output")],
    ids=["no call", "unknown", "arguments", "no result", "too large"])
def test_what_no_attempt_can_cure_is_not_tried_again(
    start: Start, client: Client, queue: str, eventually: Eventually, payload: bytes, words: str
) -> None:
    task = client.enqueue(queue, payload)
    start()

    eventually(lambda: client.get(task).state == "dead")

    dead = client.get(task)
    assert (dead.death, [claim.outcome for claim in dead.claims]) == ("permanent", ["failed"])
    assert words in (dead.error or b"").decode()


@pytest.mark.parametrize("value", [b"\x00\xff", "Zürich", "", None, False, {"rows": [1, 2.5, "ü"]}],
                         ids=["bytes", "text", "empty", "none", "false", "plain"])
def test_what_a_function_returns_is_the_result(
    start: Start, client: Client, queue: str, eventually: Eventually, value: Any
) -> None:
    task = client.enqueue(queue, give.call(value))
    start()

    eventually(is_completed(client, task))

    assert client.results([task]) == [value] == [client.result(task)]
    assert client.get(task).claims[0].log == ()


def test_the_largest_result_is_one(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, give_much.call(MUCH - 1))
    start()

    eventually(is_completed(client, task))

    assert client.get(task).result == bytes(MUCH - 1)


@pytest.mark.slow
def test_a_log_that_somebody_else_wrote_into_fails_the_attempt(
    start: Start, client: Client, queue: str, eventually: Eventually,
    holders_name: HoldersName
) -> None:
    task = client.enqueue(queue, pass_gate.call(), retry=Retry(1))
    start(slots=1)
    GATE.arrived.acquire(timeout=60)
    eventually(lambda: bool(list(client.log(task))))
    client.update(holders_name(task), [b"a stranger's"] * 50, seq=1)
    GATE.open.set()

    eventually(lambda: client.get(task).state == "dead")

    assert b"cannot be written" in (client.get(task).error or b"")


def test_an_engine_that_dies_is_replaced_and_its_task_done_again_at_once(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, die_once.call())
    running = start()

    eventually(is_completed(client, task))

    first, _ = client.get(task).claims
    assert decode_entry(first.log[-1])["reason"] == "Spark's JVM ended"
    assert value_of(client, task) == 2
    assert running.engine.starts == 2


def test_a_task_that_kills_its_engine_fails_and_its_neighbour_is_done(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    killer = client.enqueue(queue, kill.call(), retry=Retry(3, backoff_s=0))
    neighbour = client.enqueue(queue, stand_by.call())
    running = start(slots=2)

    eventually(lambda: client.get(killer).state == "dead" and client.get(neighbour).is_completed)

    dead, done = client.get(killer), client.get(neighbour)
    assert [claim.outcome for claim in dead.claims] == ["released", "failed", "failed", "failed"]
    assert dead.death == "exhausted" and b"Spark's JVM ended (out of memory?)" in (dead.error or b"")
    assert [claim.outcome for claim in done.claims] == ["released", "completed"]
    assert value_of(client, neighbour) <= 3, "two restarts at most"
    assert running.engine.starts == 5
    alone = [name for name in running.engine.beside if name not in (f"{task.id}:{task.claims[0].token}"
                                                                    for task in (dead, done))]
    assert {running.engine.beside[name] for name in alone} == {1}
    eventually(is_completed(client, client.enqueue(queue, add.call(1, 1))))


def test_a_task_that_runs_for_too_long_has_failed(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, never_end.call(), retry=Retry(1))
    running = start()

    eventually(lambda: client.get(task).state == "dead")

    claim, = client.get(task).claims
    assert claim.outcome == "failed"
    assert (claim.error or b"").startswith(b"timeout: it ran for longer than its timeout_s, ")
    assert running.engine.cancelled == [f"{task}:{claim.token}"]


@pytest.mark.slow
def test_a_frozen_engine_is_replaced_after_a_while(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    task = client.enqueue(queue, pass_gate.call())
    running = start(stall_s=1.5)
    GATE.arrived.acquire(timeout=60)

    running.engine.is_frozen = True
    assert GATE.was_interrupted.wait(60)

    GATE.open.set()
    eventually(is_completed(client, task))
    assert running.engine.starts == 2


def test_stop_lets_running_tasks_end_and_claims_no_more(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(slots=1)
    task = client.enqueue(queue, pass_gate.call())
    GATE.arrived.acquire(timeout=60)
    running.worker.stop()
    eventually(lambda: running.has_said("stopping"))
    later = client.enqueue(queue, add.call(1, 1))
    GATE.open.set()

    assert running.end() == 0

    assert client.get(task).is_completed
    assert all(claim.is_released for claim in client.get(later).claims)
    assert not client.get(later).is_completed


def test_what_does_not_end_in_time_is_given_back(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start(grace_s=0.2)
    task = client.enqueue(queue, pass_gate.call())
    GATE.arrived.acquire(timeout=60)
    running.worker.stop()

    assert running.end() == 0

    claim = client.get(task).claims[0]
    assert claim.is_released
    assert decode_entry(claim.log[-1])["kind"] == "released"
    assert running.engine.cancelled == [f"{task}:{claim.token}"]


def test_a_cancelled_task_is_stopped_and_given_back(
    start: Start, client: Client, queue: str, eventually: Eventually
) -> None:
    running = start()
    task = client.enqueue(queue, pass_gate.call())
    GATE.arrived.acquire(timeout=60)

    client.cancel(task)

    eventually(lambda: client.get(task).claims[0].outcome == "released")
    claim, = client.get(task).claims
    assert decode_entry(claim.log[-1]) | {"reason": "the task was cancelled"} == decode_entry(claim.log[-1])
    assert running.engine.cancelled == [f"{task}:{claim.token}"]
    assert not client.get(task).is_completed


def test_the_second_stop_is_at_once(start: Start, client: Client, queue: str) -> None:
    running = start(grace_s=60)
    task = client.enqueue(queue, pass_gate.call())
    GATE.arrived.acquire(timeout=60)
    running.worker.stop()
    running.worker.stop()
    began = time.monotonic()

    assert running.end() == 130

    assert time.monotonic() - began < 30, "it waited for the task"
    assert client.get(task).claims[0].is_released


def test_an_application_that_is_not_there_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    for module, words in (("no_such_app", "directory"), ("not a name", "not a name"), ("", "module name")):
        with pytest.raises(Refused, match=words) as refusal:
            load_apps([module])
        assert refusal.value.code == "unknown_app"


@pytest.mark.slow
def test_an_application_that_lacks_something_says_what(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "app_that_lacks.py").write_text("import no_such_library")
    with pytest.raises(Refused, match="needs no_such_library") as refusal:
        load_apps(["app_that_lacks"])
    assert refusal.value.code == "bad_app"
