"""What batches make of tiny Spark tasks, beside one job each; how soon a worker starts, and what its JVM keeps.

A cluster of three nodes and one worker process, as 'skuld worker' starts it. First a worker is started beside a
task that waits: one of plain Python, one that needs Spark. Then the same small function is run by one worker as
one Spark job each, in batches of 100 and in batches of 1000, many times in each of some rounds: from the first
claim to the last completion, by the cluster's clock. The ratios are those within a round. Last, jobs are run by
the thousand, and the JVM's heap is read after its garbage is collected.

The exit status is 1 when a bar is missed: ``WANTED`` times one job each, ``PLAIN_WANTED`` plain tasks a second,
``FIRST_WANTED_S`` from the start to the end of the first plain task.

    scripts/bench spark [--rounds N] [--tasks N] [--singles N] [--jobs N] [--plain N] [--starts N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
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
import hashlib
import json
import skuld_py

def score(a, b):
    return hashlib.sha256(json.dumps([a, b]).encode()).hexdigest()

@skuld_py.task(name="spark.plain")
def plain(a, b):
    return score(a, b)

@skuld_py.task(name="spark.single")
def single(spark, a, b):
    return spark.sparkContext.parallelize([(a, b)], 1).map(lambda pair: score(*pair)).collect()[0]

@skuld_py.task(name="spark.hundred", batch=100)
def hundred(a, b):
    return score(a, b)

@skuld_py.task(name="spark.thousand", batch=True)
def thousand(a, b):
    return score(a, b)

@skuld_py.task(name="spark.churn")
def churn(spark, jobs):
    for number in range(jobs):
        spark.sparkContext.parallelize([number], 1).map(lambda each: score(each, each)).collect()

@skuld_py.task(name="spark.heap")
def heap(spark):
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return runtime.totalMemory() - runtime.freeMemory()
'''
PATIENCE_S = 600.0
PART = 1_000
WANTED = {100: 50, 1_000: 100}
PLAIN_WANTED = 500
FIRST_WANTED_S = 1.5
console = Console()


class Bench:
    """A cluster, a client of it, and the place of the application."""

    def __init__(self, cluster: LocalCluster, client: Client, place: Path) -> None:
        self._cluster = cluster
        self._client = client
        self._place = place

    def worker(self, queue: str) -> subprocess.Popen[bytes]:
        """A worker as users start it."""
        return self._cluster.start_worker(queue, "spark_app", working_directory=self._place)

    def first_task_s(self, name: str) -> float:
        """Seconds from the start of a worker to the end of the task that waits for it."""
        queue = name.replace(".", "-")
        task = self._client.enqueue(queue, encode_call(name, 2, 3))
        began = time.monotonic()
        worker = self.worker(queue)
        self._client.results([task], wait_s=PATIENCE_S)
        took_s = time.monotonic() - began
        worker.terminate()
        worker.wait()
        return took_s

    def rate(self, queue: str, name: str, count: int) -> float:
        """Tasks a second of the worker that runs."""
        ids: list[TaskId] = []
        for start in range(0, count, PART):
            calls = [encode_call(name, number, 1) for number in range(start, min(count, start + PART))]
            ids += self._client.enqueue_many(queue, calls)
        self._client.results(ids, wait_s=PATIENCE_S)
        done = [task for start in range(0, count, 500) for task in self._client.get_many(ids[start : start + 500])]
        took_ms = max(task.completed_ms or 0 for task in done) - min(task.claims[0].start_ms for task in done)
        return 1000 * count / took_ms

    def run(self, queue: str, name: str, *args: int) -> object:
        """One task's result."""
        return self._client.results([self._client.enqueue(queue, encode_call(name, *args))], wait_s=PATIENCE_S)[0]


