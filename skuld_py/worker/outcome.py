"""What a run leaves behind with its task: the result of a function that returned, the error of one that raised.

A result is bytes as they are, text in UTF-8, and any other plain value as JSON; ``None`` is no result. An error
is the exception's name and words, and behind them where it was raised, from the task's function on. Both are
bounded, so what is too large is found where it is made: a result is refused, an error is cut.

Invariant: whatever the exception or the value, nothing here fails but by ``Refused``.

Pickle was rejected: a reader of a result would run the worker's code.
"""

from __future__ import annotations

import json
import traceback
from typing import Any

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused

ERROR_CHARS_MAX = 600
TRACE_CHARS_MAX = 8_000
"""Each takes up to four bytes: together less than an entry may have."""
OURS = ("skuld_py.worker.run", "skuld_py.worker.spark_worker", "skuld_py.worker.middleware",
        "skuld_py.worker.injection", "skuld_py.worker.tracing", "skuld_py.testing.running", "contextlib")


def encode_result(value: Any) -> bytes:
    """The bytes of what a function returned; ``Refused`` when it is no plain value or too large."""
    if value is None:
        return b""
    try:
        result = value if type(value) is bytes else _text_of(value).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise Refused("bad_result", f"a result must be bytes, text or plain JSON (bool, int, float, list, dict):"
                      f" {problem}") from None
    if len(result) > DEFAULT_LIMITS.entry_bytes:
        raise Refused("result_too_large", f"a result of {len(result)} bytes; the limit is"
                      f" {DEFAULT_LIMITS.entry_bytes}. Write the data elsewhere and return its path")
    return result


def _text_of(value: Any) -> str:
    if type(value) is str:
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def said(error: BaseException) -> str:
    """Name and words of an error; of many words the beginning and the end, for Spark's errors end with what its
    Python raised. The words of Java's errors come from the JVM, which may be gone."""
    try:
        words = " ".join(str(error).split("\n\tat ")[0].split())
    except Exception as problem:
        words = f"(its text is lost: {type(problem).__name__})"
    text = f"{type(error).__name__}: {words}"
    half = ERROR_CHARS_MAX // 2
    return text if len(text) <= ERROR_CHARS_MAX else f"{text[:half]} ... {text[-half:]}"


def error_of(error: BaseException) -> bytes:
    """What is kept of a failure: what it said, then where it was raised."""
    return f"{said(error)}\n{_traced(error)}".encode("utf-8", "backslashreplace")


def _traced(error: BaseException) -> str:
    """The stack of the task's own code; ours, where there is no other."""
    every = list(traceback.walk_tb(error.__traceback__))
    theirs = [(frame, line) for frame, line in every if not frame.f_globals.get("__name__", "").startswith(OURS)]
    stack = traceback.StackSummary.extract(iter(theirs or every[-1:]))
    return "".join(stack.format())[-TRACE_CHARS_MAX:]
