"""The verbs that change nothing.

``list`` stands last: behind it the class's own ``list`` hides the builtin one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.client import checking
from skuld_py.client.asking import Flow, Part, Work, ask, stream, verb
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.history import decode_history
from skuld_py.model.ids import TaskId
from skuld_py.model.task import LogEntry, Task, view

GET_TASKS = DEFAULT_LIMITS.batch_bytes // (DEFAULT_LIMITS.payload_bytes + DEFAULT_LIMITS.log_bytes)
"""Tasks read by one request: as many of the largest as one answer can carry."""


@attrs.frozen
class Depth:
    """How many tasks of a queue are in each state."""

    waiting: int
    claimed: int
    completed: int
    scheduled: int = 0
    blocked: int = 0
    cancelled: int = 0
    dead: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(attrs.astuple(self))


class Reading:
    """Needs the wall's time."""

    _wall_ms: Callable[[], int]

    @verb
    def get(self, id: bytes | str) -> Work[Task]:
        """A task with all its claims and their logs, joined over a majority of its owners."""
        found = yield from self._get([id])
        if not found:
            raise Refused("no_such_task", f"id: no task {id if isinstance(id, str) else task_ids.to_text(id)}")
        return found[0]

    @verb
    def get_many(self, ids: Sequence[bytes | str]) -> Work[list[Task]]:
        """The tasks that exist, in id order."""
        return (yield from self._get(ids))

    @verb
    def results(self, ids: Sequence[bytes | str]) -> Work[list[bytes | None]]:
        """What the tasks' completions gave, in the order asked; None where there is none, or not yet."""
        found = {task.id: task.result for task in (yield from self._get(ids))}
        return [found.get(checking.as_id(task_id)) for task_id in ids]

    def _get(self, ids: Sequence[bytes | str]) -> Work[list[Task]]:
        wanted = [checking.as_id(task_id) for task_id in ids]
        found: list[Task] = []
        for start in range(0, len(wanted), GET_TASKS):
            answer = yield from ask(m.Got, m.Get(0, b"".join(wanted[start : start + GET_TASKS])))
            found += [_task_of(row, self._wall_ms()) for row in answer.message.tasks if len(row.body)]
        return found

    @verb
    def depths(self) -> Work[dict[str, Depth]]:
        """Counts of every queue."""
        answer = yield from ask(m.Counted, m.Count(0, ""))
        return {row.queue: Depth(*row.counts) for row in answer.message.rows}

    @verb
    def count(self, queue: str | None = None) -> Work[int]:
        """How many tasks exist, completed ones included; of one queue or of all."""
        answer = yield from ask(m.Counted, m.Count(0, queue or ""))
        return sum(sum(row.counts) for row in answer.message.rows)

    @verb
    def status(self) -> Work[m.Described]:
        """The cluster as one of its nodes sees it."""
        return (yield from ask(m.Described, m.Describe(0))).message

    @stream
    def list(self, queue: str | None = None, *, page: int = 500) -> Flow[Task]:
        """All tasks, or a queue's, in id order; one page in memory. Logs are left out (see ``get``)."""
        after, is_over = b"", False
        while not is_over:
            answer = (yield from ask(m.Listed, m.List(0, queue or "", after, page))).message
            rows = zip(task_ids.split(answer.ids), answer.bodies.unpack(), answer.histories.unpack(), strict=True)
            yield Part([view(TaskId(task_id), body, decode_history(history or None), [], self._wall_ms())
                        for task_id, body, history in rows])
            after, is_over = answer.upto, not answer.upto


def _task_of(row: m.TaskRow, now_ms: int) -> Task:
    keys = zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), row.entries.unpack(), strict=True)
    entries = [LogEntry(token, seq, data) for token, seq, data in keys]
    return view(TaskId(row.id), row.body.unpack()[0], decode_history(row.history or None), entries, now_ms)
