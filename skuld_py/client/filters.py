"""What is looked for of tasks beyond queue, state and time: whom they call, with what, their headers and errors.

Nodes do not look into payloads and headers, so every task that is found otherwise is read for it, and looked at
here. Listings and what is done with many tasks at once ask alike, so what a search has shown is what is retried.

A pattern is the whole of a text, in which ``*`` is any text; large letters are like small ones, and all else
stands for itself. Rejected: ``fnmatch``, to which the brackets of ``KeyError: ['day']`` are a choice of letters.
"""

from __future__ import annotations

import attrs

from skuld_py.calls.payloads import check_name, function_of
from skuld_py.calls.sight import arguments_said
from skuld_py.errors import Refused
from skuld_py.model.task import Task

PATTERN_CHARS_MAX = 500
PATTERNS = {"argument": "'day=2026-11-*'", "header": "'tenant=acme*'", "error": "'*timeout*'"}
"""What may be asked for by a pattern, with an example."""


@attrs.frozen
class Filter:
    """What is asked of a task; None for nothing. ``function``: whom it calls. ``argument``: one of its call is
    like this, as its value or as ``name=value``; of what is no call, the payload. ``header``: it has one like
    this, as ``key=value``. ``error``: its last error is like this."""

    function: str | None = None
    argument: str | None = None
    header: str | None = None
    error: str | None = None

    def check(self) -> None:
        """Raise ``Refused`` for what nothing can be like."""
        if self.function is not None:
            check_name(self.function)
        for field, example in PATTERNS.items():
            pattern = getattr(self, field)
            if pattern is not None and (type(pattern) is not str or not 0 < len(pattern) <= PATTERN_CHARS_MAX):
                raise Refused(f"bad_{field}", f"{field}: is no pattern of 1 to {PATTERN_CHARS_MAX} characters, as"
                              f" {example}", field=field)

    def suits(self, task: Task) -> bool:
        """Whether a task is such a one, but for its error."""
        return ((self.function is None or function_of(task.payload) == self.function)
                and (self.header is None or any(is_like(f"{key}={value}", self.header)
                                                for key, value in task.headers.items()))
                and (self.argument is None or any(is_like(said, self.argument)
                                                  for said in arguments_said(task.payload))))

    def has_error(self, error: bytes) -> bool:
        """Whether a task failed in such a way."""
        return self.error is None or is_like(error.decode("utf-8", "replace"), self.error)


def is_like(text: str, pattern: str) -> bool:
    """Whether a text is like a pattern. Each piece is looked for once, so no pattern takes long."""
    text = text.lower()
    first, *pieces = pattern.lower().split("*")
    if not pieces:
        return text == first
    if not text.startswith(first):
        return False
    at, last = len(first), pieces.pop()
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return at + len(last) <= len(text) and text.endswith(last)
