"""The verbs that make tasks.

An enqueue carries its ids, given or minted before the first request, so asking again is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from skuld_py.client import checking, options
from skuld_py.client.asking import Joint, Work, ask, verb
from skuld_py.client.coalescing import one_by_one
from skuld_py.client.minting import Minter
from skuld_py.client.options import Retry, Time, Times
from skuld_py.errors import Refused, SkuldError
from skuld_py.model import messages as m
from skuld_py.model.ids import TaskId


class NewTask(NamedTuple):
    """A task to be stored; without an id it gets one. A tuple, because each single call makes two."""

    header: bytes
    rest: bytes
    id: TaskId | None = None


class Enqueueing:
    """Needs a mint and the wall's time."""

    _minter: Minter
    _wall_ms: Callable[[], int]

    @verb
    def new_ids(self, count: int = 1) -> Work[list[TaskId]]:
        """Ids for tasks yet to be enqueued, all of one partition."""
        return (yield from self._mint(count))

    def _mint(self, count: int) -> Work[list[TaskId]]:
        greeted = yield from ask(m.Greeted, m.Greet(0))
        return self._minter.mint(greeted.message.floor_ms, self._wall_ms(), count)

    @verb
    def enqueue(self, queue: str, payload: bytes, *, priority: int = 0, id: bytes | str | None = None,
                w: int | None = None, not_before: Time | None = None, expires: Time | None = None,
                retry: Retry | None = None, headers: Mapping[str, str] | None = None) -> Work[TaskId]:
        """Store one task on ``w`` owners (a majority by default), fsynced, and give its id.

        With ``id`` given the call is idempotent over processes: the same id and content again is
        the same task, the same id with other content is refused. The options belong to the content; what they
        mean says ``client.options``.
        """
        header = options.header_of(queue, priority, retry, headers)
        checking.check_payload(payload)
        rest = payload
        if not_before is not None or expires is not None:
            (header,), (rest,) = options.timed(header, [payload], [not_before], [expires], self._wall_ms())
        task = NewTask(header, rest, None if id is None else checking.as_id(id))

        def together(tasks: Sequence[NewTask]) -> Work[Sequence[TaskId | SkuldError]]:
            return self._store_each(tasks, w)
        made: TaskId = yield Joint(("enqueue", w), task, len(rest) + len(header) + 40, together)
        return made

    def _store_each(self, tasks: Sequence[NewTask], w: int | None) -> Work[Sequence[TaskId | SkuldError]]:
        """Ids are given first, so that asking again asks for the same tasks."""
        fresh = iter((yield from self._mint(sum(1 for task in tasks if task.id is None))))
        named = [task if task.id is not None else NewTask(task.header, task.rest, next(fresh))
                 for task in tasks]
        return (yield from one_by_one(named, lambda part: self._store(part, w)))

    def _store(self, tasks: Sequence[NewTask], w: int | None) -> Work[list[TaskId]]:
        """One request, with a batch for each queue and its options."""
        made = [task.id for task in tasks if task.id is not None]
        batches = options.batches_of([task.header for task in tasks], made, [task.rest for task in tasks])
        yield from ask(m.Acked, m.Enqueue(0, w or 0, batches))
        return made

    @verb
    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, priority: int = 0,
                     ids: Sequence[bytes | str] | None = None, w: int | None = None, not_before: Times = None,
                     expires: Times = None, retry: Retry | None = None,
                     headers: Mapping[str, str] | None = None) -> Work[list[TaskId]]:
        """Store many tasks, in requests of at most 1,000; gives their ids in order.

        After an error some may be stored: enqueue again with the same ``ids`` (see ``new_ids``) and the same
        options (see ``client.options``).
        """
        header = options.header_of(queue, priority, retry, headers)
        every = list(payloads)
        if every:
            checking.check_payloads(every)
        given = None if ids is None else [checking.as_id(task_id) for task_id in ids]
        if given is not None and len(given) != len(every):
            raise Refused("bad_ids", f"ids: {len(given)} for {len(every)} payloads")
        heads, rests = options.timed(header, every, not_before, expires, self._wall_ms())
        made: list[TaskId] = []
        for part in checking.chunks(rests):
            done, end = len(made), len(made) + len(part)
            chunk = (yield from self._mint(len(part))) if given is None else given[done:end]
            batches = options.batches_of(heads[done:end], chunk, part)
            yield from ask(m.Acked, m.Enqueue(0, w or 0, batches))
            made += chunk
        return made
