"""The verbs that make tasks.

An enqueue carries its ids, given or minted before the first request, so asking again is harmless. An error that
says it may have happened has the ids, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from skuld_py.client import checking, options
from skuld_py.client.asking import Joint, Work, as_part, ask, verb
from skuld_py.client.coalescing import one_by_one
from skuld_py.client.minting import FUTURE_ID, Minter
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
    start_of,
)
from skuld_py.client.tracing import traced
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.ids import DuplicateId, TaskId, to_text

IDS_MAX = 1_000_000
"""Most ids that one call makes: some hundred megabytes."""
_NOTHING = (None,) * 5


class NewTask(NamedTuple):
    """A task to be stored, with its id, or the lane of the id it is to get, or None. A tuple, because each single
    call makes two."""

    header: bytes
    rest: bytes
    id: TaskId | int | None = None


class StoredIds(list[TaskId]):
    """The ids of tasks that are stored. ``copies``: on how many disks, each, when that was answered: the least."""

    def __init__(self, ids: Iterable[TaskId] = (), copies: int = 0) -> None:
        super().__init__(ids)
        self.copies = copies


class Enqueueing:
    """Needs a mint and the wall's time."""

    _minter: Minter
    _wall_ms: Callable[[], int]

    @verb
    def new_ids(self, count: int = 1, *, queue: str | None = None, key: str | None = None) -> Work[list[TaskId]]:
        """Ids for tasks yet to be enqueued, all of one partition; for tasks with a key, name queue and key. At
        most a million at once (``bad_count``)."""
        if type(count) is not int or not 0 <= count <= IDS_MAX:
            raise Refused("bad_count", f"count: {count!r} is not in 0..{IDS_MAX}; ask again for more")
        if key is None:
            return (yield from self._name([None] * count))
        lane = prepare(checking.header_of(queue or "", 0), [b""], Given(key=key), 0).wanted
        return (yield from self._name([*lane] * count))

    def _name(self, wanted: Sequence[TaskId | int | None]) -> Work[list[TaskId]]:
        """The ids as wanted; all that are free to choose are of one partition."""
        greeted = yield from ask(m.Greeted, m.Greet(0))
        floor_ms, now_ms = greeted.message.floor_ms, self._wall_ms()
        if wanted and not isinstance(lane := wanted[0], TaskId) and wanted.count(lane) == len(wanted):
            return self._minter.mint(floor_ms, now_ms, len(wanted), lane)
        counts = Counter(each for each in wanted if not isinstance(each, TaskId))
        fresh = {lane: iter(self._minter.mint(floor_ms, now_ms, count, lane)) for lane, count in counts.items()}
        return [each if isinstance(each, TaskId) else next(fresh[each]) for each in wanted]

    @verb
    def enqueue(self, queue: str, payload: bytes, *, priority: int = 0, id: bytes | str | None = None,
                w: int | None = None, not_before: Time | None = None, delay_s: float | None = None,
                expires: Time | None = None, retry: Retry | None = None, headers: Mapping[str, str] | None = None,
                key: str | None = None, unique: str | None = None, unique_window_s: float = UNIQUE_WINDOW_S,
                deps: Ids | None = None, on_dep_failure: OnFailure = "wait",
                dep_wait_s: float = DEP_WAIT_S) -> Work[TaskId]:
        """Store one task on ``w`` owners (a majority by default), fsynced, and give its id, which says as
        ``copies`` on how many.

        With ``id`` given the call is idempotent over processes: the same id and content again is
        the same task, the same id with other content is refused. The options belong to the content; what they
        mean says ``client.options``.
        """
        is_named = id is not None or unique is not None
        header = options.header_of(queue, priority, retry, headers if is_named else traced(headers))
        checking.check_payload(payload)
        w = checking.as_w(w)
        task = NewTask(header, payload, None if id is None else checking.as_id(id))
        start = start_of(not_before, delay_s, self._wall_ms(), has_ids=id is not None)
        if (start, expires, key, unique, deps) != _NOTHING:
            given = Given([start], [expires], [key], [unique], [deps], on_dep_failure, dep_wait_s,
                          unique_window_s)
            task = _prepared(task, given, self._wall_ms(), self._minter.moment)

        named: list[NewTask] = []

        def together(tasks: Sequence[NewTask]) -> Work[Sequence[TaskId | SkuldError]]:
            return self._store_each(tasks, w, named)
        made: TaskId = yield Joint(("enqueue", w), task, len(task.rest) + len(task.header) + 40, together)
        return made

    def _store_each(self, tasks: Sequence[NewTask], w: int | None,
                    named: list[NewTask]) -> Work[Sequence[TaskId | SkuldError]]:
        """Give the tasks ids first and keep them in ``named``, so that asking again asks for the same tasks."""
        if not named:
            made = yield from self._name([task.id for task in tasks])
            named += [NewTask(task.header, task.rest, task_id) for task, task_id in zip(tasks, made, strict=True)]
        outcomes = yield from one_by_one(named, lambda part: self._store(part, w))
        late = [number for number, (task, outcome) in enumerate(zip(tasks, outcomes, strict=True))
                if _is_of_future(outcome) and not isinstance(task.id, TaskId)]
        if late:
            fresh = yield from self._name([tasks[number].id for number in late])
            for number, task_id in zip(late, fresh, strict=True):
                named[number] = NewTask(named[number].header, named[number].rest, task_id)
            again = yield from one_by_one([named[number] for number in late], lambda part: self._store(part, w))
            outcomes = [dict(zip(late, again, strict=True)).get(*row) for row in enumerate(outcomes)]
        return [_naming(outcome, [task.id]) if isinstance(outcome, Uncertain) else outcome
                for task, outcome in zip(named, outcomes, strict=True)]

    def _store(self, tasks: Sequence[NewTask], w: int | None) -> Work[list[TaskId]]:
        """One request, with a batch for each queue and its options."""
        made = [task.id for task in tasks if isinstance(task.id, TaskId)]
        stored = yield from self._ask_to_store([task.header for task in tasks], made,
                                               [task.rest for task in tasks], w)
        for task_id in stored:
            task_id.copies = stored.copies
        return stored

    def _ask_to_store(self, heads: Sequence[bytes], made: list[TaskId], rests: Sequence[bytes],
                      w: int | None) -> Work[StoredIds]:
        batches = options.batches_of(heads, made, rests)
        try:
            acked = yield from ask(m.Acked, m.Enqueue(0, checking.as_w(w) or 0, batches))
        except Uncertain as doubt:
            raise _naming(doubt, made) from doubt
        except SkuldError as error:
            if error.code == FUTURE_ID:
                self._minter.note_refused(made)
            raise
        self._minter.note_acknowledged(made)
        return _marked(made, heads, acked.message)

    @verb
    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, priority: int = 0,
                     ids: Sequence[bytes | str] | None = None, w: int | None = None, not_before: Times = None,
                     delay_s: float | None = None, expires: Times = None, retry: Retry | None = None,
                     headers: Mapping[str, str] | None = None, key: Names = None, unique: Names = None,
                     unique_window_s: float = UNIQUE_WINDOW_S, deps: Deps = None,
                     on_dep_failure: OnFailure = "wait", dep_wait_s: float = DEP_WAIT_S) -> Work[StoredIds]:
        """Store many tasks, in requests of at most 1,000; gives their ids in order, with the least number of
        their ``copies``.

        After an error some may be stored: enqueue again with the same ``ids`` (see ``new_ids``) and the same
        options (see ``client.options``). An ``Uncertain`` has facts: ``stored`` is how many of the first payloads
        are stored, ``ids`` names, as one text, those behind them that are in doubt, if any; the others are not
        stored.
        """
        is_named = ids is not None or unique is not None
        header = options.header_of(queue, priority, retry, headers if is_named else traced(headers))
        every = list(payloads)
        if every:
            checking.check_payloads(every)
        start = start_of(not_before, delay_s, self._wall_ms(), has_ids=ids is not None)
        given = Given(start, expires, key, unique, deps, on_dep_failure, dep_wait_s, unique_window_s)
        heads, rests, wanted = prepare(header, every, given, self._wall_ms(), self._minter.moment)
        if ids is not None:
            if len(ids) != len(every):
                raise Refused("bad_ids", f"ids: {len(ids)} for {len(every)} payloads")
            wanted = [_agreed(checking.as_id(each), named) for each, named in zip(ids, wanted, strict=True)]
        made = StoredIds()
        for done, part in enumerate(checking.chunks(rests)):
            start, end = len(made), len(made) + len(part)
            try:
                stored = yield from as_part(done, self._store_part(heads[start:end], wanted[start:end], part, w))
            except Uncertain as doubt:
                doubt.facts["stored"] = start
                raise
            made += stored
            made.copies = min(made.copies or stored.copies, stored.copies)
        return made

    def _store_part(self, heads: Sequence[bytes], wanted: Sequence[TaskId | int | None], rests: Sequence[bytes],
                    w: int | None) -> Work[StoredIds]:
        """Store by one request; once more, with fresh ids, if the minted ones were refused as of the future."""
        try:
            return (yield from self._name_and_store(heads, wanted, rests, w))
        except Refused as refusal:
            if refusal.code != FUTURE_ID or all(isinstance(each, TaskId) for each in wanted):
                raise
        return (yield from self._name_and_store(heads, wanted, rests, w))

    def _name_and_store(self, heads: Sequence[bytes], wanted: Sequence[TaskId | int | None],
                        rests: Sequence[bytes], w: int | None) -> Work[StoredIds]:
        named = yield from self._name(wanted)
        return (yield from self._ask_to_store(heads, named, rests, w))


