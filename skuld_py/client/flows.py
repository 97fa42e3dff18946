"""The verbs about workflows, and the one that follows the coordination log.

Submitting has three steps, each of which may be done again after any break: the definition becomes the payload of
the *plan task*, which nobody claims; the log is told of the workflow, by its digest and that task's id; then each
input gets its *feeder*, the task whose worker draws from the input. The plan task is unique by the digest, for an
hour, and the feeders' ids follow from the plan task's; so whoever submits again, or at the same time, makes none
twice. What may be left behind by one that is broken off and never submitted again is a plan task.

A client remembers up to where it has seen the log, and no node shows it less than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.calls.payloads import BY_ANNOTATION, encode_call
from skuld_py.client import options
from skuld_py.client.asking import Flow, Part, Work, ask, stream, verb
from skuld_py.client.minting import Minter
from skuld_py.client.options import Retry
from skuld_py.client.preludes import Given, prepare
from skuld_py.client.waiting import seconds
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId, from_text, time_of, to_text
from skuld_py.model.state import State
from skuld_py.model.task import Task
from skuld_py.workflow.definition.names import FEED, ID, PLAN, STRANDS_MAX, are_alike, queue_of, step_of
from skuld_py.workflow.segments import feeder_id, feeder_queue, sources_of

if TYPE_CHECKING:
    from skuld_py.workflow.definition.builder import Workflow
    from skuld_py.workflow.definition.definition import Definition

SLICE_S = 20.0
"""The longest wait of one request."""
FEEDER_TRIES = Retry(max_attempts=1_000, max_backoff_s=60.0)
FEEDER = "skuld:feed"
"""The task function that draws from an input."""
ENDED = ("completed", "cancelled", "dead")
LIVE, KILLED, INPUT, OUTPUT = "live", "killed", "input", "output"
NO_SUCH, REFUSED, OTHER_LIFE = "no_such_workflow", "refused", "other_life"
TEXT_CHARS = 250
COLLECTED = "collected"
"""The outcome of entries that a node has no more: they were not looked at."""


@attrs.frozen
class WorkflowStep:
    """A step, as slots are given to it. ``kind``: ``input``, ``function`` or, of each leaf, ``output``."""

    name: str
    kind: str
    least: int
    most: int
    tags: tuple[str, ...]
    percentage: int
    flux: str

    @property
    def sources(self) -> list[str]:
        """Of an input its strands, each of which has a feeder."""
        return sources_of(self.name, self.most if self.most <= STRANDS_MAX else 1)


@attrs.frozen
class WorkflowStatus:
    """What the log knows of a workflow. ``state``: ``live``, ``completed`` or ``killed``, since the entry at
    ``since``; then for ``reason``. ``plan``: the id of the task whose payload is the definition, of this
    ``digest``. ``steps`` are shown of a live one that was asked for by its id; ``exhausted`` are inputs that
    bring no more, ``sealed`` outputs that are whole. ``left``: of a killed one that was asked for by its id, how
    many of its tasks are still to be cancelled, or held by workers."""

    id: str
    state: str
    digest: str
    plan: str
    submitted: int
    since: int
    spreading: str
    percentage: int
    reason: str
    steps: tuple[WorkflowStep, ...]
    exhausted: tuple[str, ...]
    sealed: tuple[str, ...]
    left: int = 0

    @property
    def is_live(self) -> bool:
        """Whether it has not ended."""
        return self.state == LIVE

    @property
    def feeders(self) -> dict[str, TaskId]:
        """The tasks that feed it, by input, and of one with several feeders by ``INPUT``, ``INPUT:1`` and so on:
        their progress and their logs tell of its roots. Needs ``steps``."""
        sources = [source for step in self.steps if step.kind == INPUT for source in step.sources]
        return {source: TaskId(id) for source, id in zip(sources, _feeders(self.id, sources, self.plan),
                                                         strict=True)}

    @property
    def life(self) -> int:
        """Which of all workflows of its id it is: the time in its plan task's id."""
        return time_of(from_text(self.plan))

    @property
    def is_sealing(self) -> bool:
        """Whether every input is exhausted, so that the outputs are to be sealed. Needs ``steps``."""
        inputs = {step.name for step in self.steps if step.kind == INPUT}
        return self.is_live and bool(inputs) and inputs <= {*self.exhausted}


