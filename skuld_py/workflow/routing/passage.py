"""A segment's passage through a step: what is told of it, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs

WORDS_CHARS_MAX = 2_000
"""Of an exception's message, when it is sent as data."""

Resolve = Callable[[str], Callable[..., Any]]
"""Gives the function of a name. Only the application's own ones: a name is never imported, or whoever may submit a
workflow could have ``os:system`` called."""


@attrs.frozen
class Failure:
    """An exception as data: its type by name, and its message."""

    type: str
    message: str

    @classmethod
    def of(cls, error: BaseException, where: str = "") -> Failure:
        """What an exception says. ``where``: in which function, if that is not the step's."""
        message = f"{where}: {error}" if where else str(error)
        return cls(type(error).__name__, message[:WORDS_CHARS_MAX])


@attrs.frozen
class Outcome:
    """What a step made of what it was given: the values that it returned, or a failure. ``attempt`` counts from 1;
    after the last one the segment is dead."""

    given: Any
    values: tuple[Any, ...] = ()
    failure: Failure | None = None
    attempt: int = 1
    is_last: bool = False

    @property
    def error_value(self) -> dict[str, Any]:
        """The failure as a value that can be sent."""
        failure = self.failure or Failure("", "")
        return {"error": failure.type, "message": failure.message, "segment": self.given}


class Verdict(Enum):
    """What is to be done."""

    EMIT = "emit"
    """Complete the segment with what it emits, which may be nothing."""
    RETRY = "retry"
    """A condition wants it to be tried again: this attempt has failed, and nothing is emitted."""
    FAILED = "failed"
    """No condition took the failure: the lifecycles say what becomes of it."""


@attrs.frozen
class Routed:
    """``emitted``: which values go to which steps, in order. ``failure``: with ``FAILED``, which one; that of a
    predicate if it raised."""

    verdict: Verdict
    emitted: tuple[tuple[str, Any], ...] = ()
    failure: Failure | None = None
