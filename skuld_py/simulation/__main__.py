"""Clusters in one process under faults drawn from a seed: many seeds, one with its story, or a failure made small.

  python -m skuld_py.simulation --seeds 500           play seeds 0..499 on two processes
  python -m skuld_py.simulation --profile amnesia     play seeds of the runs in which disks are lost all the time
  python -m skuld_py.simulation --seed 7 --trace      play one and print everything that happens
  python -m skuld_py.simulation --seed 7 --shrink     find the smallest run that breaks the same rule
  python -m skuld_py.simulation --small               try every single deviation from the small schedules
  python -m skuld_py.simulation --small veto:claim    of one of them only: what happens, and what may deviate
  python -m skuld_py.simulation --small veto:claim 7 --trace   play that deviation and print what happens
  python -m skuld_py.simulation --guided --minutes 60 go on with those deviations that led to something new

A seed decides everything: sizes, clocks, weather, faults, work. A failure is printed with the command that
plays it again. A campaign of 500 seeds and more also fails when one of the situations it should meet was
never met: then the generator is at fault, not the cluster.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from skuld_py.simulation import reduction as reductions
from skuld_py.simulation.campaign import TRACE_LINES, Verdict, run
from skuld_py.simulation.probes import KNOWN, REQUIRED, unmet
from skuld_py.simulation.profiles import PROFILES, seeds_of
from skuld_py.simulation.reduction import Reduction
from skuld_py.simulation.shrink import PLAYS_MAX, Outcome, Shrinker
from skuld_py.simulation.small import command as small

FAILURE, USAGE = 1, 2
PROGRESS_SECONDS = 5.0
SEARCHES = 50_000, 20, 20
"""Thresholds of Python's search for cycles: seldom, since a run makes millions of objects that go without it."""
SEEDS_FOR_PROBES = 500
"""A campaign of this many seeds should meet every required situation."""


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="python -m skuld_py.simulation", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    many = parser.add_argument_group("many seeds")
    many.add_argument("--seeds", type=int, default=100, help="how many seeds to play (default 100)")
    many.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    many.add_argument("--profile", choices=PROFILES, default="", help="only seeds that play this kind of run")
    many.add_argument("--jobs", type=int, default=2, help="processes to use (default 2)")
    many.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    many.add_argument("--probes", action="store_true", help="print how often each situation was met")
    one = parser.add_argument_group("one seed")
    one.add_argument("--seed", type=int, help="play this one alone")
    one.add_argument("--trace", action="store_true", help="print every line of the story")
    one.add_argument("--shrink", action="store_true", help="if it fails, make it small and print the command")
    less = parser.add_argument_group("less of one seed, as --shrink prints it")
    less.add_argument("--faults", type=reductions.parse_faults, metavar="3,7",
                      help="only the faults with these numbers; 'none' for no faults")
    less.add_argument("--simpler", type=reductions.parse_simpler, default=(), metavar="NAME,NAME",
                      help=f"any of: {', '.join(reductions.SIMPLIFICATIONS)}")
    less.add_argument("--until", type=int, default=0, metavar="MS", help="heal already at this virtual time")
    less.add_argument("--mute", type=reductions.parse_muted, default=(), metavar="c0:3-17",
                      help="clients keep these requests to themselves")
    _add_small(parser)
    parser.add_argument("--seconds", type=int, default=20, help="virtual seconds of faults (default 20)")
    found = parser.parse_args(argv)
    if found.small is not None or found.guided:
        try:
            found.scripts = small.scripts_of(found.small or ())
        except ValueError as problem:
            parser.error(str(problem))
    elif found.seed is None and (found.trace or found.shrink or _reduction(found) != reductions.WHOLE):
        parser.error("--trace, --shrink, --faults, --simpler, --until and --mute are about one run: add --seed")
    if min(found.seeds, found.seconds, found.jobs) < 1 or min(found.first, found.until) < 0:
        parser.error("--seeds, --seconds and --jobs are at least 1, --first and --until at least 0")
    return found


def _add_small(parser: argparse.ArgumentParser) -> None:
    less = parser.add_argument_group("small worlds: a fixed schedule, and named deviations from it")
    less.add_argument("--small", nargs="*", metavar="SCENARIO:FOCUS",
                      help="try every single deviation, of each pair of a scenario and what may deviate in it or"
                      " of those named; with numbers behind a pair, play that script")
    less.add_argument("--guided", action="store_true", help="search on from deviations that met something new")
    less.add_argument("--minutes", type=float, default=10, help="how long to search (default 10)")


def _reduction(asked: argparse.Namespace) -> Reduction:
    return Reduction(asked.faults, asked.simpler, asked.until, asked.mute)


def main(argv: list[str] | None = None) -> int:
    """Play what was asked for; the exit code says whether all of it passed."""
    asked = arguments(argv)
    if asked.guided:
        return small.hunt(asked.scripts, asked.jobs, asked.minutes, asked.first)
    if asked.small is not None:
        return small.play_all(asked.scripts, asked.jobs, asked.keep_going, print if asked.trace else None)
    if asked.seed is not None:
        return play_one(asked)
    print(f"first seed {asked.first}, {asked.seeds} seeds of {asked.seconds} virtual seconds,"
          f" {asked.jobs} processes", flush=True)
    return play_many(asked)


# -- one seed ----------------------------------------------------------------------------------------


