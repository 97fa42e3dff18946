"""Clusters under faults and under operators: many seeds, or one with its story.

  python -m skuld_py.simulation.operators --seeds 2000        play seeds 0..1999 on two processes
  python -m skuld_py.simulation.operators --seed 7 --trace    play one and print everything that happens

A campaign of 200 seeds and more also fails when operators never did one of the things that they should.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context

from skuld_py.simulation.campaign import Verdict
from skuld_py.simulation.operators.campaign import run
from skuld_py.simulation.operators.met import unmet

FAILURE = 1
PROGRESS_SECONDS = 10.0
SEEDS_FOR_ALL = 200


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="python -m skuld_py.simulation.operators", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to play (default 100)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use (default 2)")
    parser.add_argument("--seconds", type=int, default=10, help="virtual seconds of faults (default 10)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--trace", action="store_true", help="print every line of its story")
    found = parser.parse_args(argv)
    if min(found.seeds, found.seconds, found.jobs) < 1 or found.first < 0:
        parser.error("--seeds, --seconds and --jobs are at least 1, --first at least 0")
    if found.trace and found.seed is None:
        parser.error("--trace is about one run: add --seed")
    return found


def main(argv: list[str] | None = None) -> int:
    """Play what was asked for; the exit code says whether all of it passed."""
    asked = arguments(argv)
    if asked.seed is None:
        return play_many(asked)
    verdict = run(asked.seed, seconds=asked.seconds, listener=print if asked.trace else None)
    report(verdict, asked.seconds)
    print(table(verdict.stats))
    return 0 if verdict.passed else FAILURE


def report(verdict: Verdict, seconds: int) -> None:
    """One run; all that is needed to understand a failure."""
    print(f"seed {verdict.seed}: {'passed' if verdict.passed else 'FAILED'}  {verdict.options.summary()}")
    if verdict.passed:
        return
    print("\n".join(["last lines:", *verdict.last_lines, "faults:", *map(str, verdict.faults)]))
    for invariant, evidence in verdict.violated.items():
        print("\n".join([f"VIOLATED: {invariant}", *(f"  {line}" for line in evidence)]))
    print(f"again: python -m skuld_py.simulation.operators --seed {verdict.seed} --seconds {seconds} --trace",
          flush=True)


def _verdicts(asked: argparse.Namespace) -> Iterator[Verdict]:
    seeds, play = range(asked.first, asked.first + asked.seeds), partial(run, seconds=asked.seconds)
    if asked.jobs == 1:
        yield from map(play, seeds)
        return
    with get_context("spawn").Pool(asked.jobs) as pool:
        yield from pool.imap(play, seeds, chunksize=2)


def play_many(asked: argparse.Namespace) -> int:
    """A campaign over many seeds."""
    begun = spoken = time.monotonic()
    stats: Counter[str] = Counter()
    failed: list[int] = []
    for verdict in _verdicts(asked):
        stats += verdict.stats
        stats["runs"] += 1
        if not verdict.passed:
            failed.append(verdict.seed)
            report(verdict, asked.seconds)
            if not asked.keep_going:
                break
        if time.monotonic() - spoken > PROGRESS_SECONDS:
            spoken = time.monotonic()
            print(f"{stats['runs']} runs in {spoken - begun:.0f} s, {stats['claims']:,} claims,"
                  f" {stats['elections']:,} revisions, {len(failed)} failed", flush=True)
    print(f"{stats['runs']} runs in {time.monotonic() - begun:.0f} s")
    print(table(stats))
    missing = unmet(stats) if stats["runs"] >= SEEDS_FOR_ALL else []
    if missing:
        print(f"NEVER MET: {', '.join(missing)}")
    print(f"failed: {', '.join(map(str, failed))}" if failed else
          "no rule broken, but something never met" if missing else "all passed")
    return FAILURE if failed or missing else 0


def table(stats: Counter[str]) -> str:
    """What operators did, and what became of it."""
    found = sorted((what.removeprefix("operators "), count) for what, count in stats.items()
                   if what.startswith("operators "))
    return "\n".join(f"{count:>10,}  {what}" for what, count in found)


if __name__ == "__main__":
    sys.exit(main())
