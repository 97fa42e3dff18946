"""One claim being run: a thread that calls the task's function, and the order to stop it.

A thread per run, not a pool: the order to stop arrives as an exception at some later moment, and in a thread
that had gone on to another task it would hit the wrong one.

Invariants:

* A run ends once, with one outcome, whatever the function raises.
* The order to stop is given at most once. It can arrive anywhere in the thread, also after the function has
  returned, so all code behind the function expects it, and does nothing that matters to others.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import attrs

from skuld_py.calls.payloads import Call, decode_call
from skuld_py.calls.results import encode_result
from skuld_py.calls.sight import call_line
from skuld_py.client.client import Claim
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.lease import Key
from skuld_py.worker.middleware import middleware_added, surround
from skuld_py.worker.outcome import error_of, said
from skuld_py.worker.registry import function_of, rebuilt
from skuld_py.worker.tracing import spanned

CALL_CHARS = 80


class Engine(Protocol):
    """What runs functions; Spark, outside of tests."""

    def describe(self) -> str:
        """What it is and where it runs, for people; of one that runs, how it is found elsewhere."""

    def start(self) -> None:
        """Be ready for calls."""

    def restart(self) -> None:
        """Begin anew; calls that are under way fail."""

    def stop(self, grace_s: float) -> None:
        """End, and everything that runs in it."""

    @property
    def process_id(self) -> int | None:
        """The process that runs its jobs, None where there is none of its own: to be killed with all of them."""

    def is_alive(self) -> bool:
        """Whether it answers; gives up soon."""

    def is_gone(self) -> bool:
        """Whether it ended and will never answer again."""

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        """The function's result; its jobs belong to ``context.name``."""

    def cancel(self, name: str) -> bool:
        """End the jobs of a call, and refuse its later ones; False when that is not certain."""

    def is_swept(self) -> bool:
        """End the jobs that belong to no call that runs; False when it is not certain that they ended."""

    def counts(self, name: str) -> dict[str, Any] | None:
        """How far the jobs of a call are; None when there is nothing to say."""


@attrs.frozen
class Returned:
    """The function returned; this is its result."""

    result: bytes


@attrs.frozen
class Failed:
    """The function raised: its words for people, and all that is kept of it. ``is_final``: it cannot succeed,
    however often it is tried; only what is wrong with a call or a result is certain enough for that."""

    words: str
    error: bytes
    is_engine_alive: bool = True
    is_final: bool = False


@attrs.frozen
class Stopped:
    """The function obeyed the order to stop."""


Outcome = Returned | Failed | Stopped


class Run:
    """A claim, its context and its thread."""

    def __init__(self, claim: Claim, context: TaskContext, engine: Engine,
                 on_end: Callable[[Run, Outcome], None], on_limit: Callable[[Key, float], None]) -> None:
        self.claim = claim
        self.context = context
        self.key: Key = (claim.id, claim.token, claim.proof)
        self.started_s = time.monotonic()
        self.given_up: str | None = None
        """Why this worker gave the claim up, although it is not lost."""
        self.is_lost = False
        self.deaths: int | None = None
        """How many engines died under it, see ``blame``; None until that is known."""
        self.fault: str | None = None
        """Why it has failed, if it is given up for a fault of its own."""
        self.timeout_at: float | None = None
        """By the steady clock, when it has run for too long."""
        self._engine = engine
        self._on_end = on_end
        self._on_limit = on_limit
        self._thread = threading.Thread(target=self._main, name=f"task {claim.id}", daemon=True)
        self._lock = threading.Lock()
        self._may_be_interrupted = True

    @property
    def age_s(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.started_s

    @cached_property
    def said(self) -> str:
        """The task in a line of the log: its id, and the call."""
        line = call_line(self.claim.payload, CALL_CHARS)
        return f"{self.claim.id} {line}" if line else str(self.claim.id)

    @property
    def is_running(self) -> bool:
        """Whether its thread has not ended."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Call the function, in a thread of its own."""
        self.started_s = time.monotonic()
        self._thread.start()

    def interrupt(self) -> None:
        """Raise ``ClaimLost`` where the function stands; in a call into C, when that returns."""
        with self._lock:  # a thread that has ended lends its number to another one
            thread = self._thread.ident
            if thread is not None and self._may_be_interrupted:
                self._may_be_interrupted = False
                set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
                set_exception(ctypes.c_ulong(thread), ctypes.py_object(ClaimLost))

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _main(self) -> None:
        outcome: Outcome | None = None
        for _ in range(2):  # the second time, the order to stop has arrived and will not come again
            try:
                if outcome is None:
                    outcome = self._outcome()
                with self._lock:
                    self._may_be_interrupted = False
                self._on_end(self, outcome)
                return
            except ClaimLost:
                outcome = outcome or Stopped()

    def _outcome(self) -> Outcome:
        try:
            call = decode_call(self.claim.payload)
            function = function_of(call)
            call = rebuilt(function, call)
            timeout_s: float | None = vars(function)["task_timeout_s"]
        except Refused as error:
            return Failed(said(error), error_of(error), is_final=True)
        if timeout_s is not None:
            self.timeout_at = steady_s() + timeout_s
            self._on_limit(self.key, self.timeout_at)
        try:
            value = self._engine.call(spanned(surround(function, call, middleware_added()), call),
                                      self.context, call)
        except ClaimLost:
            return Stopped()
        except BaseException as error:  # also SystemExit: a task does not end the worker
            return Failed(said(error), error_of(error), self._engine.is_alive())
        try:
            return Returned(encode_result(value))
        except Refused as error:
            return Failed(said(error), error_of(error), is_final=True)