@attrs.frozen
class LogLine:
    """An entry of the coordination log. ``time_ms``: when the node that tells of it played it, 0 for one that it
    found when it began; ``kind`` and ``writer`` are empty where it cannot be read. ``outcome``: ``applied``,
    ``unchanged``, ``repeated``, ``late``, ``refused`` or ``failed``, then for ``reason``; or ``collected``, which
    stands for all up to here that nobody can read any more: what holds, ``workflows`` says. ``changed``: by the
    names of things, what they are now."""

    position: int
    time_ms: int
    kind: str
    writer: str
    outcome: str
    reason: str
    changed: Mapping[str, str]


class Flowing:
    """Needs a steady clock, and what ``Enqueueing`` and ``Reading`` have."""

    _clock: Callable[[], float]
    _wall_ms: Callable[[], int]
    _minter: Minter
    _name_and_store: Callable[..., Work[list[TaskId]]]
    _ask_to_store: Callable[..., Work[list[TaskId]]]
    _get: Callable[..., Work[list[Task]]]
    _seen = 0
    """One more than the newest position of the log that this client knows of."""

    @verb
    def submit_workflow(self, definition: Workflow | Definition | Mapping[str, Any] | str) -> Work[WorkflowStatus]:
        """Have a workflow run, by its definition: a ``Workflow``, plain data, or JSON; gives how it is.

        Submitted again with the same content nothing happens twice, whatever has become of it; after an error
        submit it again. Other content under a known id is refused (``other_workflow``), and so is what is no whole
        definition (``bad_workflow``), with everything that is wrong about it.
        """
        from skuld_py.workflow.definition.writing import digest, text_of

        found = _definition_of(definition)
        text = text_of(found)
        mark = digest(text)
        known = yield from self._surveyed((found.id,))
        if not known:
            yield from self._check_former(found)
        is_same = bool(known) and known[0].digest == mark
        if is_same and not known[0].is_live:
            return known[0]  # the node may lag, and the log have forgotten it: its plan begins no other life
        plan = known[0].plan if is_same else (yield from self._plan(found, text.encode(), mark))
        try:
            status = yield from self._decree(_submission(found, mark, plan), "other_workflow")
        except Refused:
            if not is_same and all(each.plan != plan for each in (yield from self._surveyed((found.id,)))):
                yield from self._end_plan(found.id, plan)
            raise
        if status.plan != plan:
            yield from self._end_plan(found.id, plan)  # somebody else was faster
        if status.is_live:
            yield from self._feed(status)
        return status

    def _check_former(self, found: Definition) -> Work[None]:
        """That there are the workflows, and their steps, which inputs are to draw from."""
        from skuld_py.workflow.definition.faults import Faults
        from skuld_py.workflow.definition.reading import parse
        from skuld_py.workflow.definition.resuming import check_former, drawn_from, taken_from

        wanted = drawn_from(found)
        if not wanted:
            return
        known: dict[str, WorkflowStatus] = {}
        for start in range(0, len(wanted), m.WORKFLOWS_ASKED_MAX):
            found_here = yield from self._surveyed(wanted[start : start + m.WORKFLOWS_ASKED_MAX])
            known |= {each.id: each for each in found_here}
        plans = yield from self._get([each.plan for each in known.values()])
        texts = {to_text(task.id): task.payload for task in plans}
        former = {id: parse(texts[each.plan], is_stored=True) for id, each in known.items() if each.plan in texts}
        opened = {}
        for id in [*former]:
            drawn = {each.step for each in taken_from(found) if each.workflow == id}
            opened[id] = (yield from self._unfinished(known[id], former[id], drawn)) if drawn else frozenset()
        faults = Faults()
        check_former(faults, found, former, {id for id, each in known.items() if each.state == KILLED}, opened)
        faults.refuse()

    def _unfinished(self, known: WorkflowStatus, definition: Definition, drawn: Collection[str]
                    ) -> Work[Collection[str]]:
        """The steps that are surely not finished of a workflow from which these are drawn as such."""
        from skuld_py.client.former import behind, undone, undrawn

        if known.is_live:
            return behind(definition, {*definition.inputs} - {*known.exhausted})
        if known.state != KILLED:
            return ()
        feeders = dict(zip(_feeders(known.id, definition.sources, known.plan), definition.sources, strict=True))
        held = set[str]()
        with suppress(Refused):  # a key that may not look is told of none
            tasks = yield from self._get([*feeders])
            held |= undrawn({feeders[bytes(task.id)]: task for task in tasks})
            before = [step for step in definition.order if not behind(definition, [step]).isdisjoint(drawn)]
            held |= yield from undone(definition, before, known.life)
        return behind(definition, held)

    def _plan(self, found: Definition, text: bytes, mark: str) -> Work[str]:
        """The plan task, stored: that of an attempt that was broken off before, or another one. One that had
        feeders, or has ended, is of an earlier life under this id, which the log has forgotten since."""
        header = options.header_of(queue_of(found.id, PLAN), 0, None, None)
        plan = yield from self._store_plan(header, text, Given(unique=[mark]))
        feeders = _feeders(found.id, found.sources, plan)
        standing = yield from self._get([plan, *feeders])
        if any(task.id in feeders or task.state in ENDED for task in standing):
            plan = yield from self._store_plan(header, text, Given())
        return plan

    def _store_plan(self, header: bytes, text: bytes, given: Given) -> Work[str]:
        heads, rests, wanted = prepare(header, [text], given, self._wall_ms(), self._minter.moment)
        plan, = yield from self._name_and_store(heads, wanted, rests, None)
        return to_text(plan)

    def _end_plan(self, id: str, plan: str) -> Work[None]:
        """Nobody needs it any more. A key that is limited to queues may not, and it harms nobody. What is no plan
        of this workflow stays: who submitted it may have named any task."""
        with suppress(Refused):
            found = yield from self._get([plan])
            if any(task.queue == queue_of(id, PLAN) for task in found):
                yield from ask(m.Acked, m.Cancel(0, 0, 0, from_text(plan)))

    def _feed(self, status: WorkflowStatus) -> Work[None]:
        """Enqueue the feeders of inputs that may still bring something. Of an old workflow they stand since long,
        and are too old to be stored again. Each queue is asked for alone: where an older release stored its
        feeders in another one, that says nothing of others."""
        inputs = [step for step in status.steps if step.kind == INPUT]
        is_shared = are_alike(step.tags for step in inputs)
        rows = [(_feed_queue(status.id, step, is_shared), source) for step in inputs
                if step.name not in status.exhausted for source in step.sources]
        for queue in dict.fromkeys(queue for queue, _ in rows):
            sources = [source for place, source in rows if place == queue]
            calls = [encode_call(FEEDER, (), {"workflow": status.id, "step": each}, BY_ANNOTATION)
                     for each in sources]
            try:
                yield from self._ask_to_store([options.header_of(queue, 0, FEEDER_TRIES, None)] * len(sources),
                                              _feeders(status.id, sources, status.plan), calls, None)
            except SkuldError as error:
                is_too_old = isinstance(error, Refused) and error.code == "too_old"
                if not is_too_old and error.code != "conflict":  # an older release stored them in another queue
                    raise

    @verb
    def kill_workflow(self, id: str, reason: str = "", *, life: int = 0) -> Work[WorkflowStatus]:
        """End a workflow before it is complete, for a reason of at most 250 characters; gives how it is then. One
        that has ended stays as it is; an id that nobody knows is refused (``no_such_workflow``). ``life``: only if
        it is still that one of all of its id (``WorkflowStatus.life``); else refused (``other_life``)."""
        _check_id(id)
        status = yield from self._decree(m.Kill(0, id, _text("reason", reason), _life(life)), NO_SUCH)
        yield from self._end_plan(id, status.plan)
        return status

    @verb
    def exhaust_input(self, id: str, step: str, *, strand: int = 0, life: int = 0) -> Work[WorkflowStatus]:
        """Say that an input has no more to bring, and all that it brought is complete; gives how the workflow is
        then. When it ``is_sealing``, its outputs are to be sealed. Said again nothing changes. Of an input with
        several feeders it is said of each ``strand``, and the last one exhausts it. ``life`` is as in
        ``kill_workflow``."""
        _check_id(id)
        if type(strand) is not int or not 0 <= strand < STRANDS_MAX:
            raise Refused("bad_strand", f"strand: {str(strand)[:40]} is not in 0..{STRANDS_MAX - 1}",
                          field="strand")
        message = m.Advance(0, id, _text("step", step), False, _life(life), strand)
        return (yield from self._decree(message, NO_SUCH))

    @verb
    def seal_output(self, id: str, step: str, *, life: int = 0) -> Work[WorkflowStatus]:
        """Say that an output is whole and closed; gives how the workflow is then: the last one completes it.
        Refused (``not_sealing``) while an input is open. Said again nothing changes. ``life`` is as in
        ``kill_workflow``."""
        _check_id(id)
        return (yield from self._decree(m.Advance(0, id, _text("step", step), True, _life(life)), "not_sealing"))

    def _decree(self, message: m.Submit | m.Kill | m.Advance, code: str) -> Work[WorkflowStatus]:
        answer = (yield from ask(m.Decreed, message)).message
        self._seen = max(self._seen, answer.position + 1)
        if not answer.workflows and (answer.outcome != REFUSED or not isinstance(message, m.Submit)):
            raise _unknown(message.workflow)
        if answer.outcome == REFUSED:
            raise Refused(code, answer.reason, workflow=message.workflow)
        status = _status(answer.workflows[0])
        if not isinstance(message, m.Submit) and message.life not in (0, status.life):
            raise Refused(OTHER_LIFE, f"workflow: {message.workflow} ended, was forgotten, and submitted again"
                          " since; nothing was changed", workflow=message.workflow)
        return status

    # -- reading -------------------------------------------------------------------------------

    @verb
    def workflow(self, id: str) -> Work[WorkflowStatus]:
        """A workflow as the log knows it. ``Refused`` as ``no_such_workflow``: it was never submitted, or ended
        long ago, some thousand entries of the log."""
        _check_id(id)
        status = _one(id, (yield from self._surveyed((id,))))
        return status if status.state != KILLED else attrs.evolve(status, left=(yield from self._left(id)))

    def _left(self, id: str) -> Work[int]:
        """How many tasks of a workflow have not ended. A key that may not count all queues is told of none."""
        try:
            answer = (yield from ask(m.Counted, m.Count(0, ""))).message
        except Refused:
            return 0
        return sum(number for row in answer.rows if (step_of(row.queue) or ("",))[0] == id
                   for state, number in enumerate(row.counts) if State(state).name.lower() not in ENDED)

    @verb
    def workflows(self) -> Work[list[WorkflowStatus]]:
        """All workflows that the log knows, in the order of their submission, ended ones included; without their
        steps."""
        found: dict[str, WorkflowStatus] = {}
        behind, is_over = 0, False
        while not is_over:
            page = yield from self._survey((), behind, self._seen, 0.0)
            found.update((row.workflow, _status(row)) for row in page.workflows)
            behind, is_over = page.last, not page.last
        return [*found.values()]

    @verb
    def await_workflow(self, id: str, *, timeout_s: float = math.inf) -> Work[WorkflowStatus]:
        """A workflow, once it has ended, or how it is after ``timeout_s``. Refuses as ``workflow`` does."""
        _check_id(id)
        until = self._clock() + seconds("timeout_s", timeout_s)
        status = _one(id, (yield from self._surveyed((id,))))
        while status.is_live and (left := until - self._clock()) > 0:
            page = yield from self._survey((id,), 0, self._seen + 1, min(left, SLICE_S))
            status = _one(id, [*map(_status, page.workflows)])
        return status

    def _surveyed(self, ids: tuple[str, ...]) -> Work[list[WorkflowStatus]]:
        page = yield from self._survey(ids, 0, self._seen, SLICE_S)
        return [*map(_status, page.workflows)]

    def _survey(self, ids: tuple[str, ...], behind: int, position: int, wait_s: float) -> Work[m.Surveyed]:
        question = m.Survey(0, ids, behind, position, round(wait_s * 1000))
        page = (yield from ask(m.Surveyed, question, wait_s=wait_s)).message
        self._seen = max(self._seen, page.version)
        return page

    @stream
    def follow_log(self, position: int = 0, *, follow_s: float = math.inf) -> Flow[LogLine]:
        """The entries of the coordination log from a position on, and those that come, for ``follow_s`` seconds
        (0: only those that the node that answers has; another one may be ahead of it). Where entries cannot be
        read any more, a line with the outcome ``collected`` stands for them; what they led to, ``workflows``
        says."""
        if type(position) is not int or not 0 <= position < 1 << 62:
            raise Refused("bad_position", f"position: {str(position)[:40]} is no position of the log")
        until = self._clock() + seconds("follow_s", follow_s)
        while True:
            left = min(SLICE_S, max(0.0, until - self._clock()))
            question = m.Follow(0, position, m.ENTRIES_IN_PAGE, round(left * 1000))
            page = (yield from ask(m.Followed, question, wait_s=left)).message
            if page.first > position:
                yield Part([LogLine(page.first - 1, 0, "", "", COLLECTED, "", {"first": str(page.first)})])
            if page.entries:
                yield Part([_line(row) for row in page.entries])
            elif not left:
                return
            position = max(position, page.next)


