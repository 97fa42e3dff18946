"""How fast the archive drains what has ended, and what that costs the cluster beside it.

Three node processes and ZooKeeper on one machine, N=3, W=2, C=2, 100-byte payloads, batches of 500, 8 partitions.
One process lives whole lives: first alone, then until ``--tasks`` have ended; these are drained by one run of
``skuld archive``; then it lives beside another run, which drains what is left: as a drain does where nobody says
how, with ``--rate full``, which takes what it can get of two cores, and with a ``--rate`` of half the lives alone.
Before and after each of these it lives alone again, and these lives are what the others are compared with: a
machine's speed drifts, by a third within some minutes. Each is measured ``--rounds`` times, and the one in the
middle counts, for one alone is a tenth off, and the middle of three still a twentieth. The machine's load stands
beside the rates.

    scripts/bench archive [--seconds S] [--tasks N] [--rounds R]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import attrs
import psutil
from bench_throughput import live, measure, wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

BATCH = 500
KEEP_S = 2
LEAST_DRAIN, LEAST_BESIDE, MEMORY_MB_MAX = 0.8, 0.7, 400
SHARE = 0.5
"""Of the lives alone, for the drain with a rate."""


@attrs.frozen
class Beside:
    """Tasks a second: lives alone (before and after, in the mean), lives beside a drain, and what that drained."""

    how: str
    alone: float
    lives: float
    drained: float


class Drain:
    """A run of ``skuld archive``: what it said, from its first batch to its last, and the most memory it had."""

    def __init__(self, addresses: list[str], root: Path, *options: str) -> None:
        self.memory_mb, self.batches, self._before = 0.0, list[tuple[float, int]](), 0
        self.done: dict[str, Any] = {}
        command = [sys.executable, "-m", "skuld_py", "archive", str(root), "--json", *options, "--nodes"]
        self.process = subprocess.Popen([*command, ",".join(addresses)], stdout=subprocess.PIPE, text=True)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._listen, self._weigh)]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said["event"] == "batch":
                self.batches.append((time.monotonic(), self._before + said["deleted"]))
            elif said["event"] == "done":
                self.done = said
                self._before += said["deleted"]

    def _weigh(self) -> None:
        known = psutil.Process(self.process.pid)
        while self.process.poll() is None:
            try:
                self.memory_mb = max(self.memory_mb, known.memory_info().rss / 1e6)
            except psutil.Error:
                return
            time.sleep(0.2)

    def end(self) -> int:
        """Wait for it; gives its exit code."""
        code = self.process.wait()
        for thread in self._threads:
            thread.join()
        return code

    @property
    def rate(self) -> float:
        """Tasks a second, between the first batch and the last."""
        if not self.batches:
            return 0.0
        (first_s, first), (last_s, last) = self.batches[0], self.batches[-1]
        return (last - first) / max(1e-3, last_s - first_s)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skuld-bench-") as name, \
            LocalCluster(Path(name) / "cluster", nodes=3, partitions=8, replicas=3,
                         node_options=("--retention", f"{KEEP_S}s", "--archive")) as cluster:
        wait_until_led(cluster.addresses)
        root = Path(name) / "archive"
        alone = measure(cluster.addresses, "life cycle", "alone", BATCH, options.seconds, 1)
        with Client(cluster.addresses, timeout_s=30) as client:
            while (ended := client.count()) < options.tasks:
                live(client, "load", BATCH, time.monotonic() + min(5.0, (options.tasks - ended) / alone + 0.1))
            time.sleep(2 * KEEP_S)
            drained = Drain(cluster.addresses, root)
            code = drained.end()
            left = client.count(states=("completed", "cancelled", "dead"))
        runs = beside(cluster.addresses, root, options.seconds, options.rounds, round(alone * SHARE))
    show(alone, drained, code, left, runs)


def beside(addresses: list[str], root: Path, seconds: float, rounds: int, rate: int) -> list[Beside]:
    """Lives beside drains of each kind, in turns, and alone before and after each."""
    kinds: dict[str, tuple[str, ...]] = {"a drain": (), "one with a rate": ("--rate", str(rate)),
                                         "one with --rate full": ("--rate", "full")}
    runs, before = list[Beside](), measure(addresses, "life cycle", "alone", BATCH, seconds, 1)
    for _ in range(rounds):
        for how, bound in kinds.items():
            drain = Drain(addresses, root, "--every", "1s", *bound)  # the lives before have left it something
            lives = measure(addresses, "life cycle", "beside", BATCH, seconds, 1)
            drain.process.terminate()
            drain.end()
            after = measure(addresses, "life cycle", "alone", BATCH, seconds, 1)
            runs.append(Beside(how, statistics.fmean((before, after)), lives, drain.rate))
            before = after
        kinds.pop("one with --rate full", None)  # nothing is promised of it: once is enough
    return runs


def show(alone: float, drained: Drain, code: int, left: int, runs: list[Beside]) -> None:
    """One table, and what was promised: of what was measured several times, in the middle."""
    table = Table("", "tasks/s", "lives alone", "ratio")
    rows = [("drained alone", drained.rate, alone)]
    for run in runs:
        rows += [(f"lives beside {run.how}", run.lives, run.alone), ("  and drained", run.drained, run.alone)]
    for what, rate, compared in rows:
        table.add_row(what, f"{rate:,.0f}", f"{compared:,.0f}", f"{rate / compared:.2f}")
    console = Console()
    console.print(table)
    last = drained.done
    console.print(f"drained {last['deleted']:,} tasks in {last['batches']} batches, {left:,} left, exit code"
                  f" {code}; the archiver had {drained.memory_mb:.0f} MB at most; load"
                  f" {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
    plain, with_rate = ([run for run in runs if run.how == how] for how in ("a drain", "one with a rate"))
    kept_of = [statistics.median(run.lives / run.alone for run in some) for some in (plain, with_rate)]
    ahead = statistics.median(run.drained / run.lives for run in plain)
    console.print(f"in the middle: beside a drain {kept_of[0]:.2f}, which drained {ahead:.2f} times what ended;"
                  f" beside one with a rate {kept_of[1]:.2f}")
    kept = {f"drain >= {LEAST_DRAIN}": drained.rate >= LEAST_DRAIN * alone,
            f"lives beside it >= {LEAST_BESIDE}": kept_of[0] >= LEAST_BESIDE,
            "it keeps up": ahead >= 1, f"with a rate >= {LEAST_BESIDE}": kept_of[1] >= LEAST_BESIDE,
            f"<= {MEMORY_MB_MAX} MB": drained.memory_mb <= MEMORY_MB_MAX, "nothing left": left == 0 and code == 0}
    console.print("promised: " + ", ".join(f"{what}: {'kept' if is_so else 'NOT KEPT'}"
                                           for what, is_so in kept.items()))


if __name__ == "__main__":
    main()
