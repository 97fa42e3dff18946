"""A task that freezes time, or replaces it, does that for itself: the worker has clocks of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skuld_py.client import steady
from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.worker.event_loop import EventLoop
from skuld_py.worker.registry import encode_call

Eventually = Callable[[Callable[[], bool]], None]
LEASE_S = 3.0

# `freeze` does what tools do that freeze time, and more, and leaves it so: whatever holds a function of `time` by
# a name, in any module but those that wait for others, holds another one from then on.
APP = '''
import asyncio
import sys
import time
from datetime import UTC, datetime
import skuld_py

REAL_SLEEP = time.sleep
FROZEN = {id(getattr(time, name)): lambda *_, value=value: value for name, value in {
    "time": 1e9, "time_ns": 10**18, "monotonic": 1e9, "monotonic_ns": 10**18, "perf_counter": 1e9,
    "clock_gettime": 1e9, "clock_gettime_ns": 10**18, "sleep": None}.items()}


@skuld_py.task
def freeze():
    for name, module in list(sys.modules.items()):
        if name not in (__name__, "threading", "queue"):
            for known, value in list(vars(module).items()):
                if id(value) in FROZEN:
                    setattr(module, known, FROZEN[id(value)])
    return [time.time(), time.monotonic()]


@skuld_py.task
def add(a, b):
    return a + b


@skuld_py.task
async def doze(seconds):
    await asyncio.sleep(seconds)
    return "awake"


@skuld_py.task
def last(context, seconds):
    context.log("begun")
    for _ in range(int(seconds * 10)):
        REAL_SLEEP(0.1)
        context.check()
    return context.attempt


@skuld_py.task(timeout_s=1)
def last_too_long():
    for _ in range(600):
        REAL_SLEEP(0.1)


@skuld_py.task
def send(queue):
    with skuld_py.Client() as client:
        return str(client.enqueue(queue, add.call(3, 4), delay_s=0.5))
'''


@pytest.fixture
def worker(cluster: LocalCluster, tmp_path: Path, queue: str) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "frozen_app.py").write_text(APP)
    worker = cluster.start_worker(queue, "frozen_app", "--slots", "4", "--lease", f"{LEASE_S:g}s",
                                  working_directory=tmp_path)
    yield worker
    worker.kill()
    worker.wait()


@pytest.mark.cluster
def test_a_task_that_freezes_time_holds_up_neither_its_worker_nor_its_neighbours(
        worker: subprocess.Popen[bytes], client: Client, queue: str, eventually: Eventually) -> None:
    def begin(function: str, *args: object) -> TaskId:
        return client.enqueue(queue, encode_call(f"frozen_app:{function}", *args))

    lasting = begin("last", 3 * LEASE_S)
    eventually(lambda: any(b"begun" in entry for claim in client.get(lasting).claims for entry in claim.log))
    assert client.result(begin("freeze"), wait_s=120) == [1e9, 1e9]

    plain, dozing, sending = begin("add", 1, 2), begin("doze", 0.5), begin("send", queue)
    late = begin("last_too_long")
    assert client.result(lasting, wait_s=120) == 1, "its lease was renewed"
    assert [client.result(task, wait_s=120) for task in (plain, dozing)] == [3, "awake"]
    assert client.result(client.result(sending, wait_s=120), wait_s=120) == 7
    eventually(lambda: b"timeout" in b"".join(claim.error or b"" for claim in client.get(late).claims))
    client.cancel(late)

    worker.terminate()
    assert worker.wait(60) == 0


def test_clocks_are_the_system_s_whatever_becomes_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = (steady.steady_s, steady.monotonic_s, steady.wall_s, steady.wall_ms)
    before = [clock() for clock in clocks]
    for name in ("time", "time_ns", "monotonic", "clock_gettime", "clock_gettime_ns"):
        monkeypatch.setattr(time, name, lambda *_: -1)
    monkeypatch.setattr(time, "sleep", None)

    steady.sleep(0.001)

    assert all(now > 0 and now >= then for now, then in zip([clock() for clock in clocks], before, strict=True))
    assert abs(steady.wall_ms() / 1000 - steady.wall_s()) < 60
    held = [name for name, value in vars(steady).items() if type(value) is type(time.get_clock_info)]
    assert held == [], "what freezes time finds it by its name"


def test_the_event_loop_of_a_worker_tells_the_time_by_the_worker_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = EventLoop()
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)

    async def doze() -> None:
        import asyncio

        await asyncio.sleep(0.01)

    assert loop.start(doze).join(20)
    loop.close()
