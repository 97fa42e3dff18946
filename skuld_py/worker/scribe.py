"""The one thread that writes for a worker: log entries, completions with results, failures with errors, releases.

Invariants:

* A claim is concluded only after its whole log is acknowledged: a reader that sees the end sees what was said
  before it. The result travels in the completion and the error in the failure, so neither is there without the
  other.
* A claim that is lost is never completed. When its completion had been sent and no answer came, the cluster
  is asked what became of it before the claim is called lost.
* What may be retried is retried until the claim is lost. A log that is refused for good makes the run a failure. A
  checkpoint that is refused does not: the task would begin anew, as it must anyway where there is none.
* Runs that end together are concluded in one request of each kind. Their logs are a request each, ``LOGS_AT_ONCE``
  of them under way at a time: the nodes write those that meet there to disk together.
* The retry policy and the leader say when a failed task is tried again: nothing pauses here, and no lease is kept
  for it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import partial

import attrs

from skuld_py.client.client import ClaimName, Client
from skuld_py.client.steady import steady_s, wall_ms
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.worker.helped import Helped
from skuld_py.worker.journal import FLUSH_S
from skuld_py.worker.lease import Key
from skuld_py.worker.run import Run

RETRY_S = 1.0
LOGS_AT_ONCE = 16
PASSING = ("unreachable", "no_leader", "unavailable", "busy", "not_ready")

_log = logging.getLogger(__name__)


class Way(Enum):
    """How a claim is concluded."""

    COMPLETED = "completed"
    FAILED = "failed"
    DIED = "died"
    SNOOZED = "snoozed"
    RELEASED = "released"


@attrs.define(eq=False)
class _Ending:
    """A run that is over and what is still to be written of it: its result, its error, or why it is given back."""

    run: Run
    way: Way
    entry: bytes = b""
    reason: str = ""
    delay_ms: int = 0
    is_closed: bool = False
    was_sent: bool = False


class Scribe(Helped):
    """Writes for all runs of a worker, by a client of its own.

    ``on_done`` is told the ends of runs: completed, failed, snoozed, released or lost.
    """

    def __init__(self, client: Client, on_done: Callable[[list[Run], str], None]) -> None:
        self._client = client
        self._on_done = on_done
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._say: Callable[[Callable[[], None]], None] = self._inbox.put
        self._running: dict[Key, Run] = {}
        self._endings: dict[Key, _Ending] = {}
        self._broken: dict[Key, str] = {}
        self._flush_at = 0.0
        self._retry_at = 0.0
        self._is_closing = False
        self._hands = ThreadPoolExecutor(LOGS_AT_ONCE, "scribe")
        self._thread = self._helper("scribe", self._serve)

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

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """The ends that are told within the block are written together."""
        told: list[Callable[[], None]] = []
        self._say = told.append
        try:
            yield
        finally:
            self._say = self._inbox.put
            self._say(partial(_call_each, told))

    def complete(self, run: Run, result: bytes) -> None:
        """Record the completion and what came of it."""
        self._say(partial(self._end, _Ending(run, Way.COMPLETED, result)))

    def fail(self, run: Run, error: bytes, *, is_final: bool = False) -> None:
        """Record that this attempt failed, and why; and if that is final, that its task is dead."""
        self._say(partial(self._end, _Ending(run, Way.DIED if is_final else Way.FAILED, error)))

    def snooze(self, run: Run, delay_ms: int) -> None:
        """Give the claim back for later."""
        self._say(partial(self._end, _Ending(run, Way.SNOOZED, delay_ms=delay_ms)))

    def release(self, run: Run, reason: str) -> None:
        """Record why in the log, then give the claim back."""
        self._say(partial(self._end, _Ending(run, Way.RELEASED, reason=reason)))

    def forget(self, run: Run) -> None:
        """The claim is lost: write nothing more of it."""
        self._inbox.put(partial(self._forget, run))

    # -- the thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        with self._client, self._hands:
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
                self._flush_all(self._running.values())
            if self._endings and now >= self._retry_at:
                self._write_endings(now)

    def _wait_s(self) -> float:
        due = [self._flush_at] if self._running else []
        due += [self._retry_at] if self._endings else []
        return max(0.0, min(due, default=steady_s() + FLUSH_S) - steady_s())

    def _end(self, ending: _Ending) -> None:
        self._running.pop(ending.run.key, None)
        self._endings[ending.run.key] = ending

    def _forget(self, run: Run) -> None:
        self._running.pop(run.key, None)
        self._broken.pop(run.key, None)
        ending = self._endings.pop(run.key, None)
        if ending is not None:
            was_completed = ending.was_sent and self._is_completed(run)
            self._on_done([run], "completed" if was_completed else "lost")

    def _close(self) -> None:
        self._is_closing = True

    def _write_endings(self, now: float) -> None:
        """Write the logs of all first; then the ends, each kind in one request."""
        for ending in list(self._endings.values()):
            if ending.run.context.is_past:
                self._forget(ending.run)
            elif not ending.is_closed:
                ending.is_closed = True
                ending.run.context.journal.close(wall_ms(), ending.reason)
        if not self._flush_all(ending.run for ending in self._endings.values()):
            return
        for ending in self._endings.values():
            if ending.run.key in self._broken and ending.way is Way.COMPLETED:
                ending.way, ending.entry = Way.FAILED, self._broken[ending.run.key].encode()
        kinds: dict[tuple[Way, int], list[_Ending]] = {}
        for ending in self._endings.values():
            kinds.setdefault((ending.way, ending.delay_ms), []).append(ending)
        for (way, delay_ms), endings in kinds.items():
            self._write(now, way, delay_ms, endings)

    def _flush_all(self, runs: Iterable[Run]) -> bool:
        """Write what there is of these logs; False when the cluster cannot take it now. A log that cannot be
        written (another process wrote into it, or it is full) is broken, and makes a completion a failure."""
        now, at_ms = steady_s(), wall_ms()
        unwritten = [run for run in runs if run.key not in self._broken
                     and run.context.journal.take(now, at_ms) is not None]
        if len(unwritten) < 2:
            return all(map(self._flush, unwritten))
        return all([*self._hands.map(self._flush, unwritten)])

    def _flush(self, run: Run) -> bool:
        journal = run.context.journal
        while run.key not in self._broken:
            batch = journal.take(steady_s(), wall_ms())
            if batch is None:
                break
            try:
                self._client.update(ClaimName(*run.key), batch.entries, **batch.said)
            except SkuldError as error:
                if batch.checkpoint is not None and (error.code == "fenced" or not is_passing(error)):
                    _log.warning("task %s sets no checkpoint any more: %s", run.claim.id, error)
                    journal.forgo_checkpoint()
                    continue
                if is_passing(error):
                    self._retry_at = steady_s() + RETRY_S
                    _log.warning("the log of task %s is not written yet: %s", run.claim.id, error)
                    return False
                _log.error("the log of task %s cannot be written: %s", run.claim.id, error)
                self._broken[run.key] = f"the task's log cannot be written: {error}"
                return True
            journal.confirm()
        return True

    def _write(self, now: float, way: Way, delay_ms: int, endings: list[_Ending]) -> None:
        for ending in endings:
            ending.was_sent = True
        claims = [ClaimName(*ending.run.key) for ending in endings]
        try:
            held = self._conclude(way, delay_ms, claims, [ending.entry for ending in endings])
        except SkuldError as error:
            _log.warning("%d claims are not %s yet: %s", len(endings), way.value, error)
            self._retry_at = now + RETRY_S
            return
        done: dict[str, list[Run]] = {}
        for ending, is_held in zip(endings, held, strict=True):
            if is_held is None:
                self._retry_at = now + RETRY_S
                continue
            del self._endings[ending.run.key]
            self._broken.pop(ending.run.key, None)
            done.setdefault(way.value if is_held else "lost", []).append(ending.run)
        for what, runs in done.items():
            self._on_done(runs, what)

    def _conclude(self, way: Way, delay_ms: int, claims: list[ClaimName],
                  entries: list[bytes]) -> Sequence[bool | None]:
        """Whether each claim could be concluded; None: unknown, ask again."""
        if way in (Way.FAILED, Way.DIED):
            return self._client.fail_many(claims, entries, final=way is Way.DIED)
        if way is Way.SNOOZED:
            return self._client.snooze_many(claims, delay_ms / 1000)
        if way is Way.COMPLETED:
            self._client.complete_many(claims, entries)
        else:
            self._client.release(*claims)
        return [True] * len(claims)

    def _is_completed(self, run: Run) -> bool:
        try:
            return self._client.get(run.claim.id).completed_token == run.claim.token
        except SkuldError:
            return False


def _call_each(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def is_passing(error: SkuldError) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, Uncertain) or (isinstance(error, Refused) and error.code in PASSING)
