"""The verbs that read, and change nothing.

``list`` stands last: behind it the class's own ``list`` hides the builtin one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.calls.results import decode_outputs, decode_result
from skuld_py.client import checking
from skuld_py.client.asking import Flow, Part, Work, ask, ask_either, stream, verb
from skuld_py.client.canvassing import canvassed
from skuld_py.client.preludes import Time, check_key, time_ms_of
from skuld_py.client.wanted import Wanted
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.asides import SILENCE, Aside
from skuld_py.model.body import Body
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.history import decode_history
from skuld_py.model.ids import TaskId
from skuld_py.model.overview import Overview, untold_by
from skuld_py.model.state import State, is_timeless
from skuld_py.model.task import LogEntry, Task, view

GET_TASKS = DEFAULT_LIMITS.batch_bytes // (DEFAULT_LIMITS.payload_bytes + DEFAULT_LIMITS.log_bytes)
"""Tasks read by one request: as many of the largest as one answer can carry."""

TOKEN_BYTES = 8
"""Before the error of a task, in a page with errors: the token of its claim."""
STATES = tuple(state.name.lower() for state in State)
"""The words for where a task stands."""


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
        """How many tasks the queue has, whatever their state."""
        return sum(attrs.astuple(self))


@attrs.frozen
class TaskPage:
    """Some tasks of a listing, perhaps none. ``upto``: all up to this id were looked at; None: all there are.
    ``read``: how many were read to find these."""

    tasks: tuple[Task, ...]
    upto: TaskId | None
    read: int = attrs.field(default=0, eq=False)


class Reading:
    """Needs the wall's time, and a steady one in seconds."""

    _clock: Callable[[], float]
    _wall_ms: Callable[[], int]

    @verb
    def get(self, id: bytes | str, *, min_seq: int = 0) -> Work[Task]:
        """A task with all its claims and their logs, joined over a majority of its owners.

        What one read showed, no later one lacks, by any client. ``min_seq``: the ``seq`` of what was seen before;
        ``Refused`` as ``unavailable`` when no majority knows as much in time. Of a log of over 10,000 entries, or
        1 MiB, the last are read, and ``is_cut`` says so; ``log`` gives all.
        """
        found = yield from self._get([id], min_seq)
        if not found:
            raise Refused("no_such_task", task_ids.none_said([checking.as_id(id)], "id"))
        return found[0]

    @verb
    def get_many(self, ids: Sequence[bytes | str], *, min_seq: int = 0) -> Work[list[Task]]:
        """The tasks that exist, in id order. ``min_seq`` is asked of each, as in ``get``."""
        return (yield from self._get(ids, min_seq))

    def _get(self, ids: Sequence[bytes | str], min_seq: int = 0) -> Work[list[Task]]:
        wanted = [checking.as_id(task_id) for task_id in ids]
        least = checking.as_seq("min_seq", min_seq)
        found: list[Task] = []
        for start in range(0, len(wanted), GET_TASKS):
            part = wanted[start : start + GET_TASKS]
            numbers = columns.pack_u64([least] * len(part)) if least else b""
            found += yield from self._read(m.Get(0, b"".join(part), least=numbers))
        return found

    def _read(self, question: m.Get) -> Work[list[Task]]:
        answer = (yield from ask(m.Got, question)).message
        said = [*map(Aside.decode, answer.asides.unpack("asides"))] or [SILENCE] * len(answer.tasks)
        return [task_of(row, self._wall_ms(), aside) for row, aside in zip(answer.tasks, said, strict=True)
                if len(row.body)]

    def _bare(self, ids: Sequence[bytes]) -> Work[list[Task]]:
        """Tasks without logs; which of their dependencies are met is known."""
        return (yield from self._read(m.Get(0, b"".join(ids), is_bare=True))) if ids else []

    @verb
    def depths(self) -> Work[dict[str, Depth]]:
        """Counts of every queue."""
        answer = yield from ask(m.Counted, m.Count(0, ""))
        return {row.queue: Depth(*row.counts) for row in answer.message.rows}

    @verb
    def count(self, queue: str | None = None, *, states: Sequence[str] = ()) -> Work[int]:
        """How many tasks exist, completed ones included; of one queue or of all, in some states or in any."""
        mask = _mask(states)
        answer = yield from ask(m.Counted, m.Count(0, queue or ""))
        return sum(number for row in answer.message.rows for state, number in enumerate(row.counts)
                   if not mask or mask >> state & 1)

    @verb
    def greeting(self) -> Work[m.Greeted]:
        """Which cluster this is, as the node that was met first has said."""
        return (yield from ask(m.Greeted, m.Greet(0))).message

    @verb
    def status(self) -> Work[m.Described]:
        """The cluster as one of its nodes sees it."""
        return (yield from self._status())

    def _status(self) -> Work[m.Described]:
        return (yield from ask_either(m.Described, m.Describe(0, reads_unproven=True), m.Describe(0))).message

    @verb
    def overview(self) -> Work[Overview]:
        """The same as ``described``, in which ``held`` is of all partitions: of those that this node does not
        keep others tell that do, and so many are asked as that takes, each once. ``silent``: those of them that
        did not tell, and why. ``untold``: partitions of which nobody told, so what is held there is not known."""
        first = yield from self._status()
        if not untold_by(first):
            return Overview(first)
        greeted = (yield from ask(m.Greeted, m.Greet(0))).message
        return (yield from canvassed(first, greeted, self._clock))

    @verb
    def list_page(self, queue: str | None = None, *, states: Sequence[str] = (), since: Time | None = None,
                  until: Time | None = None, function: str | None = None, argument: str | None = None,
                  header: str | None = None, error: str | None = None, page: int = 500,
                  partition: int | None = None, after: bytes | str | None = None,
                  key: str | None = None) -> Work[TaskPage]:
        """The first page of ``list``, and how far it came: for who has not all day, and shows tasks as they are
        found. A page ends behind ``page`` tasks, or so many records that a node has looked at, so it may be empty;
        the next one is behind its ``upto``."""
        wanted = Wanted(function, argument, header, error)
        question = yield from self._question(queue, states, since, until, wanted, page, partition, after, key)
        return (yield from self._listed(question, wanted))

    def _question(self, queue: str | None, states: Sequence[str], since: Time | None, until: Time | None,
                  wanted: Wanted, page: int, partition: int | None, after: bytes | str | None,
                  key: str | None) -> Work[m.List]:
        """All tasks of a queue and key are in one partition, so no other one is asked."""
        now_ms = self._wall_ms()
        wanted.check()
        asked = m.List(0, queue or "", b"" if after is None else checking.as_id(after), page, _mask(states),
                       time_ms_of("since", since, now_ms), time_ms_of("until", until, now_ms),
                       checking.as_place(partition), wanted.error is not None,
                       "" if key is None else check_key(key))
        if not asked.key or not asked.queue or asked.place:
            return asked
        partitions = (yield from ask(m.Greeted, m.Greet(0))).message.partitions
        return attrs.evolve(asked, place=1 + task_ids.lane_route(asked.queue, asked.key) % partitions)

    def _listed(self, question: m.List, wanted: Wanted) -> Work[TaskPage]:
        answer = (yield from ask(m.Listed, question)).message
        if question.states and answer.ids:
            read = yield from self._bare(task_ids.split(answer.ids))
            found = [task for task in read if question.states >> State[task.state.upper()] & 1]
        else:
            seen, unsure = tasks_of(answer)
            known = {task.id: task for task in (yield from self._bare(unsure))}
            found = [known.get(task.id, task) for task in seen]
        suiting = [task for task in found if wanted.suits(task) and question.key in ("", task.key)]
        if wanted.error is not None:
            errors = yield from self._last_errors(answer, suiting)
            suiting = [attrs.evolve(task, error=errors[task.id]) for task in suiting
                       if wanted.has_error(errors.get(task.id, b""))]
        return TaskPage(tuple(suiting), TaskId(answer.upto) if answer.upto else None, len(found))

    def _last_errors(self, page: m.Listed, tasks: Sequence[Task]) -> Work[dict[bytes, bytes]]:
        """Those of a page that was asked for them; if its node has no place for them, the tasks are read."""
        found = task_ids.split(page.ids)
        if 0 < len(page.errors) == len(found):
            errors = zip(found, page.errors.unpack("errors"), strict=True)
            return {task_id: error[TOKEN_BYTES:] for task_id, error in errors}
        read = yield from self._get([task.id for task in tasks])
        return {task.id: task.error or b"" for task in read}

    @stream
    def list(self, queue: str | None = None, *, states: Sequence[str] = (), since: Time | None = None,
             until: Time | None = None, function: str | None = None, argument: str | None = None,
             header: str | None = None, error: str | None = None, page: int = 500,
             partition: int | None = None, after: bytes | str | None = None,
             key: str | None = None) -> Flow[Task]:
        """All tasks, or a queue's, in id order, which is the order of their making; one page in memory. Logs are
        left out (see ``get``).

        ``states``: only those in one of them, such as ``("dead", "cancelled")``. ``since``, ``until``: only those
        asked for then or later, and before then; a ``datetime`` with a time zone, or seconds since 1970. A unique
        name, whose id is as old as its window, stands where that begins. It is no snapshot: a task that changes
        meanwhile is listed as it was, or as it is.

        ``function``: only calls of the task function of this name. ``argument``, ``header``, ``error``: only those
        of which an argument, typed as ``value`` or ``name=value``, a header, ``name=value``, or the last error is
        like this pattern, ``*`` for any text, large letters like small ones; tasks that were asked for by their
        error have it. Nodes do not look into payloads: all tasks that are asked for otherwise are read, and the
        others left out here. ``partition``: only those of this one; all partitions may so be read side by side. A
        node of a release before 0.2 gives those of all the same. ``after``: only those behind this id, whether
        there is such a task or not. ``key``: only those of this ordering key; nodes look for them, in one
        partition if the queue is named too. Nodes of a cluster of rules before 5 give the tasks of all keys, and
        the others are left out here.
        """
        wanted = Wanted(function, argument, header, error)
        question = yield from self._question(queue, states, since, until, wanted, page, partition, after, key)
        is_over = False
        while not is_over:
            found = yield from self._listed(question, wanted)
            yield Part(found.tasks)
            question, is_over = attrs.evolve(question, after=found.upto or b""), found.upto is None


