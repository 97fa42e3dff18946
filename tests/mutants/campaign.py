"""Tries mutants and says which survive.

Directed tests come first, since they are quick, then seeds of the simulator up to the mutant's bound. A
seed kills only if it passes without the mutant; the tests named must pass on the tree as it is before
anything begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import attrs

from mutants.mutant import Mutant, Rotten
from mutants.source import Source
from mutants.workshop import Broken, Catch, Workshop
from skuld_py.simulation.profiles import PROFILES


@attrs.frozen
class Outcome:
    """What became of a mutant. ``seeds``: how many were played until it was seen, or all of them."""

    mutant: Mutant
    catch: Catch
    seeds: int
    seconds: float

    @property
    def is_killed(self) -> bool:
        """Whether anything noticed."""
        return bool(self.catch.by)

    @property
    def is_expected(self) -> bool:
        """Whether it was noticed by its own test or rule, and not only by others."""
        return self.catch.seed is None or self.mutant.invariant in self.catch.by

    def line(self) -> str:
        """One row of the table."""
        state = "killed" if self.is_killed else "STUCK" if self.catch.is_stuck else "SURVIVED"
        by = ", ".join(self.catch.by) + ("" if self.is_expected or not self.is_killed else "  (not by its own)")
        is_counted = self.catch.script or self.catch.seed is not None or not self.is_killed
        seeds = str(self.seeds) if is_counted else "test"
        name, rule = self.mutant.name, self.mutant.invariant
        script = f"  {self.catch.script}" if self.catch.script else ""
        return f"{name:<38} {rule:<5} {state:<9} {seeds:>5} {self.seconds:>6.0f} s  {by}{script}"


HEADER = f"{'mutant':<38} {'rule':<5} {'':<9} {'seeds':>5} {'':>8}  noticed by"


@attrs.define
class Campaign:
    """Mutants against a tree. ``seeds_max`` bounds the seeds of each mutant; ``first`` is the first seed."""

    workshop: Workshop
    mutants: Sequence[Mutant]
    seeds_max: int = 10_000
    first: int = 0
    jobs: int = 2
    say: Callable[[str], None] = print
    pairs: Mapping[str, str] = attrs.field(factory=dict)
    """Of the small world, by mutant: these are tried there and nowhere else."""
    outcomes: list[Outcome] = attrs.field(factory=list)

    def prepare(self) -> None:
        """See that every mutant fits and its tests pass without it; raises ``Rotten``, ``Broken``."""
        with self.workshop.copy() as scratch:
            source = Source(scratch)
            problems = [problem for mutant in self.mutants for problem in mutant.problems(source)]
            if problems:
                raise Rotten("\n".join(problems))
            for runner in sorted({mutant.runner for mutant in self.mutants}):
                tests = tuple(dict.fromkeys(name for mutant in self.mutants if mutant.runner == runner
                                            for name in mutant.tests))
                self.say(f"{len(tests)} tests are named; first on the tree as it is")
                catch = self.workshop.test(scratch, tests, runner) if tests else Catch()
                if catch.by or catch.is_stuck:
                    raise Broken(f"they do not pass without a mutant: {catch}")

    def play(self) -> None:
        """Try all of them; ``outcomes`` fills as they end. Raises what a trial raises."""
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: set[Future[Outcome]] = {pool.submit(self._try, mutant) for mutant in self.mutants}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        self.outcomes.append(future.result())
                        self.say(f"{len(self.outcomes):>3}/{len(self.mutants)} {self.outcomes[-1].line()}")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.workshop.close()
                raise

    def _try(self, mutant: Mutant) -> Outcome:
        begun = time.monotonic()
        seeds = min(mutant.seeds, self.seeds_max)
        with self.workshop.copy() as scratch:
            mutant.apply(Source(scratch))
            catch, played = Catch(), 0
            if mutant.name in self.pairs:
                catch = self.workshop.explore(scratch, (self.pairs[mutant.name],))
                played, seeds = catch.schedules, 0
            elif mutant.tests:
                catch = self.workshop.test(scratch, mutant.tests, mutant.runner)
            if not catch.by and not catch.is_stuck and seeds:
                catch, played = self.workshop.simulate(scratch, self.first, seeds, mutant.options), seeds
        if catch.seed is not None:
            played = self._place(mutant, catch.seed)
            self._see_that_it_passes(mutant, catch.seed)
        if catch.script:
            self._see_that_the_script_passes(mutant, catch.script)
        return Outcome(mutant, catch, played, time.monotonic() - begun)

    def _place(self, mutant: Mutant, seed: int) -> int:
        """The how-manieth seed that was played for it this one is."""
        every = [PROFILES[word][0] for word in mutant.options if word in PROFILES]
        return (seed - self.first) // (*every, 1)[0] + 1

    def _see_that_it_passes(self, mutant: Mutant, seed: int) -> None:
        with self.workshop.copy() as scratch:
            if self.workshop.simulate(scratch, seed, 1, mutant.options).by:
                raise Broken(f"seed {seed} fails without {mutant.name} as well: mend the code first")

    def _see_that_the_script_passes(self, mutant: Mutant, script: str) -> None:
        with self.workshop.copy() as scratch:
            if self.workshop.explore(scratch, tuple(script.split())).by:
                raise Broken(f"{script} fails without {mutant.name} as well: mend the code first")

    def table(self) -> str:
        """All outcomes, survivors last."""
        rows = sorted(self.outcomes, key=lambda outcome: (not outcome.is_killed, outcome.mutant.name))
        killed = [outcome for outcome in rows if outcome.is_killed]
        seeds = sorted(outcome.seeds for outcome in killed
                       if outcome.catch.script or outcome.catch.seed is not None)
        what = "schedules" if self.pairs else "seeds"
        median = f", median {seeds[len(seeds) // 2]} {what}, worst {seeds[-1]}" if seeds else ""
        return "\n".join([HEADER, *(outcome.line() for outcome in rows),
                          f"{len(killed)} of {len(self.mutants)} killed{median}"])

    @property
    def survivors(self) -> list[str]:
        """Mutants that nothing noticed."""
        return [outcome.mutant.name for outcome in self.outcomes if not outcome.is_killed]
