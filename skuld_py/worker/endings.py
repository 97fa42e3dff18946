"""How a task's function ended, and what follows for its task: of a worker, and of a test's cluster in memory.

Invariant: whatever a function returns or raises, it is one of these.
"""

from __future__ import annotations

from typing import Any, cast

import attrs

from skuld_py.calls.results import encode_result
from skuld_py.errors import Refused
from skuld_py.model.messages import DELAY_MS_MAX
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.outcome import error_of, said
from skuld_py.worker.traits import Traits


@attrs.frozen
class Returned:
    """The function returned; this is its result."""

    result: bytes


@attrs.frozen
class Failed:
    """The function raised: its words for people, and all that is kept of it. ``is_final``: it cannot succeed,
    however often it is tried."""

    words: str
    error: bytes
    is_engine_alive: bool = True
    is_final: bool = False


@attrs.frozen
class Snoozed:
    """The function wants its task back later."""

    delay_ms: int


@attrs.frozen
class Stopped:
    """The function obeyed the order to stop."""


Ending = Returned | Failed | Snoozed | Stopped


def ended_with(value: Any) -> Returned | Failed:
    """What the function returned; a value that is no result fails for good. Its code may run here, and raise
    anything."""
    try:
        return Returned(encode_result(value))
    except Refused as error:
        return refused(error)
    except BaseException as error:
        return Failed(said(error), error_of(error), is_final=True)


def ended_by(error: BaseException, traits: Traits, *, is_engine_alive: bool = True) -> Failed | Snoozed:
    """What the function raised. An error is what its class is, whatever it says of its class by itself."""
    if issubclass(type(error), Snooze):
        return snoozed(cast(Snooze, error))
    is_final = issubclass(type(error), Dead) or not traits.forgives(error)
    return Failed(said(error), error_of(error), is_engine_alive, is_final)


def snoozed(error: Snooze) -> Snoozed | Failed:
    """For how long the function gives its task back; a class of its own may say what is no time."""
    try:
        delay_ms = error.delay_ms
    except BaseException as problem:
        return Failed(said(problem), error_of(problem))
    if type(delay_ms) is int and 0 <= delay_ms <= DELAY_MS_MAX:
        return Snoozed(delay_ms)
    return failed(f"Snooze: its delay_ms is no int from 0 to {DELAY_MS_MAX}: {said(error)}")


def refused(error: Refused) -> Failed:
    """A call, or a result, that is none: no attempt cures it."""
    return Failed(said(error), error_of(error), is_final=True)


def failed(words: str) -> Failed:
    """The worker's own word that an attempt failed."""
    return Failed(words, words.encode())
