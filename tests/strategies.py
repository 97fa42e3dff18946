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

from skuld_py.config import LEASE_MS_MAX, PARTITIONS_MAX
from skuld_py.model import bounds, columns, fields
from skuld_py.model import messages as m
from skuld_py.model.body import (
    DEFAULT_RETRY,
    PRIORITY_MAX,
    PRIORITY_MIN,
    WINDOW_MS_MAX,
    Header,
    Retry,
    encode_body,
)
from skuld_py.model.history import HISTORY_HEAD, encode_claim, token_of
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
    whole = WHOLE.get(of)
    if whole is not None:
        return whole(integer, count)
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
        case fields.Partition():
            return integer(0, PARTITIONS_MAX - 1)
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
        case fields.Numbers(_, high):
            return _numbers(integer, high, count)
        case fields.Partitions():
            return _numbers(integer, PARTITIONS_MAX - 1, count)
        case fields.Eras(count_max):
            return columns.pack_u64([number for _ in range(integer(0, min(ITEMS, count_max)))
                                     for number in (integer(0, PARTITIONS_MAX - 1), integer(0, bounds.U32_MAX))])
        case fields.Strings(count_max):
            size = integer(0, min(ITEMS, count_max)) if count is None else count
            return columns.pack([_bytes(integer, integer(0, CHARS)) for _ in range(size)])
        case fields.Rows(of, count_max):
            return tuple(make(of, integer) for _ in range(integer(0, min(ITEMS, count_max))))
        case fields.Names(count_max):
            return tuple(_name(integer, True) for _ in range(integer(0, min(ITEMS, count_max))))


def _numbers(integer: Integer, high: int, count: int | None) -> bytes:
    return columns.pack_u64([integer(0, high) for _ in range(integer(0, ITEMS) if count is None else count)])


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
                    policy=integer(1, 4) if prelude.deps else 0,
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


def _claim_tokens(integer: Integer, count: int) -> bytes:
    return columns.pack_u64([integer(FIRST_TOKEN, bounds.U63_MAX) for _ in range(count)])


def _proofs(integer: Integer, count: int) -> bytes:
    return _bytes(integer, bounds.PROOF_BYTES * count * integer(0, 1))


def _some_or_none(integer: Integer, count: int) -> columns.Column:
    count *= integer(0, 1)
    return columns.pack([_bytes(integer, integer(0, CHARS)) for _ in range(count)])


def _grant(integer: Integer, count: int) -> m.Grant:
    epoch, start_ms = integer(1, bounds.U32_MAX >> 1), integer(0, bounds.MOMENT_MS_MAX - LEASE_MS_MAX)
    return m.Grant(integer(0, bounds.U63_MAX), integer(0, PARTITIONS_MAX - 1), epoch,
                   token_of(epoch, integer(1, bounds.U32_MAX - ITEMS)), start_ms,
                   start_ms + integer(0, LEASE_MS_MAX), _name(integer, True), _name(integer, False),
                   _bytes(integer, 20 * count), _bytes(integer, 4 * count))


def _claims(integer: Integer, count: int) -> m.ClaimBatch:
    return m.ClaimBatch(_bytes(integer, 20 * count), integer(0, bounds.U63_MAX), integer(0, bounds.U63_MAX),
                        columns.pack(_bodies(integer, count)), _proofs(integer, count))


def _bodies(integer: Integer, count: int) -> list[bytes]:
    return [encode_body(Header(_name(integer, False)).encode(), _bytes(integer, CHARS)) for _ in range(count)]


def _history(integer: Integer) -> bytes:
    """None, or that of a task that was claimed once."""
    if not integer(0, 2):
        return b""
    claim = encode_claim(integer(FIRST_TOKEN, bounds.U63_MAX), integer(0, 9), integer(0, 9),
                         _name(integer, True).encode())
    return bytes(HISTORY_HEAD.size) + claim


def _place(integer: Integer) -> bytes:
    return _name(integer, False).encode() + b"\0" + _bytes(integer, 4) if integer(0, 3) else b""


def _leader_row(integer: Integer, count: int) -> m.LeaderRow:
    epoch = integer(1, bounds.U32_MAX)
    return m.LeaderRow(integer(0, PARTITIONS_MAX - 1), epoch, integer(1, epoch), _cohort(integer, count))


