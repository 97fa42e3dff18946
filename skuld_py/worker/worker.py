"""A worker: claims tasks, runs each in a thread or in an event loop, and reports back.

One thread, the one that calls ``run``, owns the state; all others post calls to it. Claiming, renewing, writing
and watching the engine each have a thread, because each may have to wait for another process. The engine is
Spark: it starts when the first task that needs it is claimed, and other tasks neither wait for it nor die with it.

Invariants:

* At most ``slots`` tasks or ``batches`` run; how many more are claimed says ``ahead``.
* A task runs only while its claim is held. A claim that is lost (by the renewer's word or by this machine's
  clock) is marked first, then its Spark jobs are cancelled, then its thread is told; it is never completed.
* A cancellation that the engine does not confirm is made sure of by replacing the engine.
* When the engine dies, the tasks in it are given back at once, and run alone when they are claimed again; one that
  ran alone has failed (``blame``).
* A task that fails by itself is failed with its error: its retry policy says whether and when it is tried again.
  That a failure is final is said by the function (``directives``, ``traits``), and by the worker of a call or a
  result that is none.
* The first SIGTERM or SIGINT stops claiming; running tasks may end within the grace; those that do not are
  cancelled and released. The second one stops at once.
"""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skuld_py.client.attending import WorkerStatus
from skuld_py.client.client import Client
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused
from skuld_py.model.task import Task
from skuld_py.output.sweeping import Publisher
from skuld_py.worker.ahead import Ahead
from skuld_py.worker.assignment import Assignment
from skuld_py.worker.attendance import profile, status, work_said
from skuld_py.worker.batches.batch import Batch, Outcome
from skuld_py.worker.batches.desk import Desk
from skuld_py.worker.blame import admitted, may_claim
from skuld_py.worker.claimer import Claimer
from skuld_py.worker.context import TaskContext
from skuld_py.worker.counts import Counts
from skuld_py.worker.endings import Ending, Failed, Returned, Snoozed, failed
from skuld_py.worker.event_loop import EventLoop
from skuld_py.worker.halting import STOP_S, halt
from skuld_py.worker.heart import Heart
from skuld_py.worker.ignition import Ignition
from skuld_py.worker.lease import Key
from skuld_py.worker.refusals import note_refusal
from skuld_py.worker.renewer import STALL_S, Renewer
from skuld_py.worker.run import Engine, Lot, Run
from skuld_py.worker.scribe import Scribe
from skuld_py.worker.seated import Seated
from skuld_py.worker.seats import Queues, reporter
from skuld_py.worker.shares import tags_of, weights_of
from skuld_py.worker.signals import signals_heard
from skuld_py.worker.vitals import overran
from skuld_py.worker.waiting import Waiting
from skuld_py.worker.workflows.cluster import flow_of

SLOTS, LEASE_S, GRACE_S, LOOK_S, WORDS_CHARS_MAX = 2, 30.0, 30.0, 1.0, 200
WRITING_MAX = 2_000
"""With more claims over that are not yet written, nothing is claimed: their leases run."""

_log = logging.getLogger(__name__)


