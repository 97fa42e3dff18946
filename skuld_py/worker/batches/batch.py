"""One batch under way: a thread that has Spark run its items as one job, or as several where one item takes its
Python process along.

Invariants:

* Each of its runs ends once, with an ending of its own, or is not begun and waits again.
* A job that fails says of an item only that it crashed, and only when it was alone in its job: its neighbours run
  again without it, and have their own endings.
* When the engine dies the batch is over: its runs are the engine's dead, as any that ran there (``blame``).
* The order to stop ends the batch as a whole. What becomes of a run is its fate's affair, as elsewhere.

What happens is told to the worker's thread in parts: items that are done are written while the rest still runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count

import attrs

from skuld_py.client.attending import BatchStatus
from skuld_py.client.steady import monotonic_s, wall_ms
from skuld_py.config import FUNCTION_CHARS
from skuld_py.worker.assignment import Kind
from skuld_py.worker.batches.halving import Halving
from skuld_py.worker.batches.part import LATE, Done, Item, Order
from skuld_py.worker.endings import Ending, Failed, Stopped, failed
from skuld_py.worker.lease import Key
from skuld_py.worker.outcome import said
from skuld_py.worker.run import Engine, Run
from skuld_py.worker.vitals import TIMEOUT

CRASHED = "crashed: the Python process that ran it ended (exit, fault, out of memory?), with no other item in it"
WORDS_CHARS_MAX = 300
_numbers = count(1)


@attrs.frozen
class Outcome:
    """What a job of a batch, or the end of the batch, brings: ``ended`` runs and those that were ``left``; the
    time of a job that ran well, in the words of ``Sizes.note``."""

    ended: Sequence[tuple[Run, Ending]]
    left: Sequence[Run] = ()
    is_over: bool = False
    wall_s: float = 0.0
    busy_s: float = 0.0
    parts: int = 0


class Batch:
    """Runs of one function and queue. ``on_outcome`` is called in its thread, the last time with ``is_over``."""

    def __init__(self, kind: Kind, runs: Sequence[Run], engine: Engine, order: Order,
                 on_outcome: Callable[[Batch, Outcome], None]) -> None:
        self.runs: dict[Key, Run] = {run.key: run for run in runs}
        """Those that have not ended; the worker's thread takes them out."""
        self.kind = kind
        self.order = order
        self._size = len(runs)
        self._tally: dict[str, int] = {}
        self._first_words = ""
        self.name = f"{runs[0].context.name}:batch-{next(_numbers)}"
        """The group of its jobs, which no other batch ever has."""
        self.started_s = monotonic_s()
        self._since_ms = wall_ms()
        self._parts = (0, 0)
        self._engine = engine
        self._on_outcome = on_outcome
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(list(runs),), name=f"batch {order.name}",
                                        daemon=True)

    @property
    def is_wanted(self) -> bool:
        """Whether it holds a run of which nothing is decided."""
        return any(run.fate is None for run in self.runs.values())

    @property
    def age_s(self) -> float:
        """How long it has been running."""
        return monotonic_s() - self.started_s

    @property
    def status(self) -> BatchStatus:
        """How far it is, for all of its tasks at once. From any thread."""
        ended = self._size - min(self._size, len(self.runs))
        return BatchStatus(self.kind.queue, self.order.name[:FUNCTION_CHARS], self._size, ended, self._since_ms,
                           *self._parts)

    def look(self) -> None:
        """Ask the engine how far its jobs are, those before a crash among them."""
        done, known = (self._engine.counts(self.name) or {}).get("tasks", (0, 0))
        self._parts = done, known

    @property
    def said(self) -> str:
        """What came of it, in a line of the log."""
        ends = ", ".join(f"{count} {what}" for what, count in self._tally.items()) or "none begun"
        words = self._first_words and f" ({self._first_words})"
        return f"batch of {self._size} {self.order.name} took {self.age_s:.2f} s: {ends}{words}"

    def note(self, run: Run, ending: Ending) -> None:
        """A run of it has ended, and its fate is decided if it has one. In the worker's thread."""
        del self.runs[run.key]
        what = _word(ending) if run.fate is None else run.fate.lot.value
        self._tally[what] = self._tally.get(what, 0) + 1
        if not self._first_words and what in ("failed", "given back"):
            words = ending.words if run.fate is None and isinstance(ending, Failed) else run.fate_words
            self._first_words = f"the first: {run.said}: {words}"[:WORDS_CHARS_MAX]

    def leave(self, run: Run) -> None:
        """A run of it was not begun, and is in no batch now. In the worker's thread."""
        del self.runs[run.key]
        run.batch = None
        self._tally["left for the next"] = self._tally.get("left for the next", 0) + 1

    def start(self) -> None:
        """Begin with all of it."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no other job. Who stops it cancels the one that runs."""
        self._stopped.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _main(self, runs: list[Run]) -> None:
        halving = Halving(runs)
        last: Sequence[tuple[Run, Ending]] = ()
        if (missing := self._engine.missing) is not None:
            self._on_outcome(self, Outcome([(run, failed(missing)) for run in runs], is_over=True))
            return
        while not self._stopped.is_set() and (group := halving.take()):
            began = monotonic_s()
            try:
                outcome = self._outcome(group, began)
            except BaseException as error:
                words = said(error)  # while the JVM is there to be asked
                if self._stopped.is_set() or not self._engine.is_alive():
                    ending = Stopped() if self._stopped.is_set() else Failed(words, b"", is_engine_alive=False)
                    last = [(run, ending) for run in [*group, *halving.left]]
                    break
                culprit = halving.crashed(group)
                if culprit is not None:
                    self._on_outcome(self, Outcome([(culprit, _crash(words))]))
            else:
                self._on_outcome(self, outcome)
        else:
            last = [(run, Stopped()) for run in halving.left]
        self._on_outcome(self, Outcome(last, is_over=True))


    def _outcome(self, group: Sequence[Run], began: float) -> Outcome:
        """Run these as one job."""
        flow = group[0].flow
        early = {} if flow is None else flow.begin(group)
        going = [run for run in group if run.key not in early] if early else group
        done = self._engine.call_many(self.name, self.order, [_item(run) for run in going]) if going else ()
        outcome = _outcome(going, done, monotonic_s() - began)
        if flow is None:
            return outcome
        refused = [(run, early[run.key]) for run in group if run.key in early]
        return attrs.evolve(outcome, ended=[*flow.end(outcome.ended), *refused])


def _word(ending: Ending) -> str:
    return "failed" if isinstance(ending, Failed) else type(ending).__name__.lower()


def _item(run: Run) -> Item:
    return run.claim.payload, run.timeout_s


def _crash(words: str) -> Failed:
    first = TIMEOUT if LATE in words else CRASHED
    return Failed(first, f"{first}\n{words}".encode("utf-8", "backslashreplace"))


def _outcome(group: Sequence[Run], done: Sequence[Done], wall_s: float) -> Outcome:
    endings = [ending for part in done for ending in part.endings]
    pairs = list(zip(group, endings, strict=True))
    return Outcome([(run, ending) for run, ending in pairs if ending is not None],
                   [run for run, ending in pairs if ending is None],
                   wall_s=wall_s, busy_s=sum(part.busy_s for part in done), parts=len(done))
