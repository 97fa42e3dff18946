"""The verbs that make tasks, or take them back.

Ids are given before anything is stored, so that an answer in doubt has them: with them it can be done again.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.gateway import answers, enqueue_requests
from skuld_py.gateway.call import Call, naming
from skuld_py.model.ids import TaskId, to_text


async def _ids_of(call: Call, tasks: Sequence[enqueue_requests.Content]) -> list[TaskId]:
    """Those given, or fresh ones: with them it can be done again when it is in doubt."""
    return [task.id for task in tasks if task.id is not None] or await call.backend.new_ids(len(tasks))


async def enqueue(call: Call, asked: enqueue_requests.Enqueue) -> answers.Enqueued:
    """Store one task."""
    ids = await _ids_of(call, [asked])
    with naming(ids, is_repeatable=asked.id is not None):
        await call.backend.enqueue(asked.queue, asked.content, ids[0], asked.options | asked.times)
    return answers.Enqueued(id=to_text(ids[0]))


async def enqueue_many(call: Call, asked: enqueue_requests.EnqueueMany) -> answers.EnqueuedMany:
    """Store many."""
    ids = await _ids_of(call, asked.tasks)
    times = [task.times for task in asked.tasks]
    options = asked.options | {name: [time[name] for time in times] for name in times[0]}
    with naming(ids, is_repeatable=asked.tasks[0].id is not None):
        await call.backend.enqueue_many(asked.queue, [task.content for task in asked.tasks], ids, options)
    return answers.EnqueuedMany(ids=[to_text(made) for made in ids])


async def mint(call: Call, asked: enqueue_requests.Mint) -> answers.Ids:
    """Make ids."""
    return answers.Ids(ids=[to_text(task_id) for task_id in await call.backend.new_ids(asked.count)])


async def cancel(call: Call, asked: enqueue_requests.Cancel) -> answers.Done:
    """Take back."""
    await call.backend.cancel(asked.ids, asked.w)
    return answers.Done(count=len(asked.ids))


async def retry(call: Call, asked: enqueue_requests.Retry) -> answers.Done:
    """Begin anew."""
    await call.backend.retry(asked.ids)
    return answers.Done(count=len(asked.ids))
