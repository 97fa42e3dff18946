"""Breaks the project's rules on purpose, one at a time, and sees whether anything notices.

Each mutant is a small change of the source (tests/mutants lists them by the rule they break). It is made in
a copy of the tree; then the tests named with it are run there, and seeds of the simulator, until something
fails. A mutant that survives is a hole in the tests: write the test, or show that the change breaks nothing
and replace it. A mutant whose text is no longer in the source stops the campaign.

Examples:
  scripts/mutants --list                      all mutants, and the rule that each breaks
  scripts/mutants --only vote-not-persisted   one of them; the name may be part of one
  scripts/mutants --seeds 30                  at most 30 seeds for each, for a quick look
  scripts/mutants --small                     those that the small world must find, there alone
  scripts/mutants --checkers                  mutants of the checkers themselves, against the planted stories

Exit code: 0 all killed, 1 some survived, 2 bad usage, 3 the campaign does not work, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import attrs

from mutants import clauses, small
from mutants.campaign import Campaign
from mutants.mutant import Mutant, Rotten
from mutants.workshop import TOP, Broken, Workshop


def _tables() -> Iterator[Sequence[Mutant]]:
    """Those of the files beside this one, in the order of their names."""
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        if not path.stem.startswith("test_"):
            yield getattr(importlib.import_module(f"mutants.{path.stem}"), "MUTANTS", ())


LISTED = tuple(chain.from_iterable(_tables()))
SURVIVED, USAGE, BROKEN, INTERRUPTED = 1, 2, 3, 130


def arguments(argv: list[str] | None, listed: Sequence[Mutant] = LISTED) -> argparse.Namespace:
    """What was asked for; bad usage ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the mutants and do nothing")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="mutants whose name contains this; may be given again")
    parser.add_argument("--checkers", action="store_true", help="mutate the checkers and the monitor instead")
    parser.add_argument("--small", action="store_true",
                        help="try what the small world must find there, and say how many schedules that took")
    parser.add_argument("--seeds", type=int, default=10_000, help="at most so many seeds for each mutant")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--no-tests", action="store_true",
                        help="leave the directed tests out: what does the simulator see by itself?")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once (default 2)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one program (default 900)")
    parser.add_argument("--top", type=Path, default=TOP, help=argparse.SUPPRESS)
    found = parser.parse_args(argv)
    if found.jobs < 1 or found.seeds < 0 or found.first < 0 or found.timeout <= 0:
        parser.error("--jobs is at least 1, --seeds and --first at least 0, --timeout more than 0")
    every = clauses.mutants(found.top) if found.checkers else listed
    found.mutants = [each for each in every if not found.only or any(part in each.name for part in found.only)]
    if found.no_tests:
        found.mutants = [attrs.evolve(each, tests=()) for each in found.mutants if each.seeds]
    if found.small:
        found.mutants = [attrs.evolve(each, tests=()) for each in found.mutants if each.name in small.PAIRS]
    if not found.mutants:
        parser.error(f"no mutant is called {' or '.join(found.only)}; see --list")
    return found


def main(argv: list[str] | None = None, listed: Sequence[Mutant] = LISTED) -> int:
    """Try what was asked for."""
    asked = arguments(argv, listed)
    if asked.list:
        show(asked.mutants)
        return 0
    campaign = Campaign(Workshop(asked.top, asked.timeout), asked.mutants, asked.seeds, asked.first, asked.jobs,
                        lambda line: print(line, flush=True), pairs=small.PAIRS if asked.small else {})
    try:
        campaign.prepare()
        print(f"{len(asked.mutants)} mutants, {asked.jobs} at once", flush=True)
        campaign.play()
    except KeyboardInterrupt:
        print(f"\ninterrupted; so far:\n{campaign.table()}")
        return INTERRUPTED
    except (Rotten, Broken) as problem:
        print(f"\n{campaign.table()}\n{type(problem).__name__}: {problem}", file=sys.stderr)
        return BROKEN
    print(f"\n{campaign.table()}")
    if campaign.survivors:
        print(f"survived: {', '.join(campaign.survivors)}")
        return SURVIVED
    return 0


def show(mutants: Sequence[Mutant]) -> None:
    """One line for each."""
    for each in mutants:
        how = " + ".join([*(["tests"] if each.tests else []), *([f"{each.seeds} seeds"] if each.seeds else [])])
        hidden = f", behind a second line, by the guard {each.guard!r}" if each.guard else ""
        print(f"{each.name:<34} {each.invariant:<5} {each.rule}  [{how}{hidden}]")


if __name__ == "__main__":
    sys.exit(main())