def play_one(asked: argparse.Namespace) -> int:
    """A seed with its story, or made small."""
    print(f"seed {asked.seed}")
    reduction = _reduction(asked)
    if asked.shrink:
        reduction = shrink(asked.seed, asked.seconds, reduction)
    verdict = run(asked.seed, seconds=asked.seconds, reduction=reduction,
                  listener=print if asked.trace else None)
    report(verdict, asked.seconds)
    if asked.probes:
        print(table(verdict.stats))
    return 0 if verdict.passed else FAILURE


def shrink(seed: int, seconds: int, begin: Reduction) -> Reduction:
    """The smallest run found that still breaks a rule."""
    def play(reduction: Reduction) -> Outcome:
        verdict = run(seed, seconds=seconds, reduction=reduction)
        return Outcome(frozenset(verdict.violated), tuple(fault.number for fault in verdict.faults),
                       verdict.requests, seconds * 1_000)
    search = Shrinker(play, begin)
    found = search.shrink()
    print(f"shrunk in {search.plays} runs of at most {PLAYS_MAX}", flush=True)
    return found


def command(seed: int, seconds: int, reduction: Reduction) -> str:
    """What to type to play it again."""
    words = ["python -m skuld_py.simulation", "--seed", str(seed), "--seconds", str(seconds), *reduction.words()]
    return " ".join(words)


def report(verdict: Verdict, seconds: int) -> None:
    """One run; all that is needed to understand a failure."""
    print(f"seed {verdict.seed}: {'passed' if verdict.passed else 'FAILED'}  {verdict.options.summary()}")
    if verdict.passed:
        print(f"  trace {verdict.trace_hash}, {verdict.stats['actions']:,} events,"
              f" {verdict.stats['claims']} claims, {verdict.stats['elections']} elections")
        return
    print("\n".join([f"last {TRACE_LINES} lines:", *verdict.last_lines, "faults:"]))
    for fault in verdict.faults:
        print(f"  {fault}")
    for invariant, evidence in verdict.violated.items():
        print(f"VIOLATED: {invariant}")
        for line in evidence:
            print(f"  {line}")
    again = command(verdict.seed, seconds, verdict.reduction)
    print(f"again: {again} --trace")
    print(f"smaller: {again} --shrink", flush=True)


# -- many seeds --------------------------------------------------------------------------------------


def play_many(asked: argparse.Namespace) -> int:
    """A campaign over many seeds."""
    begun = spoken = time.monotonic()
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
    return summarise(stats, failures, asked)


def verdicts(asked: argparse.Namespace) -> Iterator[Verdict]:
    """Verdicts in the order of the seeds, whichever process computes them."""
    seeds = seeds_of(asked.profile, asked.first, asked.seeds)
    play = partial(run, seconds=asked.seconds)
    if asked.jobs > 1:
        with get_context("spawn").Pool(asked.jobs, gc.set_threshold, SEARCHES) as pool:
            yield from pool.imap(play, seeds, chunksize=4)
        return
    usual = gc.get_threshold()
    gc.set_threshold(*SEARCHES)
    try:
        yield from map(play, seeds)
    finally:
        gc.set_threshold(*usual)


def progress(stats: Counter[str], seconds: float) -> str:
    """How far and how fast."""
    virtual = stats["virtual ms"] / 1_000
    return (f"{stats['runs']} runs in {seconds:.0f} s, {stats['runs'] / seconds * 3600:,.0f} seeds/hour,"
            f" {stats['actions'] / seconds:,.0f} events/s, virtual:real {virtual / seconds:,.0f},"
            f" {stats['claims']:,} claims, {stats['elections']:,} elections,"
            f" {met(stats)} of {len(REQUIRED)} probes, {len(_group(stats, 'pair')):,} pairs,"
            f" {stats['vacuous']} vacuous")


def met(stats: Counter[str]) -> int:
    """How many of the required situations were met."""
    return len(REQUIRED) - len(unmet(_probes(stats)))


def _probes(stats: Counter[str]) -> dict[str, int]:
    return _group(stats, "probe")


def _group(stats: Counter[str], group: str) -> dict[str, int]:
    return {what.removeprefix(group + " "): count for what, count in stats.items()
            if what.startswith(group + " ")}


def table(stats: Counter[str]) -> str:
    """Situations, the rarest first."""
    counts = _probes(stats)
    rows = sorted((counts.get(name, 0), name) for name in KNOWN)
    return "\n".join(f"{count:>10,}  {name}{'' if name in REQUIRED else ' (optional)'}" for count, name in rows)


def summarise(stats: Counter[str], failures: Iterable[int], asked: argparse.Namespace) -> int:
    """What was reached, so that a fault or a situation that never happens is seen; gives the exit code."""
    for group in ("fault", "network", "registry"):
        found = sorted(_group(stats, group).items())
        print(f"{group}: " + ", ".join(f"{what} {count:,}" for what, count in found))
    missing, failed = unmet(_probes(stats)), list(failures)
    must_meet = stats["runs"] >= SEEDS_FOR_PROBES
    if asked.probes or (missing and must_meet):
        print("situations met:")
        print(table(stats))
    if missing and must_meet:
        print(f"NEVER MET: {', '.join(missing)}")
    for seed in failed:
        print(f"again: {command(seed, asked.seconds, reductions.WHOLE)}")
    print(f"failed: {', '.join(map(str, failed))}" if failed else
          "no rule broken, but situations never met" if missing and must_meet else "all passed")
    return FAILURE if failed or (missing and must_meet) else 0


if __name__ == "__main__":
    sys.exit(main())