def _marked(made: list[TaskId], heads: Sequence[bytes], acked: m.Acked) -> StoredIds:
    """The ids, with duplicates marked. One request may ask for a name twice: then one of the two may be new."""
    if not acked.duplicates:
        return StoredIds(made, acked.copies)
    sent = options.order_of(heads)
    known = {sent[number] for number in unpack_u64(acked.duplicates) if number < len(sent)}
    return StoredIds((DuplicateId(task_id) if index in known else task_id for index, task_id in enumerate(made)),
                     acked.copies)


def _naming(doubt: Uncertain, ids: Sequence[TaskId | int | None]) -> Uncertain:
    """The error with the ids to ask again with, as one text."""
    named = " ".join(to_text(task_id) for task_id in ids if isinstance(task_id, TaskId))
    return Uncertain(doubt.code, doubt.message, **{**doubt.facts, "ids": named})


def _prepared(task: NewTask, given: Given, now_ms: int, moment: Moment) -> NewTask:
    (head,), (rest,), (wanted,) = prepare(task.header, [task.rest], given, now_ms, moment)
    return NewTask(head, rest, _agreed(task.id, wanted) if isinstance(task.id, TaskId) else wanted)


def _is_of_future(outcome: TaskId | SkuldError) -> bool:
    return isinstance(outcome, Refused) and outcome.code == FUTURE_ID


def _agreed(task_id: TaskId, wanted: TaskId | int | None) -> TaskId:
    """An id that the caller gave; a unique name gives its own."""
    if isinstance(wanted, TaskId) and task_id != wanted:
        raise Refused("bad_id", "id: a task with a unique name has the id of that name; leave id out")
    return task_id