class Worker:
    """Runs tasks of queues, ``NAME[:WEIGHT],...``; ``report`` is given a short line for people about each thing
    that happens. ``takes_seats``: it works on steps of workflows beside its queues, of which it needs none then,
    on such as need no other ``tags`` than these."""

    def __init__(self, nodes: Sequence[str], queues: str, engine: Engine, *, slots: int = SLOTS,
                 lease_s: float = LEASE_S, grace_s: float = GRACE_S, stall_s: float = STALL_S,
                 holder: str | None = None, renewer_log: Path = Path("/dev/null"),
                 report: Callable[[str], None] = _log.info, takes_seats: bool = False,
                 tags: Sequence[str] = ()) -> None:
        if slots < 1:
            raise Refused("bad_slots", f"slots: {slots}; a worker has at least one")
        weights = {} if takes_seats and not queues else weights_of(queues)
        claiming, writing, attending, self._reading = (Client(nodes, holder=holder) for _ in range(4))
        self._slots, self._grace_s = slots, grace_s
        self._engine, self._report, self._spark = engine, report, ""
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running: dict[Key, Run] = {}
        self._writing: dict[Key, Run] = {}
        self.counts, self._waiting = Counts(), Waiting()
        self._loop, self._ahead = EventLoop(), Ahead(slots)
        self._desk = Desk(engine, lease_s, partial(self._post, self._on_outcome))
        self._claimed_ahead, self._signals, self._beside, self._has_room, self._is_claiming = 0, 0, 0, False, True
        self._stop_at: float | None = None
        self._failure: str | None = None
        self._claimer = Claimer(claiming, weights, lease_s, slots,
                                on_claims=partial(self._post, self._on_claims),
                                on_known=partial(self._post, self._on_known),
                                on_error=partial(self._post, note_refusal, self.counts),
                                on_end=partial(self._post, self._on_claimer_end))
        self._seated, self._flow = Seated(self._claimer.ahead), flow_of(self._reading)
        self._scribe = Scribe(writing, self._flow.written(partial(self._post, self._on_done)))
        self._publisher = Publisher(self._reading)
        self._renewer = Renewer(list(nodes), lease_s, renewer_log, stall_s=stall_s,
                                on_lost=partial(self._post, self._on_lost),
                                on_extended=partial(self._post, self._on_extended),
                                on_cancelled=partial(self._post, self._on_cancelled))
        self._heart = Heart(engine, self._renewer.beat, stall_s, look=self._desk.look,
                            on_trouble=lambda what: self._post(self._on_engine_death, what,
                                                               self._ignition.generation))
        self._profile = profile(self._reading.holder, slots, weights, tags_of(tags), takes_seats=takes_seats)
        self._attendance = reporter(attending, self._profile, self._status,
                                    partial(self._post, self._on_seats), self._flow.size_of, self._flow.see_sealed,
                                    lease_s)
        self._desk.on_news = self._attendance.hasten
        fail = partial(self._post, self._on_failure)
        self._ignition = Ignition(engine, partial(self._post, self._on_engine_ready), fail)
        for each in (self._claimer, self._scribe, self._renewer, self._heart, self._attendance):
            each.on_failure = fail

    def run(self) -> int:
        """Work until told to stop; the exit status: 0, or 1 after a failure of its own."""
        self._report(f"{work_said(self._profile)}, ready; Spark starts with the first task that needs it")
        with signals_heard(self.stop):
            self._renewer.start()
            self._heart.start()
            self._scribe.start()
            self._attendance.start()
            self._claimer.start()
            self._claimer.resume()
            try:
                while not self._is_over():
                    self._turn()
            finally:
                self._close()
        return 1 if self._failure is not None else 130 if self._signals > 1 else 0

    def stop(self) -> None:
        """As a signal would: the first call drains, the second one stops at once. From any thread."""
        self._post(self._on_stop)

    # -- the loop ------------------------------------------------------------------------------

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        self._inbox.put(partial(call, *args))

    def _turn(self) -> None:
        """All events there are, or none in time; then what the clock says."""
        now = steady_s()
        times = [now + LOOK_S, *(min(run.context.deadline, run.limit_at) for run in self._running.values()
                                 if run.fate is None)]
        if self._stop_at is not None:
            times.append(self._stop_at)
        with contextlib.suppress(queue.Empty):
            self._inbox.get(timeout=max(0.0, min(times) - now))()
            while True:
                self._inbox.get_nowait()()
        if self._has_room:
            self._has_room = False
            self._admit()
        now = steady_s()
        for run in list(self._running.values()):
            if not run.is_lost and run.context.is_past:
                self._lose(run, "its lease ended")
            elif run.limit_at <= now:
                self._stop_run(run, Lot.FAILED, overran(run.timeout_s))
        self._give_back_what_waits_too_long()
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = now + STOP_S
            for run in list(self._running.values()):
                self._stop_run(run, Lot.GIVEN_BACK, "the worker stops and its time to end is over")

    def _is_over(self) -> bool:
        if self._failure is not None or self._signals > 1:
            return True
        is_idle = not (self._running or self._writing or self._waiting.runs or self._is_claiming)
        return self._stop_at is not None and is_idle

    def _on_stop(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self._report("stopping at once")
            return
        self._stop_at = steady_s() + self._grace_s
        self._claimer.close()
        self._write_releases(self._waiting.take_all(), "the worker stops")
        if self._running:
            self._report(f"stopping; {len(self._running)} running tasks have {self._grace_s:g} s to end")

    def _close(self) -> None:
        """Stop what still runs, then give back what is still held, then end the helpers."""
        self._claimer.close()
        self._attendance.close()
        self._ignition.close()
        self._heart.close()
        self._publisher.close(STOP_S)
        is_starting = not self._ignition.is_ready and self._signals > 1  # it dies with this process
        if self._ignition.was_asked and not is_starting:
            self._engine.stop(grace_s=0 if self._running or self._signals > 1 else STOP_S)
        held = [run for run in (*self._running.values(), *self._waiting.runs) if not run.is_lost]
        for run in held:
            run.context.lose("the worker stops")
            run.interrupt()
        self._write_releases(held, "the worker stops")
        if not self._scribe.close(STOP_S):
            self._report(f"{self._scribe.held} claims are not given back; their leases end by themselves")
        self._flow.close(STOP_S)
        self._loop.close()
        self._renewer.close()
        self._reading.close()
        self._report("stopped")

    def _status(self) -> WorkerStatus:
        """As of now; from any thread."""
        return status(self._profile, self._spark, len(self._running), len(self._waiting.runs), self._desk.statuses)

    # -- claims --------------------------------------------------------------------------------

    def _on_claims(self, made: list[Assignment]) -> None:
        self._renewer.hold([each.key for each in made], made[0].claim.deadline)
        batched = sum(assignment.kind is not None for assignment in made)
        self._ahead.note_claims(batched, len(made) - batched)
        claimed = {assignment.claim.id for assignment in made}
        for older in [run for run in self._running.values() if run.claim.id in claimed]:
            self._lose(older, "the task was claimed again")
        runs = [self._run_of(assignment) for assignment in made]
        if self._stop_at is None:
            self._waiting.add(runs)
            self._give_room(sum(run.is_beside for run in runs))
        else:
            self._write_releases(runs, "the worker stops")
        self._has_room = True

    def _run_of(self, assignment: Assignment) -> Run:
        claim = assignment.claim
        context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, self._reading.get,
                              self._reading.results_of, headers=claim.headers,
                              renewed=partial(self._renewer.newest, assignment.key))
        return Run(assignment, context, self._engine, self._loop, partial(self._post, self._on_end),
                   self._renewer.limit, self._flow.of(claim))

    def _on_known(self, made: list[Assignment], tasks: dict[bytes, Task]) -> None:
        """What tasks just claimed went through before."""
        self._waiting.know({each.key for each in made}, tasks)
        self._has_room = True

    def _admit(self) -> None:
        """Start what may run now, in the order in which it came; and claim more, unless a task is to run alone."""
        of_spark = [run for run in self._waiting.runs if run.needs_spark]
        ready = self._ready(of_spark, [run.deaths or 0 for run in self._running.values() if run.needs_spark])
        starting = [run for run in self._waiting.runs if not run.needs_spark or run.key in ready]
        free = self._slots - self._taken
        lots, others = self._seated.admitted((run for run in starting if not run.is_beside), free)
        lots += self._desk.lots(others, free - len(lots)) + [[run] for run in starting if run.is_beside]
        self._waiting.take({run.key for runs in lots for run in runs})
        for runs in lots:
            self._start(runs)
        self._ahead.note_starting(0 if self._ignition.is_ready else sum(
            run.needs_spark for run in self._waiting.runs))
        self._give_room(0)
        deaths = [run.deaths or 0 for run in self._running.values() if run.needs_spark]
        if (self._ignition.is_replacing or len(self._writing) > WRITING_MAX
                or not may_claim([run.deaths for run in self._waiting.runs], deaths)):
            self._claimer.pause()
        else:
            self._claimer.resume()

    def _ready(self, of_spark: list[Run], running: list[int]) -> set[Key]:
        """Which of those that need Spark may start."""
        if of_spark and self._engine.missing is not None:
            return {run.key for run in of_spark}  # to say so
        if of_spark and not self._ignition.was_asked:
            self._report("a task needs Spark, which is starting")
            self._ignition.ask()
        if not self._ignition.is_ready:
            return set()
        return {of_spark[index].key for index in admitted([run.deaths for run in of_spark], running)}

    @property
    def _taken(self) -> int:
        """Slots that are taken; those that run ``_beside`` take none."""
        return len(self._running) - self._desk.beyond - self._seated.beyond - self._beside

    def _start(self, runs: list[Run]) -> None:
        """Start a run, or several as a batch."""
        self._running |= {run.key: run for run in runs}
        self.counts.started += len(runs)
        self.counts.running = len(self._running)
        run = runs[0]
        if run.kind is not None:
            self._desk.begin(runs)
            return
        self._beside += run.is_beside
        self._seated.begin(runs)
        self._scribe.begin(run)
        if run.needs_spark:
            self._heart.watch(run)
        self._report(run.started_said)
        run.start()

    def _give_back_what_waits_too_long(self) -> None:
        """Slots are taken for longer than was thought: what was claimed ahead may be done elsewhere."""
        is_held_up = self._seated.is_held_up if self._taken < self._slots else None
        if late := self._waiting.take_late(self._desk.patience_s, is_held_up, has_spark=self._ignition.is_ready):
            self._ahead.forget()
            self._seated.forget(late)
            self._hand_back(late, "it was claimed ahead, and the tasks before it take long")

    def _on_seats(self, queues: Queues) -> None:
        """Give back what was claimed ahead for seats that are gone."""
        gone = self._seated.take(queues, self._waiting.runs)
        self._claimer.seat(queues)
        self._hand_back(self._waiting.take({run.key for run in gone}), "its seat is another worker's now")
        self._has_room = True

    def _hand_back(self, runs: Sequence[Run], reason: str) -> None:
        """Claims that waited."""
        self._claimer.ended([run.key for run in runs])
        self._give_room(sum(not run.is_beside for run in runs))
        self._write_releases(runs, reason)

    def _give_room(self, ended: int) -> None:
        """So many tasks are out of the way; and perhaps it is known better how many to claim ahead."""
        ahead = self._ahead.count
        self._claimer.give(ended + ahead - self._claimed_ahead)
        self._claimed_ahead = ahead

    def _on_claimer_end(self) -> None:
        self._is_claiming = False

    def _on_extended(self, key: Key, deadline: float) -> None:
        if run := self._running.get(key) or self._writing.get(key):
            run.context.extend(deadline)
        self._waiting.extend(key, deadline)

    def _on_cancelled(self, key: Key) -> None:
        """The task was cancelled: stop it. A run that is over already is written as it ended."""
        if key in self._running:
            self._stop_run(self._running[key], Lot.GIVEN_BACK, "the task was cancelled")

    def _on_lost(self, key: Key, reason: str) -> None:
        if key in self._running:
            self._lose(self._running[key], reason)
        elif key in self._writing:
            self._scribe.forget(self._writing[key])
        else:
            self._claimer.ended([key])
            self._give_room(sum(not run.is_beside for run in self._waiting.take({key})))
            self._has_room = True

    def _lose(self, run: Run, reason: str) -> None:
        if not run.decide(Lot.LOST, reason):
            return
        self.counts.lost += 1
        self._scribe.forget(run)
        self._renewer.drop([run.key])
        if run.kind is None:
            self._report(f"task {run.said} lost after {run.age_s:.1f} s: {reason}; cancelling")
        self._halt(run)

    def _stop_run(self, run: Run, lot: Lot, reason: str) -> None:
        """Stop a task whose claim is still ours; what becomes of it is written when it has ended."""
        if run.decide(lot, reason):
            self._halt(run)

    def _halt(self, run: Run) -> None:
        if run.batch is None or not run.batch.is_wanted:  # else the others of its batch go on, and it with them
            replace = partial(self._replace_engine, "did not confirm a cancellation", self._ignition.generation)
            halt(run, self._engine, partial(self._post, self._on_abandoned, run), partial(self._post, replace))

    # -- ends ----------------------------------------------------------------------------------

    def _on_end(self, run: Run, ending: Ending) -> None:
        if self._running.pop(run.key, None) is None:
            return
        self.counts.running = len(self._running)
        self.counts.seconds += run.age_s
        if not run.is_beside:
            self._ahead.note(run.age_s)
        self._seated.end(run)
        self._heart.forget(run)
        self._settle(run, ending)
        self._claimer.ended([run.key])
        self._beside -= run.is_beside
        self._give_room(not run.is_beside)
        self._has_room = True

    def _on_outcome(self, batch: Batch, outcome: Outcome) -> None:
        """A job of a batch has ended, or the batch. What it did not come to waits again, behind the others."""
        before = len(self._running)
        with self._scribe.together():
            left = self._desk.take(batch, outcome, self._running, self._settle)
        self._waiting.add(left)
        self._ahead.note_batch(self._desk.learn(batch, outcome))
        self._seated.end_batch(batch.kind.queue)
        self.counts.running = len(self._running)
        self.counts.seconds += outcome.wall_s
        self._claimer.ended([run.key for run, _ in outcome.ended if run.key not in self._running])
        self._give_room(before - len(self._running) - len(left))
        if outcome.is_over and self._desk.end(batch):
            self._report(batch.said)
        self._has_room = True

    def _settle(self, run: Run, ending: Ending) -> None:
        """Have the scribe write what became of a run."""
        if isinstance(ending, Failed) and not ending.is_engine_alive and run.fate is None:
            run.condemn("ended")
            self._on_engine_death("ended", self._ignition.generation)
        fate = run.fate
        if fate is not None and fate.lot is not Lot.FAILED:
            if fate.lot is Lot.GIVEN_BACK:
                self._write_releases([run], fate.words)
            return
        self._writing[run.key] = run
        if fate is not None:
            ending = failed(fate.words)
        if isinstance(ending, Returned):
            self._scribe.complete(run, ending.result)
            return
        if isinstance(ending, Snoozed):
            self._scribe.snooze(run, ending.delay_ms)
            return
        if not isinstance(ending, Failed):
            ending = failed("the function raised ClaimLost although its claim is not lost")
        if run.kind is None:
            final = " for good" if ending.is_final else ""
            words = ending.words[:WORDS_CHARS_MAX]
            self._report(f"task {run.said} failed{final} after {run.age_s:.1f} s: {words}")
        self._scribe.fail(run, ending.error, is_final=ending.is_final)

    def _write_releases(self, runs: Iterable[Run], reason: str) -> None:
        for run in runs:
            self._writing[run.key] = run
            if run.kind is None:
                self._report(f"task {run.said} given back: {reason}")
            is_said = run.kind is None or run.context.journal.has_death
            self._scribe.release(run, reason if is_said else "")

    def _on_done(self, runs: list[Run], what: str) -> None:
        self.counts.ended[what] = self.counts.ended.get(what, 0) + len(runs)
        self._renewer.drop([run.key for run in runs])
        self._has_room = True
        if what == "completed":
            self._publisher.publish([(str(run.claim.id), run.context.outputs) for run in runs])
        for run in runs:
            self._writing.pop(run.key, None)
            if what not in ("released", "failed", "died") and run.kind is None:
                self._report(f"task {run.said} {what} after {run.age_s:.1f} s")

    def _on_abandoned(self, run: Run) -> None:
        """It does not end, in a call into C perhaps. It is left alone: its Spark is cancelled."""
        if isinstance(run.batch, Batch):
            words = "the batch did not obey the order to stop"
            self._on_outcome(run.batch, Outcome([(each, failed(words)) for each in run.batch.runs.values()],
                                                is_over=True))
        elif run.key in self._running:
            _log.warning("task %s does not end; it is left behind", run.claim.id)
            for each in run.together:
                self._on_end(each, failed("the function did not obey the order to stop"))

    # -- the engine ----------------------------------------------------------------------------

    def _on_engine_ready(self, took_s: float) -> None:
        self._spark = self._engine.describe()
        self._report(f"ready in {took_s:.1f} s: {self._spark}")
        self._attendance.hasten()
        self._renewer.watch(self._engine.process_id)
        self._heart.resume()
        self._has_room = True

    def _on_failure(self, words: str) -> None:
        self._failure = words
        self._report(words)

    def _on_engine_death(self, what: str, generation: int) -> None:
        """It ended, or went silent for good: one of its tasks may be to blame."""
        if self._is_current(generation):
            for run in self._running.values():
                if run.needs_spark and run.fate is None:
                    run.condemn(what)
            self._replace_engine(what, generation)

    def _is_current(self, generation: int) -> bool:
        """Whether this engine is the one that works, and is not being replaced."""
        return self._ignition.is_ready and generation == self._ignition.generation

    def _replace_engine(self, what: str, generation: int) -> None:
        if not self._is_current(generation):
            return
        self._claimer.pause()
        self._heart.pause()
        for run in [run for run in self._running.values() if run.needs_spark]:
            run.decide(Lot.GIVEN_BACK, f"Spark's JVM {what}")
            run.interrupt()
        if self._stop_at is None:
            self._report(f"Spark's JVM {what}; starting another one")
            self._ignition.replace()
