"""Feeding a workflow from an input: the task that draws its values, and follows their roots to their end.

    client.enqueue("wf.ID.feed", call("skuld:feed", workflow=ID, step=INPUT), id=feeder_id(...))

There is one for each input, which ``submit_workflow`` enqueues; of an input with several slots as many as it has
at most, each of which draws a *strand* of it (``drawing``) and has roots, acks and a checkpoint of its own. It
runs until its strand is exhausted, and occupies a worker's slot meanwhile; where there are fewer slots than
strands they take turns (``turns``). Whoever claims the task of one that died goes on with its strand. The machine
is ``workflow.acking``; ``driving`` its shell, ``drawing`` the sources.

Invariant: its checkpoint is written by itself, and waited for: the worker's writes come once a second, and tell
nobody when they are there. So nothing else of the task sets one.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from skuld_py.calls.results import decode_result
from skuld_py.client.claims import Claim
from skuld_py.client.steady import steady_s
from skuld_py.errors import Malformed, Refused, SkuldError
from skuld_py.model.ids import time_of
from skuld_py.model.task import Task
from skuld_py.worker.context import TaskContext
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.journal import pause_s
from skuld_py.worker.registry import task
from skuld_py.worker.scribe import is_passing
from skuld_py.worker.workflows.children import Calls, Completed, Nursery
from skuld_py.worker.workflows.drawing import Place, source_of
from skuld_py.worker.workflows.driving import Driver, said
from skuld_py.worker.workflows.sealing import Sealer
from skuld_py.worker.workflows.strands import Strand
from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.acks import Acks
from skuld_py.workflow.acking.checkpoint import Book, roots_said
from skuld_py.workflow.acking.feeder import Feeder, Options
from skuld_py.workflow.acking.turns import TURN_MS, rest_ms
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.names import step_of
from skuld_py.workflow.routing.hooks import restarts
from skuld_py.workflow.segments import Emission, ack_queue, feeder_queue, root_id, strand_of

FEED = "skuld:feed"
ENDED_OR_NONE = frozenset({"workflow_ended", "no_such_workflow", "bad_plan", "other_life"})
HOPELESS = frozenset({"bad_source", "other_values"})
"""What no other attempt would cure: the workflow is killed, and says why."""
ACKS_AT_ONCE, ACKS_LEASE_S = 100, 30.0
LOOK_S = 10.0
"""How often a feeder whose turn is over looks whether another one waits."""
ENDED = frozenset({"dead", "cancelled"})

Progress = Callable[[float, float, str], None]
"""How many roots are done, of how many drawn, in words."""

_log = logging.getLogger(__name__)


@task(name=FEED)
def feed(context: TaskContext, workflow: str, step: str) -> dict[str, int]:
    """Feed a workflow from an input. ``completed``: how many roots came to their end."""
    flow, claim = context.workflows, context.claim
    if flow is None or claim is None:
        raise Dead(f"{FEED}: this task is not in a queue of a workflow; do not enqueue it by hand")
    try:
        end = _fed(context, claim, flow, workflow, step)
    except Refused as refusal:
        if refusal.code in HOPELESS:
            reason = f"input {step}: {refusal.message}"[:250]
            flow.cluster.kill_workflow(workflow, reason, life=time_of(context.id))
        if refusal.code in HOPELESS | ENDED_OR_NONE:
            raise Dead(refusal.message) from None
        raise
    if isinstance(end, e.Fail):
        raise Dead(said(end))
    return {"completed": end.completed}


def _fed(context: TaskContext, claim: Claim, flow: Any, workflow: str, step: str) -> e.Done | e.Fail:
    life = time_of(context.id)
    definition = flow.check_life(workflow, life)
    if step not in definition.sources:
        raise Dead(f"step: {step} is no input of {workflow}")
    name, strand = strand_of(step)
    entry = definition.entries[name]
    options = Options(max_pending=max(1, entry.max_pending // entry.most), timeout_ms=entry.root_timeout_ms,
                      policies={name: _policy(definition, name) for name in definition.order})
    hands = ClientHands(flow.cluster, claim, definition, step, context.progress)
    turn = Turn(flow.cluster.client, feeder_queue(workflow, name), entry.most)

    def check() -> None:
        context.check()
        turn.check()
        try:
            flow.check_life(workflow, life)
        except SkuldError as error:
            if not is_passing(error):
                raise
    place = Place(flow, workflow, name, hands.wall_ms, Strand(strand, entry.most),
                  Book.decode(context.resumed).cursor)
    with closing(source_of(entry, flow.resolve, place)) as source:
        return Driver(Feeder(workflow, step, options), hands, source, check, hands.wall_ms).run(context.resumed)


def _policy(definition: Definition, step: str) -> e.Policy:
    """What follows when a segment of a step is dead."""
    return e.Policy.RESTART if restarts(definition, step) else e.Policy.KILL


class Turn:
    """Of one claim of a feeder, while others of its input may wait for a slot."""

    def __init__(self, client: Any, queue: str, strands: int, clock: Callable[[], float] = steady_s) -> None:
        self._client, self._queue, self._strands, self._clock = client, queue, strands, clock
        self._begun_s = clock()
        self._due_s = self._begun_s + TURN_MS / 1000

    def check(self) -> None:
        """Raise ``Snooze`` when it is over, and another one waits; it is asked once in a while only."""
        now_s = self._clock()
        if self._strands == 1 or now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_S
        with contextlib.suppress(SkuldError):
            waiting = self._client.count(self._queue, states=("waiting",))
            if delay_ms := rest_ms(round((now_s - self._begun_s) * 1000), waiting):
                raise Snooze(delay_ms / 1000)


class ClientHands:
    """By a client, for one claim of the feeder's task. ``source``: its input, or the strand of it."""

    def __init__(self, cluster: Any, claim: Claim, definition: Definition, source: str,
                 progress: Progress = lambda done, total, note: None) -> None:
        self._cluster, self._client, self._claim = cluster, cluster.client, claim
        self._progress = progress
        self._begun_s = self._told_s = steady_s()
        self._told = ""
        self._definition, self._source = definition, source
        self._step, self._strand = strand_of(source)
        self._life = time_of(claim.id)
        self._sealer = Sealer(self._client, definition, self._life)
        self._nursery = Nursery(definition, self._life)
        self._calls = Calls(definition.entries[self._step], self._life)
        self._number = 0

    def wall_ms(self) -> int:
        """The time, nearly by the clock of the leader that granted the claim: ids of roots are to be taken by
        nodes, whatever this machine's clock says."""
        return self._claim.end_ms - round(self._claim.remaining_s * 1000)

    def keep(self, checkpoint: bytes) -> None:
        """Under a number of its own; the same again is harmless."""
        self._client.update(self._claim, checkpoint=checkpoint, number=self._number)
        self._number += 1

    def acks(self, wait_s: float) -> list[Acks]:
        claims = self._client.claim(ack_queue(self._definition.id, self._source), n=ACKS_AT_ONCE,
                                    lease_s=ACKS_LEASE_S, wait_s=wait_s)
        told = []
        for claim in claims:
            try:
                told.append(Acks.decode(claim.payload))
            except Malformed as problem:
                _log.warning("task %s in %s tells of no segments: %s", claim.id, claim.queue, problem)
        if claims:
            self._client.complete_many(claims)
        return told

    def store(self, values: Mapping[int, bytes], time_ms: int) -> None:
        ids = [root_id(self._definition.id, self._source, number, time_ms) for number in values]
        payloads = [self._calls.payload(value, root, self._source)
                    for value, root in zip(values.values(), ids, strict=True)]
        self._client.enqueue_many(self._definition.queue(self._step), payloads, ids=ids, **self._calls.options)

    def look(self, ids: Sequence[bytes]) -> list[e.Sight]:
        found = {bytes(each.id): each for each in self._client.get_many(list(ids))}
        return [self._sight(found[each]) if each in found else e.Sight(each, e.Standing.ABSENT) for each in ids]

    def _sight(self, seen: Task) -> e.Sight:
        named = step_of(seen.queue)
        step = named[1] if named is not None else ""
        if not seen.is_completed:
            standing = e.Standing.DEAD if seen.state in ENDED else e.Standing.OPEN
            return e.Sight(bytes(seen.id), standing, step)
        claims = sorted(seen.claims, key=lambda claim: claim.token != seen.completed_token)
        if not claims or claims[0].token != seen.completed_token:
            return e.Sight(bytes(seen.id), e.Standing.DONE, step)
        return e.Sight(bytes(seen.id), e.Standing.DONE, step, tuple(
            e.Try(claim.token, claim.start_ms, self._emitted(seen, step, claim.token)) for claim in claims))

    def _emitted(self, seen: Task, step: str, token: int) -> int | None:
        emission = self._emission(seen, step, token)
        return None if emission is None else len(emission.rows)

    def _emission(self, seen: Task, step: str, token: int) -> Emission | None:
        """What a claim's completion emits: nothing, of a leaf; None when it has no result that says so."""
        if not self._definition.children.get(step):
            return Emission()
        result = seen.result if token == seen.completed_token else next(
            (decode_result(claim.result) for claim in seen.claims if claim.token == token), None)
        try:
            return Emission.decode(result)
        except Malformed:
            return None

    def repair(self, wanted: Sequence[e.Repair]) -> list[bool]:
        found = {bytes(each.id): each for each in self._client.get_many([each.parent for each in wanted])}
        completed = [self._completed(each, found.get(each.parent)) for each in wanted]
        for lot in self._nursery.lots([each for each in completed if each is not None]):
            self._client.enqueue_many(lot.queue, lot.payloads, ids=lot.ids, **lot.options)
        return [each is not None for each in completed]

    def _completed(self, wanted: e.Repair, parent: Task | None) -> Completed | None:
        """What is known of a completion; None when that does not say what it emits."""
        named = None if parent is None else step_of(parent.queue)
        if parent is None or named is None:
            return None
        emission = self._emission(parent, named[1], wanted.token)
        start_ms = next((claim.start_ms for claim in parent.claims if claim.token == wanted.token), None)
        if emission is None or start_ms is None:
            return None
        return Completed(wanted.parent, wanted.root, self._source, wanted.token, start_ms, emission)

    def revive(self, segment: bytes) -> None:
        self._client.retry(segment)

    def tell(self, book: Book) -> None:
        """In the task's progress; and when that is other than before, in this process's log, at the pace of
        progress."""
        words = roots_said(book)
        self._progress(book.next - book.pending, book.next, words)
        now_s = steady_s()
        is_over = book.is_finished
        if words != self._told and (is_over or now_s >= self._told_s + pause_s(now_s - self._begun_s)):
            self._told, self._told_s = words, now_s
            _log.info("workflow %s, input %s: %s", self._definition.id, self._source, words)

    def kill(self, reason: str) -> None:
        self._cluster.kill_workflow(self._definition.id, reason, life=self._life)

    def exhaust(self) -> None:
        """Tell the log. Whoever was the last has the leaves sealed. Of a workflow that was submitted anew
        meanwhile nothing is exhausted: ``Refused`` as ``other_life``."""
        status = self._cluster.exhaust_input(self._definition.id, self._step, strand=self._strand,
                                             life=self._life)
        if status.is_sealing:
            self._sealer.have_sealed([leaf for leaf in self._definition.leaves if leaf not in status.sealed])
