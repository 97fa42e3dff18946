"""What a worker makes of plain functions: tasks a second, and how soon after its start the first one has ended.

A cluster of three nodes and one worker process, as 'skuld worker' starts it. First the worker is started again
and again beside a task that waits, and the time from its start to the task's end is taken. Then many tasks wait
when it starts, and the time from the first claim to the last completion is taken, by the cluster's clock. Beside
it one client alone claims and completes the same payloads, which is the most that the cluster gives one process
on this machine now.

    scripts/bench plain [--tasks N] [--starts N] [--slots N ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TaskId
from skuld_py.worker.registry import encode_call

APP = '''
import skuld_py

@skuld_py.task(name="plain.add", queue="plain")
def add(a, b):
    return a + b

@skuld_py.task(name="plain.told", queue="plain")
def told(context, a, b):
    context.log(f"{a} + {b}")
    return a + b

@skuld_py.task(name="plain.awaited", queue="plain")
async def awaited(a, b):
    return a + b
'''
KINDS = {"function": "plain.add", "function that logs": "plain.told", "async function": "plain.awaited"}
PATIENCE_S = 120.0
BATCH = 500
START_S_MAX, RATE_MIN = 1.5, 500
console = Console()


def first_task_s(cluster: LocalCluster, client: Client, place: Path, number: int) -> float:
    """Seconds from the start of a worker to the end of the task that waits for it."""
    queue = f"start-{number}"
    task = client.enqueue(queue, encode_call("plain.add", 2, 3))
    began = time.monotonic()
    worker = cluster.start_worker(queue, "plain_app", working_directory=place)
    client.results([task], wait_s=PATIENCE_S)
    took_s = time.monotonic() - began
    worker.terminate()
    worker.wait()
    return took_s


def rate(cluster: LocalCluster, client: Client, place: Path, name: str, tasks: int, slots: int) -> float:
    """Tasks a second of one worker."""
    queue = f"rate-{name.replace('.', '-')}-{slots}"
    ids: list[TaskId] = []
    for start in range(0, tasks, BATCH):
        ids += client.enqueue_many(queue, [encode_call(name, start + each, 1) for each in range(BATCH)])
    worker = cluster.start_worker(queue, "plain_app", "--slots", str(slots), working_directory=place)
    client.results(ids, wait_s=PATIENCE_S)
    worker.terminate()
    worker.wait()
    done = [task for start in range(0, tasks, BATCH) for task in client.get_many(ids[start : start + BATCH])]
    took_ms = max(task.completed_ms or 0 for task in done) - min(task.claims[0].start_ms for task in done)
    return 1000 * len(done) / took_ms


def bare_rate(client: Client, tasks: int) -> float:
    """Tasks a second of a client that only claims and completes."""
    for _ in range(0, tasks, BATCH):
        client.enqueue_many("bare", [encode_call("plain.add", 1, 1)] * BATCH)
    began, done = time.monotonic(), 0
    while claims := client.claim("bare", n=200):
        client.complete_many(claims, [b"2"] * len(claims))
        done += len(claims)
    return done / (time.monotonic() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=4_000)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 8])
    options = parser.parse_args()
    table = Table("what", "slots", "tasks/s", title="plain functions, one worker")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "plain_app.py").write_text(APP)
        with LocalCluster(place / "cluster") as cluster, Client(cluster.addresses, timeout_s=30) as client:
            wait_until_led(cluster.addresses)
            console.print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
            starts = [first_task_s(cluster, client, place, number) for number in range(options.starts)]
            console.print(f"start to the end of the first task: median {statistics.median(starts):.2f} s, least"
                          f" {min(starts):.2f} s, most {max(starts):.2f} s (at most {START_S_MAX} s wanted)")
            for kind, name in KINDS.items():
                for slots in options.slots:
                    found = rate(cluster, client, place, name, options.tasks, slots)
                    table.add_row(kind, str(slots), f"{found:,.0f}")
            table.add_row("a client alone, no function", "", f"{bare_rate(client, options.tasks):,.0f}")
    console.print(table)
    console.print(f"wanted: {RATE_MIN} tasks/s of plain functions")


if __name__ == "__main__":
    main()
