"""What a task may be enqueued with besides its queue, priority and payload: one owner for all clients.

    client.enqueue("mail", letter, not_before=datetime(2027, 1, 1, tzinfo=UTC), expires=time.time() + 86_400,
                   retry=Retry(max_attempts=3, backoff_s=60), headers={"trace": "7"})

* ``not_before``, ``expires``: a ``datetime`` with a time zone, or seconds since 1970; none before the year 2000.
* ``delay_s``: ``not_before`` in so many seconds from now; not for tasks with a given id, which must stay the same.
* ``key``: tasks of one queue and key are worked on one after another, in the order of their ids.
* ``unique``: of one queue, key, name and window there is one task. Windows of ``unique_window_s``, an hour by
  default, are aligned to the clock. A later call gets the id of the first, which says ``is_duplicate``, whatever
  has become of that: one that is dead comes back by ``retry``; one that was cancelled does not, and its name is
  free again in the next window. The task is claimed in the order of asking; its id is as old as the window's
  beginning.
* ``deps``: ids of tasks that end before this one starts, enqueued or not yet. ``on_dep_failure`` says what becomes
  of it when one is dead or cancelled: ``wait`` (for a retry, the default), ``fail`` (it dies, too), ``ignore``.
  Unknown ones are waited for until ``dep_wait_s``, a day by default, after the task was made.

Of ``enqueue_many`` each option is one for all; times, keys, names and dependencies may be a list with one for
each task, ``None`` for none. All is turned into the header of ``model.body`` and the prelude of
``model.prelude`` before anything is sent; what is wrong is refused by its field: ``bad_time``, ``bad_retry``,
``bad_headers``, ``bad_key``, ``bad_unique``, ``bad_deps``, ``bad_policy``. The same options are the same bytes, so
that asking again for the same task is harmless.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import attrs

from skuld_py.client import checking
from skuld_py.client.checking import scaled
from skuld_py.errors import Refused
from skuld_py.model import body as bodies
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.ids import TaskId

ErrorClass = type[BaseException]
ErrorClasses = tuple[ErrorClass, ...]


@attrs.frozen
class Retry:
    """How often and when a task is tried again: ``max_attempts`` claims may fail or lapse, 1 to 1,000.

    After the nth failure it rests for ``min(max_backoff_s, backoff_s * factor ** (n - 1))`` seconds, give or take
    the part ``jitter`` of it. Kept in milliseconds and percent.

    ``on`` and ``never`` are classes of errors, for a function's own policy, ``@task(retry=...)``: an attempt that
    fails by another error than those of ``on``, or by one of ``never``, is the last one.
    """

    max_attempts: int = 25
    backoff_s: float = 1.0
    factor: float = 2.0
    max_backoff_s: float = 3_600.0
    jitter: float = 0.1
    on: ErrorClass | ErrorClasses = ()
    never: ErrorClass | ErrorClasses = ()


_SCALES = {"max_attempts": ("max_attempts", 1), "backoff_s": ("backoff_ms", 1_000),
           "factor": ("factor_percent", 100), "max_backoff_s": ("backoff_max_ms", 1_000),
           "jitter": ("jitter_percent", 100)}
"""For each field of ``Retry`` that of ``model.body.Retry``, and how many of its units make one."""


# -- what all tasks of a call share -----------------------------------------------------------------


def header_of(queue: str, priority: int, retry: Retry | None, headers: Mapping[str, str] | None) -> bytes:
    """The header of a call's tasks, without what their times add to it."""
    plain = checking.header_of(queue, priority)
    if retry is None and headers is None:
        return plain
    return Header(queue, priority, bodies.DEFAULT_RETRY if retry is None else _policy(retry),
                  () if headers is None else _pairs(headers)).encode()


def _policy(retry: Retry) -> bodies.Retry:
    if not isinstance(retry, Retry):
        raise Refused("bad_retry", f"retry: {retry!r} is no Retry; use skuld_py.Retry(max_attempts=...)")
    if retry.on or retry.never:
        raise Refused("bad_retry", "retry: on and never are classes, which do not travel with a task; give them to"
                      " its function, @skuld_py.task(retry=Retry(on=...))")
    policy = bodies.Retry(**{name: _number(field, getattr(retry, field), *bodies.RETRY_RANGES[name], scale)
                             for field, (name, scale) in _SCALES.items()})
    if policy.backoff_ms > policy.backoff_max_ms:
        raise Refused("bad_retry", f"retry: max_backoff_s: {retry.max_backoff_s!r} is less than backoff_s,"
                      f" {retry.backoff_s!r}")
    return policy


def classes_of(field: str, given: ErrorClass | ErrorClasses) -> ErrorClasses:
    """Classes of errors, of one or of several."""
    classes = given if isinstance(given, tuple) else (given,)
    if not all(_is_error_class(each) for each in classes):
        raise Refused("bad_retry", f"retry: {field}: {given!r:.80}; classes of errors are wanted, as"
                      f" {field}=(ConnectionError, TimeoutError)")
    return classes


def _is_error_class(given: object) -> bool:
    return inspect.isclass(given) and issubclass(given, BaseException)


def travelling(retry: Retry) -> Retry:
    """The policy without what does not travel with a task."""
    return attrs.evolve(retry, on=(), never=())


def _number(field: str, value: object, low: int, high: int, scale: int) -> int:
    number = scaled(value, scale)
    if number is None or not low <= number <= high or (scale == 1 and number != value):
        raise Refused("bad_retry", f"retry: {field}: {value!r} is not in {low / scale:g}..{high / scale:g}")
    return number


def _pairs(headers: object) -> bodies.Headers:
    if not isinstance(headers, Mapping) or not all(
            type(key) is str and type(value) is str for key, value in headers.items()):
        raise Refused("bad_headers", "headers: a dict of str to str is wanted")
    pairs = tuple(sorted(headers.items()))
    try:
        if pairs:
            bodies.encode_headers(pairs)
    except ValueError as problem:
        raise Refused("bad_headers", f"headers: {str(problem).removeprefix('headers: ')}") from None
    return pairs


# -- batches ----------------------------------------------------------------------------------------


def batches_of(heads: Sequence[bytes], ids: Sequence[TaskId], rests: Sequence[bytes]) -> tuple[m.TaskBatch, ...]:
    """A request's tasks, a batch for each header; one, as usual, at no cost for each task."""
    if heads.count(heads[0]) == len(heads):
        return (m.TaskBatch(heads[0], b"".join(ids), columns.pack(rests)),)
    return tuple(m.TaskBatch(head, b"".join([ids[index] for index in group]),
                           columns.pack([rests[index] for index in group]))
                 for head, group in _groups(heads).items())


def order_of(heads: Sequence[bytes]) -> list[int]:
    """The order in which ``batches_of`` has the tasks."""
    return [index for group in _groups(heads).values() for index in group]


def _groups(heads: Sequence[bytes]) -> dict[bytes, list[int]]:
    groups: dict[bytes, list[int]] = {}
    for index, head in enumerate(heads):
        groups.setdefault(head, []).append(index)
    return groups
