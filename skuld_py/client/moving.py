"""A task in another queue: a copy that is enqueued there, and waits until the first one has ended.

What is enqueued never changes, so a task is moved by a copy. The copy comes first, so that none is lost, and waits
for the first task, so that no two workers have both; then the first one is cancelled, which lets the copy go. Its
id follows from the first one's id and the queue: who is interrupted moves again, and makes no second copy. It is
as old as the first, so what is moved stays in its order.

A task with dependencies of its own waits for those alone, since a task has one policy for all. The copy has no
unique name, which is one of its queue, and its attempts count anew. Its dependency says where it came from.

Rejected: to cancel first. What is interrupted between the two would be lost, and nothing would find it again. Also
rejected: a header that names the first task, which would make a batch of each copy.
"""

from __future__ import annotations

import hashlib

import attrs

from skuld_py.model import ids
from skuld_py.model.body import ON_FAILURE_IGNORE, Body
from skuld_py.model.ids import TaskId

UNKNOWN_MS = 24 * 3_600_000
"""How long a copy waits for its first task where nobody knows that."""


@attrs.frozen
class Copy:
    """What is to be stored: an id, a header's bytes, and what stands behind it. ``is_guarded``: whether it waits
    for the first task."""

    id: TaskId
    head: bytes
    rest: bytes
    is_guarded: bool


def copy_of(task_id: bytes, record: bytes, queue: str) -> Copy:
    """A task as it is to be in a queue; ``record`` is its body."""
    body = Body.decode(record)
    is_guarded = not body.deps
    header = attrs.evolve(body.header, queue=queue, window_ms=0)
    if is_guarded:
        header = attrs.evolve(header, policy=ON_FAILURE_IGNORE, dep_wait_ms=UNKNOWN_MS)
    made = attrs.evolve(body, header=header, made_ms=0, unique="", deps=body.deps or (task_id,))
    return Copy(id_of_copy(task_id, queue, body.key), made.header.encode(), made.rest, is_guarded)


def id_of_copy(task_id: bytes, queue: str, key: str) -> TaskId:
    """The id that a task's copy has in a queue: with the task's time and number, which are its place in the order,
    a nonce by the whole id and the queue, and a route as any task there has."""
    digest = hashlib.blake2b(task_id + queue.encode(), digest_size=8, person=b"skuld moved").digest()
    route = ids.lane_route(queue, key).to_bytes(4, "big") if key else digest[4:]
    return TaskId(task_id[:12] + digest[:4] + route)
