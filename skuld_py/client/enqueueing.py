"""The verbs that make tasks.

An enqueue carries its ids, given or minted before the first request, so asking again is harmless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from skuld_py.client import checking, options
from skuld_py.client.asking import Joint, Work, ask, verb
from skuld_py.client.coalescing import one_by_one
from skuld_py.client.minting import Minter
from skuld_py.client.options import Retry
from skuld_py.client.preludes import (
    DEP_WAIT_S,
    UNIQUE_WINDOW_S,
    Deps,
    Given,
    Ids,
    Moment,
    Names,
    OnFailure,
    Time,
    Times,
    prepare,
)
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.ids import DuplicateId, TaskId, split

_NOTHING = (None,) * 5


class NewTask(NamedTuple):
    """A task to be stored, with its id, or the lane that it is to be of, or None. A tuple, because each single
    call makes two."""

    header: bytes
    rest: bytes
    id: TaskId | int | None = None


class Enqueueing:
    """Needs a mint and the wall's time."""

    _minter: Minter
    _wall_ms: Callable[[], int]

    @verb
    def new_ids(self, count: int = 1, *, queue: str | None = None, key: str | None = None) -> Work[list[TaskId]]:
        """Ids for tasks yet to be enqueued, all of one partition; for tasks with a key, name queue and key."""
        if key is None:
            return (yield from self._name([None] * count))
        lane = prepare(checking.header_of(queue or "", 0), [b""], Given(key=key), 0).wanted
        return (yield from self._name([*lane] * count))

    def _name(self, wanted: Sequence[TaskId | int | None]) -> Work[list[TaskId]]:
        """The ids as wanted. Those that may be any are of one partition."""
        greeted = yield from ask(m.Greeted, m.Greet(0))
        floor_ms, now_ms = greeted.message.floor_ms, self._wall_ms()
        if wanted and not isinstance(lane := wanted[0], TaskId) and wanted.count(lane) == len(wanted):
            return self._minter.mint(floor_ms, now_ms, len(wanted), lane)
        counts = Counter(each for each in wanted if not isinstance(each, TaskId))
        fresh = {lane: iter(self._minter.mint(floor_ms, now_ms, count, lane)) for lane, count in counts.items()}
        return [each if isinstance(each, TaskId) else next(fresh[each]) for each in wanted]

    @verb
    def enqueue(self, queue: str, payload: bytes, *, priority: int = 0, id: bytes | str | None = None,
                w: int | None = None, not_before: Time | None = None, expires: Time | None = None,
                retry: Retry | None = None, headers: Mapping[str, str] | None = None, key: str | None = None,
                unique: str | None = None, unique_window_s: float = UNIQUE_WINDOW_S, deps: Ids | None = None,
                on_dep_failure: OnFailure = "wait", dep_wait_s: float = DEP_WAIT_S) -> Work[TaskId]:
        """Store one task on ``w`` owners (a majority by default), fsynced, and give its id.

        With ``id`` given the call is idempotent over processes: the same id and content again is
        the same task, the same id with other content is refused. The options belong to the content; what they
        mean says ``client.options``.
        """
        header = options.header_of(queue, priority, retry, headers)
        checking.check_payload(payload)
        task = NewTask(header, payload, None if id is None else checking.as_id(id))
        if (not_before, expires, key, unique, deps) != _NOTHING:
            given = Given([not_before], [expires], [key], [unique], [deps], on_dep_failure, dep_wait_s,
                          unique_window_s)
            task = _prepared(task, given, self._wall_ms(), self._minter.moment)

        def together(tasks: Sequence[NewTask]) -> Work[Sequence[TaskId | SkuldError]]:
            return self._store_each(tasks, w)
        made: TaskId = yield Joint(("enqueue", w), task, len(task.rest) + len(task.header) + 40, together)
        return made

    def _store_each(self, tasks: Sequence[NewTask], w: int | None) -> Work[Sequence[TaskId | SkuldError]]:
        """Ids are given first, so that asking again asks for the same tasks."""
        made = yield from self._name([task.id for task in tasks])
        named = [NewTask(task.header, task.rest, task_id) for task, task_id in zip(tasks, made, strict=True)]
        return (yield from one_by_one(named, lambda part: self._store(part, w)))

    def _store(self, tasks: Sequence[NewTask], w: int | None) -> Work[list[TaskId]]:
        """One request, with a batch for each queue and its options."""
        made = [task.id for task in tasks if isinstance(task.id, TaskId)]
        batches = options.batches_of([task.header for task in tasks], made, [task.rest for task in tasks])
        return _marked(made, batches, (yield from ask(m.Acked, m.Enqueue(0, w or 0, batches))).message)

    @verb
    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, priority: int = 0,
                     ids: Sequence[bytes | str] | None = None, w: int | None = None, not_before: Times = None,
                     expires: Times = None, retry: Retry | None = None, headers: Mapping[str, str] | None = None,
                     key: Names = None, unique: Names = None, unique_window_s: float = UNIQUE_WINDOW_S,
                     deps: Deps = None, on_dep_failure: OnFailure = "wait",
                     dep_wait_s: float = DEP_WAIT_S) -> Work[list[TaskId]]:
        """Store many tasks, in requests of at most 1,000; gives their ids in order.

        After an error some may be stored: enqueue again with the same ``ids`` (see ``new_ids``) and the same
        options (see ``client.options``).
        """
        header = options.header_of(queue, priority, retry, headers)
        every = list(payloads)
        if every:
            checking.check_payloads(every)
        given = Given(not_before, expires, key, unique, deps, on_dep_failure, dep_wait_s, unique_window_s)
        heads, rests, wanted = prepare(header, every, given, self._wall_ms(), self._minter.moment)
        if ids is not None:
            if len(ids) != len(every):
                raise Refused("bad_ids", f"ids: {len(ids)} for {len(every)} payloads")
            wanted = [_agreed(checking.as_id(each), named) for each, named in zip(ids, wanted, strict=True)]
        made: list[TaskId] = []
        for part in checking.chunks(rests):
            done, end = len(made), len(made) + len(part)
            chunk = yield from self._name(wanted[done:end])
            batches = options.batches_of(heads[done:end], chunk, part)
            acked = yield from ask(m.Acked, m.Enqueue(0, w or 0, batches))
            made += _marked(chunk, batches, acked.message)
        return made


def _marked(made: list[TaskId], batches: Sequence[m.TaskBatch], acked: m.Acked) -> list[TaskId]:
    """The ids, saying of themselves which were there already."""
    if not acked.duplicates:
        return made
    sent = [task_id for batch in batches for task_id in split(batch.ids)]
    known = {sent[number] for number in unpack_u64(acked.duplicates) if number < len(sent)}
    return [DuplicateId(task_id) if task_id in known else task_id for task_id in made]


def _prepared(task: NewTask, given: Given, now_ms: int, moment: Moment) -> NewTask:
    (head,), (rest,), (wanted,) = prepare(task.header, [task.rest], given, now_ms, moment)
    return NewTask(head, rest, _agreed(task.id, wanted) if isinstance(task.id, TaskId) else wanted)


def _agreed(task_id: TaskId, wanted: TaskId | int | None) -> TaskId:
    """An id that the caller gave; a unique name gives its own."""
    if isinstance(wanted, TaskId) and task_id != wanted:
        raise Refused("bad_id", "id: a task with a unique name has the id of that name; leave id out")
    return task_id
