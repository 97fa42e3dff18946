"""Cancelling, and only tasks that exist: a mark on an id that was never enqueued would kill what comes there
later.

A copy that does not know a task may be one that missed it, so no copy can tell by itself: first a majority is
read, which changes nothing, then those tasks are marked everywhere, also where they are not known yet. Where one
of the tasks is not there, none is cancelled, and that is definite.

The same read shows which tasks were completed: the mark changes nothing of those, and the answer names them. One
that is cancelled already is not named, so a question that is sent again is answered alike. A completion that comes
after the read is not named either, as one that comes after the answer.

Rejected: to let each copy mark what it knows, in one round. A mark could not be taken back when the other copies
turn out to know of no task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.history import decode_history
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.reads.get import ReadOperation, Rows


class CancelOperation(ReadOperation):
    """Reads whether the tasks are there, as many at a time as an answer can carry the results of; ``then`` marks
    them, and is told which of them, by number, were completed."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, task_ids: Sequence[bytes],
                 then: Callable[[int, Sequence[int]], Operation], at: int = 0,
                 ended: Sequence[int] = ()) -> None:
        part = task_ids[at : at + m.ENDS_MAX]
        partitions = ids.by_partition(part, operations.view.parameters.partitions)

        def make(request: int, asked: list[int]) -> m.Message:
            eras = columns.pack_u64([number for partition in asked
                                     for number in (partition, operations.view.vnodes[partition].standing.era)])
            kept = [task_id for partition in asked for task_id in partitions.get(partition, ())]
            return m.Interest(request, 0, b"".join(kept), eras, 0, 0, 1)
        super().__init__(operations, origin, now_ms, part, partitions, make)
        self._task_ids, self._at, self._then, self._ended = task_ids, at, then, ended

    def conclude(self, now_ms: int, rows: Rows) -> None:
        """Go on, unless one of them is not there."""
        end = self._at + m.ENDS_MAX
        part = self._task_ids[self._at : end]
        missing = [task_id for task_id in part if task_id not in rows]
        if missing:
            self.refuse("no_such_task", f"{ids.none_said(missing)}; nothing was cancelled; leave"
                        f" {'it' if len(missing) == 1 else 'them'} out")
            return
        ended = [*self._ended, *(number for number, task_id in enumerate(part, self._at)
                                 if decode_history(rows[task_id].history or None).is_completed)]
        if end < len(self._task_ids):
            CancelOperation(self.operations, self.origin, now_ms, self._task_ids, self._then, end,
                            ended).start(now_ms)
        else:
            self._then(now_ms, ended).start(now_ms)
