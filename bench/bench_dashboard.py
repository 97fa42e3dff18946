"""How long the pages of the dashboard take on a live cluster that holds many tasks.

Three nodes and a gateway; most tasks wait, some are completed, dead, blocked or claimed. Each page is asked for a
few times, one at a time, and its slowest and median are shown. None may take longer than a second; the exit code
says so.

    scripts/bench dashboard [--tasks N] [--times N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client, Retry
from skuld_py.calls.payloads import call
from skuld_py.embedded.local import LocalCluster

BATCH, QUEUES, ENDED = 1_000, 20, 500
PAGE_S_MAX = 1.0
PAGES = ("", "/queues", "/tasks", "/tasks?queue=queue-1", "/tasks?queue=queue-1&state=dead",
         "/tasks?queue=queue-1&state=completed", "/tasks?function=shop:never", "/tasks?key=never", "/workflows",
         "/schedules", "/limits", "/workers", "/partitions", "/history", "/history?partition=0", "/members",
         "/api", "/act/purge?queue=queue-1")
console = Console()


def fill(client: Client, tasks: int) -> list[str]:
    """The tasks; and the ids of three with a story."""
    for number in range(0, tasks, BATCH):
        queue = f"queue-{number // BATCH % QUEUES}"
        client.enqueue_many(queue, [call("shop:add", each, b=3) for each in range(min(BATCH, tasks - number))])
    client.enqueue_many("queue-1", [b"dies"] * ENDED, priority=9, retry=Retry(max_attempts=1))
    for claim in client.claim("queue-1", n=ENDED):
        client.fail(claim, error="Traceback: it died")
    done = client.claim("queue-1", n=ENDED)
    client.update(done[0], [f"line {number}" for number in range(1_000)])
    client.complete_many(done)
    large = client.enqueue("queue-2", b"x" * 1_000_000)
    waits = client.enqueue("queue-2", b"last", deps=client.enqueue_many("queue-2", [b"first"] * 50))
    return [str(done[0].id), str(large), str(waits)]


def took_s(url: str) -> float:
    """Seconds until a page is there, whole."""
    start = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - start


def main() -> int:
    """Fill a cluster, and ask for every page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with (tempfile.TemporaryDirectory(prefix="skuld-bench-") as place,
          LocalCluster(Path(place), nodes=3, replicas=3) as cluster):
        wait_until_led(cluster.addresses)
        with Client(cluster.addresses, timeout_s=30) as client:
            ids = fill(client, asked.tasks)
        url = f"{cluster.start_gateway()[0]}/dashboard"
        table = Table("page", "median ms", "slowest ms", title=f"{asked.tasks:,} tasks")
        slowest = 0.0
        for path in (*PAGES, *(f"/tasks/{each}{more}" for each in ids for more in ("", "/log"))):
            times = [took_s(url + path) for _ in range(asked.times)]
            slowest = max(slowest, *times)
            table.add_row(path or "/", f"{statistics.median(times) * 1000:.0f}", f"{max(times) * 1000:.0f}")
        console.print(table)
    console.print(f"slowest page {slowest * 1000:.0f} ms, {PAGE_S_MAX * 1000:.0f} wanted")
    return int(slowest > PAGE_S_MAX)


if __name__ == "__main__":
    sys.exit(main())
