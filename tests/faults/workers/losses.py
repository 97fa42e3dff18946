"""A claim is lost: what of its job acts on, and for how long, and what of that anybody can see.

A run holds a task, takes the claim from its worker in one of five ways, and watches the signs of life of the job
in Spark's Python and in its JVM (``app``) until all is silent. The task's next claim is the campaign's own: it
completes the task with an output of its own, while the lost claim is made to complete the task too.

What is measured is counted from the moment from which nothing of the job may be left: the deadline of the holder,
by the clock that it stops by (``client.steady``); where the whole tree was stopped, its waking. A claim that was
given back is over then. After the bar ``GONE_S`` the run is a violation, unless what was late waited for a
processor for so long, by the kernel's own count.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

import skuld_py
from faults.workers.app import WINNER, hold, shown
from faults.workers.patience import LOOK_S, Waiting, load
from faults.workers.stage import LEASE_S, Stage
from skuld_py.calls.results import encode_result
from skuld_py.client.claims import Claim
from skuld_py.client.options import Retry
from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError
from skuld_py.model.ids import TaskId
from skuld_py.model.leases import RATE, ROUNDING_S
from skuld_py.worker.context import TaskContext

GONE_S = 2.0
SILENT_S = 2.5
"""So long without a sign of life is the end of it: what acts does so every 20 ms."""
GIVEN_UP_S = 20.0
START_S, NEXT_S = 180.0, 60.0
"""For a worker, whose JVM may have to start, to begin; for a claim to be granted again."""


@attrs.define(eq=False)
class Watched:
    """What was seen of a run. All moments are of the steady clock."""

    place: Path
    task: TaskId
    token: int
    chain: tuple[int, ...]
    python: float = 0.0
    jvm: float = 0.0
    deadline: float = 0.0
    waiting: Waiting = attrs.field(factory=Waiting)
    _looked_at: float = 0.0

    @property
    def acted(self) -> float:
        """When any of it acted last, as far as was seen."""
        return max(self.python, self.jvm)

    def look(self) -> None:
        """See how it is now."""
        now = steady_s()
        mark = f"{self.place}/{self.token}"
        self.python = max(self.python, shown(Path(f"{mark}.python")) or 0.0)
        self.deadline = max(self.deadline, shown(Path(f"{mark}.deadline")) or 0.0)
        below = self.place / "data" / "_claims" / str(self.task) / str(self.token)
        self.jvm = max(self.jvm, newest(below) - (time.time() - now))
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self.waiting.look(now, self.chain)


def newest(below: Path) -> float:
    """When the last file that a job writes was written, by the wall clock; 0 without any. They are numbered."""
    found = 0.0
    for directory, _, files in os.walk(below):
        last = max((name for name in files if name.endswith(".csv") and name != WINNER),
                   key=lambda name: (len(name), name), default=None)
        with contextlib.suppress(OSError):
            if last is not None:
                found = max(found, os.stat(f"{directory}/{last}").st_mtime)
    return found


@attrs.frozen
class Loss:
    """What came of a run: seconds from the moment ``since`` until each part of the job acted last, and until the
    task was claimed again, less than nothing where that was before; and for how long the worker's processes waited
    for a processor meanwhile."""

    kind: str
    number: int
    since: str
    python_s: float
    jvm_s: float
    again_s: float
    waited_s: float
    load: str
    violations: tuple[str, ...]

    @property
    def gone_s(self) -> float:
        """When nothing was left."""
        return max(self.python_s, self.jvm_s, 0.0)

    @property
    def words(self) -> str:
        """What is to be said of it."""
        if self.violations:
            return "; ".join(self.violations)
        return "ok" if self.gone_s <= GONE_S else "late, for it waited for a processor"

    @property
    def line(self) -> str:
        """All in one line."""
        return (f"{self.kind:<8} {self.number:>3}  gone {self.gone_s:5.2f} s after {self.since:<10}"
                f" python {self.python_s:6.2f}  jvm {self.jvm_s:6.2f}  claimed again {self.again_s:6.2f}"
                f"  waited {self.waited_s:5.2f}  load {self.load:>5}  {self.words}")


@attrs.frozen
class Kind:
    """A way to lose a claim. ``stops``: what of the worker's tree stands still; ``is_cut``: whether it is cut off;
    ``is_deaf``: whether the worker cannot say itself until when it holds; ``wakes``: whether all go on after the
    deadline, and what is left is to end then; ``is_given_back``: whether the claim ends so, and not by itself."""

    name: str
    summary: str
    stops: tuple[str, ...] = ()
    is_cut: bool = False
    is_deaf: bool = False
    wakes: bool = False
    is_given_back: bool = False


KINDS = (
    Kind("cut", "the worker's machine is cut off", is_cut=True),
    Kind("python", "the worker's Python process is stopped", stops=("worker",), is_deaf=True),
    Kind("jvm", "Spark's JVM is stopped, until the worker gives the claim back", stops=("jvm",),
         is_given_back=True),
    Kind("jvm-cut", "Spark's JVM is stopped and the worker's machine is cut off", stops=("jvm",), is_cut=True),
    Kind("all", "all processes of the worker are stopped, and go on after the deadline",
         stops=("worker", "renewer", "jvm", "others"), is_deaf=True, wakes=True),
)


def lose(stage: Stage, kind: Kind, number: int, chance: random.Random) -> Loss:
    """One run."""
    watched = _begun(stage, kind, number)
    try:
        return _lost(stage, kind, watched, number, chance)
    except BaseException:  # its task would take the worker's slots from whatever comes next
        stage.client.cancel(watched.task)
        raise


def _lost(stage: Stage, kind: Kind, watched: Watched, number: int, chance: random.Random) -> Loss:
    _look_until(watched, steady_s() + chance.uniform(0.0, LEASE_S))
    heir = _Heir(stage, watched)
    with _taken(stage, kind) as wake:
        heir.start()
        since = _end_of_claim(stage, kind, watched)
        if kind.wakes:
            _look_until(watched, since + chance.uniform(0.3, 3.0))
            wake()
            since = steady_s()
        _look_until_silent(watched, since)
        heir.join()
    waited_s = watched.waiting.most_s(since, watched.acted)
    violations = [*late(watched.python - since, watched.jvm - since, waited_s), *heir.violations]
    return Loss(kind.name, number, _named(kind), watched.python - since, watched.jvm - since,
                _claimed_again(stage, watched) - since, waited_s, load(), tuple(violations))


def _named(kind: Kind) -> str:
    return "waking" if kind.wakes else ("giving back" if kind.is_given_back else "deadline")


def _begun(stage: Stage, kind: Kind, number: int) -> Watched:
    """A task that is held, and acts at both its places."""
    place = stage.place / f"{kind.name}-{number}"
    place.mkdir()
    stage.worker  # noqa: B018 - which starts it
    task = TaskId(stage.client.enqueue(stage.queue, hold.call(str(place)), retry=Retry(25, backoff_s=0.1)))
    until = time.monotonic() + START_S
    watched: Watched | None = None
    while watched is None or not (watched.python and watched.jvm > 0):
        if time.monotonic() > until or stage.worker.poll() is not None:
            raise RuntimeError(f"the worker does not begin to act on {task}; its status: {stage.worker.poll()}")
        time.sleep(0.05)
        tokens = [int(path.stem) for path in place.glob("*.python")]
        if tokens and watched is None:
            tree = stage.tree()
            watched = Watched(place, task, tokens[0], (*tree["worker"], *tree["renewer"], *tree["jvm"]))
        if watched is not None:
            watched.look()
    return watched


@contextlib.contextmanager
def _taken(stage: Stage, kind: Kind) -> Iterator[Callable[[], None]]:
    """Within the block the worker suffers it; calling what is given ends that, and so does the end of the
    block."""
    stopped: list[int] = []

    def wake() -> None:
        for process in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    try:
        _stop(stage, kind, stopped)
        if kind.is_cut:
            stage.cut()
        yield wake
    finally:
        if kind.is_cut:
            stage.mend()
        wake()


def _stop(stage: Stage, kind: Kind, stopped: list[int]) -> None:
    """Stop what the kind names and note it, until nothing is left to stop: some begin and end meanwhile."""
    while True:
        tree = stage.tree()
        standing = [process for name in kind.stops for process in tree[name] if process not in stopped]
        if not standing:
            return
        for process in standing:
            stopped.append(process)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)


def _end_of_claim(stage: Stage, kind: Kind, watched: Watched) -> float:
    """Wait for the moment from which nothing may be left."""
    until = time.monotonic() + NEXT_S
    while time.monotonic() < until:
        watched.look()
        if kind.is_given_back:
            claim = _first(stage, watched)
            if claim.is_released or claim.outcome:
                return steady_s()
        else:
            if kind.is_deaf:
                watched.deadline = max(watched.deadline, _deadline_told(stage, watched))
            if steady_s() >= watched.deadline:
                return watched.deadline
        time.sleep(0.02)
    raise RuntimeError(f"the claim of {watched.task} goes on")


def _first(stage: Stage, watched: Watched) -> Any:
    return next(claim for claim in stage.client.get(watched.task).claims if claim.token == watched.token)


def _claimed_again(stage: Stage, watched: Watched) -> float:
    later = [claim.start_ms for claim in stage.client.get(watched.task).claims if claim.token > watched.token]
    return min(later, default=0) / 1000 - (time.time() - steady_s())


def _deadline_told(stage: Stage, watched: Watched) -> float:
    """The holder's deadline, out of the lease's end as the cluster knows it: where the worker cannot tell, and its
    renewer has perhaps renewed once more. Late by as long as the last renewal was on its way."""
    offset = time.time() - steady_s()
    return float(_first(stage, watched).end_ms / 1000 - offset - 2 * RATE * LEASE_S - ROUNDING_S)


def _look_until(watched: Watched, until: float) -> None:
    while (left := until - steady_s()) > 0:
        watched.look()
        time.sleep(min(left, 0.02))


def _look_until_silent(watched: Watched, since: float) -> None:
    while steady_s() < min(max(since, watched.acted) + SILENT_S, since + GIVEN_UP_S):
        watched.look()
        time.sleep(0.02)


def late(python_s: float, jvm_s: float, waited_s: float) -> list[str]:
    """What acted for longer than it may, and not because it waited for a processor."""
    found = []
    for name, acted_s in (("Spark's Python", python_s), ("Spark's JVM", jvm_s)):
        if acted_s > GIVEN_UP_S - SILENT_S:
            found.append(f"{name} still acts")
        elif acted_s - waited_s > GONE_S:
            found.append(f"{name} acted for more than {GONE_S:g} s")
    return found


class _Heir(threading.Thread):
    """Claims the task as soon as that can be, completes it, and has the lost claim try the same."""

    def __init__(self, stage: Stage, watched: Watched) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._watched = watched
        self.violations: list[str] = []

    def run(self) -> None:
        try:
            self._inherit()
        except Exception as error:
            self.violations.append(f"the next claim: {type(error).__name__}: {error}")

    def _inherit(self) -> None:
        client, until = self._stage.client, time.monotonic() + NEXT_S
        claim: Claim | None = None
        while claim is None and time.monotonic() < until and not client.get(self._watched.task).is_completed:
            claim = client.claim_one(self._stage.queue, lease_s=20, wait_s=0.2)
        if claim is not None:
            self._have_zombie_write()
            context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get,
                                  client.results_of)
            context.output(f"{self._watched.place}/data").write_csv(WINNER, [[claim.token]])
            client.complete(claim, encode_result(context.outputs.sealed(str(claim.token))))
        while not client.get(self._watched.task).is_completed:
            if time.monotonic() > until:
                self.violations.append("the task is not completed by its next claim")
                return
            time.sleep(0.05)
        self._have_zombie_write(completes=True)
        self._judge()

    def _have_zombie_write(self, *, completes: bool = False) -> None:
        """Of the lost claim: a checkpoint, which is refused; and once the task is completed, that it has completed
        it too. (Before, that would be its right: a completion dominates, and the next claim is the lost one
        then.)"""
        client = self._stage.client
        stale = self._stage.stale(self._watched.task, self._watched.token)
        try:
            client.update(stale, checkpoint="zombie", number=99)
            self.violations.append("the lost claim sets a checkpoint")
        except SkuldError as error:
            if error.code != "fenced":
                self.violations.append(f"the lost claim's checkpoint: {error.code} instead of fenced")
        if completes:
            with contextlib.suppress(SkuldError):
                client.complete(stale, encode_result("zombie"))

    def _judge(self) -> None:
        """What is to be seen is the second claim's."""
        client, watched = self._stage.client, self._watched
        task = client.get(watched.task)
        winner = str(task.completed_token)
        if task.completed_token == watched.token or task.result != winner:
            self.violations.append(f"claim {task.completed_token} completed it, result {task.result!r}")
        if task.checkpoint is not None:
            self.violations.append(f"the checkpoint is {task.checkpoint.value!r}")
        skuld_py.sweep_output(watched.place / "data", client)
        seen = sorted(path for path in (watched.place / "data").rglob("*.csv") if "_claims" not in path.parts)
        named = sorted(Path(file.path) for file in skuld_py.output_files(task, client=client))
        if seen != named or [path.read_text().strip() for path in named] != [winner]:
            self.violations.append(f"seen: {[*map(str, seen)][:3]}, named: {[*map(str, named)][:3]}")
