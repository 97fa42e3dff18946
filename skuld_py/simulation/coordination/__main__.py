"""The coordination log under faults drawn from a seed: many seeds, or one with its story.

  python -m skuld_py.simulation.coordination --seeds 2000     play seeds 0..1999
  python -m skuld_py.simulation.coordination --seed 7 --trace play one and print everything that happens

A campaign of 500 seeds and more also fails when something it should meet was never met: then the generator is at
fault, not the cluster.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from skuld_py.simulation.coordination import talking
from skuld_py.simulation.coordination.faults import KINDS
from skuld_py.simulation.coordination.play import Verdict, run

FAILURE = 1
PROGRESS_SECONDS = 5.0
SEEDS_FOR_PROBES = 500
JUMPS, COLLECTIONS = "member jumps over what was collected", "applied gc"
REQUIRED = (*(f"fault {kind}" for kind in KINDS), JUMPS, COLLECTIONS, "entry repeated", "entry late",
            "entry failed", "entry refused", "entry unchanged", "joiner told no", "append uncertain, applied",
            "append uncertain, not applied", "append uncertain, applied late",
            "pulse hidden by a server that is behind", "entries hidden by a server that is behind",
            "wish of a lost session carried out",
            "observer gone in the middle of a join", "pulse of a former life removed",
            "applied submit-workflow", "applied exhaust-input", "applied seal-output", "workflow completed",
            "workflow killed", "entry about a workflow again", "entry about a workflow late",
            "command for a member to write")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="python -m skuld_py.simulation.coordination", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to play (default 100)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--mix", choices=[*talking.MIXES], help="what members do beside the log")
    parser.add_argument("--trace", action="store_true", help="print every line of its story")
    found = parser.parse_args(argv)
    if found.seeds < 1 or found.first < 0:
        parser.error("--seeds is at least 1, --first at least 0")
    if found.trace and found.seed is None:
        parser.error("--trace is about one run: add --seed")
    return found


def main(argv: list[str] | None = None) -> int:
    """Play what was asked for; the exit code says whether all of it passed."""
    asked = arguments(argv)
    play = run if asked.mix is None else partial(talking.run, mix=asked.mix)
    if asked.seed is not None:
        verdict = play(asked.seed, listener=print if asked.trace else None)
        report(verdict, asked.mix)
        return 0 if verdict.passed else FAILURE
    return play_many(asked, play)


def report(verdict: Verdict, mix: str | None = None) -> None:
    """One run; all that is needed to understand a failure."""
    print(f"seed {verdict.seed}: {'passed' if verdict.passed else 'FAILED'}  {verdict.options.summary()}")
    if verdict.passed:
        print(f"  trace {verdict.hash}, {verdict.stats['entries']} entries, {verdict.stats['lives']} lives,"
              f" {verdict.stats[JUMPS]} jumps, {verdict.stats[COLLECTIONS]} collections")
        return
    print("\n".join(["last lines:", *verdict.last_lines]))
    for sentence in verdict.violations:
        print(f"VIOLATED: {sentence}")
    again = f"--seed {verdict.seed} --trace" + (f" --mix {mix}" if mix else "")
    print(f"again: python -m skuld_py.simulation.coordination {again}", flush=True)


def play_many(asked: argparse.Namespace, play: Callable[[int], Verdict]) -> int:
    """A campaign over many seeds."""
    begun = spoken = time.monotonic()
    stats: Counter[str] = Counter()
    failed: list[int] = []
    for seed in range(asked.first, asked.first + asked.seeds):
        verdict = play(seed)
        stats += verdict.stats
        stats["runs"] += 1
        if not verdict.passed:
            failed.append(seed)
            report(verdict, asked.mix)
            if not asked.keep_going:
                break
        if time.monotonic() - spoken > PROGRESS_SECONDS:
            spoken = time.monotonic()
            print(progress(stats, spoken - begun), flush=True)
    print(progress(stats, time.monotonic() - begun))
    return summarise(stats, failed)


def progress(stats: Counter[str], seconds: float) -> str:
    """How far and how fast."""
    return (f"{stats['runs']} runs in {seconds:.0f} s, {stats['entries']:,} entries, {stats['plays']:,} plays,"
            f" {stats['lives']:,} lives, {stats[JUMPS]:,} jumps, {stats[COLLECTIONS]:,} collections")


def summarise(stats: Counter[str], failed: list[int]) -> int:
    """What was met, and the exit code."""
    print(", ".join(f"{what} {count:,}" for what, count in sorted(stats.items())))
    missing = [what for what in REQUIRED if not stats[what]] if stats["runs"] >= SEEDS_FOR_PROBES else []
    if missing:
        print(f"NEVER MET: {', '.join(missing)}")
    print(f"failed: {', '.join(map(str, failed))}" if failed else
          "nothing broken, but some of it never met" if missing else "all passed")
    return FAILURE if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
