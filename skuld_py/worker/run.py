"""One claim being run: a thread that calls the task's function, or a coroutine in the event loop; and the order to
stop it.

A thread per run, not a pool: the order to stop arrives as an exception at some later moment, and in a thread
that had gone on to another task it would hit the wrong one.

Invariants:

* A run ends once, with one ending, whatever its function raises, or what is around it: one that did not end
  would keep its slot, and its claim, until the worker does.
* The order to stop is given at most once. It can arrive anywhere in the thread, also after the function has
  returned, so all code behind the function expects it, and does nothing that matters to others.
* What is decided of a run while it runs, its fate, is decided once; but a claim that is lost is lost, whatever was
  decided before. What its function does afterwards changes nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from skuld_py.calls.payloads import Call
from skuld_py.calls.results import Carrying
from skuld_py.calls.sight import call_line
from skuld_py.client.steady import monotonic_s, steady_s, wall_ms
from skuld_py.errors import Refused
from skuld_py.worker.assignment import Assignment, Work
from skuld_py.worker.batches.part import Done, Item, Order
from skuld_py.worker.blame import verdict
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.endings import Ending, Stopped, ended_by, ended_with, failed, refused
from skuld_py.worker.event_loop import Course, EventLoop
from skuld_py.worker.lease import Key
from skuld_py.worker.lists import joined, shared, stopped_for
from skuld_py.worker.middleware import Middleware, middleware_added, surround
from skuld_py.worker.outcome import said
from skuld_py.worker.tracing import spanned
from skuld_py.workflow.definition.names import is_feeder
from skuld_py.workflow.segments import Emission

if TYPE_CHECKING:
    from skuld_py.worker.workflows.children import Nursery

CALL_CHARS = 80
NEVER_S = float("inf")


class Engine(Protocol):
    """What runs functions that need Spark; Spark, outside of tests."""

    def describe(self) -> str:
        """What it is and where it runs, for people; of one that runs, how it is found elsewhere."""

    @property
    def missing(self) -> str | None:
        """Why it can never start here, and what to do; None where it can."""

    def start(self) -> None:
        """Be ready for calls."""

    def restart(self) -> None:
        """Begin anew; calls that are under way fail."""

    def stop(self, grace_s: float) -> None:
        """End, and everything that runs in it."""

    @property
    def process_id(self) -> int | None:
        """The process that runs its jobs, None where there is none of its own: to be killed with all of them."""

    def is_alive(self) -> bool:
        """Whether it answers; gives up soon."""

    def is_gone(self) -> bool:
        """Whether it ended and will never answer again."""

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        """The function's result; its jobs belong to ``context.name``."""

    def call_many(self, name: str, order: Order, items: Sequence[Item]) -> Sequence[Done]:
        """How the items of one job ended, in order, in parts (``batches``); the job belongs to ``name``."""

    def cancel(self, name: str, timeout_s: float) -> bool:
        """End the jobs of a call, and refuse its later ones; False when that is not certain by then."""

    def is_swept(self) -> bool:
        """End the jobs that belong to no call that runs, and the processes of their own in which they run; False
        when it is not certain that they ended."""

    def counts(self, name: str) -> dict[str, Any] | None:
        """How far the jobs of a call are; None when there is nothing to say."""


class Company(Protocol):
    """The batch that a run is in: its jobs' name, whether any of its runs is to go on, and the order to stop."""

    name: str

    @property
    def is_wanted(self) -> bool: ...

    def stop(self) -> None: ...

    def join(self, timeout_s: float) -> bool: ...


class Flow(Protocol):
    """What a workflow has around the functions of its steps. Both are called where the function is, with runs of
    one step."""

    def begin(self, runs: Sequence[Run]) -> Mapping[Key, Ending]:
        """These are about to run; how those ended that must not."""

    def end(self, ended: Sequence[tuple[Run, Ending]]) -> Sequence[tuple[Run, Ending]]:
        """These have ended: what becomes of them by the workflow's conditions."""

    def takes_lists(self, run: Run) -> bool:
        """Whether the function of a run's step gets lists of segments. Known once it has begun."""


class Lot(Enum):
    """What is written of a run that is stopped: nothing, that its claim is given back, or that it failed."""

    LOST = "lost"
    GIVEN_BACK = "given back"
    FAILED = "failed"


@attrs.frozen
class Fate:
    """What becomes of a run before its function ends by itself, and why, in words."""

    lot: Lot
    words: str


