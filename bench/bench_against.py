"""Whether this checkout is slower than another commit: both clusters live at once and work in turns.

One run after the other tells little: a machine's moods last minutes and move a run's rates by 15 %. So each
side keeps a cluster of its own (three nodes, ZooKeeper, N=3, W=2, C=2, 100-byte payloads) and gets slices of
the same work, A B B A, each of a second or two; what is compared is the rates of neighbouring slices. The one
that waits costs the other a percent or two, both alike. Which node leads what is chance and stays, so it is
done again with other clusters. Beside the rates, the processor time a task costs the nodes and the clients,
which says on which side to look.

Two slices more are of what a new user meets: ``single``, one client that enqueues one task after the other, of
which the median time counts, in many short slices, for a machine with other work may change its mood within a
second; and ``idle``, in which nothing is asked for, and the processor time of the nodes
counts (beside them, the microseconds of a second). Both are given as rates, a second by the median and a second by
the processor time of a second, so that more is better everywhere.

The other commit runs in this checkout's environment, so its dependencies must do for both.

With ``--keys`` this checkout's cluster has keys, and COMMIT's has none: what sealing costs is seen with HEAD. Then
lives may be 8 % slower and a single enqueue may take 0.2 ms more, and the exit status says whether they are.

    scripts/bench against COMMIT [--keys] [--verbs V,V] [--clusters N] [--rounds R] [--clients K]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing as mp
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from bench_throughput import PAYLOAD, wait_until_led
from rich.console import Console
from rich.progress import track
from rich.table import Table

import skuld_py
from skuld_py import Claim, Client
from skuld_py.embedded.local import LocalCluster

HERE = Path(__file__).resolve().parents[1]
SPAWN = mp.get_context("spawn")
NODES = 3
BATCH = 500
BATCHES = {"enqueue": 60, "claim": 50, "complete": 50, "live": 40}
"""Batches of a client in one slice. Fewer are claimed than enqueued, so that no client finds the queue empty."""
SINGLES, SINGLE_SLICES, IDLE_S = 15, 10, 3
"""Tasks of one slice; slices of a round; seconds."""
VERBS = (*BATCHES, "single", "idle")
SEALED_LIVES, SEALED_SINGLE_MS = 0.92, 0.2
"""With keys: the ratio of lives at least, and how much longer a single enqueue may take."""


@attrs.frozen
class Slice:
    """What one slice of a verb gave: tasks a second, and processor time in microseconds a task."""

    rate: float
    node_us: float
    client_us: float


# -- one side: runs with the checkout's own code -------------------------------------------------


def work(addresses: list[str], number: int, pipe: Any, key: Path | None) -> None:
    """One client process: does the slices that it is sent until it is sent none."""
    keyed: dict[str, Any] = {} if key is None else {"key": key}
    with Client(addresses, timeout_s=60, **keyed) as client:
        client.count(f"q{number}")
        held: list[list[Claim]] = []
        while verb := pipe.recv():
            start, cpu = time.monotonic(), time.process_time()
            if verb == "single":
                done, taken = do_singles(client) if not number else (0, 1.0)
            else:
                done = do_slice(client, verb, number, held)
                taken = time.monotonic() - start
            pipe.send((done, taken, time.process_time() - cpu))


def do_singles(client: Client) -> tuple[int, float]:
    """How many tasks, and how long they would have taken, had each taken the median of them."""
    took: list[float] = []
    for _ in range(SINGLES):
        start = time.monotonic()
        client.enqueue("single", PAYLOAD)
        took.append(time.monotonic() - start)
    return SINGLES, SINGLES * statistics.median(took)


def do_slice(client: Client, verb: str, number: int, held: list[list[Claim]]) -> int:
    """The batches of one slice; ``held`` goes from claiming to completing. Gives how many tasks."""
    done = 0
    for _ in range(BATCHES[verb]):
        if verb in ("enqueue", "live"):
            done += len(client.enqueue_many(f"{verb}-{number % 2}", [PAYLOAD] * BATCH))
        if verb in ("claim", "live"):
            queue = f"enqueue-{number % 2}" if verb == "claim" else f"live-{number % 2}"
            held.append(client.claim(queue, n=BATCH, lease_s=600))
            done += len(held[-1]) if verb == "claim" else 0
        if verb in ("complete", "live") and held and (claims := held.pop()):
            client.complete_many(claims)
            done += len(claims) if verb == "complete" else 0
    return done


def serve(clients: int, *, is_keyed: bool) -> None:
    """Start a cluster and its clients, do the slices that are named on standard input, print what each gave."""
    # An older commit knows no keys, and is not told of them.
    keyed: dict[str, Any] = {"is_keyed": True} if is_keyed else {}
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name), nodes=NODES, partitions=8, replicas=3, **keyed) as cluster:
        key = cluster.key if is_keyed else None
        wait_until_led(cluster.addresses, key=key) if is_keyed else wait_until_led(cluster.addresses)
        pipes, workers = [], []
        for number in range(clients):
            pipe, theirs = SPAWN.Pipe()
            worker = SPAWN.Process(target=work, args=(cluster.addresses, number, theirs, key), daemon=True)
            worker.start()
            pipes.append(pipe)
            workers.append(worker)
        print(Path(skuld_py.__file__).parent.parent, flush=True)
        for verb in map(str.strip, sys.stdin):
            before = cpu_of_nodes(cluster)
            if verb == "idle":
                time.sleep(IDLE_S)
                used = cpu_of_nodes(cluster) - before
                print(IDLE_S / used, 1e6 * used / IDLE_S, 0, flush=True)
                continue
            for pipe in pipes:
                pipe.send(verb)
            rows = [pipe.recv() for pipe in pipes]
            tasks = sum(done for done, _, _ in rows) or 1
            print(sum(done / taken for done, taken, _ in rows),
                  1e6 * (cpu_of_nodes(cluster) - before) / tasks,
                  1e6 * sum(cpu for _, _, cpu in rows) / tasks, flush=True)
        for pipe, worker in zip(pipes, workers, strict=True):
            pipe.send("")
            worker.join()


def cpu_of_nodes(cluster: LocalCluster) -> float:
    """Processor time that the nodes have taken so far, in seconds."""
    taken = 0
    for index in range(NODES):
        for path in Path(f"/proc/{cluster.node_process_id(index)}/task").glob("*/schedstat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                taken += int(path.read_text().split()[0])
    return taken / 1e9


# -- both sides ----------------------------------------------------------------------------------


class Side:
    """A cluster of one checkout in processes of its own."""

    def __init__(self, checkout: Path, clients: int, *, is_keyed: bool) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--clients", str(clients), *["--keys"] * is_keyed, "-"],
            cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._checkout = checkout

    def wait(self) -> None:
        """Return once its cluster serves."""
        if (said := self._read()) != str(self._checkout):
            raise SystemExit(f"what was to run the code in {self._checkout} runs that in {said}")

    def do(self, verb: str) -> Slice:
        """One slice."""
        assert self._process.stdin is not None
        self._process.stdin.write(verb + "\n")
        self._process.stdin.flush()
        return Slice(*map(float, self._read().split()))

    def close(self) -> None:
        """End the cluster and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the cluster of {self._checkout} has ended, see above")
        return line.strip()