def _definition_of(given: Any) -> Definition:
    from skuld_py.workflow.definition.builder import Workflow
    from skuld_py.workflow.definition.definition import Definition
    from skuld_py.workflow.definition.reading import parse, read

    if isinstance(given, Workflow):
        return given.definition()
    if isinstance(given, Definition):
        return given
    return parse(given) if isinstance(given, str | bytes) else read(given)


def _submission(found: Definition, mark: str, plan: str) -> m.Submit:
    demand, leaves = found.demand, {*found.leaves}
    steps = tuple(m.StepSpec(
        step.name, OUTPUT if step.name in leaves else found.entries[step.name].kind.value, step.least, step.most,
        tuple(sorted(step.tags)), step.percentage, step.flux.value) for step in demand.steps)
    return m.Submit(0, found.id, mark, plan, demand.spreading.value, demand.percentage, steps)


def _feed_queue(workflow: str, step: WorkflowStep, is_shared: bool) -> str:
    """Where an input's feeders are claimed. Several have a queue of their own: those of another input, which has
    seats of its own, are not claimed in their place. So have those of inputs that need several kinds of workers:
    another one would see other files."""
    is_alone = len(step.sources) > 1 or not is_shared
    return feeder_queue(workflow, step.name) if is_alone else queue_of(workflow, FEED)


