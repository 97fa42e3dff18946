"""A worker: claims tasks, runs each in a thread against one engine, and reports back.

One thread, the one that calls ``run``, owns the state; all others post calls to it. Claiming, renewing, writing
and watching the engine each have a thread, because each may have to wait for another process.

Invariants:

* A task runs only while its claim is held. A claim that is lost (by the renewer's word or by this machine's
  clock) is marked first, then its Spark jobs are cancelled, then its thread is told; it is never completed.
* A cancellation that the engine does not confirm is made sure of by replacing the engine.
* When the engine dies, the tasks in it are given back at once, and run alone when they are claimed again; one that
  ran alone has failed (``blame``).
* A task that fails by itself is failed with its error: its retry policy says whether and when it is tried again.
  The worker says only of what no attempt can cure, a call or a result that is none, that it is final.
* The first SIGTERM or SIGINT stops claiming; running tasks may end within the grace; those that do not are
  cancelled and released. The second one stops at once.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skuld_py.client.client import Claim, Client
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.exposition import exposed
from skuld_py.model import names
from skuld_py.model.task import Task
from skuld_py.worker.apps import load_apps
from skuld_py.worker.blame import admitted, deaths_under, may_claim, verdict
from skuld_py.worker.claimer import Claimer
from skuld_py.worker.context import TaskContext
from skuld_py.worker.heart import Heart
from skuld_py.worker.ignition import Ignition
from skuld_py.worker.lease import Key
from skuld_py.worker.metrics import Counts, WorkerMetrics
from skuld_py.worker.renewer import STALL_S, Renewer
from skuld_py.worker.run import Engine, Failed, Outcome, Returned, Run
from skuld_py.worker.scribe import Scribe
from skuld_py.worker.spark_conf import py_files_here
from skuld_py.worker.vitals import TIMEOUT

SLOTS, LEASE_S, GRACE_S = 2, 30.0, 30.0
STOP_S = 5.0
LOOK_S = 1.0
WORDS_CHARS_MAX = 200

_log = logging.getLogger(__name__)


class Worker:
    """Runs tasks of one queue; ``report`` is given a short line for people about each thing that happens."""

    def __init__(self, nodes: Sequence[str], queue_name: str, engine: Engine, *, slots: int = SLOTS,
                 lease_s: float = LEASE_S, grace_s: float = GRACE_S, stall_s: float = STALL_S,
                 holder: str | None = None, renewer_log: Path = Path("/dev/null"),
                 report: Callable[[str], None] = _log.info) -> None:
        if slots < 1:
            raise Refused("bad_slots", f"slots: {slots}; a worker has at least one")
        self._queue = names.check_name("queue", queue_name)
        claiming, writing, self._reading = (Client(nodes, holder=holder) for _ in range(3))
        self._holder = self._reading.holder
        self._engine = engine
        self._slots = slots
        self._grace_s = grace_s
        self._report = report
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running: dict[Key, Run] = {}
        self._writing: dict[Key, Run] = {}
        self._waiting: list[Run] = []
        self._is_claiming = True
        self._stop_at: float | None = None
        self._signals = 0
        self.counts = Counts()
        self._failure: str | None = None
        self._claimer = Claimer(claiming, self._queue, lease_s, slots,
                                on_claims=partial(self._post, self._on_claims),
                                on_known=partial(self._post, self._on_known),
                                on_error=partial(self._post, self._on_claim_error),
                                on_end=partial(self._post, self._on_claimer_end))
        self._scribe = Scribe(writing, partial(self._post, self._on_done))
        self._renewer = Renewer(list(nodes), lease_s, renewer_log, stall_s=stall_s,
                                on_lost=partial(self._post, self._on_lost),
                                on_extended=partial(self._post, self._on_extended),
                                on_cancelled=partial(self._post, self._on_cancelled))
        self._heart = Heart(engine, self._renewer.beat, stall_s,
                            on_trouble=lambda what: self._post(self._on_engine_death, what,
                                                               self._ignition.generation))
        self._ignition = Ignition(engine, partial(self._post, self._on_engine_ready),
                                  partial(self._post, self._on_engine_failure))

    def run(self) -> int:
        """Work until told to stop; the exit status: 0, or 1 when the engine would not start."""
        self._report(f"worker {self._holder} on queue {self._queue}: {self._slots} slots;"
                     f" {self._engine.describe()} is starting")
        with self._signals_heard():
            self._renewer.start()
            self._heart.start()
            self._scribe.start()
            self._claimer.start()
            self._ignition.start()
            try:
                while not self._is_over():
                    self._turn()
            finally:
                self._close()
        return self._exit_status()

    def stop(self) -> None:
        """As a signal would: the first call drains, the second one stops at once. From any thread."""
        self._post(self._on_stop)

    # -- the loop ------------------------------------------------------------------------------

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        self._inbox.put(partial(call, *args))

    def _turn(self) -> None:
        """One event, or none in time; then what the clock says."""
        times = [steady_s() + LOOK_S, *(run.context.deadline for run in self._running.values())]
        if self._stop_at is not None:
            times.append(self._stop_at)
        with contextlib.suppress(queue.Empty):
            self._inbox.get(timeout=max(0.0, min(times) - steady_s()))()
        now = steady_s()
        for run in list(self._running.values()):
            if run.context.deadline <= now:
                self._lose(run, "its lease ended")
            elif run.timeout_at is not None and run.timeout_at <= now and run.given_up is None:
                run.fault = TIMEOUT
                self._give_up(run, TIMEOUT)
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = now + STOP_S
            for run in list(self._running.values()):
                self._give_up(run, "the worker stops and its time to end is over")

    def _is_over(self) -> bool:
        if self._failure is not None or self._signals > 1:
            return True
        is_idle = not (self._running or self._writing or self._waiting or self._is_claiming)
        return self._stop_at is not None and is_idle

    def _exit_status(self) -> int:
        if self._failure is not None:
            return 1
        return 130 if self._signals > 1 else 0

    @contextlib.contextmanager
    def _signals_heard(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, lambda *_: self.stop())
                  for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_stop(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self._report("stopping at once")
            return
        self._stop_at = steady_s() + self._grace_s
        self._claimer.close()
        for run in self._waiting:
            self._write_release(run, "the worker stops")
        self._waiting.clear()
        if self._running:
            self._report(f"stopping; {len(self._running)} running tasks have {self._grace_s:g} s to end")

    def _close(self) -> None:
        """Stop what still runs, then give back what is still held, then end the helpers."""
        self._claimer.close()
        self._ignition.close()
        self._heart.close()
        if self._ignition.is_ready or self._signals < 2:  # one that is starting dies with this process
            self._engine.stop(grace_s=0 if self._running or self._signals > 1 else STOP_S)
        for run in (*self._running.values(), *self._waiting):
            if not run.is_lost:
                run.context.lose("the worker stops")
                run.interrupt()
                self._write_release(run, "the worker stops")
        if not self._scribe.close(STOP_S):
            self._report(f"{self._scribe.held} claims are not given back; their leases end by themselves")
        self._renewer.close()
        self._reading.close()
        self._report("stopped")

    # -- claims --------------------------------------------------------------------------------

    def _on_claims(self, claims: list[Claim]) -> None:
        for claim in claims:
            for older in [run for run in self._running.values() if run.claim.id == claim.id]:
                self._lose(older, "the task was claimed again")
            context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, self._reading.get,
                                  self._reading.results_of, headers=claim.headers)
            run = Run(claim, context, self._engine, partial(self._post, self._on_end), self._renewer.limit)
            self._renewer.hold(run.key, claim.deadline)
            if self._stop_at is not None:
                self._write_release(run, "the worker stops")
            else:
                self._waiting.append(run)

    def _on_known(self, claims: list[Claim], tasks: dict[bytes, Task]) -> None:
        """What tasks just claimed went through before."""
        fresh = {(claim.id, claim.token) for claim in claims}
        for run in self._waiting:
            if (run.claim.id, run.claim.token) in fresh:
                task = tasks.get(run.claim.id)
                if task is not None:
                    run.context.know(task)
                run.deaths = 0 if task is None else deaths_under(run.context.earlier)
        self._admit()

    def _admit(self) -> None:
        """Start what may run now; and claim more, unless a task is to run alone."""
        if not self._ignition.is_ready:
            return
        running = [run.deaths or 0 for run in self._running.values()]
        starting = [self._waiting[index] for index in admitted([run.deaths for run in self._waiting], running)]
        self._waiting = [run for run in self._waiting if run not in starting]
        for run in starting:
            self._start(run)
        if may_claim([run.deaths for run in self._waiting], [run.deaths or 0 for run in self._running.values()]):
            self._claimer.resume()
        else:
            self._claimer.pause()

    def _start(self, run: Run) -> None:
        self._running[run.key] = run
        self.counts.started += 1
        self.counts.running = len(self._running)
        self._scribe.begin(run)
        self._heart.watch(run)
        alone = ", alone: it ran when Spark's JVM died" if run.deaths else ""
        attempt = run.context.attempt_said
        self._report(f"task {run.said} started, attempt {attempt}, token {run.claim.token}{alone}")
        run.start()

    def _on_claim_error(self, error: SkuldError) -> None:
        self._report(f"nothing can be claimed: {error}")

    def _on_claimer_end(self) -> None:
        self._is_claiming = False

    def _on_extended(self, key: Key, deadline: float) -> None:
        for runs in (self._running, self._writing):
            if key in runs:
                runs[key].context.extend(deadline)
        for run in self._waiting:
            if run.key == key:
                run.context.extend(deadline)

    def _on_cancelled(self, key: Key) -> None:
        """The task was cancelled: stop it. A run that is over already is written as it ended."""
        if key in self._running:
            self._give_up(self._running[key], "the task was cancelled")

    def _on_lost(self, key: Key, reason: str) -> None:
        if key in self._running:
            self._lose(self._running[key], reason)
        elif key in self._writing:
            self._scribe.forget(self._writing[key])
        else:
            kept = [run for run in self._waiting if run.key != key]
            self._claimer.give(len(self._waiting) - len(kept))
            self._waiting = kept
            self._admit()

    def _lose(self, run: Run, reason: str) -> None:
        if run.is_lost:
            return
        run.is_lost = True
        self.counts.lost += 1
        run.context.lose(reason)
        self._scribe.forget(run)
        self._renewer.drop(run.key)
        self._report(f"task {run.said} lost after {run.age_s:.1f} s: {reason}; cancelling")
        self._halt(run)

    def _give_up(self, run: Run, reason: str) -> None:
        """Stop a task whose claim is still ours; it is released when its thread has ended."""
        if run.given_up is None and not run.is_lost:
            run.given_up = reason
            run.context.lose(reason)
            self._halt(run)

    def _halt(self, run: Run) -> None:
        """Cancel, interrupt, and see to it that it ends; elsewhere, because each may take seconds."""
        generation = self._ignition.generation

        def halt() -> None:
            is_certain = self._engine.cancel(run.context.name)
            run.interrupt()
            is_certain = is_certain and self._engine.is_swept()
            if not run.join(STOP_S):
                self._post(self._on_abandoned, run)
            if not is_certain:
                self._post(self._replace_engine, "did not confirm a cancellation", generation)

        threading.Thread(target=halt, name=f"halt {run.claim.id}", daemon=True).start()

    # -- ends ----------------------------------------------------------------------------------

    def _on_end(self, run: Run, outcome: Outcome) -> None:
        if self._running.pop(run.key, None) is None:
            return
        self.counts.running = len(self._running)
        self.counts.seconds += run.age_s
        self._heart.forget(run)
        self._settle(run, outcome)
        self._claimer.give(1)
        self._admit()

    def _settle(self, run: Run, outcome: Outcome) -> None:
        """Have the scribe write what became of a run."""
        if run.is_lost:
            return
        if isinstance(outcome, Failed) and not outcome.is_engine_alive and run.given_up is None:
            self._condemn(run, "ended")
            self._on_engine_death("ended", self._ignition.generation)
        if run.given_up is not None and run.fault is None:
            self._write_release(run, run.given_up)
            return
        self._writing[run.key] = run
        if run.fault is not None:
            outcome = _failed(run.fault)
        if isinstance(outcome, Returned):
            self._scribe.complete(run, outcome.result)
            return
        if not isinstance(outcome, Failed):
            outcome = _failed("the function raised ClaimLost although its claim is not lost")
        self._report(f"task {run.said} failed after {run.age_s:.1f} s: {outcome.words[:WORDS_CHARS_MAX]}")
        self._scribe.fail(run, outcome.error, is_final=outcome.is_final)

    def _write_release(self, run: Run, reason: str) -> None:
        self._writing[run.key] = run
        self._report(f"task {run.said} given back: {reason}")
        self._scribe.release(run, reason)

    def _on_done(self, run: Run, what: str) -> None:
        self._writing.pop(run.key, None)
        self.counts.ended[what] = self.counts.ended.get(what, 0) + 1
        self._renewer.drop(run.key)
        if what not in ("released", "failed", "died"):
            self._report(f"task {run.said} {what} after {run.age_s:.1f} s")

    def _on_abandoned(self, run: Run) -> None:
        """Its thread does not end, in a call into C perhaps. It is left alone: its Spark is cancelled."""
        if run.key in self._running:
            _log.warning("the thread of task %s does not end; it is left behind", run.claim.id)
            self._on_end(run, _failed("the function did not obey the order to stop"))

    # -- the engine ----------------------------------------------------------------------------

    def _on_engine_ready(self, took_s: float) -> None:
        self._report(f"ready in {took_s:.1f} s: {self._engine.describe()}")
        self._renewer.watch(self._engine.process_id)
        self._heart.resume()
        self._admit()

    def _on_engine_failure(self, error: SkuldError) -> None:
        self._failure = str(error)
        self._report(f"Spark does not start: {error}")

    def _on_engine_death(self, what: str, generation: int) -> None:
        """It ended, or went silent for good: one of its tasks may be to blame."""
        if self._is_current(generation):
            for run in self._running.values():
                if run.given_up is None and not run.is_lost:
                    self._condemn(run, what)
            self._replace_engine(what, generation)

    def _is_current(self, generation: int) -> bool:
        """Whether this engine is the one that works, and is not being replaced."""
        return self._ignition.is_ready and generation == self._ignition.generation

    def _replace_engine(self, what: str, generation: int) -> None:
        if not self._is_current(generation):
            return
        self._claimer.pause()
        self._heart.pause()
        for run in self._running.values():
            if run.given_up is None and not run.is_lost:
                run.given_up = f"Spark's JVM {what}"
                run.context.lose(run.given_up)
            run.interrupt()
        if self._stop_at is None:
            self._report(f"Spark's JVM {what}; starting another one")
            self._ignition.replace()

    def _condemn(self, run: Run, what: str) -> None:
        """The engine died under this task."""
        judged = verdict(bool(run.deaths), what)
        run.given_up = judged.words
        if judged.has_failed:
            run.fault = f"{judged.words}, as it did when this task ran before; this time it ran alone"
        run.context.journal.engine_died(what, time.time_ns() // 1_000_000)
        run.context.lose(judged.words)


def _failed(words: str) -> Failed:
    return Failed(words, words.encode())


def run_worker(nodes: list[str], queue: str, app: list[str], *, slots: int = SLOTS, lease_s: float = LEASE_S,
               directory: Path | None = None, grace_s: float = GRACE_S, stall_s: float = STALL_S,
               holder: str | None = None, metrics: str | None = None, conf: Mapping[str, str] | None = None,
               machine_learning: bool = False) -> int:
    """Run a worker with Spark in this process, until a signal; the exit status. ``conf`` are Spark's settings."""
    load_apps(app, py_files_here(conf or {}))
    from skuld_py.worker.spark_worker import SparkEngine

    with contextlib.ExitStack() as held:
        if directory is None:
            directory = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="skuld-worker-")))
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = SparkEngine(directory / "spark", conf=conf, machine_learning=machine_learning, apps=app)
        worker = Worker(nodes, queue, engine, slots=slots, lease_s=lease_s,
                        grace_s=grace_s, stall_s=stall_s, holder=holder, renewer_log=directory / "renewer.log")
        if metrics is not None:
            held.enter_context(exposed(metrics, WorkerMetrics(worker.counts, queue, slots)))
        return worker.run()
