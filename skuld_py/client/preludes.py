"""Options that may differ from task to task of a call: times, an ordering key, a unique name, dependencies.

In ``enqueue_many`` each is one for all, or a list with one for each task, ``None`` for none; unique names are
always a list, since each is for one task. All becomes the prelude of ``model.prelude``, and what follows from it
for the id: a task with a unique name has the id of that name, one with a key is to have an id of the key's lane.
What is wrong is refused by its field: ``bad_time``, ``bad_key``, ``bad_unique``, ``bad_deps``, ``bad_policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import add
from typing import Any, Literal, NamedTuple, TypeGuard, TypeVar

import attrs

from skuld_py.client import checking
from skuld_py.client.checking import scaled
from skuld_py.errors import Refused
from skuld_py.model import ids
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_WAIT,
    WINDOW_MS_MAX,
    Header,
)
from skuld_py.model.ids import TaskId
from skuld_py.model.prelude import DEPS, DEPS_MAX, NAME_BYTES_MAX, NAMED, Prelude, fronts_of

Time = datetime | float
Times = Time | None | Sequence[Time | None]
Names = str | None | Sequence[str | None]
T = TypeVar("T")
Ids = Sequence[bytes | str]
Deps = Ids | Sequence[Ids | None] | None
OnFailure = Literal["wait", "fail", "ignore"]
Moment = Callable[[str, int], int]
"""Gives the moment at which a name of a queue is asked for, from the name and the time of now."""
AHEAD_MS_MAX = 3_650 * 24 * 3600 * 1000
"""Ten years; nodes allow some days more, see ``config``."""
YEAR_2000_MS = 946_684_800_000
DEP_WAIT_S, UNIQUE_WINDOW_S = 86_400.0, 3_600.0
_POLICIES = {"wait": ON_FAILURE_WAIT, "fail": ON_FAILURE_FAIL, "ignore": ON_FAILURE_IGNORE}


@attrs.frozen
class Given:
    """The options of a call. The last three say how names and dependencies are meant, where there are any."""

    not_before: Times = None
    expires: Times = None
    key: Names = None
    unique: Names = None
    deps: Deps = None
    on_dep_failure: OnFailure = "wait"
    dep_wait_s: float = DEP_WAIT_S
    unique_window_s: float = UNIQUE_WINDOW_S

    @property
    def is_empty(self) -> bool:
        """Whether the tasks have nothing for themselves."""
        return (self.not_before is None and self.expires is None and self.key is None and self.unique is None
                and self.deps is None)


class Prepared(NamedTuple):
    """For each task its header, what stands behind it, and its id, or the lane of the id it is to get, or None."""

    heads: Sequence[bytes]
    rests: Sequence[bytes]
    wanted: Sequence[TaskId | int | None]


def prepare(head: bytes, payloads: Sequence[bytes], given: Given, now_ms: int,
            moment: Moment = lambda name, now_ms: now_ms) -> Prepared:
    """Turn options into what is sent; ``head`` is the header without them. ``moment`` says when a name was asked
    for: of two that ask for one name the earlier decides what it stands for."""
    count = len(payloads)
    if given.is_empty:
        return Prepared([head] * count, payloads, [None] * count)
    header, window_ms = Header.decode(head), _window_ms(given.unique_window_s)
    if given.deps is not None and attrs.evolve(given, deps=None).is_empty:
        return _with_deps(header, payloads, given)
    preludes = [
        _prelude(now_ms, lambda name: moment(f"{header.queue} {name}", now_ms), *row) for row in zip(
            _each("bad_time", "not_before", given.not_before, count),
            _each("bad_time", "expires", given.expires, count), _each("bad_unique", "unique", given.unique, count),
            _each("bad_key", "key", given.key, count), _each_deps(given.deps, count), strict=True)]
    kinds = dict.fromkeys(prelude.flags for prelude in preludes)
    heads = {flags: _head(header, flags, given, window_ms) for flags in kinds}
    return Prepared([heads[prelude.flags] for prelude in preludes],
                    [prelude.encode() + payload for prelude, payload in zip(preludes, payloads, strict=True)],
                    [_wanted(header.queue, prelude, window_ms) for prelude in preludes])


def _with_deps(header: Header, payloads: Sequence[bytes], given: Given) -> Prepared:
    """Prepare tasks with no option but dependencies; a list that all share is checked once."""
    rows = _each_deps(given.deps, len(payloads))
    ones = [row[0] for row in rows if len(row) == 1]
    if all(row is rows[0] for row in rows):
        fronts = [Prelude(deps=_deps(rows[0])).encode()] * len(rows) if rows else []
    elif len(ones) == len(rows) and _are_ids(ones):
        fronts = fronts_of(ones)
    else:
        fronts = [Prelude(deps=_deps(row)).encode() for row in rows]
    with_deps, without = (_head(header, flags, given, 0) for flags in (DEPS, 0))
    return Prepared([with_deps if front else without for front in fronts], list(map(add, fronts, payloads)),
                    [None] * len(rows))


def _are_ids(given: Sequence[bytes | str]) -> TypeGuard[Sequence[bytes]]:
    """Whether all are ids as they travel: looked at in columns."""
    return (all(kind in (bytes, TaskId) for kind in dict.fromkeys(map(type, given)))
            and all(size == ids.ID_BYTES for size in dict.fromkeys(map(len, given))))


def _head(header: Header, flags: int, given: Given, window_ms: int) -> bytes:
    policy, dep_wait_ms = _policy(given) if flags & DEPS else (0, 0)
    return attrs.evolve(header, prelude=flags, policy=policy, dep_wait_ms=dep_wait_ms,
                        window_ms=window_ms if flags & NAMED else 0).encode()


def _wanted(queue: str, prelude: Prelude, window_ms: int) -> TaskId | int | None:
    if prelude.unique:
        slot_ms = prelude.made_ms // window_ms * window_ms
        return TaskId(ids.named_id(queue, prelude.unique, slot_ms, prelude.key))
    return ids.lane_route(queue, prelude.key) if prelude.key else None


def _prelude(now_ms: int, moment: Callable[[str], int], not_before: Any, expires: Any, unique: Any, key: Any,
             deps: Ids) -> Prelude:
    wake_ms, end_ms = _meant("not_before", not_before, now_ms), _meant("expires", expires, now_ms)
    if 0 < end_ms <= wake_ms:
        raise Refused("bad_time", "expires: is not later than not_before; the task could never be claimed")
    name = _name("bad_unique", "unique", unique)
    return Prelude(wake_ms, end_ms, moment(name) if name else 0, name, _name("bad_key", "key", key), _deps(deps))


def _each(code: str, field: str, given: Any, count: int) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        if field == "unique" and given is not None and count > 1:
            raise Refused(code, "unique: one name is for one task; give a list with one for each")
        return [given] * count
    if len(given) != count:
        raise Refused(code, f"{field}: {len(given)} for {count} payloads")
    return given


def time_ms_of(field: str, given: object, now_ms: int) -> int:
    """Milliseconds since 1970; 0 for None. Raises ``Refused``."""
    if given is None:
        return 0
    if isinstance(given, datetime) and given.utcoffset() is None:
        raise Refused("bad_time", f"{field}: {given} has no time zone; write datetime(..., tzinfo=timezone.utc)")
    time_ms = scaled(given.timestamp() if isinstance(given, datetime) else given, 1_000)
    if time_ms is None or not 1 <= time_ms <= now_ms + AHEAD_MS_MAX:
        raise Refused("bad_time", f"{field}: {str(given)[:64]} is no time from 1970 to ten years from now; give a"
                      " datetime, or seconds since 1970")
    return time_ms


def _meant(field: str, given: object, now_ms: int) -> int:
    """``time_ms_of``, but for times of another century: they are spans that were meant from now."""
    time_ms = time_ms_of(field, given, now_ms)
    if 0 < time_ms < YEAR_2000_MS <= now_ms:
        remedy = "give delay_s" if field == "not_before" else "add it to time.time()"
        moment = datetime.fromtimestamp(time_ms // 1_000, UTC)
        raise Refused("bad_time", f"{field}: {str(given)[:64]} is {moment:%Y-%m-%d %H:%M} UTC; if so many seconds"
                      f" from now are meant, {remedy}")
    return time_ms


def start_of(not_before: T, delay_s: float | None, now_ms: int, *, has_ids: bool) -> T | float | None:
    """``not_before``, or ``delay_s`` as a time; ``has_ids``: the caller chose the tasks' ids."""
    if delay_s is None:
        return not_before
    if not_before is not None:
        raise Refused("bad_time", "delay_s: give it or not_before, not both")
    if has_ids:
        raise Refused("bad_time", "delay_s: with an id the same call is to be the same task, and a delay is"
                      " another time in each; give not_before")
    delay_ms = scaled(delay_s, 1_000)
    if delay_ms is None or not 0 <= delay_ms <= AHEAD_MS_MAX:
        raise Refused("bad_time", f"delay_s: {delay_s!r:.64} is no number of seconds from now in"
                      f" 0..{AHEAD_MS_MAX // 1_000}")
    return (now_ms + delay_ms) / 1_000 if delay_ms else None


