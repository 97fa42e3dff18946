"""The one thread that writes for a worker: log entries, completions, releases.

Invariants:

* A claim is completed only after its whole log, the result last, is acknowledged: whoever sees the completion
  finds the result.
* A claim that is lost is never completed. When its completion had been sent and no answer came, the cluster
  is asked what became of it before the claim is called lost.
* What may be retried is retried until the claim is lost; what is refused for good ends in a release.
* Runs that end together are completed in one request.
* A failed task is released only after a pause that doubles with each of its claims, and its lease is kept
  meanwhile, or a task that always fails would be claimed again at once, for ever.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs

from skuld_py.client.client import ClaimName, Client
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.worker.journal import FLUSH_S
from skuld_py.worker.lease import Key
from skuld_py.worker.run import Run

RETRY_S = 1.0
BACK_OFF_S = 1.0
BACK_OFF_S_MAX = 60.0
PASSING = ("unreachable", "no_leader", "unavailable", "busy", "not_ready")

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class _Ending:
    """A run that is over and what is still to be written of it."""

    run: Run
    kind: str
    fields: dict[str, Any]
    completes: bool
    due_s: float = 0.0
    is_closed: bool = False
    was_sent: bool = False


def back_off_s(attempt: int) -> float:
    """The pause before a task that failed in this attempt is released."""
    return min(BACK_OFF_S_MAX, BACK_OFF_S * 2.0 ** min(attempt - 1, 10))


class Scribe:
    """Writes for all runs of a worker, by a client of its own.

    ``on_done`` is told the end of each run: completed, released or lost.
    """

    def __init__(self, client: Client, on_done: Callable[[Run, str], None]) -> None:
        self._client = client
        self._on_done = on_done
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running: dict[Key, Run] = {}
        self._endings: dict[Key, _Ending] = {}
        self._broken: set[Key] = set()
        self._flush_at = 0.0
        self._retry_at = 0.0
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="scribe", daemon=True)

    @property
    def held(self) -> int:
        """Runs that are over and not yet written."""
        return len(self._endings)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Write what is left and end; whether that succeeded in time."""
        self._inbox.put(self._close)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def begin(self, run: Run) -> None:
        """Keep this run's log up to date."""
        self._inbox.put(partial(self._running.__setitem__, run.key, run))

    def complete(self, run: Run, value: Any) -> None:
        """Record the result, then the completion."""
        self._inbox.put(partial(self._end, _Ending(run, "result", {"value": value}, completes=True)))

    def release(self, run: Run, kind: str, **fields: str) -> None:
        """Record why, then give the claim back at once."""
        self._inbox.put(partial(self._end, _Ending(run, kind, fields, completes=False)))

    def release_later(self, run: Run, pause_s: float, kind: str, **fields: str) -> None:
        """Record why now, and give the claim back after a pause."""
        due_s = steady_s() + pause_s
        self._inbox.put(partial(self._end, _Ending(run, kind, fields, completes=False, due_s=due_s)))

    def forget(self, run: Run) -> None:
        """The claim is lost: write nothing more of it."""
        self._inbox.put(partial(self._forget, run))

    def hurry(self) -> None:
        """Release now what waits for its pause to end."""
        self._inbox.put(self._hurry)

    # -- the thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        with self._client:
            self._write_until_closed()

    def _write_until_closed(self) -> None:
        while not (self._is_closing and not self._endings):
            try:
                self._inbox.get(timeout=self._wait_s())()
                while not self._inbox.empty():
                    self._inbox.get_nowait()()
            except queue.Empty:
                pass
            now = steady_s()
            if now >= self._flush_at:
                self._flush_at = now + FLUSH_S
                for run in list(self._running.values()):
                    self._flush(run)
            if self._endings and now >= self._retry_at:
                self._write_endings(now)

    def _wait_s(self) -> float:
        due = [self._flush_at] if self._running else []
        due += [max(self._retry_at, ending.due_s if ending.is_closed else 0.0)
                for ending in self._endings.values()]
        return max(0.0, min(due, default=steady_s() + FLUSH_S) - steady_s())

    def _end(self, ending: _Ending) -> None:
        self._running.pop(ending.run.key, None)
        self._endings[ending.run.key] = ending

    def _forget(self, run: Run) -> None:
        self._running.pop(run.key, None)
        self._broken.discard(run.key)
        ending = self._endings.pop(run.key, None)
        if ending is not None:
            was_completed = ending.was_sent and self._is_completed(run)
            self._on_done(run, "completed" if was_completed else "lost")

    def _hurry(self) -> None:
        for ending in self._endings.values():
            ending.due_s = 0.0

    def _close(self) -> None:
        self._is_closing = True
        self._hurry()

    def _write_endings(self, now: float) -> None:
        """Logs of all first; then completions, and releases that are due, each in one request."""
        for ending in list(self._endings.values()):
            if now >= ending.run.context.deadline:
                self._forget(ending.run)
            elif not self._close_log(ending):
                return
        self._write(now, [e for e in self._endings.values() if e.completes], self._complete_many, "completed")
        self._write(now, [e for e in self._endings.values() if not e.completes and e.due_s <= now],
                    self._release_many, "released")

    def _close_log(self, ending: _Ending) -> bool:
        """Write the rest of a log and its last entry; False when the cluster cannot take it now.

        A log that cannot be written (somebody else wrote into it) has no result: the claim is given back.
        """
        if not ending.is_closed:
            ending.is_closed = True
            ending.run.context.journal.close(ending.kind, time.time_ns() // 1_000_000, **ending.fields)
        is_written = self._flush(ending.run)
        if ending.completes and ending.run.key in self._broken:
            ending.completes, ending.due_s = False, steady_s() + BACK_OFF_S_MAX
        return is_written

    def _flush(self, run: Run) -> bool:
        journal = run.context.journal
        while run.key not in self._broken:
            batch = journal.take(steady_s(), time.time_ns() // 1_000_000)
            if batch is None:
                break
            try:
                self._client.update(ClaimName(*run.key), batch.entries, seq=batch.seq)
            except SkuldError as error:
                if is_passing(error):
                    self._retry_at = steady_s() + RETRY_S
                    _log.warning("the log of task %s is not written yet: %s", run.claim.id, error)
                    return False
                _log.error("the log of task %s cannot be written: %s", run.claim.id, error)
                self._broken.add(run.key)
                return True
            journal.confirm()
        return True

    def _write(self, now: float, endings: list[_Ending], write: Callable[[list[ClaimName]], None],
               outcome: str) -> None:
        if not endings:
            return
        for ending in endings:
            ending.was_sent = True
        try:
            write([ClaimName(*ending.run.key) for ending in endings])
        except SkuldError as error:
            _log.warning("%d claims are not %s yet: %s", len(endings), outcome, error)
            self._retry_at = now + RETRY_S
            return
        for ending in endings:
            del self._endings[ending.run.key]
            self._broken.discard(ending.run.key)
            self._on_done(ending.run, outcome)

    def _complete_many(self, claims: list[ClaimName]) -> None:
        self._client.complete_many(claims)

    def _release_many(self, claims: Iterable[ClaimName]) -> None:
        self._client.release(*claims)

    def _is_completed(self, run: Run) -> bool:
        try:
            return self._client.get(run.claim.id).completed_token == run.claim.token
        except SkuldError:
            return False


def is_passing(error: SkuldError) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, Uncertain) or (isinstance(error, Refused) and error.code in PASSING)