@contextlib.contextmanager
def checkout_of(commit: str) -> Iterator[Path]:
    """The files of a commit in a directory of their own."""
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name:
        files = subprocess.run(["git", "archive", commit], cwd=HERE, capture_output=True, check=False)
        if files.returncode:
            raise SystemExit(f"COMMIT: git knows no {commit!r}: {files.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", name], input=files.stdout, check=True)
        yield Path(name).resolve()


Pair = tuple[Slice, Slice]
"""The other commit's slice and ours, one after the other."""
Round = dict[str, list[Pair]]
"""What each verb gave."""


def compare(checkouts: tuple[Path, Path], verbs: Sequence[str], clients: int, rounds: int, *, is_keyed: bool
            ) -> Iterator[Round]:
    """Slices of each verb in turns, on clusters of their own; the first round warms up and is not given."""
    there, here = checkouts
    sides = [Side(there, clients, is_keyed=False), Side(here, clients, is_keyed=is_keyed)]
    try:
        for side in sides:
            side.wait()
        for number in range(rounds + 1):
            found = {verb: [pair_of(sides, verb, is_ours_first=(number + each) % 2 == 1)
                            for each in range(SINGLE_SLICES if verb == "single" else 1)] for verb in verbs}
            if number:
                yield found
    finally:
        for side in sides:
            side.close()


def pair_of(sides: Sequence[Side], verb: str, *, is_ours_first: bool) -> Pair:
    """A slice of each side."""
    if is_ours_first:
        ours = sides[1].do(verb)
        return sides[0].do(verb), ours
    return sides[0].do(verb), sides[1].do(verb)


