"""What the options of a read and of a write say, checked on the driver before anything is asked of the queue.

Spark hands options over as texts, by names in which case does not count. One that is unknown is refused with those
that there are, since a misspelt one would be obeyed in silence. A column that does not exist is refused likewise.

Nodes and the client's key may be named by ``nodes`` and ``client_key``; or by ``SKULD_NODES`` and
``SKULD_CLIENT_KEY`` on the driver and on each executor. A key is named by its file: no option holds a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import attrs

from skuld_py.calls.payloads import check_name
from skuld_py.client.checking import header_of
from skuld_py.client.reading import STATES
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model import names
from skuld_py.model.body import PRIORITY_MAX, PRIORITY_MIN, RETRY_RANGES, WINDOW_MS_MAX

TTL_S = 24 * 3600
TTL_S_LEAST, TTL_S_MOST = 120, 30 * 24 * 3600
TIMEOUT_S = 60.0
WINDOW_S = WINDOW_MS_MAX / 1000
OF_ALL = ("nodes", "client_key", "timeout")
OF_WRITES = (*OF_ALL, "queue", "payload", "call", "args", "kwargs", "priority", "key", "not_before", "expires",
             "max_attempts", "atomic", "ttl", "batch", "window")
OF_READS = (*OF_ALL, "queue", "state", "function", "results", "page")
OF_STREAMS = (*OF_ALL, "max_tasks", "wait")
OF_SPARK = ("checkpointlocation", "path")
"""What Spark hands on of what is for itself."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@attrs.frozen
class Place:
    """Where the queue is; None: what the environment of the process that asks says."""

    nodes: str | None = None
    key: str | None = None
    timeout_s: float = TIMEOUT_S


@attrs.frozen
class WriteChoices:
    """What becomes of a row. ``payload``: the column with the task's payload; or ``call``: the function, and the
    columns that are its arguments. ``priority`` is a number or a column; ``key``, ``not_before`` and ``expires``
    are columns. ``batch``: tasks of one request. ``window_s``: how long after a stream's batch the same batch is
    known when it is run again."""

    place: Place
    queue: str
    payload: str | None
    call: str | None
    args: tuple[str, ...]
    kwargs: tuple[tuple[str, str], ...]
    priority: int | str
    key: str | None
    not_before: str | None
    expires: str | None
    max_attempts: int | None
    is_atomic: bool
    ttl_s: float
    batch: int
    window_s: float


@attrs.frozen
class ReadChoices:
    """Which tasks are read; empty is any. ``has_results``: with results and errors of those that ended."""

    place: Place
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    function: str | None = None
    has_results: bool = True
    page: int = 1_000


@attrs.frozen
class StreamChoices:
    """``most``: tasks of one batch. ``wait_s``: how long a run that is to end with what there is (available now)
    waits for a page that is about to be offered."""

    place: Place
    most: int
    wait_s: float


def write_choices(options: Mapping[str, str], columns: Collection[str]) -> WriteChoices:
    """The options of a write of rows with these columns."""
    given = _Given(options, OF_WRITES)
    queue = given.text("queue")
    if queue is None:
        raise _bad("queue", "names the queue to write to; say option('queue', ...)")
    header_of(queue, 0)
    call, payload = given.text("call"), given.column("payload", columns)
    if call is not None and payload is not None:
        raise _bad("call", "and payload are both given; a task is a call, or has a payload of its own")
    others = {name: given.column(name, columns) for name in ("key", "not_before", "expires")}
    priority = given.priority(columns)
    args, kwargs = given.arguments(call, columns, {*others.values(), priority})
    if call is None:
        payload = payload or _default(columns)
    max_attempts = given.number("max_attempts", None, *RETRY_RANGES["max_attempts"])
    batch = given.number("batch", DEFAULT_LIMITS.batch_tasks, 1, DEFAULT_LIMITS.batch_tasks)
    return WriteChoices(given.place(), queue, payload, call, args, kwargs, priority, **others,
                        max_attempts=max_attempts, is_atomic=given.truth("atomic", True),
                        ttl_s=given.seconds("ttl", TTL_S, TTL_S_LEAST, TTL_S_MOST), batch=batch or 1,
                        window_s=given.seconds("window", WINDOW_S, 1, WINDOW_S))


