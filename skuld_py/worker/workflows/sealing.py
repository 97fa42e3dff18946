"""Sealing an output: when all inputs of a workflow are exhausted, each leaf is sealed, once.

    client.enqueue("wf.ID.seal", seal_call(workflow, step, life), id=seal_id(...))

A leaf with a path has its values gathered (``gathering``): by a task of its own, so that its completion decides
what is visible before the coordination log says that the output is sealed. The seal's task waits for that task,
sees to it that what it wrote is published, appends to the log, and completes. The last seal completes the
workflow; then its plan task ends, too.

The feeder that exhausts the last input enqueues these tasks. When it dies before, nobody claims it again: an input
that is exhausted has no seats. So whoever has a seat in a leaf looks, too, when its seats change (``Flow``).

Invariants:

* Whatever a seal does it may do again: the ids of tasks follow from its own, and the log takes a seal once. So a
  worker may end at any point of it.
* A seal of an earlier workflow of the same id seals nothing: it names the life it is of.
* When the log says that an output is sealed, what it wrote is where plain readers look.

Rejected: the seal's own output. It would become visible with the seal's completion, which comes after the log's
entry; and a log entry after the completion is one that a worker that ends in between never makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skuld_py.calls.payloads import call
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.ids import TaskId, time_of, to_text
from skuld_py.model.task import Task
from skuld_py.output.performing import Performer, asking, store_of
from skuld_py.output.places import dataset
from skuld_py.output.protocol import settle
from skuld_py.worker.context import TaskContext
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.registry import task
from skuld_py.worker.workflows.driving import CONFLICT, TOO_OLD, Doubts
from skuld_py.worker.workflows.gathering import SEAL, gather_call
from skuld_py.worker.workflows.plans import BEHIND_S, LIVE
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.entries import Target
from skuld_py.workflow.definition.names import PLAN, are_alike, queue_of
from skuld_py.workflow.definition.names import SEAL as SEALING
from skuld_py.workflow.segments import child_id, seal_id, seal_queue

SEAL_WINDOW_S = 6 * 24 * 3600.0
LOOK_S, LOOK_S_MAX, LOOK_MORE = 0.2, 10.0, 1.3
"""How often a seal looks whether its values are gathered: ever less often, for each look is a claim on record."""
PLAN_LEASE_S = 60.0


class Sealer:
    """Enqueues the tasks that seal leaves, in one life of a workflow all of whose inputs are exhausted."""

    def __init__(self, client: Any, definition: Definition, life: int) -> None:
        self._client, self._definition, self._life = client, definition, life
        self._doubts = Doubts(steady_s, part=0.5)

    def have_sealed(self, leaves: Sequence[str]) -> None:
        """Enqueue what seals these, where those claim it who have seats in all leaves, or in this one."""
        workflow, entries = self._definition.id, self._definition.entries
        if are_alike(entries[leaf].tags for leaf in self._definition.leaves):
            self._seal(queue_of(workflow, SEALING), leaves)
            return
        for leaf in leaves:
            self._seal(seal_queue(workflow, leaf), [leaf])

    def _seal(self, queue: str, leaves: Sequence[str]) -> None:
        """As old as the feeder, or by name when that is older than what is kept. What stands already is not
        enqueued beside it, be it under its id, or under a name of more than a window ago, or in the queue in which
        older releases stored it: a leaf would be gathered twice."""
        workflow = self._definition.id
        ids = {leaf: seal_id(workflow, leaf, self._life) for leaf in leaves}
        payloads = {leaf: seal_call(workflow, leaf, self._life) for leaf in leaves}
        try:
            self._client.enqueue_many(queue, [*payloads.values()], ids=[*ids.values()])
        except SkuldError as error:
            if error.code == CONFLICT and len(leaves) == 1:
                return  # it stands in another queue
            if error.code != TOO_OLD:
                raise
            if not isinstance(error, Refused) and not self._doubts.suffice():
                raise
            queues = dict.fromkeys((queue, queue_of(workflow, SEALING)))
            standing = [*ids.values(), *(each.id for place in queues for each in self._client.list(place))]
            known = {each.payload for each in self._client.get_many(standing)}
            left = [leaf for leaf in leaves if payloads[leaf] not in known]
            self._client.enqueue_many(queue, [payloads[leaf] for leaf in left], unique_window_s=SEAL_WINDOW_S,
                                      unique=[f"seal-{leaf}-{self._life}" for leaf in left])


def seal_call(workflow: str, step: str, life: int) -> bytes:
    """The payload of the task that seals this leaf, in this life of the workflow."""
    return call(SEAL, workflow, step, life)


@task(name=SEAL)
def seal(context: TaskContext, workflow: str, step: str, life: int) -> dict[str, Any]:
    """Seal a leaf. ``segments``: how many values were gathered."""
    flow = context.workflows
    if flow is None:
        raise Dead(f"{SEAL}: this task is not in a queue of a workflow; do not enqueue it by hand")
    made: dict[str, Any] = {}
    standing = flow.cluster.standing(workflow)
    if standing.life < life:
        raise Snooze(BEHIND_S)  # whoever was asked lags: completed by that, it would never seal
    if standing.state == LIVE:
        target = flow.check_life(workflow, life).entries[step].target
        if target is not None:
            made = _gathered(context, workflow, step, life, target)
        context.check()
        flow.cluster.seal_output(workflow, step, life=life)
    end_plan(flow.cluster, workflow)
    return made


def _gathered(context: TaskContext, workflow: str, step: str, life: int, target: Target) -> dict[str, Any]:
    """What the task gave that gathers the leaf's values; ``Snooze`` until it is over."""
    client = context.workflows.cluster.client
    gatherer = child_id(context.id, 0, time_of(context.id), 0)
    known: dict[bytes, Task] = {bytes(each.id): each for each in client.get_many([gatherer, context.id])}
    found = [known[gatherer]] if gatherer in known else []
    if not found:
        client.enqueue_many(context.queue, [gather_call(workflow, step, life, target)], ids=[gatherer])
    elif found[0].is_completed:
        base = dataset(target.path)
        if not Performer(store_of(base), base, asking(client)).perform(settle(to_text(gatherer))):
            raise Refused("not_published", f"output: what task {TaskId(gatherer)} gathered below {base} cannot be"
                          " published yet")
        return dict(found[0].result)
    elif found[0].state in ("dead", "cancelled"):
        raise Dead(f"step {step}: its values could not be gathered, see task {TaskId(gatherer)}; when that is"
                   " mended, retry it, and then this one")
    looks = len(known[bytes(context.id)].claims) if bytes(context.id) in known else 0
    raise Snooze(look_s(looks))


def look_s(looks: int) -> float:
    """How long to wait after so many looks."""
    return min(LOOK_S_MAX, LOOK_S * LOOK_MORE ** min(looks, 100))


def end_plan(cluster: Any, workflow: str) -> None:
    """Complete the plan task of a workflow that has ended: nobody needs its definition any more."""
    standing = cluster.standing(workflow)
    if standing.state == LIVE:
        return
    try:
        for claim in cluster.client.claim(queue_of(workflow, PLAN), n=1, lease_s=PLAN_LEASE_S):
            cluster.client.complete_many([claim], [{"workflow": workflow, "state": standing.state}])
    except SkuldError:
        return  # it is kept for a while longer, which harms nobody
