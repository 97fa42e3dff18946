"""What a task may be enqueued with besides its queue, priority and payload: one owner for all clients.

    client.enqueue("mail", letter, not_before=datetime(2027, 1, 1, tzinfo=UTC), expires=time.time() + 86_400,
                   retry=Retry(max_attempts=3, backoff_s=60), headers={"trace": "7"})

A time is a ``datetime`` with a time zone, or seconds since 1970. Of ``enqueue_many`` each option is one for all,
or, of times, a list with one for each task, ``None`` for none. All is turned into the header and the prelude of
``model.body`` before anything is sent; what is wrong is refused by its field: ``bad_time``, ``bad_retry``,
``bad_headers``. The same options are the same bytes, so that asking again for the same task is harmless.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from skuld_py.client import checking
from skuld_py.errors import Refused
from skuld_py.model import body as bodies
from skuld_py.model import columns
from skuld_py.model.body import Body, Header
from skuld_py.model.ids import TaskId
from skuld_py.model.message import TaskBatch

Time = datetime | float
Times = Time | None | Sequence[Time | None]
AHEAD_MS_MAX = 3_650 * 24 * 3600 * 1000
"""Ten years; nodes allow some days more, see ``config``."""


@attrs.frozen
class Retry:
    """How often and when a task is tried again: ``max_attempts`` claims may fail or lapse, 1 to 1,000.

    After the nth failure it rests for ``min(max_backoff_s, backoff_s * factor ** (n - 1))`` seconds, give or take
    the part ``jitter`` of it. Kept in milliseconds and percent.
    """

    max_attempts: int = 25
    backoff_s: float = 1.0
    factor: float = 2.0
    max_backoff_s: float = 3_600.0
    jitter: float = 0.1


_SCALES = {"max_attempts": ("max_attempts", 1), "backoff_s": ("backoff_ms", 1_000),
           "factor": ("factor_percent", 100), "max_backoff_s": ("backoff_max_ms", 1_000),
           "jitter": ("jitter_percent", 100)}
"""Of each field of ``Retry`` the one of ``model.body.Retry``, and what one is of the other."""


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
    policy = bodies.Retry(**{name: _number(field, getattr(retry, field), *bodies.RETRY_RANGES[name], scale)
                             for field, (name, scale) in _SCALES.items()})
    if policy.backoff_ms > policy.backoff_max_ms:
        raise Refused("bad_retry", f"retry: max_backoff_s: {retry.max_backoff_s!r} is less than backoff_s,"
                      f" {retry.backoff_s!r}")
    return policy


def _number(field: str, value: object, low: int, high: int, scale: int) -> int:
    number = _scaled(value, scale)
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


# -- what each task has for itself ------------------------------------------------------------------


def timed(head: bytes, payloads: Sequence[bytes], not_before: Times, expires: Times,
          now_ms: int) -> tuple[list[bytes], Sequence[bytes]]:
    """Of each task its header, and what stands behind it."""
    if not_before is None and expires is None:
        return [head] * len(payloads), payloads
    wakes = _times("not_before", not_before, len(payloads), now_ms)
    ends = _times("expires", expires, len(payloads), now_ms)
    for wake_ms, end_ms in zip(wakes, ends, strict=True):
        if 0 < end_ms <= wake_ms:
            raise Refused("bad_time", "expires: is not later than not_before; the task could never be claimed")
    header = Header.decode(head)
    made = [Body(header, *row) for row in zip(wakes, ends, payloads, strict=True)]
    heads = {body.header.prelude: body.header.encode() for body in made}
    return [heads[body.header.prelude] for body in made], [body.rest for body in made]


def _times(field: str, given: Times, count: int, now_ms: int) -> list[int]:
    if given is None or isinstance(given, datetime | float | int) or not isinstance(given, Sequence):
        return [_time_ms(field, given, now_ms)] * count
    if len(given) != count:
        raise Refused("bad_time", f"{field}: {len(given)} for {count} payloads")
    return [_time_ms(field, each, now_ms) for each in given]


def _time_ms(field: str, given: object, now_ms: int) -> int:
    if given is None:
        return 0
    if isinstance(given, datetime) and given.utcoffset() is None:
        raise Refused("bad_time", f"{field}: {given} has no time zone; write datetime(..., tzinfo=timezone.utc)")
    time_ms = _scaled(given.timestamp() if isinstance(given, datetime) else given, 1_000)
    if time_ms is None or not 1 <= time_ms <= now_ms + AHEAD_MS_MAX:
        raise Refused("bad_time", f"{field}: {str(given)[:64]} is no time from 1970 to ten years from now; give a"
                      " datetime, or seconds since 1970")
    return time_ms


def _scaled(value: object, scale: int) -> int | None:
    """A number in finer units, rounded; None of what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return round(value * scale) if math.isfinite(value) else None
    except OverflowError:
        return None


# -- batches ----------------------------------------------------------------------------------------


def batches_of(heads: Sequence[bytes], ids: Sequence[TaskId], rests: Sequence[bytes]) -> tuple[TaskBatch, ...]:
    """A request's tasks, a batch for each header; one, as usual, at no cost for each task."""
    if heads.count(heads[0]) == len(heads):
        return (TaskBatch(heads[0], b"".join(ids), columns.pack(rests)),)
    groups: dict[bytes, list[int]] = {}
    for index, head in enumerate(heads):
        groups.setdefault(head, []).append(index)
    return tuple(TaskBatch(head, b"".join([ids[index] for index in group]),
                           columns.pack([rests[index] for index in group]))
                 for head, group in groups.items())
