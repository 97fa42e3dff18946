"""How long a partition grants nothing when its leader is killed: kill -9 of each node in turn, under load.

Every partition's leader dies at least once. The gap of a partition is the time from the kill to the first
claim granted from it by a later epoch. Afterwards all that was acknowledged must be found.

    scripts/bench failover [--session-ms N] [--partitions N]
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client, SkuldError
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.history import epoch_of
from skuld_py.model.ids import partition_of

ALLOWED_S = 1.0
"""What a partition may be without grants beyond the session's timeout."""
PATIENCE_S = 1.0
"""A worker whose node is killed under its claim waits so long; a claim is not sent twice, for it may have been
granted. With the usual patience the workers' waiting would be measured."""
BACKLOG = 500
"""Tasks that wait at most. A node grants from what it leads before it asks others: with a long backlog there, the
first claim from a partition's new leader would come late for want of asking, not for want of a leader."""


class Load:
    """Clients that enqueue single tasks, so that all partitions have some, and claim and complete them."""

    def __init__(self, addresses: list[str], partitions: int) -> None:
        self.acked: list[bytes] = []
        self.grants: dict[int, list[tuple[float, int]]] = {partition: [] for partition in range(partitions)}
        self._addresses = addresses
        self._is_over = threading.Event()
        self._room = threading.Semaphore(BACKLOG)
        self._threads = [threading.Thread(target=self._enqueue) for _ in range(2)]
        self._threads += [threading.Thread(target=self._work) for _ in range(3)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._room.release(BACKLOG)
        for thread in self._threads:
            thread.join()

    def _enqueue(self) -> None:
        with Client(self._addresses, timeout_s=10) as client:
            while not self._is_over.is_set():
                self._room.acquire()
                try:
                    self.acked.append(client.enqueue("load", b"x" * 100))
                except SkuldError:
                    continue

    def _work(self) -> None:
        with Client(self._addresses, timeout_s=PATIENCE_S) as client:
            while not self._is_over.is_set():
                try:
                    claims = client.claim("load", n=8, lease_s=2, wait_s=0.2)
                    now = time.monotonic()
                    for claim in claims:
                        partition = partition_of(claim.id, len(self.grants))
                        self.grants[partition].append((now, epoch_of(claim.token)))
                    client.complete_many(claims)
                    self._room.release(len(claims) or 1)
                except SkuldError:
                    continue

    def gap(self, partition: int, epoch: int, since: float) -> float | None:
        """Seconds from ``since`` to the first grant of a later epoch; None before there is one."""
        return min((at - since for at, of in self.grants[partition] if of > epoch and at > since), default=None)


def led_by(client: Client, address: str) -> dict[int, int]:
    """Epochs of the partitions that a node leads."""
    return {row.partition: row.epoch for row in client.status().partitions if row.leader == address}


def main() -> None:
    """Kill, measure, print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--session-ms", type=int, default=4_000)
    parser.add_argument("--partitions", type=int, default=8)
    options = parser.parse_args()
    table = Table("killed", "partitions it led", "longest gap, s", "allowed, s")
    killed: dict[int, None] = {}
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=3, partitions=options.partitions, replicas=3,
                         session_ms=options.session_ms) as cluster:
        wait_until_led(cluster.addresses)
        with Load(cluster.addresses, options.partitions) as load:
            turn = 0
            while len(killed) < options.partitions:
                index, turn = turn % 3, turn + 1
                living = [address for at, address in enumerate(cluster.addresses) if at != index]
                with Client(living, timeout_s=20) as client:
                    time.sleep(2)  # load on the cluster as it is now
                    led = led_by(client, cluster.addresses[index])
                    since = time.monotonic()
                    cluster.kill_node(index)
                    gaps = [wait_for(load, partition, epoch, since) for partition, epoch in led.items()]
                    killed.update(dict.fromkeys(led))
                    cluster.start_node(index)
                    wait_until_led(cluster.addresses)
                worst = max([worst, *gaps])
                table.add_row(cluster.addresses[index], str(len(led)), f"{max(gaps, default=0):.2f}",
                              f"{options.session_ms / 1000 + ALLOWED_S:.2f}")
        with Client(cluster.addresses, timeout_s=20) as client:
            found = sum(len(client.get_many(load.acked[at : at + 500])) for at in range(0, len(load.acked), 500))
    Console().print(table)
    Console().print(f"acknowledged {len(load.acked):,}, found afterwards {found:,}; longest gap {worst:.2f} s")


def wait_for(load: Load, partition: int, epoch: int, since: float) -> float:
    """The gap, once it has ended."""
    while (gap := load.gap(partition, epoch, since)) is None:
        if time.monotonic() - since > 60:
            raise SystemExit(f"partition {partition} granted nothing for a minute")
        time.sleep(0.01)
    return gap


if __name__ == "__main__":
    main()
