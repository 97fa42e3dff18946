"""How a call is shown to people: ``shop:add(2, b=3)``, on one line, bounded, and harmless to a terminal.

A payload comes from any client and may have a MiB. So values are written as far as there is room, and no further;
what could move a cursor, or turn the direction of writing, is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skuld_py.calls.payloads import Call, decode_call, function_of
from skuld_py.errors import Refused

CHARS_MAX = 120
_CUT = "…"


def call_line(payload: bytes, most: int = CHARS_MAX) -> str | None:
    """The call that a payload is, in at most ``most`` characters; None when it is none."""
    if function_of(payload) is None:
        return None
    try:
        return line_of(decode_call(payload), most)
    except Refused:
        return None


def line_of(call: Call, most: int = CHARS_MAX) -> str:
    """A call as it would be written."""
    made = ""
    for piece in _pieces(call, most):
        made += piece
        if len(made) > most:
            return made[: most - 1] + _CUT
    return made


def arguments_said(payload: bytes) -> Iterator[str]:
    """Each argument of a call as text, to be searched: a text as it is, another value as a call shows it, and one
    with a name once more behind that, as ``b=3``. Of a payload that is no call, all of it."""
    try:
        call = decode_call(payload) if function_of(payload) is not None else None
    except Refused:
        call = None
    if call is None:
        yield payload.decode("utf-8", "replace")
        return
    most = len(payload)
    for name, value in [*((None, value) for value in call.args), *call.kwargs.items()]:
        said = value if isinstance(value, str) else "".join(_value(value, most))
        yield said
        if name is not None:
            yield f"{name}={said}"


def _pieces(call: Call, most: int) -> Iterator[str]:
    yield escaped(call.name) + "("
    comma = ""
    for value in call.args:
        yield comma
        yield from _value(value, most)
        comma = ", "
    for name, value in call.kwargs.items():
        yield f"{comma}{escaped(name[:most])}="
        yield from _value(value, most)
        comma = ", "
    yield ")"


def _value(value: Any, most: int) -> Iterator[str]:
    """A value in pieces, so that who has enough can stop."""
    if isinstance(value, str):
        yield escaped(json.dumps(value[:most], ensure_ascii=False))
    elif isinstance(value, bytes):
        yield repr(value[:most])
    elif isinstance(value, list):
        yield "["
        for index, item in enumerate(value):
            yield ", " if index else ""
            yield from _value(item, most)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield f"{', ' if index else ''}{escaped(json.dumps(key[:most], ensure_ascii=False))}: "
            yield from _value(item, most)
        yield "}"
    else:
        yield str(value)


def escaped(text: str) -> str:
    """The text, with all that is not printed as escapes."""
    return text if text.isprintable() else "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