def _cohort(integer: Integer, count: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(integer, True) for _ in range(count + 1)))


WHOLE: dict[type, Callable[[Integer, int], Any]] = {
    m.TaskBatch: _task_batch, m.ClaimBatch: _claims, m.Grant: _grant, m.LeaderRow: _leader_row,
}
"""Records whose fields hang together."""

SPECIAL: dict[tuple[type, str], Callable[[Integer, int], Any]] = {
    (m.Append, "id"): _task_id,
    (m.Append, "token"): lambda integer, _: integer(FIRST_TOKEN, bounds.U63_MAX),
    (m.Append, "seq"): lambda integer, _: integer(0, LOG_SEQS - ITEMS),
    **{(of, "proofs"): _proofs for of in (m.Complete, m.Conclude, m.Renew)},
    (m.Append, "proofs"): lambda integer, _: _proofs(integer, 1),
    (m.Complete, "results"): _some_or_none,
    (m.Complete, "tokens"): _claim_tokens,
    (m.RequestVote, "epoch"): lambda integer, _: integer(1 << 16, bounds.U32_MAX),
    (m.RequestVote, "base"): lambda integer, _: integer(0, (1 << 16) - 1),
    (m.RequestVote, "cohort"): _cohort,
    (m.Sync, "epoch"): lambda integer, _: integer(1 << 16, bounds.U32_MAX),
    (m.Sync, "base"): lambda integer, _: integer(0, (1 << 16) - 1),
    (m.Sync, "cohort"): _cohort,
    (m.CohortRow, "cohort"): _cohort,
    **{(of, "places"): lambda integer, count: columns.pack(
        [_place(integer) for _ in range(count)]) for of in (m.Amend, m.ClaimPage, m.PushClaims)},
    (m.Got, "asides"): lambda integer, _: columns.Column(),
    (m.Conclude, "errors"): _some_or_none,
    (m.Get, "ids"): lambda integer, count: _bytes(integer, 20 * count),
    (m.Get, "least"): lambda integer, count: _bytes(integer, 8 * count * integer(0, 1)),
    (m.ReadLog, "id"): _task_id,
    (m.Note, "tokens"): lambda integer, count: columns.pack_u64([SUB] * count),
    (m.Note, "seqs"): lambda integer, count: columns.pack_u64([integer(0, PARTITIONS_MAX - 1)
                                                              for _ in range(count)]),
    (m.Amend, "tokens"): _claim_tokens,
    (m.Amend, "errors"): lambda integer, count: columns.pack([_bytes(integer, CHARS) for _ in range(count)]),
    (m.TaskRow, "id"): _task_id,
    (m.TaskRow, "body"): lambda integer, _: columns.pack(_bodies(integer, integer(0, 1))),
    (m.TaskRow, "history"): lambda integer, _: _history(integer),
    (m.Listed, "bodies"): lambda integer, count: columns.pack(_bodies(integer, count)),
    (m.Listed, "histories"): lambda integer, count: columns.pack([_history(integer) for _ in range(count)]),
    (m.Offered, "bodies"): lambda integer, count: columns.pack(_bodies(integer, count)),
    (m.Offered, "histories"): lambda integer, count: columns.pack([_history(integer) for _ in range(count)]),
    (m.Offered, "counts"): lambda integer, count: columns.pack_u64([1] * count),
    (m.Offered, "tokens"): _claim_tokens,
    (m.Offered, "seqs"): lambda integer, count: columns.pack_u64([integer(0, LOG_SEQS) for _ in range(count)]),
    (m.Offered, "entries"): lambda integer, count: columns.pack([_bytes(integer, CHARS) for _ in range(count)]),
    (m.TaskRow, "tokens"): lambda integer, count: columns.pack_u64(
        [integer(FIRST_TOKEN, bounds.U63_MAX) if integer(0, 3) else SUB for _ in range(count)]),
    (m.TaskRow, "seqs"): lambda integer, count: columns.pack_u64(
        [integer(0, PARTITIONS_MAX - 1) for _ in range(count)]
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
