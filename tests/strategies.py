"""Messages to test with, made from what ``model.fields`` says of their fields.

One generator serves two ends, since all it asks for are integers in ranges: hypothesis gives them to
search and to shrink, a seeded ``Random`` to make many inputs fast. What the kinds of the fields cannot
say (``wire.rules``) is said in ``SPECIAL``.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
from hypothesis import strategies as st

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import columns, fields
from skuld_py.model import messages as m
from skuld_py.model.body import (
    DEFAULT_RETRY,
    PRIORITY_MAX,
    PRIORITY_MIN,
    WINDOW_MS_MAX,
    Header,
    Retry,
)
from skuld_py.model.notes import SUB
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS
from skuld_py.model.prelude import TIME_MS_MAX, Prelude
from skuld_py.wire.codec import Envelope

Integer = Callable[[int, int], int]
"""Draws an integer from ``low..high``, both included."""

NAME_STARTS = "a0Z"
NAME_CHARS = NAME_STARTS + "._-"
TEXT_CHARS = "a \0\nä\u0301\u202e€\U0001d11e"
ITEMS = 3
"""Lists have up to so many items, unless their kind allows fewer."""
CHARS = 6


def make(of: type, integer: Integer) -> Any:
    """A record of an attrs class, drawn by ``integer``; fields of ``columns`` list equally many."""
    count = integer(0, ITEMS)
    if of is m.TaskBatch:
        return _task_batch(integer, count)
    values: dict[str, Any] = {}
    for field in attrs.fields(of):
        special = SPECIAL.get((of, field.name))
        size = count if field.name in getattr(of, "columns", ()) else None
        if special is not None:
            values[field.name] = special(integer, count)
        else:
            values[field.name] = make_value(field.metadata["kind"], integer, size)
    return of(**values)


def make_value(kind: fields.Kind, integer: Integer, count: int | None = None) -> Any:
    """A value of a kind; a list or column of ``count`` items, if that is given."""
    match kind:
        case fields.Number(low, high):
            return integer(low, high)
        case fields.Truth():
            return bool(integer(0, 1))
        case fields.Name(is_life=True):
            return _name(integer, True) + "~" + _name(integer, False)
        case fields.Name(is_optional, is_wide):
            return "" if is_optional and not integer(0, 3) else _name(integer, is_wide)
        case fields.Text(chars_max):
            return _chars(integer, TEXT_CHARS, integer(0, min(CHARS, chars_max)))
        case fields.Blob(unit, bytes_max):
            most = min(ITEMS, bytes_max // unit)
            return _bytes(integer, unit * (integer(0, most) if count is None else count))
        case fields.Strings(count_max):
            size = integer(0, min(ITEMS, count_max)) if count is None else count
            return columns.pack([_bytes(integer, integer(0, CHARS)) for _ in range(size)])
        case fields.Rows(of, count_max):
            return tuple(make(of, integer) for _ in range(integer(0, min(ITEMS, count_max))))
        case fields.Names(count_max):
            return tuple(_name(integer, True) for _ in range(integer(0, min(ITEMS, count_max))))


def _name(integer: Integer, is_wide: bool) -> str:
    chars = NAME_CHARS + ("@:" if is_wide else "")
    return _chars(integer, NAME_STARTS, 1) + _chars(integer, chars, integer(0, CHARS))


def _chars(integer: Integer, alphabet: str, count: int) -> str:
    return "".join(alphabet[integer(0, len(alphabet) - 1)] for _ in range(count))


def _bytes(integer: Integer, count: int) -> bytes:
    return integer(0, (1 << 8 * count) - 1).to_bytes(count, "big")


def _task_batch(integer: Integer, count: int) -> m.TaskBatch:
    """Tasks with and without options; what each has for itself stands before its payload."""
    retry = Retry(integer(1, 1_000)) if integer(0, 1) else DEFAULT_RETRY
    headers = ((_name(integer, True), _chars(integer, TEXT_CHARS, integer(0, CHARS))),) if integer(0, 1) else ()
    prelude = _prelude(integer)
    header = Header(_name(integer, False), integer(PRIORITY_MIN, PRIORITY_MAX), retry, headers, prelude.flags,
                    policy=integer(1, 3) if prelude.deps else 0,
                    dep_wait_ms=integer(0, TIME_MS_MAX) if prelude.deps else 0,
                    window_ms=integer(1, WINDOW_MS_MAX) if prelude.unique else 0)
    rests = [prelude.encode() + _bytes(integer, integer(0, CHARS)) for _ in range(count)]
    return m.TaskBatch(header.encode(), _bytes(integer, 20 * count), columns.pack(rests))


def _prelude(integer: Integer) -> Prelude:
    wake_ms, end_ms = (integer(1, TIME_MS_MAX) if integer(0, 1) else 0 for _ in range(2))
    unique = _name(integer, True) if integer(0, 1) else ""
    key = _name(integer, True) if integer(0, 1) else ""
    deps = sorted({_bytes(integer, 20) for _ in range(integer(0, ITEMS))})
    return Prelude(wake_ms, end_ms, integer(1, TIME_MS_MAX) if unique else 0, unique, key, tuple(deps))


def _task_id(integer: Integer, count: int) -> bytes:
    return _bytes(integer, 20)


def _some_or_none(integer: Integer, count: int) -> columns.Column:
    count *= integer(0, 1)
    return columns.pack([_bytes(integer, integer(0, CHARS)) for _ in range(count)])


SPECIAL: dict[tuple[type, str], Callable[[Integer, int], Any]] = {
    (m.Append, "id"): _task_id,
    (m.Append, "token"): lambda integer, _: integer(FIRST_TOKEN, fields.U63_MAX),
    (m.Append, "seq"): lambda integer, _: integer(0, LOG_SEQS - ITEMS),
    (m.Complete, "results"): _some_or_none,
    (m.Conclude, "errors"): _some_or_none,
    (m.Get, "ids"): lambda integer, count: _bytes(integer, 20 * count),
    (m.Get, "least"): lambda integer, count: _bytes(integer, 8 * count * integer(0, 1)),
    (m.ReadLog, "id"): _task_id,
    (m.Note, "tokens"): lambda integer, count: columns.pack_u64([SUB] * count),
    (m.Note, "seqs"): lambda integer, count: columns.pack_u64([integer(0, PARTITIONS_MAX - 1)
                                                              for _ in range(count)]),
    (m.Amend, "tokens"): lambda integer, count: _bytes(integer, 8 * count),
    (m.Amend, "errors"): lambda integer, count: columns.pack([_bytes(integer, CHARS) for _ in range(count)]),
    (m.TaskRow, "id"): _task_id,
    (m.TaskRow, "seqs"): lambda integer, count: columns.pack_u64(
        [integer(0, fields.U32_MAX) for _ in range(count)]
    ),
}


@st.composite
def messages(draw: st.DrawFn, of: type[m.Message]) -> m.Message:
    """Messages of one class."""
    message = make(of, lambda low, high: draw(st.integers(low, high)))
    assert isinstance(message, m.Message)
    return message


@st.composite
def envelopes(draw: st.DrawFn, of: tuple[type[m.Message], ...] = m.MESSAGES) -> Envelope:
    """Envelopes of up to three messages, from nodes and clients."""
    made = draw(st.lists(st.sampled_from(of).flatmap(messages), max_size=3))
    sender = draw(st.sampled_from(["", "n", "node-1:5000"]))
    return Envelope(sender, draw(st.sampled_from(["", "main"])), tuple(made))


def random_message(random: Random, of: type[m.Message]) -> m.Message:
    """A message of one class from a seeded generator; limits come up often."""

    def integer(low: int, high: int) -> int:
        return random.choice((low, high, random.randint(low, high), random.randint(low, high)))

    message = make(of, integer)
    assert isinstance(message, m.Message)
    return message