def _name(code: str, field: str, given: object) -> str:
    if given is None:
        return ""
    size = _size(given) if isinstance(given, str) else 0
    if not isinstance(given, str) or not 1 <= size <= NAME_BYTES_MAX:
        raise Refused(code, f"{field}: {str(given)[:64]!r} is no text of 1 to {NAME_BYTES_MAX} bytes of UTF-8")
    return given


def _size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 0


def _window_ms(given: object) -> int:
    window_ms = scaled(given, 1_000)
    if window_ms is None or not 1 <= window_ms <= WINDOW_MS_MAX:
        raise Refused("bad_unique", f"unique_window_s: {given!r} is not in 0.001..{WINDOW_MS_MAX // 1_000} s")
    return window_ms


# -- dependencies -----------------------------------------------------------------------------------


def check_key(key: str) -> str:
    """An ordering key that tasks are looked for by."""
    return _name("bad_key", "key", key)


def _each_deps(given: Deps, count: int) -> Sequence[Ids]:
    if given is None:
        return [()] * count
    if isinstance(given, bytes | str) or not isinstance(given, Sequence):
        raise Refused("bad_deps", "deps: a list of task ids is wanted")
    rows: list[Any] = list(given)
    if all(issubclass(kind, bytes | str) for kind in dict.fromkeys(map(type, rows))):
        return [rows] * count
    if len(rows) != count:
        raise Refused("bad_deps", f"deps: {len(rows)} lists for {count} payloads")
    kinds = dict.fromkeys(map(type, rows))
    if not all(kind is type(None) or (issubclass(kind, Sequence) and not issubclass(kind, bytes | str))
               for kind in kinds):
        raise Refused("bad_deps", "deps: give a list of ids for all, or a list of such lists, one for each task")
    return [() if row is None else row for row in rows]


def _deps(given: Ids) -> tuple[bytes, ...]:
    if not all(isinstance(dep, bytes | str) for dep in given):
        raise Refused("bad_deps", "deps: a list of task ids is wanted, as bytes or text")
    deps = tuple(sorted({checking.as_id(dep) for dep in given}))
    if len(deps) > DEPS_MAX:
        raise Refused("bad_deps", f"deps: {len(deps)}, more than {DEPS_MAX}; join some by a task between")
    return tuple(map(bytes, deps))


def _policy(given: Given) -> tuple[int, int]:
    policy = _POLICIES.get(given.on_dep_failure)
    if policy is None:
        raise Refused("bad_policy", f"on_dep_failure: {given.on_dep_failure!r} is none of {', '.join(_POLICIES)}")
    dep_wait_ms = scaled(given.dep_wait_s, 1_000)
    if dep_wait_ms is None or not 0 <= dep_wait_ms <= AHEAD_MS_MAX:
        raise Refused("bad_policy", f"dep_wait_s: {given.dep_wait_s!r} is not in 0..{AHEAD_MS_MAX // 1_000} s")
    return policy, dep_wait_ms
