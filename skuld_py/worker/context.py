"""What a running task knows of its claim and may say about itself.

    def census(spark, context, paths):
        for number, path in enumerate(paths):
            context.check()                              # raises ClaimLost once the claim is lost
            context.progress(number, len(paths), path)

Invariants:

* ``is_lost`` turns true once and stays; from then on nothing of this claim may become visible. It turns true
  by the worker's word or by this machine's clock, whichever is earlier. Before the clock is believed, it is asked
  whether the lease was renewed meanwhile (``renewed``): a task that holds the interpreter's lock hears nothing.
* ``ClaimLost`` is no ``Exception``: the order to stop is not to be swallowed by a task that forgives errors.
* Nothing here talks to the cluster except ``history``, ``resumed`` and ``attempt``, which read once, all together,
  when first asked, and ``results``, which reads when it is called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.client.steady import steady_s, wall_ms
from skuld_py.errors import Refused
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.ids import TaskId
from skuld_py.model.task import ClaimView, Task
from skuld_py.model.tracing import TRACEPARENT, is_traceparent
from skuld_py.output.output import Output, Outputs
from skuld_py.worker.journal import Journal, Words, decode_entry

if TYPE_CHECKING:
    from skuld_py.output.store import Store

JOIN_STEP_S = 0.5
_UNREAD = object()


class ClaimLost(BaseException):
    """The claim is no longer this worker's: stop, publish nothing."""


@attrs.frozen
class PastClaim:
    """An earlier claim of the same task: its holder, and its log. Of a task with more than a MiB of log the oldest
    entries are left out; a claim that lacks some ``is_cut``."""

    token: int
    holder: str
    start_ms: int
    entries: tuple[dict[str, Any], ...]
    is_cut: bool = False


