"""The verbs that make tasks, or take them back.

Ids are given before anything is stored, so that an answer in doubt has them: with them it can be done again. What
has a unique name may be sent again as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skuld_py.gateway import enqueue_requests
from skuld_py.gateway.call import Call, naming
from skuld_py.model.ids import TaskId, to_text
from skuld_py.verbs import documents


async def _ids_of(call: Call, queue: str, tasks: Sequence[enqueue_requests.Content]) -> list[TaskId] | None:
    """Those given, or fresh ones; None where unique names give them."""
    given = [task.id for task in tasks if task.id is not None]
    if given or tasks[0].unique is not None:
        return given or None
    fresh = {key: iter(await call.backend.new_ids(count, queue, key))
             for key, count in Counter(task.key for task in tasks).items()}
    return [next(fresh[task.key]) for task in tasks]


async def enqueue(call: Call, asked: enqueue_requests.Enqueue) -> documents.Enqueued:
    """Store one task."""
    made, = (await _store(call, asked, [asked]))
    return documents.Enqueued(id=to_text(made), is_duplicate=made.is_duplicate)


async def enqueue_many(call: Call, asked: enqueue_requests.EnqueueMany) -> documents.EnqueuedMany:
    """Store many."""
    made = await _store(call, asked, asked.tasks)
    return documents.EnqueuedMany(ids=[to_text(each) for each in made],
                                are_duplicates=[each.is_duplicate for each in made])


async def _store(call: Call, shared: enqueue_requests.Options, tasks: Sequence[enqueue_requests.Content]
                 ) -> list[TaskId]:
    """One task as such, so that it may travel with those of other requests."""
    ids = await _ids_of(call, shared.queue, tasks)
    own = [task.own_options for task in tasks]
    with naming(ids or [], is_repeatable=ids is None or tasks[0].id is not None):
        if len(tasks) == 1:
            return [await call.backend.enqueue(shared.queue, tasks[0].content, ids[0] if ids else None,
                                               shared.options | own[0])]
        options = shared.options | {name: [each[name] for each in own] for name in own[0]}
        return await call.backend.enqueue_many(shared.queue, [task.content for task in tasks], ids, options)


async def mint(call: Call, asked: enqueue_requests.Mint) -> documents.Ids:
    """Make ids."""
    made = await call.backend.new_ids(asked.count, asked.queue, asked.key)
    return documents.Ids(ids=[to_text(task_id) for task_id in made])


async def cancel(call: Call, asked: enqueue_requests.Cancel) -> documents.Done:
    """Take back."""
    await call.backend.cancel(asked.ids, asked.w)
    return documents.Done(count=len(asked.ids))


async def retry(call: Call, asked: enqueue_requests.Retry) -> documents.Done:
    """Begin anew."""
    await call.backend.retry(asked.ids)
    return documents.Done(count=len(asked.ids))