def _feeders(workflow: str, sources: Iterable[str], plan: str) -> list[bytes]:
    """The ids of the feeders, which follow from the plan task's."""
    at_ms = time_of(from_text(plan))
    return [feeder_id(workflow, source, at_ms) for source in sources]


def _check_id(id: object) -> None:
    if not isinstance(id, str) or not ID.fullmatch(id):
        raise Refused("bad_name", f"id: {str(id)[:64]!r} is no id of a workflow; use letters, digits, '.', '_' and"
                      " '-', starting with a letter or digit, at most 100", field="id")


def _life(given: object) -> int:
    if type(given) is not int or not 0 <= given < 1 << 62:
        raise Refused("bad_life", f"life: {str(given)[:40]} is no time of a submission", field="life")
    return given


def _text(field: str, given: object) -> str:
    if not isinstance(given, str) or len(given) > TEXT_CHARS:
        raise Refused("bad_text", f"{field}: {str(given)[:40]!r} is no text of at most {TEXT_CHARS} characters",
                      field=field)
    return given


def _one(id: str, found: list[WorkflowStatus]) -> WorkflowStatus:
    if not found:
        raise _unknown(id)
    return found[0]


def _unknown(id: str) -> Refused:
    """That there is no such workflow: of all verbs in the same words."""
    return Refused(NO_SUCH, f"id: no workflow {id}: it was never submitted, or ended long ago; 'skuld workflow"
                   " list' shows those that the log knows", workflow=id)


def _status(row: m.WorkflowRow) -> WorkflowStatus:
    steps = tuple(WorkflowStep(each.name, each.kind, each.least, each.most, each.tags, each.percentage, each.flux)
                  for each in row.steps)
    return WorkflowStatus(row.workflow, row.state, row.digest, row.plan, row.submitted, row.since, row.spreading,
                          row.percentage, row.reason, steps, row.exhausted, row.sealed)


def _line(row: m.EntryRow) -> LogLine:
    return LogLine(row.position, row.time_ms, row.kind, row.writer, row.outcome, row.reason,
                   {each.name: each.value for each in row.changes})