class Bars:
    """What was to be reached, and what was not."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def see(self, what: str, *, is_met: bool) -> str:
        """Note it; in a word."""
        if not is_met:
            self.missed.append(what)
        return "met" if is_met else "MISSED"


def show_first(bench: Bench, bars: Bars, times: int) -> None:
    """From the start of a worker to the end of its first task; of plain ones the median of some, for the first
    compiles the sources."""
    plain = [bench.first_task_s("spark.plain") for _ in range(times)]
    took_s = statistics.median(plain)
    every = ', '.join(f'{each:.2f}' for each in plain)
    said = bars.see("first plain task", is_met=took_s <= FIRST_WANTED_S)
    console.print(f"start to the end of the first plain task: {took_s:.2f} s, of {every};"
                  f" wanted at most {FIRST_WANTED_S} s: {said}")
    console.print(f"start to the end of the first Spark task: {bench.first_task_s('spark.single'):.2f} s")


def show_plain(bench: Bench, bars: Bars, rounds: int, tasks: int) -> None:
    """Plain functions, by one worker."""
    bench.rate("rates", "spark.plain", PART)  # to be warm
    rates = [bench.rate("rates", "spark.plain", tasks) for _ in range(rounds)]
    rate = statistics.median(rates)
    console.print(f"plain functions: {rate:,.0f}/s, of {', '.join(f'{each:,.0f}' for each in rates)}; wanted"
                  f" {PLAIN_WANTED}/s: {bars.see('plain functions', is_met=rate >= PLAIN_WANTED)}")


def show_rates(bench: Bench, bars: Bars, rounds: int, singles: int, tasks: int) -> None:
    """One job each against batches, by one worker, in rounds: what else the machine does changes from one to the
    next."""
    counts = {1: ("spark.single", singles), 100: ("spark.hundred", tasks // 4), 1_000: ("spark.thousand", tasks)}
    for name, _ in counts.values():
        bench.rate("rates", name, 10 if name == "spark.single" else 1_000)  # to be warm
    found: dict[int, list[float]] = {size: [] for size in counts}
    for _ in range(rounds):
        for size, (name, count) in counts.items():
            found[size].append(bench.rate("rates", name, count))
        said = ", ".join(f"{size}: {rates[-1]:,.1f}/s" for size, rates in found.items())
        console.print(f"{said}, load {os.getloadavg()[0]:.1f}")
    table = Table("tasks a job", "tasks/s", "to one job each", "wanted", "", title="medians of one worker")
    for size, rates in found.items():
        ratio = statistics.median(rate / single for rate, single in zip(rates, found[1], strict=True))
        bar = WANTED.get(size)
        said = "" if bar is None else bars.see(f"batches of {size}", is_met=ratio >= bar)
        table.add_row(str(size), f"{statistics.median(rates):,.1f}", f"{ratio:,.0f}", f"{bar or ''}", said)
    console.print(table)


def show_heap(bench: Bench, jobs: int) -> None:
    """What the JVM keeps."""
    part = jobs // 4
    read = [bench.run("rates", "spark.heap")]
    for _ in range(4):
        bench.run("rates", "spark.churn", part)
        read.append(bench.run("rates", "spark.heap"))
    said = ", ".join(f"{number * part}: {size / 2**20:,.0f} MiB" for number, size in enumerate(read)
                     if isinstance(size, int))
    console.print(f"the JVM's heap after its garbage is collected, by jobs since: {said}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=8_000, help="in batches of 1000; a quarter in those of 100")
    parser.add_argument("--singles", type=int, default=40)
    parser.add_argument("--plain", type=int, default=3_000, help="plain tasks a round")
    parser.add_argument("--starts", type=int, default=3, help="starts of a worker before a plain task")
    parser.add_argument("--jobs", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "spark_app.py").write_text(APP)
        with LocalCluster(place / "cluster") as cluster, Client(cluster.addresses, timeout_s=30) as client:
            wait_until_led(cluster.addresses)
            bench = Bench(cluster, client, place)
            console.print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
            bars = Bars()
            show_first(bench, bars, options.starts)
            worker = bench.worker("rates")
            try:
                show_plain(bench, bars, options.rounds, options.plain)
                show_rates(bench, bars, options.rounds, options.singles, options.tasks)
                show_heap(bench, options.jobs)
            finally:
                worker.terminate()
                worker.wait()
    if bars.missed:
        raise SystemExit(f"missed: {', '.join(bars.missed)}")


if __name__ == "__main__":
    main()
