"""What a backlog costs: claim latency and node memory with 1,000 and with 200,000 tasks waiting.

The ready index is on disk and a claim reads its head, so both should stay flat. The two sizes are
measured alternately in the same run, on queues of the same cluster.

    scripts/bench claim [--small N] [--large N] [--claims N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)


def fill(client: Client, queue: str, count: int) -> None:
    """Enqueue ``count`` tasks."""
    for _ in range(0, count, 500):
        client.enqueue_many(queue, [PAYLOAD] * min(500, count))


def node_memory() -> list[float]:
    """Resident megabytes of the node processes under this one."""
    found = []
    for child in psutil.Process().children(recursive=True):
        if "node" in child.cmdline() and "--cluster" in child.cmdline():
            found.append(child.memory_info().rss / 1e6)
    return found


def claims(client: Client, queue: str, count: int) -> list[float]:
    """Milliseconds of single claims, each completed off the clock."""
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        claim = client.claim_one(queue, lease_s=600)
        taken.append((time.perf_counter() - start) * 1000)
        assert claim is not None, f"{queue} ran dry"
        client.complete(claim)
    return taken


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=200_000)
    parser.add_argument("--claims", type=int, default=400)
    options = parser.parse_args()
    sizes = {"small": options.small, "large": options.large}
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=3, partitions=8, replicas=3) as cluster:
        wait_until_led(cluster.addresses)
        with Client(cluster.addresses) as client:
            memory, taken = {}, {queue: list[float]() for queue in sizes}
            for queue, count in sizes.items():
                fill(client, queue, count)
                memory[queue] = max(node_memory())
            claims(client, "small", 20)
            claims(client, "large", 20)
            for _ in range(8):
                for queue in sizes:
                    taken[queue] += claims(client, queue, options.claims // 8)
    table = Table("waiting", "claim p50 ms", "claim p99 ms", "largest node, MB resident")
    for queue, count in sizes.items():
        cuts = statistics.quantiles(taken[queue], n=100)
        table.add_row(f"{count:,}", f"{cuts[49]:.2f}", f"{cuts[98]:.2f}", f"{memory[queue]:.0f}")
    Console().print(table)
    ratio = statistics.median(taken["large"]) / statistics.median(taken["small"])
    Console().print(f"claim p50, large / small: {ratio:.2f}")


if __name__ == "__main__":
    main()