class TaskContext:
    """A task's view of its claim. Its methods may be called from any thread. ``headers``: those it was enqueued
    with."""

    def __init__(self, task_id: TaskId, token: int, queue: str, deadline: float,
                 read: Callable[[TaskId], Task], results_of: Callable[..., list[Any]],
                 clock: Callable[[], float] = steady_s,
                 headers: Mapping[str, str] = MappingProxyType({}),
                 renewed: Callable[[], float] = lambda: 0.0) -> None:
        self.id = task_id
        self.token = token
        self.queue = queue
        self.headers = headers
        self.journal = Journal(clock())
        self._clock = clock
        self._renewed = renewed
        self._deadline = deadline
        self._read = read
        self._results_of = results_of
        self.inherit: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function
        """Makes a function one that runs as this task in another thread; the engine knows how."""
        self.workflows: Any = None
        """Of a task that a workflow has for itself: the worker's part of workflows, a ``flow.Flow``."""
        self.claim: Any = None
        """Of such a task: its claim, by which a feeder writes its checkpoint itself."""
        self._spawned: list[Future[Any]] = []
        self._task: Task | None = None
        self._lost: str | None = None
        self._has_marked = False
        self._resumed: Any = _UNREAD
        self.outputs = Outputs(task_id, token, self.check, _store_of)

    @property
    def name(self) -> str:
        """``ID:TOKEN``, which no other claim ever has: the Spark job group, and good for temporary things."""
        return f"{self.id}:{self.token}"

    @property
    def traceparent(self) -> str | None:
        """The trace that the task was enqueued in, by W3C Trace Context; None without one, or one that is none."""
        text = self.headers.get(TRACEPARENT, "")
        return text if is_traceparent(text) else None

    @property
    def deadline(self) -> float:
        """When the lease ends unless it is renewed, by ``client.steady``; the worker renews it."""
        return self._deadline

    @property
    def is_lost(self) -> bool:
        """Whether the claim is lost."""
        return self._lost is not None or self.is_past

    @property
    def is_past(self) -> bool:
        """Whether the lease has ended by this machine's clock, and was not renewed in time."""
        if self._clock() >= self._deadline:
            self.extend(self._renewed())
        return self._clock() >= self._deadline

    def check(self) -> None:
        """Raise ``ClaimLost`` if the claim is lost; cheap enough for an inner loop."""
        if self.is_lost:
            raise ClaimLost(f"the claim {self.name} is lost: {self._lost or 'its lease ended'}")

    def progress(self, done: float, total: float, note: str = "") -> None:
        """Say how far the task is. Only the newest is kept; it is written about once a second, later less."""
        self.journal.progress(done, total, note)

    def log(self, words: Words) -> None:
        """Add a sentence, or a dict of plain JSON, to the task's log; written within about a second."""
        self.journal.say(words, wall_ms())

    def log_surely(self, words: Mapping[str, Any]) -> threading.Event:
        """Add a dict of plain JSON to the task's log, whatever else it said; the event is set once it is there."""
        return self.journal.say_surely(words, wall_ms())

    def claim_path(self, base: str) -> str:
        """``BASE/ID/TOKEN``: a place no other claim writes to. Readers trust the completing token's alone."""
        return f"{base.rstrip('/')}/{self.id}/{self.token}"

    def output(self, path: str, name: str = "") -> Output:
        """A place below a path that no other claim writes to. What is written there becomes visible, as
        ``PATH/task=ID``, when the task is completed, or never; ``skuld_py.read_output`` reads it. ``name``: what
        readers call it, the last part of the path without one. Once the function has returned it is sealed."""
        return self.outputs.open(path, name)

    def spawn(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function in a thread of its own, as this task: its Spark jobs are the task's, they show in its
        progress and end when it is cancelled. Jobs from threads made otherwise are nobody's. The task is not over
        before the function is, and fails if that fails. ``result()`` gives what it returned."""
        future: Future[Any] = Future()
        target = self.inherit(function)

        def run() -> None:
            try:
                future.set_result(target(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._spawned.append(future)
        threading.Thread(target=run, name=f"task {self.id}", daemon=True).start()
        return future

    def checkpoint(self, value: Any) -> None:
        """Say from where to go on, should this claim end before the task is done: whatever a task may return, up
        to 64 KiB. A task has one checkpoint, which a new one replaces. The newest is written about once a second,
        and before the claim ends; what it says must be true by then, so write the data first."""
        self._has_marked = True
        self.journal.checkpoint(value)

    @property
    def resumed(self) -> Any:
        """The checkpoint of the earlier claims of this task: the newest that was written; None without one. To be
        asked for before the first ``checkpoint``, which takes its place (``Refused`` as ``resumed_late``)."""
        if self._resumed is _UNREAD:
            if self._has_marked:
                raise Refused("resumed_late", "resumed: ask for it before the first checkpoint of this claim,"
                              " which takes its place")
            self._resumed = _value_of(self._read_task().checkpoint, self.token)
        return self._resumed

    @property
    def history(self) -> tuple[PastClaim, ...]:
        """Earlier claims of this task, oldest first, with their logs: where to resume from."""
        return tuple(PastClaim(claim.token, claim.holder, claim.start_ms, tuple(map(decode_entry, claim.log)),
                               claim.is_cut) for claim in self._earlier())

    @property
    def attempt(self) -> int:
        """How often the task was claimed so far, this time included, and with claims that reached no worker."""
        return len(self._earlier()) + 1

    def attempt_said(self, is_first: bool) -> str:
        """``attempt 2/3``: the second of three. Attempts that failed or lapsed count, since the task was last
        revived. For lines of a log: what is not known yet is not read, but whether this is the first claim is."""
        if self._task is None:
            return "attempt 1" if is_first else "claimed before"
        return f"attempt {self._task.attempts + 1}/{self._task.retry.max_attempts}"

    def results(self, *, missing_ok: bool = False) -> list[Any]:
        """What the tasks that this one waited for returned, in the order of their making; None for one without a
        result. A join stands for the tasks that it waited for.
        ``Refused`` when such a task does not exist; with ``missing_ok`` it counts as None."""
        return self._results_of(self.id, missing_ok=missing_ok)

    def _read_task(self) -> Task:
        if self._task is None:
            self._task = self._read(self.id)
        return self._task

    def _earlier(self) -> list[ClaimView]:
        return [claim for claim in self._read_task().claims if claim.token < self.token]

    # -- the worker's side ---------------------------------------------------------------------

    @property
    def is_joined(self) -> bool:
        """Whether all that the task spawned is over."""
        return all(future.done() for future in self._spawned)

    def join(self) -> None:
        """Wait for what the task spawned; the first failure is raised."""
        while self._spawned:
            future = self._spawned[0]
            while not future.done():  # in steps, so that the order to stop arrives
                wait([future], JOIN_STEP_S)
            future.result()
            self._spawned.remove(future)

    def know(self, task: Task) -> None:
        """The task as it was read when it was claimed."""
        self._task = task

    @property
    def earlier(self) -> list[ClaimView]:
        """Earlier claims of this task, oldest first."""
        return self._earlier()

    def extend(self, deadline: float) -> None:
        """The lease was renewed until then."""
        self._deadline = max(self._deadline, deadline)

    def lose(self, reason: str) -> None:
        """The claim is lost, for this reason; the first one stays."""
        self._lost = self._lost or reason


def _value_of(checkpoint: Checkpoint | None, token: int) -> Any:
    """What earlier claims than this one have said."""
    return checkpoint.value if checkpoint is not None and checkpoint.token < token else None


def _store_of(path: str) -> Store:
    """Its module is loaded by the first task that writes an output."""
    from skuld_py.output.performing import store_of

    return store_of(path)
