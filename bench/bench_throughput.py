"""How many tasks a second live: enqueue, claim, complete, on three real nodes with fsync before ack.

Three node processes and ZooKeeper on one machine, N=3, W=2, C=2, 100-byte payloads. Client processes
work in batches of 1, 100 and 500; then the latency of single enqueues. In the same run the floor: three
bare processes that take the same bytes over ZeroMQ, put them into LMDB, commit with fsync and answer; a
client that waits for two of three; three such rounds are a life.

    scripts/bench throughput [--seconds S] [--clients K]
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import lmdb
import zmq
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

PAYLOAD = os.urandom(100)
SPAWN = mp.get_context("spawn")


def enqueue(client: Client, queue: str, batch: int, until: float) -> int:
    """Enqueue batches until the time is up."""
    done = 0
    while time.monotonic() < until:
        done += len(client.enqueue_many(queue, [PAYLOAD] * batch))
    return done


def claim(client: Client, queue: str, batch: int, until: float) -> int:
    """Claim batches until the time is up or nothing waits."""
    done = 0
    while time.monotonic() < until and (claims := client.claim(queue, n=batch, lease_s=600)):
        done += len(claims)
    return done


def complete(client: Client, queue: str, batch: int, until: float) -> int:
    """Complete what was claimed beforehand; the claims are made off the clock."""
    held = [client.claim(queue, n=batch, lease_s=600) for _ in range(200 if batch == 1 else 30)]
    _gate().wait()
    start, done = time.monotonic(), 0
    for claims in held:
        if claims:
            client.complete_many(claims)
            done += len(claims)
    _SCALE.append(time.monotonic() - start)
    return done


def live(client: Client, queue: str, batch: int, until: float) -> int:
    """Whole lives: enqueue a batch, claim a batch, complete it."""
    done = 0
    while time.monotonic() < until:
        client.enqueue_many(queue, [PAYLOAD] * batch)
        claims = client.claim(queue, n=batch, lease_s=600)
        client.complete_many(claims)
        done += len(claims)
    return done


VERBS: dict[str, Callable[[Client, str, int, float], int]] = {
    "enqueue": enqueue, "claim": claim, "complete": complete, "life cycle": live}
_SCALE: list[float] = []
_BARRIERS: list[Barrier] = []


def _gate() -> Barrier:
    return _BARRIERS[0]


def work(addresses: list[str], verb: str, queue: str, batch: int, seconds: float, barrier: Barrier,
         results: Any) -> None:
    """One client process."""
    _BARRIERS[:] = [barrier]
    with Client(addresses, timeout_s=30) as client:
        client.count(queue)
        barrier.wait()
        start = time.monotonic()
        done = VERBS[verb](client, queue, batch, start + seconds)
        results.put((done, _SCALE[0] if _SCALE else time.monotonic() - start))


def measure(addresses: list[str], verb: str, queue: str, batch: int, seconds: float, clients: int) -> float:
    """Tasks a second over all client processes."""
    barrier, results = SPAWN.Barrier(clients), SPAWN.Queue()
    args = (addresses, verb, queue, batch, seconds, barrier, results)
    workers = [SPAWN.Process(target=work, args=args) for _ in range(clients)]
    for worker in workers:
        worker.start()
    rows: list[tuple[int, float]] = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(done / taken for done, taken in rows)


def single_latency(addresses: list[str], count: int) -> tuple[float, float]:
    """p50 and p99 of one enqueue after another, in milliseconds."""
    with Client(addresses) as client:
        client.enqueue_many("latency", [PAYLOAD] * 100)
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            client.enqueue("latency", PAYLOAD)
            taken.append((time.perf_counter() - start) * 1000)
    cuts = statistics.quantiles(taken, n=100)
    return cuts[49], cuts[98]


# -- the floor -----------------------------------------------------------------------------------


def serve_floor(directory: str, ports: Any) -> None:
    """Take rows over ZeroMQ, store and fsync them, answer."""
    env = lmdb.open(directory, map_size=8 << 30)
    socket = zmq.Context().socket(zmq.ROUTER)
    ports.put(socket.bind_to_random_port("tcp://127.0.0.1"))
    serial = 0
    while True:
        sender, blob = socket.recv_multipart()
        if not blob:
            return
        with env.begin(write=True) as txn, txn.cursor() as cursor:
            size = len(PAYLOAD) + 20
            cursor.putmulti([((serial + at).to_bytes(20, "big"), blob[at : at + size])
                             for at in range(0, len(blob), size)])
        serial += len(blob) + 1
        socket.send_multipart([sender, b"ok"])


def floor(directory: Path, batch: int, seconds: float) -> float:
    """Lives a second of the bare floor: three rounds of one batch to three servers, two answers each."""
    ports = SPAWN.Queue()
    servers = [SPAWN.Process(target=serve_floor, args=(str(directory / f"floor-{batch}-{n}"), ports))
               for n in range(3)]
    for server in servers:
        server.start()
    context = zmq.Context()
    sockets = []
    for _ in servers:
        socket = context.socket(zmq.DEALER)
        socket.connect(f"tcp://127.0.0.1:{ports.get()}")
        sockets.append(socket)
    blob = (PAYLOAD + bytes(20)) * batch
    rounds, owed = 0, dict.fromkeys(sockets, 0)
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        for socket in sockets:
            socket.send(blob)
            owed[socket] += 1
        _await_two(sockets, owed)
        rounds += 1
    taken = time.monotonic() - start
    for socket in sockets:
        socket.send(b"")
        socket.close(linger=1000)
    for server in servers:
        server.join()
    context.term()
    return rounds * batch / taken / 3


def sync_latency(directory: Path) -> float:
    """p50 of one write and fdatasync after another, in milliseconds: what every commit waits for."""
    taken = []
    with (directory / "sync").open("wb", buffering=0) as file:
        for _ in range(100):
            file.seek(0)
            file.write(bytes(200_000))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def _await_two(sockets: list[Any], owed: dict[Any, int]) -> None:
    """Wait until at most one server still owes an answer."""
    poller = zmq.Poller()
    for socket in sockets:
        poller.register(socket, zmq.POLLIN)
    while sum(1 for count in owed.values() if count) > 1:
        for socket, _ in poller.poll():
            socket.recv()
            owed[socket] -= 1


# -- the table -----------------------------------------------------------------------------------


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--clients", type=int, default=6, help="client processes")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 100, 500], help="batch sizes")
    parser.add_argument("--verbs", nargs="+", default=list(VERBS), choices=list(VERBS), help="what to measure")
    options = parser.parse_args()
    console = Console()
    table = Table("batch", *(f"{verb}/s" for verb in options.verbs), "floor lives/s", "life / floor",
                  title=f"3 nodes, N=3 W=2 C=2, fsync before ack, {options.clients} clients, 100-byte payloads")
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name:
        directory = Path(name)
        with LocalCluster(directory, nodes=3, partitions=8, replicas=3) as cluster:
            wait_until_led(cluster.addresses)
            for batch in options.batches:
                rates = {}
                for verb in options.verbs:
                    queue = f"{verb.split()[0]}-{batch}" if verb == "life cycle" else f"verbs-{batch}"
                    rates[verb] = measure(cluster.addresses, verb, queue, batch, options.seconds,
                                          options.clients)
                bare = floor(directory, batch, options.seconds)
                table.add_row(str(batch), *(f"{rate:,.0f}" for rate in rates.values()), f"{bare:,.0f}",
                              f"{rates.get('life cycle', 0) / bare:.2f}")
            p50, p99 = single_latency(cluster.addresses, 2_000)
            synced = sync_latency(directory)
    console.print(table)
    console.print(f"fdatasync of 200 KB on this disk, nothing else running: p50 {synced:.2f} ms")
    console.print(f"single enqueue, one after another: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


def wait_until_led(addresses: list[str], timeout_s: float = 30, **options: Any) -> None:
    """Return once every partition has a leader. ``options`` are more of the client's."""
    with Client(addresses, timeout_s=timeout_s, **options) as client:
        deadline = time.monotonic() + timeout_s
        while not all(row.leader for row in client.status().partitions):
            if time.monotonic() > deadline:
                raise SystemExit("the cluster did not elect its leaders in time")
            client.claim("warm-up", wait_s=0.1)


if __name__ == "__main__":
    main()
