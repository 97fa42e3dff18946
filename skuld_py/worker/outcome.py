"""What a function that raised leaves behind with its task: an error. What one returned is ``calls.results``.

An error is the exception's name and words, and behind them where it was raised, from the task's function on. It is
bounded: what is too large is cut.

Invariant: whatever the exception, nothing here fails. Its class is the application's, and so may be the code that
says its name, its words and its place, which may raise in turn, ``SystemExit`` among others.

Rejected: the exception itself, pickled. A reader would run the worker's code.
"""

from __future__ import annotations

import traceback

from skuld_py.errors import Refused
from skuld_py.worker.directives import Dead

ERROR_CHARS_MAX = 600
TRACE_CHARS_MAX = 8_000
"""Each takes up to four bytes: together less than an entry may have."""
FRAMES_MAX = 1_000
"""Of a deeper stack, its beginning and its end."""
OURS = ("skuld_py.worker.run", "skuld_py.worker.spark_worker", "skuld_py.worker.middleware",
        "skuld_py.worker.injection", "skuld_py.worker.batches", "skuld_py.worker.kinds",
        "skuld_py.worker.tracing", "skuld_py.worker.registry", "skuld_py.worker.late_engine",
        "skuld_py.worker.assignment", "skuld_py.calls", "skuld_py.testing.running", "contextlib")


def said(error: BaseException) -> str:
    """Name and words of an error; of many words the beginning and the end, for Spark's errors end with what its
    Python raised. The words of Java's errors come from the JVM, which may be gone."""
    try:
        words = " ".join(str(error).split("\n\tat ")[0].split())
    except BaseException as problem:
        words = f"(its text is lost: {_name_of(problem)})"
    text = f"{_name_of(error)}: {words}"
    half = ERROR_CHARS_MAX // 2
    return text if len(text) <= ERROR_CHARS_MAX else f"{text[:half]} ... {text[-half:]}"


def error_of(error: BaseException) -> bytes:
    """What is kept of a failure: what it said, then where it was raised."""
    return f"{said(error)}\n{_traced(error)}".encode("utf-8", "backslashreplace")


def _name_of(error: BaseException) -> str:
    try:
        return str(type(error).__name__)
    except BaseException:  # of a class with a class of its own
        return "an error without a name"


def _traced(error: BaseException) -> str:
    """The stack of the task's own code; ours, where there is no other and it is not we who say no."""
    every = list(traceback.walk_tb(error.__traceback__))
    theirs = [(frame, line) for frame, line in every
              if not str(frame.f_globals.get("__name__", "")).startswith(OURS)]
    if not theirs and issubclass(type(error), (Refused, Dead)):
        return ""
    if len(theirs) > FRAMES_MAX:
        theirs = [*theirs[: FRAMES_MAX // 2], *theirs[-FRAMES_MAX // 2 :]]
    try:
        stack = traceback.StackSummary.extract(iter(theirs or every[-1:]))
        return "".join(stack.format())[-TRACE_CHARS_MAX:]
    except BaseException as problem:  # the sources are read by loaders that may be the application's
        return f"(its place is lost: {_name_of(problem)})"
