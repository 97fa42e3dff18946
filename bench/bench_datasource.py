"""Spark's data source: rows written a second beside enqueue_many of one client, and read back by SQL, in one run.

Three node processes and ZooKeeper on one machine, N=3, W=2, and Spark with two slots on the same machine; 100-byte
payloads. Of an atomic write both are told: when it returned, and when all of its tasks could be claimed.

    scripts/bench datasource [--rows N] [--parts P]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

import skuld_py
from skuld_py import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.spark_session import SparkRuntime

PAYLOAD_BYTES = 100
console = Console()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what it gave."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def one_client(client: Client, rows: int) -> None:
    """Enqueue as many tasks, by calls of ten thousand."""
    payload = os.urandom(PAYLOAD_BYTES)
    for start in range(0, rows, 10_000):
        client.enqueue_many("client", [payload] * min(10_000, rows - start))


def until_claimable(client: Client, queue: str, rows: int) -> None:
    """Wait until all tasks of a queue can be claimed."""
    while client.depths()[queue].waiting < rows:
        time.sleep(0.1)


def measure(session: Any, client: Client, rows: int, parts: int) -> dict[str, float]:
    """Seconds by what was done."""
    payload = f"lpad(cast(id as string), {PAYLOAD_BYTES}, '0') as payload"
    frame = session.range(0, rows, 1, parts).selectExpr(payload)

    def save(queue: str, **options: str) -> None:
        frame.write.format("skuld").options(queue=queue, **options).mode("append").save()
    save("warm-up")
    taken = {"enqueue_many, one client": timed(lambda: one_client(client, rows))[0]}
    start = time.perf_counter()
    save("atomic")
    taken["df.write, atomic"] = time.perf_counter() - start
    until_claimable(client, "atomic", rows)
    taken["df.write, atomic, until all can be claimed"] = time.perf_counter() - start
    taken["df.write, atomic=false"] = timed(lambda: save("repeatable", atomic="false"))[0]
    tasks = session.read.format("skuld").option("results", "false").load()
    seconds, counted = timed(lambda: tasks.where("queue = 'atomic'").count())
    taken["select count(*) of them"] = seconds
    if counted != rows:
        raise SystemExit(f"{counted} rows were read of {rows}")
    return taken


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of each step")
    parser.add_argument("--parts", type=int, default=8, help="partitions of the frame")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, LocalCluster(
            Path(name) / "cluster", nodes=3, partitions=8, replicas=3) as cluster:
        wait_until_led(cluster.addresses)
        os.environ["SKULD_NODES"] = ",".join(cluster.addresses)
        runtime = SparkRuntime(Path(name) / "spark", slots=2)
        try:
            session = runtime.start()
            skuld_py.register(session)
            with Client(cluster.addresses, timeout_s=120) as client:
                taken = measure(session, client, options.rows, options.parts)
        finally:
            runtime.stop()
    table = Table("step", "seconds", "rows/s", title=f"{options.rows:,} rows, {os.cpu_count()} cores")
    for step, seconds in taken.items():
        table.add_row(step, f"{seconds:.1f}", f"{options.rows / seconds:,.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
