"""Of workflows that others are to be resumed from, which steps are surely not finished, whatever is said of them.

Who resumes names the finished steps, and nothing waits for them any more: what such a step has not done yet is
missing for ever, and nobody is told. So what can be known is looked at first:

* a workflow that lives says which of its inputs are exhausted;
* of one that was killed the log keeps no more than that, but its tasks are there. An input is open whose feeder
  had more to draw, by its last checkpoint; a step is open that has a segment which is not completed. So is each
  step behind an open one.

What cannot be asked, since it was collected or the key may not, is taken as it was said. Nor is it seen when the
worker that completed a segment died before it had enqueued what that emits, and the kill came before its feeder
could look after it.

Rejected: to ask for exhausted inputs only. A workflow that a late step killed has none, though all that its first
steps had to do is done; to resume that one is what resuming is for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from skuld_py.client.asking import Work, ask
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.model.ids import split
from skuld_py.model.state import State
from skuld_py.model.task import Task
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.segments import strand_of

MARGIN_MS = 600_000
"""How far clocks may be apart: no segment is older than its workflow's submission."""
_OPEN = (State.WAITING, State.CLAIMED, State.SCHEDULED, State.BLOCKED)
_LOST = 1 << State.DEAD | 1 << State.CANCELLED


def behind(definition: Definition, held: Collection[str]) -> frozenset[str]:
    """These steps, and all that come after one of them."""
    found = set[str]()
    for step in definition.order:
        if step in held or not found.isdisjoint(definition.parents[step]):
            found.add(step)
    return frozenset(found)


def undrawn(feeders: Mapping[str, Task]) -> frozenset[str]:
    """The inputs that had more to draw, by their feeders' tasks, by strand."""
    found = set[str]()
    for source, task in feeders.items():
        checkpoint = task.checkpoint
        with suppress(Malformed):
            if not task.is_completed and not Book.decode(checkpoint and checkpoint.value).is_drained:
                found.add(strand_of(source)[0])
    return frozenset(found)


def undone(definition: Definition, steps: Sequence[str], life: int) -> Work[frozenset[str]]:
    """Of these steps those that have a segment, of this life of the workflow, which is not completed."""
    found = set[str]()
    for step in steps:
        queue = definition.queue(step)
        rows = (yield from ask(m.Counted, m.Count(0, queue))).message.rows
        is_open = any(row.counts[state] for row in rows for state in _OPEN)
        if is_open or (yield from _has_lost(queue, max(0, life - MARGIN_MS))):
            found.add(step)
    return frozenset(found)


def _has_lost(queue: str, since_ms: int) -> Work[bool]:
    """Whether a task of a queue is dead or cancelled."""
    upto, is_over = b"", False
    while not is_over:
        page = (yield from ask(m.Listed, m.List(0, queue, upto, 1, _LOST, since_ms))).message
        if split(page.ids):
            return True
        upto, is_over = page.upto, not page.upto
    return False
