"""Single enqueues against batches: what sharing requests gives back of the rate of batches, in one run.

One client process each: ``Client.enqueue_many`` with 500 tasks after another; ``AsyncClient`` with 500 coroutines
that each enqueue one task after another; ``Client.enqueue`` in 50 threads; and one task after another. Three real
nodes, N=3, W=2, 100-byte payloads. Rounds alternate, so that what the machine does meanwhile hits all alike; the
ratio is of the medians.

    scripts/bench async [--seconds S] [--rounds R]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import AsyncClient, Client
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)
BATCH = 500
THREADS = 50
WANTED = 0.40


def in_batches(addresses: list[str], seconds: float) -> float:
    """Tasks a second, 500 at a time."""
    with Client(addresses, timeout_s=30) as client:
        client.count()
        start, done = time.monotonic(), 0
        while time.monotonic() < start + seconds:
            done += len(client.enqueue_many("batches", [PAYLOAD] * BATCH))
        return done / (time.monotonic() - start)


def by_coroutines(addresses: list[str], seconds: float) -> float:
    """Tasks a second, one at a time, by 500 coroutines."""
    async def enqueue_on(client: AsyncClient, until: float) -> int:
        done = 0
        while time.monotonic() < until:
            await client.enqueue("coroutines", PAYLOAD)
            done += 1
        return done

    async def measure() -> float:
        async with AsyncClient(addresses, timeout_s=30) as client:
            await client.count()
            start = time.monotonic()
            done = sum(await asyncio.gather(*(enqueue_on(client, start + seconds) for _ in range(BATCH))))
            return done / (time.monotonic() - start)
    return asyncio.run(measure())


def by_threads(addresses: list[str], seconds: float) -> float:
    """Tasks a second, one at a time, by 50 threads that share a client."""
    def enqueue_on(client: Client, until: float) -> int:
        done = 0
        while time.monotonic() < until:
            client.enqueue("threads", PAYLOAD)
            done += 1
        return done

    with Client(addresses, timeout_s=30) as client, ThreadPoolExecutor(THREADS) as threads:
        client.count()
        start = time.monotonic()
        calls = [threads.submit(enqueue_on, client, start + seconds) for _ in range(THREADS)]
        return sum(call.result() for call in calls) / (time.monotonic() - start)


def one_by_one(addresses: list[str], seconds: float) -> float:
    """Tasks a second, one after another."""
    with Client(addresses, timeout_s=30) as client:
        client.count()
        start, done = time.monotonic(), 0
        while time.monotonic() < start + seconds:
            client.enqueue("singles", PAYLOAD)
            done += 1
        return done / (time.monotonic() - start)


WAYS: dict[str, Callable[[list[str], float], float]] = {
    "batches of 500": in_batches, "500 coroutines": by_coroutines, "50 threads": by_threads,
    "one by one": one_by_one}


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each way")
    options = parser.parse_args()
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=3, partitions=8, replicas=3) as cluster:
        wait_until_led(cluster.addresses)
        for _ in range(options.rounds):
            for way, measure in WAYS.items():
                rates[way].append(measure(cluster.addresses, options.seconds))
    medians = {way: statistics.median(values) for way, values in rates.items()}
    table = Table("enqueue", "tasks/s, median", "least", "most", "of the batches' rate",
                  title="3 nodes, N=3 W=2, fsync before ack, one client process, 100-byte payloads")
    for way, values in rates.items():
        table.add_row(way, f"{medians[way]:,.0f}", f"{min(values):,.0f}", f"{max(values):,.0f}",
                      f"{medians[way] / medians['batches of 500']:.2f}")
    console = Console()
    console.print(table)
    ratio = medians["500 coroutines"] / medians["batches of 500"]
    console.print(f"500 coroutines reach {ratio:.0%} of the batches' rate; wanted: {WANTED:.0%}")


if __name__ == "__main__":
    main()
