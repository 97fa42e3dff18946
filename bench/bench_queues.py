"""A million tasks in a thousand queues, some to come later, some behind others: claims, and listing all.

Two clusters of three nodes stand side by side; one holds the backlog, the other one small queue. Single claims go
to the one and to the other in turns, so that the machine's moods meet both alike. Of each queue's tasks a tenth
may be claimed an hour from now, and a tenth waits for the queue's first task. Then every task is listed, as one
stream, while the memory of client and nodes is watched.

    scripts/bench queues [--tasks N] [--queues N] [--claims N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

import psutil
from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)
SMALL = 1_000
BATCH = 1_000
WARM_UP = 50
CLAIM_RATIO_MAX = 1.2
HOUR_S = 3_600
WATCH_TASKS = 10_000
console = Console()


def fill(client: Client, queue: str, count: int) -> None:
    """A queue's tasks: the plain ones first, then those for later and those behind the first."""
    odd = count // 10
    ids = [task_id for at in range(0, count - 2 * odd, BATCH)
           for task_id in client.enqueue_many(queue, [PAYLOAD] * min(BATCH, count - 2 * odd - at))]
    if odd:
        client.enqueue_many(queue, [PAYLOAD] * odd, not_before=time.time() + HOUR_S)
        client.enqueue_many(queue, [PAYLOAD] * odd, deps=ids[:1])


def fill_all(client: Client, tasks: int, queues: int) -> float:
    """Seconds to fill every queue; says how far it is now and then."""
    start = time.monotonic()
    for number in range(queues):
        fill(client, f"queue-{number}", tasks // queues)
        if number % 100 == 99:
            console.print(f"  {number + 1} of {queues} queues filled, {time.monotonic() - start:.0f} s")
    return time.monotonic() - start


def claim(client: Client, queue: str) -> float:
    """Milliseconds of one claim, given back off the clock."""
    start = time.perf_counter()
    held = client.claim_one(queue, lease_s=600)
    took = (time.perf_counter() - start) * 1_000
    if held is None:
        raise SystemExit(f"{queue} ran dry")
    client.complete(held)
    return took


def resident_mb(pids: list[int]) -> float:
    """The largest of these processes, in MB."""
    sizes: list[int] = [psutil.Process(pid).memory_info().rss for pid in pids]
    return max(sizes) / 1e6


def list_all(client: Client, nodes: list[int]) -> tuple[int, float, float, float]:
    """Tasks listed, seconds, and by how many MB this process and the largest node grew after the first of them."""
    pages, me = client.list(), [os.getpid()]
    start = time.monotonic()
    first = sum(1 for _ in islice(pages, WATCH_TASKS))
    before = resident_mb(me), resident_mb(nodes)
    count = first + sum(1 for _ in pages)
    took = time.monotonic() - start
    return count, took, resident_mb(me) - before[0], resident_mb(nodes) - before[1]


def compare(large: Client, small: Client, queues: int, claims: int) -> list[list[float]]:
    """Milliseconds of claims on the backlog and on the small queue, in turns."""
    taken: list[list[float]] = [[], []]
    for number in range(-WARM_UP, claims):
        pair = claim(large, f"queue-{number % queues}"), claim(small, "small")
        if number >= 0:
            for row, took in zip(taken, pair, strict=True):
                row.append(took)
    return taken


def main() -> None:
    """Go through the steps, print one table and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--claims", type=int, default=500)
    options = parser.parse_args()
    table = Table("step", "measured")
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name) / "large", nodes=3, partitions=8, replicas=3) as backlog, \
            LocalCluster(Path(name) / "small", nodes=3, partitions=8, replicas=3) as calm:
        for cluster in (backlog, calm):
            wait_until_led(cluster.addresses)
        with Client(backlog.addresses, timeout_s=60) as large, Client(calm.addresses, timeout_s=60) as small:
            took = fill_all(large, options.tasks, options.queues)
            table.add_row(f"enqueue {options.tasks:,} in {options.queues:,} queues", f"{took:.0f} s")
            fill(small, "small", SMALL + (options.claims + WARM_UP) * 10 // 8)
            taken = compare(large, small, options.queues, options.claims)
            for row, what in zip(taken, ("the backlog", "the small queue"), strict=True):
                cuts = statistics.quantiles(row, n=100)
                table.add_row(f"claims on {what}, p50 and p99", f"{cuts[49]:.2f} ms, {cuts[98]:.2f} ms")
            nodes = [pid for index in range(3) if (pid := backlog.node_process_id(index)) is not None]
            count, took, mine, theirs = list_all(large, nodes)
            table.add_row(f"list {count:,} tasks", f"{took:.0f} s")
            table.add_row("memory grew meanwhile, client and largest node", f"{mine:.1f} MB, {theirs:.1f} MB")
            table.add_row("largest node, resident", f"{resident_mb(nodes):.0f} MB")
    console.print(table)
    ratio = statistics.median(taken[0]) / statistics.median(taken[1])
    console.print(f"claim p50, backlog / small: {ratio:.2f}; wanted: at most {CLAIM_RATIO_MAX}")


if __name__ == "__main__":
    main()
