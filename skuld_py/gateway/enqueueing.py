"""The verbs that make tasks.

Ids are made before anything is stored, so that an answer in doubt has them and the request can be repeated with
them. A task with a unique name may be sent again as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from skuld_py.client.enqueueing import StoredIds
from skuld_py.gateway.call import Call, naming
from skuld_py.model.ids import TaskId, to_text
from skuld_py.verbs import documents
from skuld_py.verbs.enqueueing import OWN, SHARED, content_of, retry_of, start_of
from skuld_py.verbs.verb import Given

_OWN = tuple(option.name for option in OWN if option.name not in ("payload", "called", "id", "delay_s"))
_SHARED = tuple(option.name for option in SHARED)


async def enqueue(call: Call, **asked: object) -> documents.Enqueued:
    """Store one task."""
    stored = await _store(call, asked, [asked])
    made, = stored
    return documents.Enqueued(id=to_text(made), is_duplicate=made.is_duplicate, copies=stored.copies)


async def enqueue_many(call: Call, tasks: Sequence[Given], **shared: object) -> documents.EnqueuedMany:
    """Store many."""
    made = await _store(call, shared, tasks)
    return documents.EnqueuedMany(ids=[to_text(each) for each in made],
                                  are_duplicates=[each.is_duplicate for each in made], copies=made.copies)


async def _store(call: Call, shared: Given, tasks: Sequence[Given]) -> StoredIds:
    """Store one task by a single call, so that it may travel with those of other requests."""
    queue: str = shared["queue"]
    ids = await _ids_of(call, queue, tasks)
    options = {name: shared[name] for name in _SHARED} | {"retry": retry_of(shared["retry"])}
    with naming(ids or [], is_repeatable=ids is None or tasks[0]["id"] is not None):
        if len(tasks) == 1:
            own = {name: tasks[0][name] for name in _OWN} | {"not_before": start_of(tasks[0])}
            made = await call.client.enqueue(queue, content_of(tasks[0]), id=ids[0] if ids else None, **options,
                                             **own)
            return StoredIds([made], copies=made.copies)
        each: dict[str, Any] = {name: [task[name] for task in tasks] for name in _OWN}
        each["not_before"] = [start_of(task) for task in tasks]
        return await call.client.enqueue_many(queue, [content_of(task) for task in tasks], ids=ids, **options,
                                              **each)


async def _ids_of(call: Call, queue: str, tasks: Sequence[Given]) -> list[TaskId] | None:
    """The given ids, or fresh ones; None where unique names give them."""
    given: list[TaskId] = [task["id"] for task in tasks if task["id"] is not None]
    if given or tasks[0]["unique"] is not None:
        return given or None
    fresh = {key: iter(await call.client.new_ids(count, queue=queue, key=key))
             for key, count in Counter(task["key"] for task in tasks).items()}
    return [next(fresh[task["key"]]) for task in tasks]
