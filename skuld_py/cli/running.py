"""What runs now, for ``skuld top``: claimed tasks, by what they call, who holds them, and since when.

No index has them (one that is renewed would move in it), so they are looked for among all tasks, the oldest first:
those of the last hour, and ``PAGES`` pages of them at most, each of which costs every node some tens of
milliseconds. Where thousands of tasks end in an hour, what runs may lie behind that, and is not shown; the counts
of the queues are exact.

Tasks that run together as one Spark job are one row, with how far the batch is: their workers have said so.
"""

from __future__ import annotations

import attrs

from skuld_py.client.attending import BatchStatus
from skuld_py.client.connection import Connection
from skuld_py.client.json_text import harmless_text as harmless
from skuld_py.client.reading import GET_TASKS, task_of, tasks_of
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.model.ids import from_text, to_text
from skuld_py.model.state import State
from skuld_py.verbs.progress import Progress, progress_of, progress_of_batch
from skuld_py.verbs.words import many

ROWS, PAGES = 20, 2
SPAN_MS = 3_600_000


@attrs.frozen
class Running:
    """A claimed task. ``call``: None for a payload that is no call. ``progress``: where its log says how far it
    is."""

    id: str
    queue: str
    call: str | None
    holder: str
    start_ms: int
    progress: Progress | None = None
    function: str = ""
    """What it calls; of a batch it is empty."""


def running(connection: Connection, now_ms: int, timeout_s: float) -> tuple[Running, ...]:
    """Up to ``ROWS`` of them, the oldest first; those that were found when a node did not answer."""
    found: list[Running] = []
    after = b""
    for _ in range(PAGES):
        question = m.List(connection.next_request(), "", after, ROWS - len(found), 1 << State.CLAIMED,
                          max(1, now_ms - SPAN_MS))
        try:
            page = connection.call(question, timeout_s, is_idempotent=True)
        except SkuldError:
            break
        if not isinstance(page, m.Listed):
            break
        found += _rows_of(page)
        after = page.upto
        if not after or len(found) >= ROWS:
            break
    return tuple(found)


def with_progress(connection: Connection, rows: tuple[Running, ...], now_ms: int,
                  timeout_s: float) -> tuple[Running, ...]:
    """The same with how far the first of them are, of which one answer has room for the logs."""
    first = [from_text(row.id) for row in rows[:GET_TASKS]]
    try:
        got = connection.call(m.Get(connection.next_request(), b"".join(first)), timeout_s, is_idempotent=True)
    except SkuldError:
        return rows
    if not isinstance(got, m.Got):
        return rows
    seen: dict[str, Progress | None] = {}
    for task in (task_of(row, now_ms) for row in got.tasks if len(row.body)):
        if task.claims:
            seen[str(task.id)] = progress_of(task.claims[-1].token, task.claims[-1].log)
    return tuple(attrs.evolve(row, progress=seen.get(row.id)) for row in rows)


def with_batches(connection: Connection, rows: tuple[Running, ...], timeout_s: float) -> tuple[Running, ...]:
    """The same with a row for each batch that takes long, in place of its tasks; those ahead of them are left out
    too, that the same worker has claimed for the next one."""
    found = batches_told(connection, timeout_s)
    own = {(holder, batch.queue, batch.function) for holder, batch in found}
    together = [Running("", batch.queue, f"{many(batch.tasks, 'task')} of {harmless(batch.function)}", holder,
                        batch.since_ms, progress_of_batch(batch)) for holder, batch in found]
    singles = [row for row in rows if (row.holder, row.queue, row.function) not in own]
    return tuple(sorted([*together, *singles], key=lambda row: row.start_ms))


def batches_told(connection: Connection, timeout_s: float) -> list[tuple[str, BatchStatus]]:
    """The batches that workers have told of, each with its worker's name; none, when that cannot be asked."""
    found: list[tuple[str, BatchStatus]] = []
    behind = ""
    for _ in range(PAGES):
        try:
            page = connection.call(m.Muster(connection.next_request(), behind), timeout_s, is_idempotent=True)
        except SkuldError:
            break
        if not isinstance(page, m.Mustered):
            break
        found += [(worker.holder, BatchStatus(*attrs.astuple(batch))) for worker in page.workers
                  for batch in worker.batches]
        behind = page.last
        if not behind:
            break
    return found


def _rows_of(page: m.Listed) -> list[Running]:
    from skuld_py.calls.payloads import function_of
    from skuld_py.calls.sight import call_line

    return [Running(to_text(task.id), task.queue, call_line(task.payload), task.claims[-1].holder,
                    task.claims[-1].start_ms, function=function_of(task.payload) or "")
            for task in tasks_of(page)[0] if task.claims]
