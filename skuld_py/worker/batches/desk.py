"""The batches of one worker: which runs make the next ones, and which are under way. In the worker's thread.

Invariants:

* Of one function and queue there is one batch at a time, so its batches run in the order of their claims; while
  one runs, the claims of the next come and those of the one before are written.
* A batch takes one slot. Slots go to batches and to other runs in the order in which they came: the first run of a
  batch waits for its turn like any other, and those behind it come along.
* A run whose engine died before is admitted alone (``blame``), so it is a batch of its own.
* How far a batch is, is told once for all of its tasks, with what the worker says of itself (``attendance``), and
  only of one that takes long. Rejected: an entry in the log of each task; they are a thousand, and on disks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.client.attending import BatchStatus
from skuld_py.client.steady import monotonic_s
from skuld_py.worker.assignment import Kind
from skuld_py.worker.batches.batch import Batch, Outcome
from skuld_py.worker.batches.part import Order
from skuld_py.worker.batches.sizes import BYTES_MAX, LEASE_SHARE, Sizes
from skuld_py.worker.endings import Ending, Stopped
from skuld_py.worker.lease import Key
from skuld_py.worker.run import Engine, Run

TOLD_S = 2.0
"""A batch that is older is told of, and again after as long, later after a thirtieth of its age."""


class Desk:
    """``on_outcome`` is called in threads of the batches."""

    def __init__(self, engine: Engine, lease_s: float, on_outcome: Callable[[Batch, Outcome], None]) -> None:
        self._engine = engine
        self._lease_s = lease_s
        self._on_outcome = on_outcome
        self._sizes: dict[Kind, Sizes] = {}
        self._batches: dict[Kind, Batch] = {}
        self.on_news: Callable[[], None] = lambda: None
        """Called in the thread of ``look`` when it is time to tell how far they are."""
        self._told: tuple[str, ...] = ()
        self._tell_at = 0.0

    def look(self) -> None:
        """See how far the batches are. Called each second, in a thread that may wait for the engine."""
        now = monotonic_s()
        long = [batch for batch in tuple(self._batches.values()) if batch.age_s >= TOLD_S]
        for batch in long:
            batch.look()
        names = tuple(batch.name for batch in long)
        if names != self._told or (names and now >= self._tell_at):
            self._told = names
            self._tell_at = now + max(TOLD_S, *(batch.age_s / 30 for batch in long), 0.0)
            self.on_news()

    @property
    def statuses(self) -> tuple[BatchStatus, ...]:
        """How far each batch is. From any thread."""
        return tuple(batch.status for batch in tuple(self._batches.values()))

    def patience_s(self, run: Run) -> float:
        """How much longer a run may wait for its turn than another: its kind may have a batch under way."""
        return 0.0 if run.kind is None else self._lease_s / LEASE_SHARE

    @property
    def beyond(self) -> int:
        """How many of the running have no slot of their own."""
        return sum(len(batch.runs) - 1 for batch in self._batches.values())

    def lots(self, ready: Sequence[Run], slots: int) -> list[list[Run]]:
        """What may start now in so many slots, of runs in their order: single ones, and those of a batch."""
        made: list[list[Run]] = []
        lots: dict[Kind, _Lot] = {}
        for run in ready:
            if len(made) >= slots and not lots:
                break
            kind = run.kind
            if kind is not None and kind in lots:
                lots[kind].add(run)
            elif len(made) < slots and (kind is None or kind not in self._batches):
                made.append([run])
                if kind is not None:
                    lots[kind] = _Lot(made[-1], self._sizes_of(kind).limit)
        return made

    def begin(self, runs: Sequence[Run]) -> None:
        """Start a batch of these."""
        kind = runs[0].kind
        assert kind is not None
        sizes = self._sizes_of(kind)
        order = Order(kind.name, kind.module, sizes.parts(len(runs)), sizes.budget_s, BYTES_MAX)
        batch = self._batches[kind] = Batch(kind, runs, self._engine, order, self._on_outcome)
        for run in runs:
            run.join_batch(batch)
        batch.start()

    def take(self, batch: Batch, outcome: Outcome, running: dict[Key, Run],
             settle: Callable[[Run, Ending], None]) -> list[Run]:
        """Take what has ended, or was left, out of what runs, and settle what has ended; gives the latter."""
        held = [(run, ending) for run, ending in outcome.ended if run.key in batch.runs]
        held += [(run, Stopped()) for run in outcome.left if run.key in batch.runs and run.fate is not None]
        for run, ending in held:
            settle(run, ending)
            del running[run.key]
            batch.note(run, ending)
        left = [run for run in outcome.left if run.key in batch.runs]
        for run in left:
            del running[run.key]
            batch.leave(run)
        return left

    def learn(self, batch: Batch, outcome: Outcome) -> int:
        """How long a job of this batch's kind took; how many the largest may have of those that come next."""
        if outcome.parts:
            self._sizes_of(batch.kind).note(len(outcome.ended), outcome.wall_s, outcome.busy_s, outcome.parts)
        return max(self._sizes_of(kind).limit for kind in [batch.kind, *self._batches])

    def end(self, batch: Batch) -> bool:
        """A batch is over: the next of its kind may begin. False when it was over before."""
        return self._batches.get(batch.kind) is batch and bool(self._batches.pop(batch.kind))

    def _sizes_of(self, kind: Kind) -> Sizes:
        return self._sizes.setdefault(kind, Sizes(kind.most, self._lease_s))


class _Lot:
    """A batch to be, while there is room in it."""

    def __init__(self, runs: list[Run], limit: int) -> None:
        self._runs = runs
        self._limit = limit
        self._bytes = len(runs[0].claim.payload)

    def add(self, run: Run) -> None:
        """Take a run along, if it fits."""
        size = self._bytes + len(run.claim.payload)
        if len(self._runs) < self._limit and size <= BYTES_MAX:
            self._runs.append(run)
            self._bytes = size