def _mask(states: Sequence[str]) -> int:
    """A bit for each state; 0 for none."""
    mask = 0
    for state in (states,) if isinstance(states, str) else states:
        if state not in STATES:
            raise Refused("bad_state", f"states: {state!r} is no state; use {', '.join(STATES)}")
        mask |= 1 << State[state.upper()]
    return mask


def tasks_of(answer: m.Listed) -> tuple[list[Task], list[bytes]]:
    """The tasks of a page, and the ids of those whose state only a node can tell."""
    found: list[Task] = []
    unsure: list[bytes] = []
    rows = zip(task_ids.split(answer.ids), answer.bodies.unpack(), answer.histories.unpack(), strict=True)
    for task_id, body, record in rows:
        history = decode_history(record or None)
        found.append(view(TaskId(task_id), body, history, []))
        if not is_timeless(history, Body.decode(body)):
            unsure.append(task_id)
    return found, unsure


def task_of(row: m.TaskRow, now_ms: int, aside: Aside = SILENCE) -> Task:
    """A task as readers see it, from the row and the aside of a node; without an aside, as of ``now_ms``."""
    keys = zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), row.entries.unpack(), strict=True)
    entries = [LogEntry(token, seq, data) for token, seq, data in keys]
    seen = view(TaskId(row.id), row.body.unpack()[0], decode_history(row.history or None), entries, now_ms, aside)
    if seen.result is not None:
        seen = attrs.evolve(seen, result=decode_result(seen.result), outputs=decode_outputs(seen.result))
    if seen.checkpoint is not None:
        seen = attrs.evolve(seen, checkpoint=with_value(seen.checkpoint))
    return seen


def with_value(checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint with what was given for it."""
    return attrs.evolve(checkpoint, value=decode_result(checkpoint.data))
