"""The simulation from the command line: many seeds, or one with its story.

``python -m skuld_py.simulation`` plays seeds one after another and says which fail, with all that
is needed to play them again. This module alone of the package knows real time and processes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from skuld_py.simulation.campaign import TRACE_LINES, Verdict, run

FAILURE, USAGE = 1, 2
PROGRESS_SECONDS = 5.0


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="python -m skuld_py.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to play (default 100)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--seconds", type=int, default=20, help="virtual seconds of faults (default 20)")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every line of the story")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use (default 2)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    found = parser.parse_args(argv)
    if found.trace and found.seed is None:
        parser.error("--trace needs --seed: the story of one run")
    if min(found.seeds, found.seconds, found.jobs) < 1 or found.first < 0:
        parser.error("--seeds, --seconds and --jobs are at least 1, --first at least 0")
    return found


def main(argv: list[str] | None = None) -> int:
    """Play what was asked for; the exit code says whether all of it passed."""
    asked = arguments(argv)
    if asked.seed is not None:
        print(f"seed {asked.seed}")
        verdict = run(asked.seed, seconds=asked.seconds, listener=print if asked.trace else None)
        report(verdict, asked.seconds)
        return 0 if verdict.passed else FAILURE
    print(f"first seed {asked.first}, {asked.seeds} seeds of {asked.seconds} virtual seconds,"
          f" {asked.jobs} processes", flush=True)
    return play(asked)


def play(asked: argparse.Namespace) -> int:
    """A campaign over many seeds."""
    begun, spoken = time.monotonic(), time.monotonic()
    stats: Counter[str] = Counter()
    failures: list[int] = []
    for count, verdict in enumerate(verdicts(asked), 1):
        stats += verdict.stats
        stats["vacuous"] += verdict.is_vacuous
        stats["runs"] = count
        if not verdict.passed:
            failures.append(verdict.seed)
            report(verdict, asked.seconds)
            if not asked.keep_going:
                break
        if time.monotonic() - spoken > PROGRESS_SECONDS:
            spoken = time.monotonic()
            print(progress(stats, spoken - begun), flush=True)
    print(progress(stats, time.monotonic() - begun))
    summarise(stats, failures)
    return FAILURE if failures else 0


def verdicts(asked: argparse.Namespace) -> Iterator[Verdict]:
    """Verdicts in the order of the seeds, whoever computes them."""
    seeds = range(asked.first, asked.first + asked.seeds)
    play_one = partial(run, seconds=asked.seconds)
    if asked.jobs == 1:
        yield from map(play_one, seeds)
        return
    with get_context("spawn").Pool(asked.jobs) as pool:
        yield from pool.imap(play_one, seeds, chunksize=4)


def progress(stats: Counter[str], seconds: float) -> str:
    """How far and how fast."""
    virtual = stats["virtual ms"] / 1_000
    return (f"{stats['runs']} runs in {seconds:.0f} s, {stats['actions'] / seconds:,.0f} events/s,"
            f" {virtual / seconds:,.0f} virtual seconds a second, {stats['claims']:,} claims,"
            f" {stats['elections']:,} elections, {stats['vacuous']} vacuous")


def summarise(stats: Counter[str], failures: Iterable[int]) -> None:
    """What was reached, so that a kind of fault that never happens is seen."""
    for group in ("fault", "network", "registry"):
        found = {what.removeprefix(group + " "): count for what, count in stats.items()
                 if what.startswith(group + " ")}
        print(f"{group}: " + ", ".join(f"{what} {count:,}" for what, count in sorted(found.items())))
    failed = list(failures)
    print(f"failed: {', '.join(map(str, failed))}" if failed else "all passed")


def report(verdict: Verdict, seconds: int) -> None:
    """One run; all that is needed to understand a failure."""
    print(f"seed {verdict.seed}: {'passed' if verdict.passed else 'FAILED'}  {verdict.options.summary()}")
    if verdict.passed:
        print(f"  trace {verdict.trace_hash}, {verdict.stats['actions']:,} events,"
              f" {verdict.stats['claims']} claims, {verdict.stats['elections']} elections")
        return
    print("\n".join([f"last {TRACE_LINES} lines:", *verdict.last_lines]))
    for invariant, evidence in verdict.violated.items():
        print(f"VIOLATED: {invariant}")
        for line in evidence:
            print(f"  {line}")
    again = f"python -m skuld_py.simulation --seed {verdict.seed} --seconds {seconds} --trace"
    print(f"again: {again}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