def show(commit: str, clusters: Sequence[Sequence[Round]]) -> bool:
    """Print the table of the rounds of several pairs of clusters; whether no verb is slower by more than chance. A
    cluster counts as one measurement, for what is chance in it stays."""
    console = Console()
    table = Table("verb", "there/s", "here/s", "ratio", "nodes", "clients",
                  title=f"here against {commit}: tasks a second, in turns; +- two standard errors over"
                  f" {len(clusters)} pairs of clusters; microseconds of processor time a task")
    slower: list[str] = []
    for verb in clusters[0][0]:
        each_cluster = [[pair for row in rounds for pair in row[verb]] for rounds in clusters]
        pairs = [pair for cluster in each_cluster for pair in cluster]
        ratios = [statistics.mean(ours.rate / theirs.rate for theirs, ours in cluster) for cluster in each_cluster]
        mean, error = statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
        if mean + 2 * error < 1:
            slower.append(verb)
        old, new = (Slice(*(statistics.mean(getattr(pair[side], each.name) for pair in pairs)
                            for each in attrs.fields(Slice))) for side in (0, 1))
        table.add_row(verb, f"{old.rate:,.0f}", f"{new.rate:,.0f}", f"{mean:.3f} +- {2 * error:.3f}",
                      f"{old.node_us:.1f} -> {new.node_us:.1f}", f"{old.client_us:.1f} -> {new.client_us:.1f}")
    console.print(table)
    console.print(f"slower than {commit} by more than chance: {', '.join(slower) or 'nothing'}; wanted: nothing")
    return not slower


def is_sealing_cheap(clusters: Sequence[Sequence[Round]]) -> bool:
    """Print what keys cost; whether it is within the bounds."""
    rows = [row for rounds in clusters for row in rounds]
    lives = statistics.mean(ours.rate / theirs.rate for row in rows for theirs, ours in row["live"])
    each_ms = [1000 / ours.rate - 1000 / theirs.rate for row in rows for theirs, ours in row["single"]]
    single_ms = statistics.median(each_ms)
    error_ms = statistics.stdev(each_ms) / len(each_ms) ** 0.5
    Console().print(f"with keys: lives {100 * (1 - lives):.1f} % slower (wanted: at most"
                    f" {100 * (1 - SEALED_LIVES):.0f}), a single enqueue {single_ms:+.3f} ms +- {2 * error_ms:.3f}"
                    f" (at most {SEALED_SINGLE_MS:+.3f})")
    return lives >= SEALED_LIVES and single_ms <= SEALED_SINGLE_MS


def main() -> None:
    """Measure, print, and exit with 1 when this checkout is slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit", metavar="COMMIT", help="what to compare with: anything git knows")
    parser.add_argument("--clusters", type=int, default=6, help="pairs of clusters, one after the other")
    parser.add_argument("--rounds", type=int, default=4, help="slices of each verb on each cluster")
    parser.add_argument("--clients", type=int, default=3, help="client processes of each side")
    parser.add_argument("--verbs", type=lambda text: text.split(","), default=VERBS, metavar="V,V",
                        help=f"only these of {', '.join(VERBS)}; a claim needs an enqueue before it, and so on")
    parser.add_argument("--keys", action="store_true", help="the cluster here has keys, the other one none")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.clients, is_keyed=options.keys)
        return
    if options.clusters < 2 or options.rounds < 1:
        parser.error("--clusters must be 2 at least, or nothing is known of chance, and --rounds 1")
    if wrong := [verb for verb in options.verbs if verb not in VERBS]:
        parser.error(f"--verbs: there is no {wrong[0]}; there are {', '.join(VERBS)}")
    if options.keys and not {"live", "single"} <= {*options.verbs}:
        parser.error("--verbs: with --keys, live and single are judged, and wanted")
    clusters: list[list[Round]] = []
    with checkout_of(options.commit) as checkout:
        for _ in range(options.clusters):
            found = compare((checkout, HERE), options.verbs, options.clients, options.rounds,
                            is_keyed=options.keys)
            clusters.append(list(track(found, "rounds", total=options.rounds, console=Console(stderr=True))))
    is_good = show(options.commit, clusters)
    if options.keys:
        is_good = is_sealing_cheap(clusters)
    if not is_good:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
