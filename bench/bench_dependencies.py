"""What a dependency costs: enqueueing tasks that wait for another one, beside plain ones, in one run.

Three node processes and ZooKeeper on one machine, N=3, W=2, C=2, 100-byte payloads. All clients enqueue plain
tasks, then tasks of which each waits for one of those, then tasks that all wait for the same one; and again, as
many rounds as wanted. A phase lasts long enough that what follows an enqueue (asking, subscribing) goes on in it.
And the way back: how soon a dependent is claimed once what it needs is completed, with nothing else running, and
how many are let go in a second when many are.

    scripts/bench dependencies [--seconds S] [--clients K] [--rounds R] [--batch B]
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)
RATIO_MAX = 2.0
SPAWN = mp.get_context("spawn")
PHASES = ("plain", "one of its own", "one for all")


def work(addresses: list[str], number: int, batch: int, seconds: float, rounds: int, barrier: Any,
         results: Any) -> None:
    """One client process: all phases, beginning each with all the others. Gives tasks a second by phase."""
    rates: dict[str, list[float]] = {phase: [] for phase in PHASES}
    with Client(addresses, timeout_s=30) as client:
        for _ in range(rounds):
            plain: list[bytes] = []
            for phase in PHASES:
                barrier.wait()
                start, done = time.monotonic(), 0
                while time.monotonic() < start + seconds:
                    done += enqueue(client, phase, f"q{number}", batch, plain, done)
                rates[phase].append(done / (time.monotonic() - start))
    results.put(rates)


def enqueue(client: Client, phase: str, queue: str, batch: int, plain: list[bytes], done: int) -> int:
    """One batch; the ids of plain ones are what the others wait for."""
    if phase == "plain":
        plain += client.enqueue_many(queue, [PAYLOAD] * batch)
    elif phase == "one for all":
        client.enqueue_many(queue, [PAYLOAD] * batch, deps=plain[:1])
    else:
        needed = [plain[(done + index) % len(plain)] for index in range(batch)]
        client.enqueue_many(queue, [PAYLOAD] * batch, deps=[[task_id] for task_id in needed])
    return batch


def measure(addresses: list[str], options: argparse.Namespace) -> dict[str, list[float]]:
    """Tasks a second over all clients, by phase and round."""
    barrier, results = SPAWN.Barrier(options.clients), SPAWN.Queue()
    workers = [SPAWN.Process(target=work, args=(addresses, number, options.batch, options.seconds, options.rounds,
                                                barrier, results)) for number in range(options.clients)]
    for worker in workers:
        worker.start()
    rows = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return {phase: [sum(row[phase][at] for row in rows) for at in range(options.rounds)] for phase in PHASES}


def wake_up(addresses: list[str], count: int) -> tuple[float, float]:
    """p50 and p99 in milliseconds from asking for a completion to holding the dependent, one after another."""
    taken = []
    with Client(addresses) as client:
        for _ in range(count):
            first = client.enqueue("first", PAYLOAD)
            client.enqueue("then", PAYLOAD, deps=[first])
            claim = client.claim_one("first", wait_s=10)
            assert claim is not None and client.claim_one("then") is None
            start = time.perf_counter()
            client.complete(claim)
            assert client.claim_one("then", wait_s=60) is not None
            taken.append((time.perf_counter() - start) * 1000)
    cuts = statistics.quantiles(taken, n=100)
    return cuts[49], cuts[98]


def let_go(addresses: list[str], count: int, batch: int) -> float:
    """Dependents let go in a second: each waits for a task of its own, and those are completed in batches."""
    with Client(addresses, timeout_s=60) as client:
        for _ in range(count // batch):
            firsts = client.enqueue_many("many-first", [PAYLOAD] * batch)
            client.enqueue_many("many-then", [PAYLOAD] * batch, deps=[[task_id] for task_id in firsts])
        start, done = time.monotonic(), 0
        while claims := client.claim("many-first", n=batch, lease_s=600):
            client.complete_many(claims)
        while done < count // batch * batch:
            done += len(client.claim("many-then", n=batch, lease_s=600, wait_s=5))
        return done / (time.monotonic() - start)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each phase")
    parser.add_argument("--clients", type=int, default=3, help="client processes")
    parser.add_argument("--rounds", type=int, default=3, help="how often all phases are gone through")
    parser.add_argument("--batch", type=int, default=500, help="tasks of one call")
    parser.add_argument("--wakes", type=int, default=200, help="completions of which each lets one task go")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, LocalCluster(
            Path(name), nodes=3, partitions=8, replicas=3) as cluster:
        wait_until_led(cluster.addresses)
        p50, p99 = wake_up(cluster.addresses, options.wakes)
        rate = let_go(cluster.addresses, 10 * options.batch, options.batch)
        rates = measure(cluster.addresses, options)
    table = Table("tasks that wait for", "enqueued/s", "times the cost of plain ones, by round",
                  title=f"3 nodes, N=3 W=2 C=2, fsync before ack, {options.clients} clients, batches of"
                  f" {options.batch}, 100-byte payloads")
    for phase in PHASES:
        ratios = [plain / each for plain, each in zip(rates["plain"], rates[phase], strict=True)]
        table.add_row(phase, f"{statistics.mean(rates[phase]):,.0f}",
                      "  ".join(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)
    cost = statistics.mean(rates["plain"]) / statistics.mean(rates["one of its own"])
    console.print(f"a task with a dependency of its own costs {cost:.2f} times a plain one; wanted: at most"
                  f" {RATIO_MAX:g}")
    console.print(f"completed to claimed, one after another: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    console.print(f"let go, claims and completions included: {rate:,.0f} a second")


if __name__ == "__main__":
    main()
