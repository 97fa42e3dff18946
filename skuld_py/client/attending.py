"""The verbs about workers: one says that it is there, and who asks is told which are.

A report goes to the node that took the one before, as long as that answers (``pursuit``): so one node knows of a
worker, and not each in turn.
"""

from __future__ import annotations

import attrs

from skuld_py.client.asking import Work, ask, verb
from skuld_py.config import BATCHES_MAX, REPORT_LEASE_MS_MAX
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.seats import Seat

LEASE_S_MAX = REPORT_LEASE_MS_MAX / 1000


@attrs.frozen
class BatchStatus:
    """``tasks`` tasks of a batched function that a worker runs together. ``ended``: of them; ``parts_done``: of
    the ``parts`` of all its Spark jobs so far, as far as Spark has said; after a crash there are several jobs."""

    queue: str
    function: str
    tasks: int
    ended: int
    since_ms: int
    parts_done: int = 0
    parts: int = 0


@attrs.frozen
class WorkerStatus:
    """A worker that is there. ``name``: the holder of its claims; ``key``: the name of its key, empty without
    keys; ``queues``: the weight of each; ``spark``: its release, master and application, empty before it starts;
    ``running`` and ``claimed``: its tasks, ``age_s`` seconds ago, when it reported to ``node``. ``takes_seats``:
    it works on steps of workflows, such as need no other ``tags`` than these. ``batches``: those under way."""

    name: str
    key: str
    host: str
    slots: int
    queues: dict[str, int]
    release: str
    spark: str
    since_ms: int
    running: int
    claimed: int
    node: str = ""
    age_s: float = 0.0
    takes_seats: bool = False
    tags: tuple[str, ...] = ()
    batches: tuple[BatchStatus, ...] = ()


@attrs.frozen
class Workers:
    """``workers`` by name. ``missing``: nodes that did not answer in time; their workers are not among them."""

    workers: tuple[WorkerStatus, ...]
    missing: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """How many tasks they run at once, all together."""
        return sum(worker.slots for worker in self.workers)


@attrs.frozen
class WorkerSeats:
    """The seats of a worker. ``seated`` names them: the same seats have the same number, none have 0."""

    seats: tuple[Seat, ...] = ()
    seated: int = 0


class Attending:
    """The verbs about workers."""

    @verb
    def report(self, worker: WorkerStatus, lease_s: float) -> Work[None]:
        """Say for a worker that it is there for so many seconds from now, or with 0, that it is not any more."""
        yield from ask(m.Reported, m.Report(0, _lease_ms(lease_s), (_row(worker),)))

    @verb
    def take_seats(self, worker: WorkerStatus, lease_s: float, *, wait_s: float = 0,
                   seated: int = 0) -> Work[WorkerSeats]:
        """Report, as ``report`` does, and be told which steps of workflows the worker's slots serve: after
        ``wait_s`` at the latest, or as soon as the seats are others than those that ``seated`` names."""
        message = m.Report(0, _lease_ms(lease_s), (_row(worker),), min(_lease_ms(wait_s), REPORT_LEASE_MS_MAX),
                           seated)
        told = (yield from ask(m.Reported, message, wait_s=wait_s)).message
        return WorkerSeats(tuple(Seat(row.workflow, row.step, row.kind, row.count, row.fence)
                                 for row in told.seats), told.seated)

    @verb
    def workers(self) -> Work[Workers]:
        """The workers that are there: those that said so within half a minute, and did not say that they stop."""
        found: dict[tuple[str, str], WorkerStatus] = {}
        missing: dict[str, None] = {}
        behind, is_over = "", False
        while not is_over:
            page = (yield from ask(m.Mustered, m.Muster(0, behind))).message
            found.update(((row.holder, row.key), _status(row)) for row in page.workers)
            missing.update(dict.fromkeys(page.missing))
            behind, is_over = page.last, page.last <= behind
        return Workers(tuple(found.values()), tuple(sorted(missing)))


def _row(worker: WorkerStatus) -> m.WorkerRow:
    if not isinstance(worker, WorkerStatus):
        raise Refused("bad_worker", f"worker: {str(worker)[:40]!r} is no WorkerStatus")
    return m.WorkerRow(worker.name, worker.host[:255], worker.slots, tuple(worker.queues),
                       columns.pack_u64([*worker.queues.values()]), worker.release[:64], worker.spark[:255],
                       worker.since_ms, worker.running, worker.claimed, "", "", 0, worker.takes_seats, worker.tags,
                       tuple(m.BatchRow(*attrs.astuple(batch)) for batch in worker.batches[:BATCHES_MAX]))


def _lease_ms(lease_s: float) -> int:
    if type(lease_s) not in (int, float) or not 0 <= lease_s <= LEASE_S_MAX:
        raise Refused("bad_lease", f"lease_s: {str(lease_s)[:40]} is not between 0 and {LEASE_S_MAX:g}")
    return round(lease_s * 1000)


def _status(row: m.WorkerRow) -> WorkerStatus:
    weights = dict(zip(row.queues, columns.unpack_u64(row.weights), strict=False))
    return WorkerStatus(row.holder, row.key, row.host, row.slots, weights, row.release, row.spark, row.since_ms,
                        row.running, row.claimed, row.node, row.age_ms / 1000, row.takes_seats, row.tags,
                        tuple(BatchStatus(*attrs.astuple(batch)) for batch in row.batches))
