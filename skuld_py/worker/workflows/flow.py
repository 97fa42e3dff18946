"""What a worker does around the functions of workflows' steps: before them the lifecycles, behind them the routing
of what they returned, and once that is written, the emitting.

    claimed -> begin: does the workflow live? may the step start? lifecycles
            -> the function, as that of any task
            -> end: lifecycles, conditions; the result becomes the emission
            -> the completion is written, as that of any task
            -> written: the children are enqueued, the ack is sent (``emitting``)

All that is asked of the cluster is asked for a batch: whether its workflow lives, and what those of its tasks went
through that were claimed before. A run without a batch is a batch of one.

Invariants:

* A segment of a workflow that has ended is not completed: it is dead, and says so. So is one of an earlier
  workflow of the same id.
* What a function returned is not lost by a cluster that does not answer: asking goes on until the claim is lost.
* Whatever conditions and lifecycles raise is an error of the segment, as if its function had raised it.
* What a completion emits is made in the life of the workflow that its segment is of, whatever was submitted under
  the same id while it was written.
* The end of a worker does not wait for ever for a lifecycle, nor does one that leaves the process hinder it.
* A function that this worker does not have costs a segment an attempt, not its life: another worker may have it.
* A segment that comes back again and again comes ever less often: each time is a claim on record, and with too
  many its task is dead.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from skuld_py.calls.payloads import decode_call
from skuld_py.calls.results import Carrying, Stored, decode_outputs, decode_result, encode_result
from skuld_py.client.claims import Claim
from skuld_py.client.steady import sleep, steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.ids import ID_BYTES, TaskId
from skuld_py.model.task import Task
from skuld_py.worker.assignment import Work
from skuld_py.worker.context import ClaimLost
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.endings import Ending, Failed, Returned, Snoozed, failed, snoozed
from skuld_py.worker.lease import Key
from skuld_py.worker.outcome import error_of, said
from skuld_py.worker.registry import traits_of_function
from skuld_py.worker.run import Run
from skuld_py.worker.scribe import is_passing
from skuld_py.worker.workflows.children import LIFE_BYTES, Completed, Nursery, life_bytes, packed
from skuld_py.worker.workflows.emitting import AGAIN_S, PATIENCE_S, Emitter, Enqueueing, Written
from skuld_py.worker.workflows.lifecycles import AGAIN_MS, Lifecycles
from skuld_py.worker.workflows.plans import KEPT_MAX, LIVE, Known, Plans, Standing
from skuld_py.worker.workflows.sealing import Sealer
from skuld_py.workflow.definition.definition import Definition, Moment, Policy
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.names import is_own, step_of
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.routing.hooks import judged, restarts
from skuld_py.workflow.routing.passage import WORDS_CHARS_MAX, Failure, Outcome, Resolve, Routed, Verdict
from skuld_py.workflow.routing.routes import Router
from skuld_py.workflow.segments import Emission, is_sole

REASON_CHARS_MAX = 250
FINAL = ("workflow_ended", "other_life", "unknown_step", "bad_segment", "bad_call", "bad_plan", "bad_workflow",
         "emission_too_large", "too_many_emitted", "bad_arguments")
"""What no other attempt would cure."""
ENDED = ("released", "failed", "snoozed")
FAILED, DIED = "failed", "died"
AGAIN_MS_MAX, AGAIN_MORE = 600_000, 1.05
"""After how long a segment comes back at most, and by how much later with each claim: a thousand take a week."""

T = TypeVar("T")
OnDone = Callable[[list[Run], str], None]


class Cluster(Known, Enqueueing, Protocol):
    """Who knows workflows and stores tasks: a client."""

    client: Any

    def kill_workflow(self, workflow: str, reason: str, *, life: int) -> Any:
        """Let nothing more of it run, if it is this one of its id."""

    def get_many(self, ids: Sequence[bytes | str]) -> list[Task]:
        """Those that exist."""


class _Step:
    """One step of a workflow, in this worker."""

    def __init__(self, definition: Definition, life: int, name: str, resolve: Resolve) -> None:
        if name not in definition.entries:
            raise Refused("unknown_step", f"step: {definition.id} has no step {name}", workflow=definition.id)
        self.definition = definition
        self.life = life
        self.name = name
        self.entry = definition.entries[name]
        self.nursery = Nursery(definition, life)
        self.lifecycles = Lifecycles(definition, name, resolve)
        self.is_leaf = not definition.children[name]
        self.is_routed = isinstance(self.entry.source, Outputs) and self.entry.source.routed
        self.router = Router(definition, name, resolve)
        self.resolve = resolve


class Flow:
    """Of one worker; from any thread."""

    def __init__(self, cluster: Cluster, resolve: Resolve) -> None:
        self._cluster = cluster
        self._resolve = resolve
        self._plans = Plans(cluster)
        self._steps: dict[tuple[str, str], _Step] = {}
        self._lock = threading.Lock()
        self._emitter = Emitter(cluster)
        self._sealers: dict[str, tuple[int, Sealer]] = {}
        """By workflow, with its life: what one doubts counts in the next look, too. The oldest look goes first."""

    @property
    def cluster(self) -> Cluster:
        """For a workflow's own tasks."""
        return self._cluster

    @property
    def resolve(self) -> Resolve:
        """Gives the functions that definitions name."""
        return self._resolve

    def plan(self, workflow: str) -> Definition:
        """The definition of a workflow that lives."""
        return self._plans.live(workflow)

    def check_life(self, workflow: str, life: int) -> Definition:
        """The definition of a workflow that lives; ``Dead`` if that was submitted at another time: it is another
        one."""
        alive, definition = self._plans.alive(workflow, life)
        if alive != life:
            raise Dead(f"this task is of an earlier workflow {workflow}, which has ended")
        return definition

    def known(self, workflow: str) -> tuple[Standing, Definition]:
        """How a workflow is, ended or not, and its definition."""
        return self._plans.known(workflow)

    def size_of(self, workflow: str, step: str) -> int:
        """How many segments of a step a slot takes together: by its entry, else by its function. One, where that
        is not to be known: the workflow has ended, or the function is not here. Raises what passes by itself."""
        try:
            entry = self._plans.live(workflow).entries[step]
            if entry.batch or not entry.function or entry.kind is Kind.INPUT:
                return entry.batch or 1
            return traits_of_function(self._resolve(entry.function)).batch or 1
        except KeyError:
            return 1
        except SkuldError as error:
            if is_passing(error):
                raise
            return 1

    def see_sealed(self, workflow: str) -> None:
        """Have the leaves of a workflow sealed, all of whose inputs are exhausted: the feeder that should may be
        gone, and nobody has a seat for it. What is enqueued already stays as it is."""
        standing, definition = self._plans.known(workflow)
        life, sealer = self._sealers.pop(workflow, (0, None))
        if standing.state == LIVE and {*definition.inputs} <= {*standing.exhausted}:
            left = [leaf for leaf in definition.leaves if leaf not in standing.sealed]
            if sealer is None or life != standing.life:
                sealer = Sealer(self._cluster.client, definition, standing.life)
            self._sealers[workflow] = standing.life, sealer
            if len(self._sealers) > KEPT_MAX:
                del self._sealers[next(iter(self._sealers))]
            sealer.have_sealed(left)

    def of(self, claim: Claim) -> Flow | None:
        """What is around the function that this claim is for: nothing, unless its queue is a workflow's."""
        return None if step_of(claim.queue) is None else self

    def takes_lists(self, run: Run) -> bool:
        """Whether the function of a run's step gets lists of segments: of one that has begun."""
        named = step_of(run.claim.queue)
        step = None if named is None else self._steps.get(named)
        return step is not None and bool(step.entry.batch) and bool(step.entry.function)

    def settle(self, timeout_s: float = PATIENCE_S) -> bool:
        """Wait until what was written is enqueued; whether it is in time."""
        return self._emitter.settle(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Enqueue what is left, and stop the steps: in threads, for what a lifecycle calls may not come back."""
        self._emitter.close(timeout_s)
        steps = [*self._steps.values()]
        until = steady_s() + timeout_s
        for number, step in enumerate(steps):
            thread = threading.Thread(target=_stop, args=(step,), name=f"stop {step.name}", daemon=True)
            thread.start()
            thread.join(max(0.0, until - steady_s()) / (len(steps) - number))

    # -- before ------------------------------------------------------------------------------------

    def begin(self, runs: Sequence[Run]) -> Mapping[Key, Ending]:
        """These, of one step, are about to run; how those ended that must not."""
        if _is_own(runs[0]):
            for run in runs:
                run.context.workflows, run.context.claim = self, run.claim
            return {}
        try:
            step = self._asked(runs, lambda: self._step(runs))
            if not step.lifecycles.start():
                self._pasts(runs)
                return {run.key: Snoozed(_again_ms(run)) for run in runs}
            step.lifecycles.call(Moment.BEFORE_BATCH, segments=len(runs))
        except ClaimLost:
            raise
        except BaseException as error:
            return {run.key: _ended(error) for run in runs}
        ended: dict[Key, Ending] = {}
        for run in runs:
            try:
                self._check_root(step, run)
                if step.lifecycles.has_tasks:
                    step.lifecycles.call(Moment.BEFORE_TASK, **_said(run))
            except ClaimLost:
                raise
            except BaseException as error:
                ended[run.key] = _ended(error)
        return ended

    def _step(self, runs: Sequence[Run]) -> _Step:
        """Of the newest life that one of them is of."""
        named = step_of(runs[0].claim.queue)
        assert named is not None
        life, definition = self._plans.alive(named[0], max(map(_life_of, runs)))
        with self._lock:
            known = self._steps.get(named)
            if known is None or known.definition is not definition or known.life != life:
                known = self._steps[named] = _Step(definition, life, named[1], self._resolve)
            return known

    @staticmethod
    def _check_root(step: _Step, run: Run) -> None:
        root_of(run)
        if not run.claim.payload.endswith(life_bytes(step.life)):
            raise Refused("other_life", f"payload: segment {run.claim.id} is of an earlier workflow"
                          f" {step.definition.id}, which has ended")

    def _asked(self, runs: Sequence[Run], ask: Callable[[], T]) -> T:
        """The cluster's answer, however long it takes, while one of these claims is held."""
        while True:
            try:
                return ask()
            except SkuldError as error:
                if not is_passing(error) or all(run.context.is_lost for run in runs):
                    raise
            sleep(AGAIN_S)

    # -- behind ------------------------------------------------------------------------------------

    def end(self, ended: Sequence[tuple[Run, Ending]]) -> Sequence[tuple[Run, Ending]]:
        """These, of one step, have ended: what becomes of them by the workflow's conditions and policies."""
        if not ended or _is_own(ended[0][0]):
            return ended
        runs = [run for run, _ in ended]
        try:
            step = self._asked(runs, lambda: self._step(runs))
            pasts = self._pasts(runs)
        except ClaimLost:
            raise
        except BaseException as error:
            return [(run, _ended(error) if isinstance(ending, Returned | Failed) else ending)
                    for run, ending in ended]
        settled = [(run, self._end_one(step, run, ending, pasts)) for run, ending in ended]
        try:
            step.lifecycles.call(Moment.AFTER_BATCH, segments=len(runs))
        except ClaimLost:
            raise
        except BaseException as error:
            return [(run, _ended(error) if isinstance(ending, Returned) else ending) for run, ending in settled]
        return settled

    def _pasts(self, runs: Sequence[Run]) -> Mapping[bytes, Task]:
        """The tasks of these that were claimed before."""
        again = [run.claim.id for run in runs if not run.claim.is_first]
        if not again:
            return {}
        pasts = {task.id: task for task in self._asked(runs, lambda: self._cluster.get_many(again))}
        for run in runs:
            if run.claim.id in pasts:
                run.is_alone = _is_alone(pasts[run.claim.id], run.claim.token)
                run.claims = len(pasts[run.claim.id].claims)
        return pasts

    def _end_one(self, step: _Step, run: Run, ending: Ending, pasts: Mapping[bytes, Task]) -> Ending:
        if not isinstance(ending, Returned | Failed) or not getattr(ending, "is_engine_alive", True):
            return ending
        failure = _failure_of(ending) if isinstance(ending, Failed) else None
        if isinstance(ending, Failed) and ending.is_final and not self._has(step.entry.function):
            ending = attrs.evolve(ending, is_final=False)
        try:
            self._check_root(step, run)
            if step.lifecycles.has_tasks:
                error = None if failure is None else attrs.asdict(failure)
                step.lifecycles.call(Moment.AFTER_TASK, error=error, **_said(run))
            run.nursery = step.nursery
            if step.is_leaf and failure is None:
                run.emitted = Emission()
                return ending
            past = pasts.get(run.claim.id)
            outcome = _outcome(step, run, ending, failure, 1 if past is None else past.attempts + 1)
            if step.is_routed and failure is None:
                return self._routed(step, run, ending, outcome, _as_before(step, outcome.values[0]))
            return self._routed(step, run, ending, outcome, step.router.route(outcome))
        except ClaimLost:
            raise
        except BaseException as error:
            return _ended(error)

    def _has(self, function: str) -> bool:
        """Whether a step's function is here; an output needs none."""
        try:
            return not function or bool(self._resolve(function))
        except Refused:
            return False

    def _routed(self, step: _Step, run: Run, ending: Returned | Failed, outcome: Outcome,
                routed: Routed) -> Ending:
        if routed.verdict is Verdict.RETRY and outcome.is_last and restarts(step.definition, step.name):
            return Snoozed(_again_ms(run))  # dead it would wait until its feeder hears of it
        if routed.verdict is Verdict.RETRY:
            return failed("a condition of its workflow says that it is to be tried again")
        if routed.verdict is Verdict.FAILED:
            return self._judged(step, run, ending, attrs.evolve(outcome, failure=routed.failure))
        outputs = decode_outputs(ending.result) if isinstance(ending, Returned) else ()
        run.emitted = Emission(tuple((to, packed(value)) for to, value in routed.emitted))
        stored = Stored(run.emitted.encode())
        return Returned(encode_result(Carrying(stored, outputs)) if outputs else stored)

    def _judged(self, step: _Step, run: Run, ending: Returned | Failed, outcome: Outcome) -> Ending:
        """What becomes of a segment whose failure no condition took."""
        judgement = judged(step.definition, step.name, outcome, step.resolve)
        if judgement.policy is Policy.RESTART:
            return Snoozed(_again_ms(run))
        if not isinstance(ending, Failed):
            failure = outcome.failure or Failure("", "")
            ending = failed(f"{failure.type}: {failure.message}")
        if judgement.policy is Policy.KILL:
            name, reason = step.definition.id, judgement.reason[:REASON_CHARS_MAX]
            self._asked([run], lambda: self._cluster.kill_workflow(name, reason, life=step.life))
            return attrs.evolve(ending, is_final=True)
        return ending

    # -- once it is written ------------------------------------------------------------------------

    def written(self, on_done: OnDone) -> OnDone:
        """What is told the ends of runs: the same, and what these emitted is enqueued."""
        def done(runs: list[Run], what: str) -> None:
            on_done(runs, what)
            if what == "completed":
                self._emit(runs)
            elif what in (FAILED, DIED):
                self._hint(runs, what)
        return done

    def _hint(self, runs: Sequence[Run], what: str) -> None:
        """Tell the feeder of segments that may be dead now: it looks at these at once, and at others by time."""
        told = []
        for run in runs:
            named = step_of(run.claim.queue)
            step = None if named is None or _is_own(run) else self._steps.get(named)
            if step is None or (what == FAILED and run.claim.is_first and step.entry.attempts > 1):
                continue
            with contextlib.suppress(SkuldError):
                root, source = root_of(run)
                completed = Completed(run.claim.id, root, source, run.claim.token, 0, Emission())
                told.append(Written(completed, step.nursery, step.definition.id, is_sure=False))
        if told:
            self._emitter.emit(told)

    def _emit(self, runs: Sequence[Run]) -> None:
        if written := [self._written(run) for run in runs if run.emitted is not None]:
            self._emitter.emit(written)

    def _written(self, run: Run) -> Written:
        named = step_of(run.claim.queue)
        assert named is not None and run.emitted is not None and run.nursery is not None
        claim, (root, source) = run.claim, root_of(run)
        start_ms = claim.end_ms - round(claim.lease_s * 1000)
        completed = Completed(claim.id, root, source, claim.token, start_ms, run.emitted)
        return Written(completed, run.nursery, named[0],
                       is_sole(run.is_alone, claim.clock(), run.context.deadline))


def _stop(step: _Step) -> None:
    with contextlib.suppress(BaseException):
        step.lifecycles.stop()


def _is_own(run: Run) -> bool:
    """Whether a task is one that a workflow has for itself, and no segment."""
    named = step_of(run.claim.queue)
    return named is None or is_own(named[1])


def _is_alone(task: Task, token: int) -> bool:
    """Whether all earlier claims were ended by their holders, each of which says only one end of a claim: then
    none of them completes the task. One that lapsed may have been completed where nobody heard of it yet."""
    return all(claim.outcome in ENDED for claim in task.claims if claim.token < token)


def _again_ms(run: Run) -> int:
    return round(min(AGAIN_MS_MAX, AGAIN_MS * AGAIN_MORE ** min(run.claims, 1_000)))


def _life_of(run: Run) -> int:
    """The life that a segment says it is of; 0 for one that cannot be, by the clock that granted its claim."""
    life = int.from_bytes(run.claim.payload[-LIFE_BYTES:], "big")
    return life if life < run.claim.end_ms else 0


def root_of(run: Run) -> tuple[TaskId, str]:
    """The root of a segment, and the input that made it."""
    work = run.assignment.work
    tag = (work.call if isinstance(work, Work) else decode_call(run.claim.payload)).root
    if not tag:
        raise Refused("bad_segment", f"payload: task {run.claim.id} in {run.claim.queue} says no root; segments"
                      " are made by workflows alone, do not enqueue them")
    return TaskId(tag[:ID_BYTES]), tag[ID_BYTES:-LIFE_BYTES].decode("utf-8", "replace")


def _outcome(step: _Step, run: Run, ending: Returned | Failed, failure: Failure | None, attempt: int) -> Outcome:
    work = run.assignment.work
    given = work.call.args[0] if isinstance(work, Work) and work.call.args else None
    if step.entry.batch and isinstance(given, list) and given:
        given = given[0]
    is_final = isinstance(ending, Failed) and ending.is_final
    values: tuple[Any, ...] = ()
    if isinstance(ending, Returned):
        value = decode_result(ending.result)
        values = (value,) if step.entry.kind is Kind.INPUT else _values_of(value)
    return Outcome(given, values, failure, attempt, is_final or attempt >= step.entry.attempts)


def _as_before(step: _Step, rows: Any) -> Routed:
    """What another workflow's conditions routed, as far as its steps are here, too."""
    children = step.definition.children[step.name]
    return Routed(Verdict.EMIT, tuple((to, value) for to, value in rows if to in children))


def _values_of(returned: Any) -> tuple[Any, ...]:
    """What a function returned: nothing, a list of values, or one."""
    if returned is None:
        return ()
    return tuple(returned) if isinstance(returned, list) else (returned,)


def _said(run: Run) -> dict[str, Any]:
    root, source = root_of(run)
    return {"id": str(run.claim.id), "root": str(root), "input": source}


def _failure_of(ending: Failed) -> Failure:
    kind, _, message = ending.words.partition(": ")
    return Failure(kind, message[:WORDS_CHARS_MAX])


def _ended(error: BaseException) -> Ending:
    """What conditions, lifecycles, or the lack of a workflow, make of a segment."""
    if isinstance(error, Snooze):
        return snoozed(error)
    is_final = isinstance(error, Dead) or (isinstance(error, Refused) and error.code in FINAL)
    return Failed(said(error), error_of(error), is_final=is_final)