class Run:
    """A claim, its context, and where its function runs."""

    def __init__(self, assignment: Assignment, context: TaskContext, engine: Engine, loop: EventLoop,
                 on_end: Callable[[Run, Ending], None], on_limit: Callable[[Key, float], None],
                 flow: Flow | None = None) -> None:
        self.assignment = assignment
        self.claim = assignment.claim
        self.context = context
        self.key = assignment.key
        self.kind = assignment.kind
        self.batch: Company | None = None
        """The batch that it runs in."""
        self.together: Sequence[Run] = (self,)
        """Those that one call of the function is for; the first one's thread calls it."""
        self.needs_spark = assignment.needs_spark
        self.is_beside = is_feeder(assignment.claim.queue)
        """Whether it takes no slot: it mostly waits, for what runs in slots."""
        self.received_s = self.started_s = monotonic_s()
        self.fate: Fate | None = None
        self.deaths: int | None = None if assignment.has_past else 0
        """How many engines died under it, see ``blame``; None until that is known. Without Spark none could."""
        self.limit_at = NEVER_S
        """By the steady clock, when it has run for too long."""
        self.flow = flow
        """What is around its function, of a segment of a workflow."""
        self.emitted: Emission | None = None
        """What a segment emits once its completion is written."""
        self.nursery: Nursery | None = None
        """Makes the tasks of that, in the life of the workflow in which the segment ran."""
        self.is_alone = assignment.claim.is_first
        """Whether no other claim of its task can complete it while this one is held."""
        self.claims = 0
        """How many its task has on record, if it was claimed before and a workflow asked."""
        self._engine = engine
        self._loop = loop
        self._on_end = on_end
        self._on_limit = on_limit
        self._thread: threading.Thread | None = None
        self._course: Course | None = None
        self._lock = threading.Lock()
        self._may_be_interrupted = True

    @property
    def age_s(self) -> float:
        """How long it has been running."""
        return monotonic_s() - self.started_s

    @property
    def timeout_s(self) -> float | None:
        """How long it may take."""
        return self.assignment.work.timeout_s if isinstance(self.assignment.work, Work) else None

    @property
    def is_along(self) -> bool:
        """Whether another one's thread calls the function for it."""
        return self.together[0] is not self

    @property
    def job(self) -> str:
        """What the engine knows it by."""
        return self.context.name if self.batch is None else self.batch.name

    @cached_property
    def said(self) -> str:
        """The task in a line of the log: its id, and the call."""
        line = call_line(self.claim.payload, CALL_CHARS)
        return f"{self.claim.id} {line}" if line else str(self.claim.id)

    @property
    def attempt_said(self) -> str:
        """Which attempt this is, in a line of the log."""
        return self.context.attempt_said(self.claim.is_first)

    @property
    def started_said(self) -> str:
        """That it starts, in a line of the log."""
        alone = ", alone: it ran when Spark's JVM died" if self.deaths else ""
        along = f", and {len(self.together) - 1} more with it" if len(self.together) > 1 else ""
        return f"task {self.said} started, {self.attempt_said}, token {self.claim.token}{alone}{along}"

    @property
    def is_lost(self) -> bool:
        """Whether its claim is lost."""
        return self.fate is not None and self.fate.lot is Lot.LOST

    @property
    def fate_words(self) -> str:
        """Why its fate is what it is; nothing where none is decided."""
        return "" if self.fate is None else self.fate.words

    def decide(self, lot: Lot, words: str) -> bool:
        """Decide its fate, and tell its function; whether that is news."""
        if self.fate is not None and (lot is not Lot.LOST or self.is_lost):
            return False
        self.fate = Fate(lot, words)
        self.context.lose(words)
        return True

    def condemn(self, what: str) -> None:
        """Decide its fate when the engine died under it; ``what`` the engine did."""
        judged = verdict(bool(self.deaths), what)
        self.context.journal.engine_died(what, wall_ms())
        if judged.has_failed:
            self.decide(Lot.FAILED, f"{judged.words}, as it did when this task ran before; this time it ran alone")
        else:
            self.decide(Lot.GIVEN_BACK, judged.words)

    def start(self) -> None:
        """Call the function: in a thread of its own, or in the event loop."""
        self.started_s = monotonic_s()
        work = self.assignment.work
        if isinstance(work, Work):
            if work.timeout_s is not None:
                for run in self.together:
                    run.limit_at = steady_s() + work.timeout_s
                    self._on_limit(run.key, run.limit_at)
            if work.traits.is_async:
                self._course = self._loop.start(lambda: self._await(work))
                return
        self._thread = threading.Thread(target=self._main, name=f"task {self.claim.id}", daemon=True)
        self._thread.start()

    def join_batch(self, batch: Company) -> None:
        """Run in a batch, which calls the function and says how it ended."""
        self.started_s = monotonic_s()
        self.batch = batch

    def interrupt(self) -> None:
        """Raise ``ClaimLost`` where the function stands; in a call into C, when that returns. An async function
        is cancelled, a batch begins no other job."""
        if self.batch is not None:
            self.batch.stop()
        if self._course is not None:
            self._course.stop()
        self.interrupt_thread()

    def interrupt_thread(self) -> None:
        """Its own one, if it has one."""
        with self._lock:  # a thread that has ended lends its number to another one
            thread = None if self._thread is None else self._thread.ident
            if thread is not None and self._may_be_interrupted:
                self._may_be_interrupted = False
                set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
                set_exception(ctypes.c_ulong(thread), ctypes.py_object(ClaimLost))

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        if self.batch is not None:
            return self.batch.join(timeout_s)
        if self._course is not None:
            return self._course.join(timeout_s)
        return self.join_thread(timeout_s)

    def join_thread(self, timeout_s: float) -> bool:
        """Wait for the end of its own one; whether it came."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _main(self) -> None:
        ended: Sequence[tuple[Run, Ending]] | None = None
        for _ in range(3):  # afterwards the order to stop has arrived, and all that could fail has
            try:
                if ended is None:
                    ended = self.endings()
                with self._lock:
                    self._may_be_interrupted = False
                for run, ending in ended:
                    self._on_end(run, ending)
                return
            except ClaimLost:
                ended = ended or [(run, Stopped()) for run in self.together]
            except BaseException as error:
                ended = ended or [(run, failed(said(error))) for run in self.together]

    def ending(self) -> Ending:
        """Call the function here, and say how it ended."""
        return next(ending for run, ending in self.endings() if run is self)

    def endings(self) -> Sequence[tuple[Run, Ending]]:
        """Call the function here, and say how those ended that the call is for."""
        if self.flow is None:
            return [(self, self._endings(self.assignment.work)[0])]
        early = self.flow.begin(self.together)
        going = [run for run in self.together if run.key not in early]
        work = joined([run.assignment.work for run in going]) if going else self.assignment.work
        endings = self._endings(work, len(going)) if going else ()
        ended = list(zip(going, endings, strict=True))
        if len(going) > 1:
            ended = [(run, stopped_for(run, ending)) for run, ending in ended]
        return [*self.flow.end(ended), *((run, early[run.key]) for run in self.together if run.key in early)]

    def _endings(self, work: Work | Refused, count: int = 1) -> Sequence[Ending]:
        """How a call ended that is for so many."""
        if isinstance(work, Work):
            work = work.made()
        if isinstance(work, Refused):
            return [refused(work)] * count
        if work.traits.needs_spark and (missing := self._engine.missing) is not None:
            return [failed(missing)] * count
        body = _body(work)
        try:
            if work.traits.needs_spark:
                value = self._engine.call(body, self.context, work.call)
            else:
                value = body(None, self.context, *work.call.args, **work.call.kwargs)
                self.context.join()
            return self._ended_with(self.context.outputs.sealed(value), count)
        except ClaimLost:
            return [Stopped()] * count
        except BaseException as error:  # also SystemExit: a task does not end the worker
            is_alive = not work.traits.needs_spark or self._engine.is_alive()
            return [ended_by(error, work.traits, is_engine_alive=is_alive)] * count

    def _ended_with(self, value: Any, count: int = 1) -> Sequence[Ending]:
        """Each of those that the call was for, by what it returned."""
        if self.flow is None or not self.flow.takes_lists(self):
            return [ended_with(value)]
        written = value.outputs if isinstance(value, Carrying) else ()
        try:
            values = shared(value.value if isinstance(value, Carrying) else value, count)
            return [ended_with(Carrying(each, written) if written else each) for each in values]
        except Refused as problem:
            return [refused(problem)] * count

    async def _await(self, work: Work) -> None:
        try:
            ending = await self._awaited(work) if self.flow is None else await self._flowing(self.flow, work)
        except BaseException as error:
            ending = Stopped() if self.fate is not None else failed(said(error))
        self._on_end(self, ending)

    async def _flowing(self, flow: Flow, work: Work) -> Ending:
        import asyncio

        early = await asyncio.to_thread(flow.begin, [self])
        if early:
            return early[self.key]
        return (await asyncio.to_thread(flow.end, [(self, await self._awaited(work))]))[0][1]

    async def _awaited(self, work: Work) -> Ending:
        import asyncio

        made = work.made()
        if isinstance(made, Refused):
            return refused(made)
        try:
            value = await _body(made)(None, self.context, *made.call.args, **made.call.kwargs)
            if not self.context.is_joined:
                await asyncio.to_thread(self.context.join)
            if self.context.outputs.every:
                value = await asyncio.to_thread(self.context.outputs.sealed, value)
            return self._ended_with(value)[0]
        except (asyncio.CancelledError, ClaimLost) as error:
            return Stopped() if self.fate is not None else ended_by(error, work.traits)
        except BaseException as error:
            return ended_by(error, work.traits)


def body_of(work: Work, middleware: Sequence[Middleware]) -> Callable[..., Any]:
    """The function with all that is around it, called with session and context first."""
    traits, call = work.traits, work.call
    given = traits.injection.applied(work.function)
    return surround(given, call, () if traits.batch else middleware, is_async=traits.is_async)


def _body(work: Work) -> Callable[..., Any]:
    """The same as a worker has it, in a span of its own."""
    return spanned(body_of(work, middleware_added()), work.call, is_async=work.traits.is_async)

