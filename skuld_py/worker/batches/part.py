"""One part of a batch, in a Python process of Spark's executors: its items one after another, and how each ended.

What travels there is the function's name and module, and payloads as they are; what comes back are endings. So
arguments are made and results encoded where the function runs, and the worker unpacks neither.

Invariants:

* Whatever an item raises is its own ending. A part ends with as many endings as it has items.
* An item runs for at most its ``timeout_s``, measured here: then it is interrupted by a signal. One that stands in
  C and hears none ends ``EXIT_S`` later with the process, which says so in its last words, and is found by
  ``halving``.
* After ``budget_s``, and behind results of ``bytes_max`` in all, no item is begun: its ending is None. The first
  one always is, so every job gets somewhere.

This module is imported by executors, which may have nothing installed but attrs and msgpack (``shipping``).
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import FrameType
from typing import Any

import attrs

from skuld_py.calls.payloads import decode_call
from skuld_py.client.steady import monotonic_s
from skuld_py.errors import Refused
from skuld_py.worker.endings import Ending, Failed, Returned, ended_by, ended_with, failed, refused
from skuld_py.worker.outcome import error_of, said
from skuld_py.worker.registry import lookup, rebuilt, registered, traits_of_function
from skuld_py.worker.traits import Traits
from skuld_py.worker.vitals import overran

EXIT_S = 2.0
TIMER_S_MAX = 10_000_000.0
"""What every kernel's timer takes; a longer limit is none."""
AGAIN_S = 0.25
"""A function that swallows the order to stop gets it again, as long as the process is there."""

FAULTS = "PYTHON_FAULTHANDLER_DIR"
LATE = "Timeout ("
"""How the last words of a process begin that was ended for an item's time."""

Item = tuple[bytes, float | None]
"""A payload, and how long it may take in seconds."""


@attrs.frozen
class Order:
    """What a job is to do with its items, in at most ``parts_max`` parts: call the function ``name`` of
    ``module``."""

    name: str
    module: str
    parts_max: int
    budget_s: float
    bytes_max: int


@attrs.frozen
class Done:
    """How each item of a part ended, None for one that was not begun; and how long they took together."""

    endings: tuple[Ending | None, ...]
    busy_s: float


class _TimedOut(BaseException):
    """An item has run for too long."""


def run_part(order: Order, items: Iterable[Item]) -> Iterator[Done]:
    """Run all items of a part. Gives one value; as Spark wants it, in an iterator."""
    began = monotonic_s()
    try:
        function = _found(order)
    except Exception as error:  # the module is not here, or cannot be imported here
        broken = Failed(said(error), error_of(error))
        yield Done(tuple(broken for _ in items), 0.0)
        return
    traits = traits_of_function(function)
    started = monotonic_s()
    endings: list[Ending | None] = []
    size = 0
    for payload, timeout_s in items:
        if endings and (size >= order.bytes_max or monotonic_s() - began >= order.budget_s):
            endings.append(None)
            continue
        ending = _ending(function, traits, payload, timeout_s)
        endings.append(ending)
        if isinstance(ending, Returned):
            size += len(ending.result)
    yield Done(tuple(endings), monotonic_s() - started)


def _found(order: Order) -> Callable[..., Any]:
    if order.name not in registered():
        import_module(order.module)
    return lookup(order.name)


def _ending(function: Callable[..., Any], traits: Traits, payload: bytes, timeout_s: float | None) -> Ending:
    try:
        call = rebuilt(function, decode_call(payload))
    except Refused as problem:
        return refused(problem)
    except BaseException as error:  # a class of the application's makes its arguments
        return ended_by(error, traits)
    try:
        if timeout_s is None or timeout_s > TIMER_S_MAX:
            value = function(*call.args, **call.kwargs)
        else:
            with _limited(timeout_s):
                value = function(*call.args, **call.kwargs)
    except _TimedOut:
        return failed(overran(timeout_s))
    except BaseException as error:  # also SystemExit: an item does not end the part
        return ended_by(error, traits)
    return ended_with(value)


def _last_words() -> str:
    """What Spark reads when this process has crashed: a file by its number, where ``FAULTS`` names a directory."""
    directory = os.environ.get(FAULTS)
    return os.devnull if directory is None else os.path.join(directory, str(os.getpid()))


@contextlib.contextmanager
def _limited(timeout_s: float) -> Iterator[None]:
    """Interrupt the block after this time; where signals arrive, in the main thread of a process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_armed = True

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if is_armed:
            raise _TimedOut

    before = signal.signal(signal.SIGALRM, interrupt)
    with open(_last_words(), "a") as file:
        try:
            faulthandler.dump_traceback_later(timeout_s + EXIT_S, exit=True, file=file)
            try:
                signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)  # may be over before it returns
                yield
            finally:
                is_armed = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
