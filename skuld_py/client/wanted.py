"""Which tasks are looked for beside what nodes know of them: by call, argument, header and last error.

Patterns are texts in which ``*`` is any text, and large letters are like small ones. No other sign means anything
in them: errors and arguments are full of brackets and question marks. A pattern is matched part by part from the
left, so no pattern makes a long text expensive.

An argument is as it is typed on the command line: a value, or ``name=value``; a text as it is, bytes as the text
that they are in UTF-8, all else as JSON. A header is ``name=value``.

Nodes do not look into payloads and headers, so all tasks that are asked for otherwise are read for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from skuld_py.calls.payloads import check_name, decode_call, function_of
from skuld_py.errors import Refused
from skuld_py.model.task import Task

PATTERN_CHARS_MAX = 500
_EXAMPLES = {"error": "*timeout*", "argument": "day=2026-11-*", "header": "tenant=acme*"}


@attrs.frozen
class Wanted:
    """What a task must be like; None for anything."""

    function: str | None = None
    argument: str | None = None
    header: str | None = None
    error: str | None = None

    def check(self) -> None:
        """Refuse what is no name, or no pattern."""
        if self.function is not None:
            check_name(self.function)
        for field, example in _EXAMPLES.items():
            pattern = getattr(self, field)
            if pattern is not None and (type(pattern) is not str or not 0 < len(pattern) <= PATTERN_CHARS_MAX):
                raise Refused(f"bad_{field}", f"{field}: is no pattern of 1 to {PATTERN_CHARS_MAX} characters, as"
                              f" '{example}'", field=field)

    def suits(self, task: Task) -> bool:
        """Whether a task is like this, but for its error, which a listing does not show."""
        if self.function is not None and function_of(task.payload) != self.function:
            return False
        if self.header is not None and not any(
                is_like(self.header, f"{name}={value}") for name, value in task.headers.items()):
            return False
        return self.argument is None or any(is_like(self.argument, each) for each in _arguments(task.payload))

    def has_error(self, error: bytes) -> bool:
        """Whether a task whose last error this is may be it; none is like no pattern."""
        return self.error is None or (bool(error) and is_like(self.error, error.decode("utf-8", "replace")))


def is_like(pattern: str, text: str) -> bool:
    """Whether a text is as a pattern says."""
    first, *parts = pattern.lower().split("*")
    text = text.lower()
    if not parts:
        return text == first
    last = parts.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in parts:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _arguments(payload: bytes) -> Iterator[str]:
    """The arguments of a call as they are typed; none if it is no call."""
    if function_of(payload) is None:
        return
    try:
        call = decode_call(payload)
    except Refused:
        return
    yield from map(_said, call.args)
    for name, value in call.kwargs.items():
        yield f"{name}={_said(value)}"


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    return _text(value) if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, default=_text)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
