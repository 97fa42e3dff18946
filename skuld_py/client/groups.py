"""Groups of tasks: steps one after another, steps side by side, and a task behind them all.

    ids = client.chain([("fetch", b"a"), ("parse", b"a"), ("store", b"a")])
    parts, total = client.chord([("count", page) for page in pages], ("sum", b""))
    client.results_of(total)                        # what the counts gave, in the order of the pages

A step is a queue and a payload; a task function makes one by ``function.step(...)``. Groups are dependencies and
nothing else: no node knows of them, and each task is retried, cancelled and read like any other.

A task may wait for 1,000 others. A task behind more waits for *joins*: tasks that do nothing but wait for their
part, in the queue and at the priority of the task behind them, with the payload ``JOIN``. Workers run them as any
task; a program that claims by hand completes tasks with this payload.

Invariant: the ids of a group rise in the order of its steps, so that results, which are read in the order of ids,
are in the order of the steps. All ids are made before the first request, or given by ``ids``: after an
``Uncertain`` the same call with the same ids makes the same tasks.

Rejected: a record of the group that counts what is left, which would be a second truth beside the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from skuld_py.client import checking, options
from skuld_py.client.asking import Work, as_part, verb
from skuld_py.client.enqueueing import NewTask
from skuld_py.client.options import Retry
from skuld_py.client.preludes import DEP_WAIT_S, Given, Ids, OnFailure, prepare
from skuld_py.errors import Refused
from skuld_py.model import names
from skuld_py.model.ids import TaskId, none_said, to_text
from skuld_py.model.prelude import DEPS_MAX
from skuld_py.model.task import Task

JOIN = b"\x94\x01\xaaskuld:join\x90\x80"
"""The payload of a join: a call of the task function ``skuld:join``, which does nothing."""
STEPS_MAX = 100_000
Step = tuple[str, bytes]
"""Queue and payload."""


class Chord(NamedTuple):
    """The ids of a chord: of its steps, in their order, and of the task behind them."""

    steps: list[TaskId]
    then: TaskId


class Grouping:
    """Needs what ``Enqueueing`` and ``Reading`` have."""

    _wall_ms: Callable[[], int]
    _name: Callable[..., Work[list[TaskId]]]
    _store: Callable[..., Work[list[TaskId]]]
    _get: Callable[..., Work[list[Task]]]

    @verb
    def chain(self, steps: Iterable[Step], *, deps: Ids | None = None, ids: Ids | None = None, priority: int = 0,
              w: int | None = None, retry: Retry | None = None, headers: Mapping[str, str] | None = None,
              on_dep_failure: OnFailure = "wait", dep_wait_s: float = DEP_WAIT_S) -> Work[list[TaskId]]:
        """Store steps of which each waits for the one before, and the first for ``deps``; gives their ids.

        With ``on_dep_failure="fail"`` all die that stand behind a step that is dead or cancelled; with ``wait``
        they wait until it is retried. The other options are those of ``enqueue``, and hold for each step.
        """
        made = _Steps(steps, priority, retry, headers)
        named = yield from self._ids(made.count, ids)
        waits: list[Ids] = [list(deps or ()), *([one] for one in named[:-1])]
        yield from self._enqueue_steps(made, named, waits, w, Given(on_dep_failure=on_dep_failure,
                                                                    dep_wait_s=dep_wait_s))
        return named

    @verb
    def group(self, steps: Iterable[Step], *, deps: Ids | None = None, ids: Ids | None = None, priority: int = 0,
              w: int | None = None, retry: Retry | None = None, headers: Mapping[str, str] | None = None,
              on_dep_failure: OnFailure = "wait", dep_wait_s: float = DEP_WAIT_S) -> Work[list[TaskId]]:
        """Store steps that stand side by side, each behind ``deps``, if any; gives their ids."""
        made = _Steps(steps, priority, retry, headers)
        named = yield from self._ids(made.count, ids)
        yield from self._enqueue_steps(made, named, [list(deps or ())] * made.count, w,
                                       Given(on_dep_failure=on_dep_failure, dep_wait_s=dep_wait_s))
        return named

    @verb
    def chord(self, steps: Iterable[Step], then: Step, *, deps: Ids | None = None, ids: Ids | None = None,
              priority: int = 0, w: int | None = None, retry: Retry | None = None,
              headers: Mapping[str, str] | None = None, on_dep_failure: OnFailure = "wait",
              dep_wait_s: float = DEP_WAIT_S) -> Work[Chord]:
        """Store steps that stand side by side, and a task that waits for all of them, with joins between when they
        are more than 1,000; gives their ids. ``ids``: as many as ``tasks_of(len(steps))``."""
        made = _Steps(steps, priority, retry, headers)
        behind = _Steps([then], priority, retry, headers)
        given = Given(on_dep_failure=on_dep_failure, dep_wait_s=dep_wait_s)
        named = yield from self._ids(tasks_of(made.count), ids)
        parts, rest = named[: made.count], named[made.count :]
        done = yield from self._enqueue_steps(made, parts, [list(deps or ())] * made.count, w, given)
        yield from self._enqueue_join(behind, parts, rest, w, given, done)
        return Chord(parts, rest[-1])

    @verb
    def join(self, deps: Ids, then: Step, *, ids: Ids | None = None, priority: int = 0, w: int | None = None,
             retry: Retry | None = None, headers: Mapping[str, str] | None = None,
             on_dep_failure: OnFailure = "wait", dep_wait_s: float = DEP_WAIT_S) -> Work[TaskId]:
        """Store a task that waits for all these, with joins between when they are more than 1,000; gives its id.
        ``ids``: as many as ``tasks_of(len(deps)) - len(deps)``."""
        parts = sorted({checking.as_id(dep) for dep in deps})
        if not parts:
            raise Refused("bad_deps", "deps: none are given; there is nothing to wait for")
        behind = _Steps([then], priority, retry, headers)
        rest = yield from self._ids(tasks_of(len(parts)) - len(parts), ids)
        yield from self._enqueue_join(behind, parts, rest, w,
                                      Given(on_dep_failure=on_dep_failure, dep_wait_s=dep_wait_s))
        return rest[-1]

    @verb
    def results_of(self, id: bytes | str, *, missing_ok: bool = False) -> Work[list[Any]]:
        """What the tasks returned that this one waits for, or waited for, in the order of their ids, which is
        that of their making; None for a task without a result, or not ended yet. A join stands for the tasks that
        it waited for.

        Where one of the tasks is missing, this is refused as ``missing_result``; with ``missing_ok`` that is None,
        too. A task that is kept keeps what it waits for, so what is missing was never enqueued, or was collected
        before this one came to wait for it.
        """
        return (yield from self._gathered([checking.as_id(id)], missing_ok))

    def _gathered(self, roots: Sequence[TaskId], missing_ok: bool) -> Work[list[Any]]:
        tasks = yield from self._get(roots)
        if len(tasks) < len(roots):
            there = {task.id for task in tasks}
            raise Refused("no_such_task", none_said([root for root in roots if root not in there], "id"))
        found: dict[bytes, Any] = {}
        wanted = list(dict.fromkeys(dep for task in tasks for dep in task.deps))
        while wanted:
            read = {task.id: task for task in (yield from self._get(wanted))}
            if len(read) < len(wanted) and not missing_ok:
                raise _missing([dep for dep in wanted if dep not in read])
            joins = [task for task in read.values() if task.payload == JOIN and task.deps]
            inner = {task.id for task in joins}
            found |= {dep: read[dep].result if dep in read else None for dep in wanted if dep not in inner}
            wanted = list(dict.fromkeys(dep for task in joins for dep in task.deps))
        return [found[dep] for dep in sorted(found)]

    # -- storing -------------------------------------------------------------------------------

    def _ids(self, count: int, given: Ids | None) -> Work[list[TaskId]]:
        """The given ids, or fresh ones, rising; each thousand of a partition of its own."""
        if given is not None:
            named = [checking.as_id(each) for each in given]
            if len(named) != count or named != sorted(set(named)):
                raise Refused("bad_ids", f"ids: {count} are wanted, rising; {len(named)} are given")
            return named
        made: list[TaskId] = []
        while len(made) < count:
            made += yield from self._name([None] * min(DEPS_MAX, count - len(made)))
        return made

    def _enqueue_steps(self, steps: _Steps, named: Sequence[TaskId], waits: Sequence[Ids], w: int | None,
                       given: Given, done: int = 0) -> Work[int]:
        """Store them in requests of at most 1,000 tasks, in their order, behind ``done`` others; gives how many
        are done."""
        tasks = list(steps.tasks(named, waits, given, self._wall_ms()))
        for part in checking.chunks([task.rest for task in tasks]):
            following, tasks = tasks[: len(part)], tasks[len(part) :]
            yield from as_part(done, self._store(following, w))
            done += 1
        return done

    def _enqueue_join(self, behind: _Steps, parts: Sequence[TaskId], rest: Sequence[TaskId], w: int | None,
                      given: Given, done: int = 0) -> Work[None]:
        """A tree of joins over the parts, and the task at its top."""
        joins, level, left = behind.joining(), list(parts), list(rest)
        while len(level) > DEPS_MAX:
            groups = _even(level)
            named, left = left[: len(groups)], left[len(groups) :]
            done = yield from self._enqueue_steps(joins.times(len(groups)), named, groups, w, given, done)
            level = named
        yield from self._enqueue_steps(behind, left, [level], w, given, done)


def _missing(deps: Sequence[TaskId]) -> Refused:
    listed = ", ".join(map(to_text, deps[:5]))
    return Refused("missing_result", f"deps: {len(deps)} tasks that it waits for are not there: {listed}; they"
                   " were never enqueued, or collected before it came; enqueue it sooner, keep what has ended for"
                   " longer, or read None of them with missing_ok=True")


class _Steps:
    """Steps, checked, as what is sent needs them."""

    def __init__(self, steps: Iterable[Any], priority: int, retry: Retry | None,
                 headers: Mapping[str, str] | None) -> None:
        self._rows = list(steps)
        self._options = (priority, retry, headers)
        if not 1 <= len(self._rows) <= STEPS_MAX:
            raise Refused("bad_steps", f"steps: {len(self._rows)}, not 1 to {STEPS_MAX}")
        for row in self._rows:
            if not isinstance(row, tuple) or len(row) != 2:
                raise Refused("bad_steps", f"steps: {str(row)[:64]!r} is no pair of a queue and a payload;"
                              " for a task function write function.step(...)")
            names.check_name("queue", row[0])
        queues = dict.fromkeys(queue for queue, _ in self._rows)
        self._heads = {queue: options.header_of(queue, *self._options) for queue in queues}
        checking.check_payloads([payload for _, payload in self._rows])

    @property
    def count(self) -> int:
        return len(self._rows)

    def joining(self) -> _Steps:
        """A join in the queue of the first step."""
        return _Steps([(self._rows[0][0], JOIN)], *self._options)

    def times(self, count: int) -> _Steps:
        return _Steps(self._rows * count, *self._options)

    def tasks(self, named: Sequence[TaskId], waits: Sequence[Ids], given: Given, now_ms: int) -> Iterator[NewTask]:
        """Each step as a task under its id, waiting for what it is to wait for."""
        for (queue, payload), task_id, deps in zip(self._rows, named, waits, strict=True):
            own = Given(deps=[deps], on_dep_failure=given.on_dep_failure, dep_wait_s=given.dep_wait_s)
            (head,), (rest,), _ = prepare(self._heads[queue], [payload], own if deps else Given(), now_ms)
            yield NewTask(head, rest, task_id)


def tasks_of(steps: int) -> int:
    """How many tasks a chord of ``steps`` steps has: the steps, the joins between, and the one behind."""
    count, level = steps + 1, steps
    while level > DEPS_MAX:
        level = -(-level // DEPS_MAX)
        count += level
    return count


def _even(parts: Sequence[TaskId]) -> list[list[TaskId]]:
    """As few parts as may be, of nearly the same size."""
    count = -(-len(parts) // DEPS_MAX)
    ends = [len(parts) * number // count for number in range(count + 1)]
    return [list(parts[start:end]) for start, end in pairwise(ends)]
