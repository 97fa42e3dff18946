"""Of workflows that others are to be resumed from, which steps are surely not finished, whatever is said of them.

Who resumes names the finished steps, and nothing waits for them any more: what such a step has not done yet is
missing for ever, and nobody is told. So what can be known is looked at first:

* a workflow that lives says which of its inputs are exhausted;
* of one that was killed the log keeps no more than that, but its tasks are there. An input is open whose feeder
  had more to draw, by its last checkpoint, or died before roots were stored that it had drawn; a step is open that
  has a segment which is not completed. So is each step behind an open one.

What cannot be asked, since it was collected or the key may not, is taken as it was said. But of a feeder that is
there, roots that are not were never stored: it is older than they are, and is collected no later. Nor is it seen
when the worker that completed a segment died before it had enqueued what that emits, and the kill came before its
feeder could look after it.

Rejected: to ask for exhausted inputs only. A workflow that a late step killed has none, though all that its first
steps had to do is done; to resume that one is what resuming is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from skuld_py.client.asking import Work, ask
from skuld_py.client.reading import GET_TASKS, task_of
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.model.ids import split
from skuld_py.model.state import State
from skuld_py.model.task import Task
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.acking.feeder import IN_HAND_MAX
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.segments import feeder_id, root_ids, strand_of

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
    """Of these steps those that have a segment, of this life of the workflow, which is not completed, or which was
    drawn and never stored."""
    found = set[str]()
    for step in steps:
        queue = definition.queue(step)
        rows = (yield from ask(m.Counted, m.Count(0, queue))).message.rows
        is_open = any(row.counts[state] for row in rows for state in _OPEN)
        if is_open or (yield from _has_lost(queue, max(0, life - MARGIN_MS))):
            found.add(step)
    for source in definition.sources:
        step = strand_of(source)[0]
        if step in steps and step not in found and (yield from _lacks_roots(definition.id, source, life)):
            found.add(step)
    return frozenset(found)


def _lacks_roots(workflow: str, source: str, life: int) -> Work[bool]:
    """Whether a feeder that has not ended wrote down roots that were not stored then."""
    rows = (yield from ask(m.Got, m.Get(0, feeder_id(workflow, source, life)))).message.tasks
    wanted = [*_in_hand(workflow, source, [task_of(row, 0) for row in rows if len(row.body)])]
    for start in range(0, len(wanted), GET_TASKS):
        part = wanted[start : start + GET_TASKS]
        rows = (yield from ask(m.Got, m.Get(0, b"".join(part), is_bare=True))).message.tasks
        if not {*part} <= {bytes(row.id) for row in rows if len(row.body)}:
            return True
    return False


def _in_hand(workflow: str, source: str, feeder: Sequence[Task]) -> Iterator[bytes]:
    """The roots that are not done of a feeder's last batches, of which it stores no more at a time: by then it has
    stored those before them."""
    for task in feeder:
        book = Book()
        with suppress(Malformed):
            book = Book.decode(task.checkpoint and task.checkpoint.value)
        for batch in [] if task.is_completed else [*book.batches.values()][-IN_HAND_MAX:]:
            made = root_ids(workflow, source, batch.first, batch.count, batch.time_ms)
            yield from (made[number - batch.first] for number in batch.undone())


def _has_lost(queue: str, since_ms: int) -> Work[bool]:
    """Whether a task of a queue is dead or cancelled."""
    upto, is_over = b"", False
    while not is_over:
        page = (yield from ask(m.Listed, m.List(0, queue, upto, 1, _LOST, since_ms))).message
        if split(page.ids):
            return True
        upto, is_over = page.upto, not page.upto
    return False
