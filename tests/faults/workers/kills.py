"""The demonstration's census while its worker, its JVM and a node are killed at random points.

A run is the census of some archives: ``read`` of each group, ``report`` behind them, and beside them ``survey`` of
the same archives, which is one long task with a checkpoint after each slice. Meanwhile each of the three victims
is killed once with ``kill -9``, in an order and at moments that chance decides; a node comes back after a while, a
worker at once. A run that nobody disturbs says what must come of all others:

* every table has the same rows, none twice; the report is the same;
* a ``survey`` that was killed goes on from its checkpoint: what was done again began no longer ago than one
  interval before the kill, which is the time until the next flush of the log, and one slice;
* of a worker that was killed nothing is left, and its job has ended ``GONE_S`` after the end of its claims.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import psutil
import pyarrow.parquet

import skuld_py
from faults.workers.app import report, survey
from faults.workers.losses import GONE_S
from faults.workers.patience import load
from faults.workers.stage import LEASE_S, QUEUE, Stage
from machines.node import Node
from machines.town import Town
from skuld_py.client.options import Retry
from skuld_py.client.steady import steady_s
from skuld_py.demo import census
from skuld_py.demo.census import grouped
from skuld_py.model.ids import TaskId
from skuld_py.model.task import Task
from skuld_py.worker.journal import FLUSH_S

GROUPS, SLICES = 6, 6
RETRY = Retry(100, backoff_s=0.1)
VICTIMS = ("worker", "jvm", "node")
DOWN_S = 4.0
LIMIT_S = 400.0
WRITTEN_S = 0.5
"""What a flush may take until a majority has it."""

Rows = Counter[tuple[Any, ...]]


@attrs.frozen
class Census:
    """What came of a run: the rows of both tables, and the report."""

    scanned: Rows
    surveyed: Rows
    report: str

    def differs(self, other: Census) -> list[str]:
        """In what it is not the other one."""
        found = []
        for name in ("scanned", "surveyed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name}: {(mine - theirs).total()} rows too many and"
                             f" {(theirs - mine).total()} too few")
        return found + ["the report differs"] * (self.report != other.report)


@attrs.frozen
class Kills:
    """A run. ``killed``: what, and when, or that it was done before. ``again_s``: of each survey that was resumed,
    how long before its end its last checkpoint that counts was said; ``interval_s``: the most that this may be.
    ``left_s``: how long anything of a killed worker was there."""

    number: int
    seconds: float
    killed: tuple[str, ...]
    claims: int
    again_s: tuple[float, ...]
    interval_s: float
    left_s: float
    load: str
    violations: tuple[str, ...]

    @property
    def missed(self) -> int:
        """How many victims were to be killed when it was over."""
        return sum(victim.startswith("no ") for victim in self.killed)

    @property
    def line(self) -> str:
        """All in one line."""
        again = ", ".join(f"{each:.2f}" for each in self.again_s) or "none"
        return (f"census   {self.number:>3}  {self.seconds:5.1f} s  {', '.join(self.killed):<42}"
                f" {self.claims} claims  done again {again} s of {self.interval_s:.2f}  left {self.left_s:5.2f} s"
                f"  load {self.load:>5}"
                f"  {'; '.join(self.violations) or 'ok'}")


def archives() -> list[Path]:
    """Some of what PySpark puts on its class path: neither the largest nor all."""
    jars = Path(next(iter(__import__("pyspark").__path__))) / "jars"
    return sorted(sorted(jars.glob("*.jar"), key=lambda path: (path.stat().st_size, path))[60:120])


class Run:
    """One census on a stage in a town."""

    def __init__(self, stage: Stage, town: Town, number: int, chance: random.Random) -> None:
        self._stage = stage
        self._town = town
        self._number = number
        self._chance = chance
        self.place = stage.place / f"census-{number}"
        self.place.mkdir()
        self._left: list[tuple[float, psutil.Process]] = []
        self._left_s = 0.0
        self._killed: list[tuple[str, float]] = []
        self._down: list[tuple[float, Node]] = []
        self._violations: list[str] = []

    # -- the work ------------------------------------------------------------------------------

    def undisturbed(self) -> tuple[Census, float]:
        """What is to come of it, and how long that takes."""
        began = time.monotonic()
        tasks = self._enqueue()
        self._await(tasks, [])
        return self._read(tasks), time.monotonic() - began

    def disturbed(self, expected: Census, usual_s: float) -> Kills:
        """The same under kills."""
        began = steady_s()
        moments = sorted(self._chance.uniform(0.05, 0.9) * usual_s for _ in VICTIMS)
        plan = [(began + moment, victim) for moment, victim in
                zip(moments, self._chance.sample(VICTIMS, len(VICTIMS)), strict=True)]
        tasks = self._enqueue()
        self._await(tasks, plan)
        seconds = steady_s() - began
        self._violations += self._read(tasks).differs(expected)
        lives = [_told(self.place / f"{claim.token}.told") for claim in self._stage.client.get(tasks[-1]).claims]
        again, interval_s = done_again(lives, [at for victim, at in self._killed if victim in ("worker", "jvm")])
        if any(each > interval_s for each in again):
            self._violations.append("more than one interval was done again")
        killed = tuple(f"{victim} {at - began:.1f}" for victim, at in self._killed)
        claims = sum(len(task.claims) for task in self._stage.client.get_many(tasks))
        return Kills(self._number, seconds, killed, claims, tuple(again), interval_s, self._left_s, load(),
                     tuple(self._violations))

    def _enqueue(self) -> list[TaskId]:
        self._stage.worker  # noqa: B018 - which starts it
        client, files = self._stage.client, archives()
        scans = [client.enqueue(QUEUE, census.read.call(group, f"{self.place}/tables"), retry=RETRY)
                 for group in grouped(files, GROUPS)]
        behind = client.enqueue(QUEUE, report.call([str(scan) for scan in scans], f"{self.place}/report"),
                                deps=scans, retry=RETRY)
        slices = [[str(path) for path in files[at::SLICES]] for at in range(SLICES)]
        whole = client.enqueue(QUEUE, survey.call(slices, str(self.place)), priority=1, retry=RETRY)
        return [TaskId(task) for task in (*scans, behind, whole)]

    def _await(self, tasks: Sequence[TaskId], plan: list[tuple[float, str]]) -> None:
        until = steady_s() + LIMIT_S
        plan = list(plan)
        while self._down or not all(task.is_completed for task in self._stage.client.get_many(tasks)):
            now = steady_s()
            if now > until:
                raise RuntimeError(f"the census {self._number} is not done after {LIMIT_S:.0f} s")
            if plan and now >= plan[0][0] and self._kill(plan[0][1]):
                plan.pop(0)
            for each in [each for each in self._down if now >= each[0]]:
                each[1].launch()
                self._down.remove(each)
            self._look_at_what_is_left()
            time.sleep(0.02)
        for node in self._town.nodes:
            node.await_ready()
        self._killed += [(f"no {victim}", steady_s()) for _, victim in plan]
        while self._left and steady_s() < until:
            self._look_at_what_is_left()
            time.sleep(0.02)

    # -- killing -------------------------------------------------------------------------------

    def _kill(self, victim: str) -> bool:
        """Whether there was one to kill."""
        tree = self._stage.tree()
        now = steady_s()
        if victim == "node":
            node = self._chance.choice(self._town.nodes)
            node.kill()
            self._down.append((now + DOWN_S, node))
        elif victim == "jvm":
            if not tree["jvm"]:
                return False
            self._gone_with(tree["jvm"])
            os.kill(tree["jvm"][0], signal.SIGKILL)
        else:
            if not tree["jvm"]:
                return False
            self._gone_with([process for processes in tree.values() for process in processes])
            self._stage.worker.kill()
            self._stage.worker.wait()
            self._stage.worker  # noqa: B018 - which starts another one
        self._killed.append((victim, now))
        return True

    def _gone_with(self, processes: Sequence[int]) -> None:
        for process in processes:
            try:
                known = psutil.Process(process)
                self._left += [(steady_s(), each) for each in (known, *known.children(recursive=True))]
            except psutil.NoSuchProcess:
                continue

    def _look_at_what_is_left(self) -> None:
        now, living = steady_s(), []
        for since, process in self._left:
            if not _lives(process):
                self._left_s = max(self._left_s, now - since)
            elif now - since > LEASE_S + GONE_S:
                self._left_s = max(self._left_s, now - since)
                self._violations.append(f"process {process.pid} is left after {now - since:.1f} s")
            else:
                living.append((since, process))
        self._left = living

    # -- judging -------------------------------------------------------------------------------

    def _read(self, tasks: Sequence[TaskId]) -> Census:
        *scans, report, whole = self._stage.client.get_many(tasks)
        written, = skuld_py.output_files(report)
        return Census(_rows(scans), _rows([whole]), Path(written.path).read_text())


Life = Sequence[tuple[str, int, float]]
"""What a claim of the survey told: ``begun`` or ``said``, the slice, the moment."""


def done_again(lives: Sequence[Life], killed: Sequence[float]) -> tuple[list[float], float]:
    """Of each claim but the last: the seconds from the begin of the slice with which the next one began to the
    kill, in which work was done that was done again. And the most that this may be. ``killed``: when its process
    was, or that of Spark."""
    slices = [end - begin for life in lives for begin, end in _slices(life).values()]
    interval_s = FLUSH_S + WRITTEN_S + max(slices, default=0.0)
    again = []
    for life, following in itertools.pairwise(life for life in lives if life):
        began = [at for what, number, at in life if what == "begun" and number == following[0][1]]
        ended = [at for at in killed if at > life[0][2]]
        if began and ended:
            again.append(max(0.0, ended[0] - began[0]))
    return again, interval_s


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _told(path: Path) -> Life:
    if not path.exists():
        return []
    words = [line.split() for line in path.read_text().splitlines()]
    return [(what, int(number), float(at)) for what, number, at in words]


def _slices(life: Life) -> dict[int, tuple[float, float]]:
    begun = {number: at for what, number, at in life if what == "begun"}
    return {number: (begun[number], at) for what, number, at in life if what == "said"}


def _rows(tasks: Sequence[Task]) -> Rows:
    rows: Rows = Counter()
    for task in tasks:
        for file in skuld_py.output_files(task):
            if file.path.endswith(".parquet"):
                table = pyarrow.parquet.ParquetFile(file.path).read()
                rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows


def census_runs(stage: Stage, town: Town, runs: int, seed: int, tell: Callable[[Kills | str], None]) -> None:
    """As many as are wanted in which something is killed, behind one that nobody disturbs; each is told."""
    Run(stage, town, -1, random.Random(0)).undisturbed()  # Spark is slow at first
    expected, usual_s = Run(stage, town, 0, random.Random(0)).undisturbed()
    totals = census.count_independently(archives())
    if expected.scanned != expected.surveyed or expected.scanned.total() != totals.entries + totals.archives:
        raise RuntimeError("the undisturbed census is wrong already")
    tell(f"census     0  {usual_s:5.1f} s  undisturbed: {expected.scanned.total()} rows")
    number, tried = 0, 0
    while tried < runs:
        number += 1
        run = Run(stage, town, number, random.Random(f"{seed} census {number}")).disturbed(expected, usual_s)
        tell(run)
        tried += run.missed < len(VICTIMS)
        if run.missed:
            usual_s = min(usual_s, run.seconds)  # the machine has grown quicker, and moments are to come in time
