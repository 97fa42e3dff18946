"""The verbs that make tasks. Each task of many may have some options of its own; the others are one for all.

What is done by hand at each door: the answer to an enqueue in doubt, and how lines become tasks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from skuld_py.errors import Refused
from skuld_py.verbs import documents as d
from skuld_py.verbs.options import (
    CALLED,
    CONTENT_PAYLOAD,
    COPIES,
    DELAY_S,
    DEP_WAIT,
    DEPS,
    EXPIRES,
    HEADERS,
    ID,
    KEY,
    NOT_BEFORE,
    ON_DEP_FAILURE,
    PRIORITY,
    QUEUE,
    RETRY,
    UNIQUE,
    UNIQUE_WINDOW,
    YEARS_10_S,
    Many,
    Option,
    Plain,
    Request,
    Whole,
)
from skuld_py.verbs.verb import Scope, by_hand, verb

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.options import Retry
    from skuld_py.verbs.verb import Given

TASK_OPTIONS = (CONTENT_PAYLOAD, CALLED, PRIORITY, ID, NOT_BEFORE, DELAY_S, EXPIRES, RETRY, KEY, UNIQUE,
                UNIQUE_WINDOW, DEPS, ON_DEP_FAILURE, DEP_WAIT, HEADERS, COPIES)
EITHER = ("payload", "payload_base64", "call")
OWN = tuple(option for option in TASK_OPTIONS if option.is_own)
SHARED = tuple(option for option in TASK_OPTIONS if not option.is_own)


def retry_of(policy: Given | None) -> Retry | None:
    """The client's retry policy."""
    from skuld_py.client.options import Retry

    return None if policy is None else Retry(**policy)


def content_of(given: Given) -> bytes:
    """The payload as it was given, or that of the call that was."""
    payload: bytes = given["called"] or given["payload"] or b""
    return payload


def _check_content(asked: Any) -> None:
    if sum(each is not None for each in (asked.payload, asked.payload_base64, asked.call)) != 1:
        raise Refused("bad_payload", "payload: give one of payload, payload_base64 and call")


def start_of(given: Given) -> Any:
    """When the task may be claimed at the earliest: the time that was given, or seconds since 1970, or None."""
    return given["not_before"] if given["delay_s"] is None else time.time() + given["delay_s"]


def _check_times(asked: Any) -> None:
    if asked.delay_s is not None and (asked.not_before_ms is not None or asked.id is not None):
        raise Refused("bad_time", "delay_s: give not_before_ms alone for a task with an id, else one of the two")
    most_ms = time.time_ns() // 1_000_000 + YEARS_10_S * 1000
    for name in ("not_before_ms", "expires_ms"):
        if (getattr(asked, name) or 0) > most_ms:
            raise Refused("bad_time", f"{name}: is more than ten years from now")
    if asked.expires_ms is not None and asked.expires_ms <= (asked.not_before_ms or 0):
        raise Refused("bad_time", "expires_ms: is not later than not_before_ms")


def _check_ids(asked: Any) -> None:
    given = [task.id for task in asked.tasks if task.id is not None]
    if given and len(given) < len(asked.tasks):
        raise Refused("bad_ids", "tasks: give all of them ids, or none")
    if len(set(given)) < len(given):
        raise Refused("bad_ids", "tasks: an id is given twice")
    if len({task.unique is None for task in asked.tasks}) > 1:
        raise Refused("bad_unique", "tasks: give all of them unique names, or none")


def _check_key(asked: Any) -> None:
    if (asked.queue is None) != (asked.key is None):
        raise Refused("bad_key", "key: give queue and key, or neither")


CONTENT = Request("Content", "A task's content, and its id if the caller has chosen one.", OWN,
                  either=EITHER, checks=(_check_content, _check_times))

enqueue = by_hand(
    "enqueue", "POST /v1/tasks/enqueue", Scope.ENQUEUE,
    Request("Enqueue", "One task.", (QUEUE, *TASK_OPTIONS), either=EITHER,
            checks=(_check_content, _check_times)), d.Enqueued,
    "Store a task. With an id of the caller's it may be sent again and again.", command="enqueue")

enqueue_many = by_hand(
    "enqueue_many", "POST /v1/tasks/enqueue_many", Scope.ENQUEUE,
    Request("EnqueueMany", "Many tasks of one queue. After an error some may be stored: send it again, with ids.",
            (QUEUE, Option("tasks", Many(CONTENT)), *SHARED), checks=(_check_ids,)), d.EnqueuedMany,
    "Store many tasks.")


@verb("GET /v1/ids", Scope.ENQUEUE,
      Request("Mint", "How many ids to make.",
              (Option("count", Whole(1, 1_000), 1),
               Option("queue", Plain.NAME, None, told="For tasks with a key: their queue."),
               Option("key", Plain.WORDS, None, told="For tasks with a key: it.")), checks=(_check_key,)),
      d.Ids, "Make ids for tasks yet to be enqueued; stores nothing.")
async def mint(client: AsyncClient, count: int, queue: str | None, key: str | None) -> d.Ids:
    """Fresh ids."""
    return d.Ids(ids=[str(made) for made in await client.new_ids(count, queue=queue, key=key)])


VERBS = (enqueue, enqueue_many, mint)
