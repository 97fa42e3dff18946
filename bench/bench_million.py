"""A million tasks on three nodes: memory, restart, a wiped copy filled again, 1 % of differences made equal.

Each step uses the cluster the step before left, and something is enqueued, claimed and completed beside the
slow ones, since a node that fills or compares must go on serving. The files of the nodes are read from outside
to see when they hold equally many records, and at the end, record by record, when all are equal.

    scripts/bench million [--tasks N] [--percent P]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import lmdb
from bench_claim import node_memory
from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client, SkuldError
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)
BATCH = 1_000
REPLICATED = ("body", "history", "log")
console = Console()
MAP_BYTES = 64 << 30
"""As much address space as a node sets aside: a store may grow while it is read."""


class Beside:
    """A client that goes on working; ``taken`` are the milliseconds of its lives, ``failed`` what went wrong."""

    def __init__(self, addresses: list[str]) -> None:
        self.taken: list[float] = []
        self.failed = 0
        self._addresses = addresses
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _work(self) -> None:
        with Client(self._addresses, timeout_s=10) as client:
            while not self._is_over.is_set():
                start = time.perf_counter()
                try:
                    client.enqueue_many("beside", [PAYLOAD] * 10)
                    client.complete_many(client.claim("beside", n=10, lease_s=30, wait_s=1))
                    self.taken.append((time.perf_counter() - start) * 1000)
                except SkuldError:
                    self.failed += 1

    def said(self) -> str:
        """What it saw."""
        return f"{len(self.taken)} lives of 10 tasks beside it, p50 {statistics.median(self.taken):.1f} ms," \
               f" {self.failed} failed"


def entries(directory: Path) -> tuple[int, ...]:
    """How many records each replicated table of a node has, seen from outside."""
    with lmdb.open(str(directory), readonly=True, max_dbs=32, map_size=MAP_BYTES) as environment:
        databases = [environment.open_db(table.encode(), create=False) for table in REPLICATED]
        with environment.begin() as transaction:
            return tuple(transaction.stat(database)["entries"] for database in databases)


def differing(first: Path, second: Path) -> int:
    """Records that two nodes do not have equally, seen from outside."""
    count = 0
    with (lmdb.open(str(first), readonly=True, max_dbs=32, map_size=MAP_BYTES) as a,
          lmdb.open(str(second), readonly=True, max_dbs=32, map_size=MAP_BYTES) as b):
        for table in REPLICATED:
            ours, theirs = (environment.open_db(table.encode(), create=False) for environment in (a, b))
            with a.begin() as mine, b.begin() as other:
                left, right = dict(mine.cursor(ours)), dict(other.cursor(theirs))
                count += sum(1 for key in {**left, **right} if left.get(key) != right.get(key))
    return count


def until(is_so: Callable[[], bool], what: str, timeout_s: float = 600) -> float:
    """Seconds until it is so, looked at four times a second; says so now and then."""
    start, said = time.monotonic(), time.monotonic()
    while not is_so():
        now = time.monotonic()
        if now - start > timeout_s:
            raise SystemExit(f"{what}: not within {timeout_s:.0f} s")
        if now - said > 5:
            said = now
            console.print(f"  {what}: {now - start:.0f} s so far")
        time.sleep(0.25)
    return time.monotonic() - start


def fill(client: Client, count: int) -> float:
    """Enqueue; gives the seconds."""
    start = time.monotonic()
    for at in range(0, count, BATCH):
        client.enqueue_many("load", [PAYLOAD] * min(BATCH, count - at))
        if at and at % (BATCH * 100) == 0:
            console.print(f"  {at:,} enqueued, {at / (time.monotonic() - start):,.0f} a second")
    return time.monotonic() - start


def restart(cluster: LocalCluster, index: int) -> float:
    """Seconds from the start of a node's process to its first answer to a client that knows only it."""
    start = time.monotonic()
    cluster.start_node(index)
    with Client([cluster.addresses[index]], timeout_s=30) as client:
        client.enqueue("beside", PAYLOAD)
    return time.monotonic() - start


def main() -> None:
    """Go through the steps and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--percent", type=float, default=1.0)
    options = parser.parse_args()
    table = Table("step", "measured", "beside it")
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=3, partitions=8, replicas=3) as cluster:
        wait_until_led(cluster.addresses)
        stores = [cluster.node_log(index).with_suffix("") for index in range(3)]

        def are_level() -> bool:
            return len({entries(store) for store in stores}) == 1

        with Client(cluster.addresses, timeout_s=60) as client:
            took = fill(client, options.tasks)
            table.add_row(f"enqueue {options.tasks:,}", f"{options.tasks / took:,.0f} a second", "")
            table.add_row("largest node, MB resident", f"{max(node_memory()):.0f}", "")

            cluster.kill_node(2)
            table.add_row("restart, until it answers", f"{restart(cluster, 2):.2f} s", "")

            cluster.kill_node(2)
            fill(client, int(options.tasks * options.percent / 100))
            cluster.start_node(2)
            with Beside(cluster.addresses[:2]) as beside:
                took = until(are_level, f"{options.percent} % of differences")
            table.add_row(f"{options.percent} % of differences made equal", f"{took:.1f} s", beside.said())

            cluster.kill_node(2)
            cluster.wipe_node(2)
            cluster.start_node(2)
            wanted = entries(stores[0])[0]
            with Beside(cluster.addresses[:2]) as beside:
                took = until(lambda: not show_moves(client) and entries(stores[2])[0] >= wanted,
                             "the wiped copy fills")
            table.add_row("a wiped copy filled again", f"{took:.1f} s", beside.said())
            table.add_row("largest node, MB resident", f"{max(node_memory()):.0f}", "")
            took = until(lambda: not any(differing(stores[0], store) for store in stores[1:]),
                         "claims made while it filled arrive")
            table.add_row("then, until all records are equal", f"{took:.1f} s", "")
    console.print(table)


def show_moves(client: Client) -> bool:
    """Print what is on its way; gives whether anything is."""
    moves = client.status().moves
    if moves:
        console.print(f"  {moves[0].node}: {sum(row.rows for row in moves):,} rows so far,"
                      f" {len(moves)} partitions to go")
    return bool(moves)


if __name__ == "__main__":
    main()