def read_choices(options: Mapping[str, str]) -> ReadChoices:
    """The options of a read."""
    given = _Given(options, OF_READS)
    states, function = given.listed("state"), given.text("function")
    for state in states:
        if state not in STATES:
            raise _bad("state", f"{state!r} is no state; use {', '.join(STATES)}")
    if function is not None:
        check_name(function)
    return ReadChoices(given.place(), given.queues(), states, function, given.truth("results", True),
                       given.number("page", 1_000, 1, 1_000) or 1)


def stream_choices(options: Mapping[str, str]) -> StreamChoices:
    """The options of a stream of ended tasks."""
    given = _Given(options, OF_STREAMS)
    return StreamChoices(given.place(), given.number("max_tasks", 10_000, 1, 50_000) or 1,
                         given.seconds("wait", 10.0, 0, 600))


class _Given:
    """Options as Spark gives them, read one by one."""

    def __init__(self, options: Mapping[str, str], known: Collection[str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        unknown = [name for name in self._options if name not in known and name not in OF_SPARK]
        if unknown:
            raise _bad(unknown[0], f"is no option here; there are {', '.join(known)}")

    def text(self, name: str) -> str | None:
        return self._options.get(name) or None

    def listed(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in (self.text(name) or "").split(",") if word.strip())

    def queues(self) -> tuple[str, ...]:
        return tuple(names.check_name("queue", queue) for queue in self.listed("queue"))

    def place(self) -> Place:
        return Place(self.text("nodes"), self.text("client_key"), self.seconds("timeout", TIMEOUT_S, 1, 3_600))

    def truth(self, name: str, otherwise: bool) -> bool:
        value = self.text(name)
        if value is not None and value.lower() not in _TRUTHS:
            raise _bad(name, f"{value!r} is neither true nor false")
        return otherwise if value is None else _TRUTHS[value.lower()]

    def number(self, name: str, otherwise: int | None, least: int, most: int) -> int | None:
        value = self.text(name)
        if value is None:
            return otherwise
        if not re.fullmatch(r"-?\d{1,18}", value) or not least <= int(value) <= most:
            raise _bad(name, f"{value!r} is no whole number in {least}..{most}")
        return int(value)

    def seconds(self, name: str, otherwise: float, least: float, most: float) -> float:
        value = self.text(name)
        found = None if value is None else _DURATION.fullmatch(value.strip())
        seconds = otherwise if found is None else float(found[1]) * _SECONDS[found[2]]
        if (value is not None and found is None) or not least <= seconds <= most:
            raise _bad(name, f"{value!r} is no time between {least:g}s and {most:g}s, such as 90s, 30m or 24h")
        return seconds

    def column(self, name: str, columns: Collection[str]) -> str | None:
        value = self.text(name)
        return None if value is None else _there(name, value, columns)

    def priority(self, columns: Collection[str]) -> int | str:
        value = self.text("priority") or "0"
        if not re.fullmatch(r"[+-]?\d{1,18}", value):
            return _there("priority", value, columns)
        if not PRIORITY_MIN <= int(value) <= PRIORITY_MAX:
            raise _bad("priority", f"{value} is not an int of 32 bits, signed")
        return int(value)

    def arguments(self, call: str | None, columns: Collection[str], taken: Collection[int | str | None]
                  ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Columns in order, and columns by parameter. Without either, all that say nothing else, by name."""
        args, kwargs = self.listed("args"), self.listed("kwargs")
        if call is None:
            if args or kwargs:
                raise _bad("args", "and kwargs are those of a call; name its function by call")
            return (), ()
        check_name(call)
        pairs = [(parameter.strip(), column.strip() or parameter.strip())
                 for parameter, _, column in (word.partition("=") for word in kwargs)]
        for column in (*args, *(column for _, column in pairs)):
            _there("args", column, columns)
        if "args" not in self._options and "kwargs" not in self._options:
            pairs = [(column, column) for column in columns if column not in taken]
        return args, tuple(pairs)


def _default(columns: Collection[str]) -> str:
    """The column called payload, or the only one."""
    if "payload" in columns:
        return "payload"
    if len(columns) == 1:
        return next(iter(columns))
    raise _bad("payload", f"which of the columns {', '.join(columns)} is the payload? say option('payload', ...);"
               " or name a function by option('call', ...)")


def _there(option: str, column: str, columns: Collection[str]) -> str:
    if column not in columns:
        raise _bad(option, f"there is no column {column!r}; there are {', '.join(columns)}")
    return column


def _bad(option: str, problem: str) -> Refused:
    return Refused("bad_option", f"{option}: {problem}", field=option)
