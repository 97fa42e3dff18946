"""What ``--small`` and ``--guided`` do: play, say how far they are, and of a failure all that is needed to see it
again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from multiprocessing import get_context
from multiprocessing.pool import AsyncResult, Pool
from random import Random

from skuld_py.simulation import campaign
from skuld_py.simulation.small import log
from skuld_py.simulation.small.branches import branches
from skuld_py.simulation.small.run import run
from skuld_py.simulation.small.scenarios import FOCUSES, PAIRS, SCENARIOS
from skuld_py.simulation.small.script import Script, shrunk
from skuld_py.simulation.small.search import Guided, singles
from skuld_py.simulation.small.verdict import Verdict

FAILURE = 1
PROGRESS_SECONDS = 5.0
AHEAD = 3
"""Runs given out for each process, so that none waits for the next."""
Played = tuple[Verdict | campaign.Verdict, float]
SEED_EVERY = 40
"""One in this many jobs of the guided search is a fresh seed, for comparison."""


def scripts_of(words: Sequence[str]) -> list[Script]:
    """What was asked for: all pairs, those named, or one script. Raises ``ValueError`` with what there is."""
    if not words:
        return [Script(pair) for pair in (*PAIRS, *log.PAIRS)]
    lines: list[list[str]] = []
    for word in words:
        if word.isdecimal() and lines:
            lines[-1].append(word)
        else:
            lines.append([word])
    scripts = [Script.parse(" ".join(line)) for line in lines]
    for script in scripts:
        scenario, _, focus = script.pair.partition(":")
        if script.pair not in log.PAIRS and (scenario not in SCENARIOS or focus not in FOCUSES):
            raise ValueError(f"there is no {script.pair}: scenarios are {', '.join(SCENARIOS)}; what may deviate"
                             f" in them is {', '.join(FOCUSES)}; of the coordination log there are"
                             f" {', '.join(log.PAIRS)}")
    return scripts


def play_all(scripts: Sequence[Script], jobs: int, is_going_on: bool,
             listener: Callable[[str], None] | None) -> int:
    """Every single deviation of each pair; of a script with numbers itself alone. Gives the exit code."""
    begun, count, failed = time.monotonic(), 0, 0
    with get_context("spawn").Pool(jobs) as pool:
        for script, verdicts in _played(scripts, pool, is_going_on, listener):
            played = 0
            for verdict in verdicts:
                count, played = count + 1, played + 1
                if not verdict.passed:
                    failed += 1
                    print(f"FAILED after {count} schedules", flush=True)
                    report(verdict, may_shrink=not script.numbers)
                    if not is_going_on:
                        return FAILURE
            seconds = time.monotonic() - begun
            print(f"{script!s:<22} {played:>5} schedules, at {seconds:>4.0f} s", flush=True)
    seconds = time.monotonic() - begun
    print(f"{count} schedules in {seconds:.0f} s, {count / seconds:.1f} a second")
    print(f"failed: {failed}" if failed else "all passed")
    return FAILURE if failed else 0


def _played(scripts: Sequence[Script], pool: Pool, is_going_on: bool, listener: Callable[[str], None] | None
            ) -> Iterator[tuple[Script, Iterable[Verdict]]]:
    """Each script's own verdict, then those of its deviations. Where the first failure is the end they are played
    one by one, neighbours far from each other: that is soon. Else by branches, which takes less for all."""
    whole = [script.pair for script in scripts if not script.numbers and is_going_on and listener is None]
    told = pool.imap(branches, whole)
    for script in scripts:
        if script.numbers:
            yield script, [run(script, listener)]
        elif script.pair in whole:
            yield script, next(told)
        else:
            first = run(script, listener)
            yield script, chain([first], pool.imap(run, singles(script.pair, first.ways), chunksize=4))


def report(verdict: Verdict, *, may_shrink: bool) -> None:
    """One failure, with the fewest deviations."""
    if may_shrink and len(verdict.script.numbers) > 1:
        broken = verdict.violated.keys()
        verdict = run(shrunk(verdict.script, lambda less: not broken.isdisjoint(run(less).violated)))
    print("\n".join([f"script {verdict.script}: FAILED", *verdict.last_lines, "deviations:"]))
    for taken in verdict.taken:
        print(f"  {taken}")
    for invariant, evidence in verdict.violated.items():
        print(f"VIOLATED: {invariant}")
        for line in evidence:
            print(f"  {line}")
    print(f"again: python -m skuld_py.simulation --small {verdict.script} --trace", flush=True)


# -- guided ------------------------------------------------------------------------------------------


def _play(job: Script | int) -> Played:
    """A script or a seed, with the time that its process took for it."""
    begun = time.process_time()
    verdict = run(job) if isinstance(job, Script) else campaign.run(job)
    return verdict, time.process_time() - begun


class Hunt:
    """A guided search under way, with fresh seeds beside it. Each counts as new what it alone has not met."""

    def __init__(self, scripts: Sequence[Script], first: int) -> None:
        self.guided = Guided([script.pair for script in scripts], Random(first))
        self.fresh = Guided([], Random(first))
        self.count = self.seeds = self.new = self.unmet = 0
        self.spent = [0.0, 0.0]
        """Seconds of the processes: by scripts, by seeds."""
        self._first = first

    def draw(self) -> Script | int:
        """The next job."""
        drawn = self.count + self.seeds
        return self._first + drawn if drawn % SEED_EVERY == SEED_EVERY - 1 else self.guided.draw()

    def note(self, verdict: Verdict | campaign.Verdict, seconds: float) -> None:
        """A job is done."""
        if isinstance(verdict, Verdict):
            self.count += 1
            self.spent[0] += seconds
            self.new += self.guided.note(verdict)
        else:
            self.seeds += 1
            self.spent[1] += seconds
            self.unmet += self.fresh.learn([
                what.removeprefix("pair ") for what in verdict.stats if what.startswith("pair ")])

    def line(self) -> str:
        """How far."""
        found = zip((self.new, self.unmet), self.spent, strict=True)
        rates = [new / max(spent, 1) * 3_600 for new, spent in found]
        alone = sum(pair not in self.fresh.seen for pair in self.guided.seen)
        return (f"{self.count} scripts, {len(self.guided.kept)} kept, {self.new} new pairs, {rates[0]:,.0f} an"
                f" hour, {alone} of them met by no seed; beside them {self.seeds} fresh seeds, {self.unmet} new"
                f" pairs, {rates[1]:,.0f} an hour")


def hunt(scripts: Sequence[Script], jobs: int, minutes: float, first: int) -> int:
    """Search for a number of minutes; gives the exit code."""
    begun = spoken = time.monotonic()
    found, under_way = Hunt(scripts, first), deque[AsyncResult[Played]]()
    with get_context("spawn").Pool(jobs) as pool:
        while under_way or time.monotonic() - begun < minutes * 60:
            while len(under_way) < jobs * AHEAD and time.monotonic() - begun < minutes * 60:
                under_way.append(pool.apply_async(_play, (found.draw(),)))
            verdict, seconds = under_way.popleft().get()
            found.note(verdict, seconds)
            if not verdict.passed:
                print(f"FAILED after {found.count} scripts and {found.seeds} seeds")
                tell(verdict)
                return FAILURE
            if time.monotonic() - spoken > PROGRESS_SECONDS:
                spoken = time.monotonic()
                print(f"{spoken - begun:.0f} s: {found.line()}", flush=True)
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes: {found.line()}")
    print("all passed")
    return 0


def tell(verdict: Verdict | campaign.Verdict) -> None:
    """A failure of a script, or of a seed."""
    if isinstance(verdict, Verdict):
        report(verdict, may_shrink=True)
    else:
        print(f"again: python -m skuld_py.simulation --seed {verdict.seed} --trace", flush=True)
