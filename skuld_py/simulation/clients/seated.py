"""A worker that takes seats of workflows, as the library's do: it reports, is told its seats, and claims by them.

Its report waits at its node until its seats are others; another node it asks only when that one does not answer.
It claims through any node, by the fence it was told, and knows nothing of newer seats until it is told. It comes
and goes, falls silent with a lease, and goes on claiming for a while by what it knew.

Judged at once: no answer gives it more seats than it said it has slots.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model import messages as m
from skuld_py.model.seats import INPUT, OUTPUT
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.submitter import ABLE, Submitter
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.history import Hold, Operation
from skuld_py.simulation.options import Options
from skuld_py.workflow.definition.names import SEAL, queue_of

LEASE_MS = (1_500, 4_000)
WAIT_MS = (0, 200, 1_000)
PAUSE_MS = 50
AWAY_MS = 3_000
GOODBYE, SILENCE, MOVE, RESIZE = 0.04, 0.03, 0.05, 0.05
"""Shares of reports after which it is away for a while, with a goodbye or without; of those that go to another
node; and of those that say another number of slots."""
SEATLESS = 0.03
"""Share of claims that show no seat."""
SEAL_MS = 300
CALM_MS = 100
BATCH = 5
"""Segments that a slot takes together, once all is calm."""


class Seated:
    """One worker. ``tags``: what its slots can do."""

    def __init__(self, client: Client, options: Options, submitter: Submitter, tags: tuple[str, ...]) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._submitter = submitter
        self._tags = tags
        self._slots = self._random.randint(1, 4)
        self._node = ""
        self._seats: tuple[m.SeatRow, ...] = ()
        self._seated = 0
        self._worker = Worker(client, options, options.workload.fates)
        self._finisher = Worker(client, options, ("finish",))
        self._sealer = Worker(client, options, ("seal",), {"seal": self._seal})

    def begin(self) -> None:
        """Work, until all is over."""
        self._client.later(self._random.randint(1, AWAY_MS), self._report)
        self._claim_on()

    # -- reports ---------------------------------------------------------------------------------

    def _report(self) -> None:
        random, client = self._random, self._client
        is_calm = client.is_stopped
        if not is_calm and random.random() < RESIZE:
            self._slots = random.randint(1, 4)
        if self._node not in client.nodes or (not is_calm and random.random() < MOVE):
            self._node = random.choice(client.nodes)
        is_leaving = not is_calm and random.random() < GOODBYE
        lease_ms = 0 if is_leaving else random.randint(*LEASE_MS)
        row = m.WorkerRow(client.name, "host", self._slots, (), b"", "", "", 0, 0, 0, "", "", 0, takes_seats=True,
                          tags=self._tags)
        client.ask_at(self._node, lambda request: m.Report(
            request, lease_ms, (row,), random.choice(WAIT_MS) if lease_ms else 0, self._seated),
            lambda operation: self._on_reported(operation, is_leaving), client.patience_ms)

    def _on_reported(self, operation: Operation, is_leaving: bool) -> None:
        answer = operation.answer
        if isinstance(answer, m.Reported):
            assert isinstance(operation.message, m.Report)
            slots = operation.message.workers[0].slots
            given = sum(seat.count for seat in answer.seats)
            assert given <= slots, f"{given} seats for {slots} slots: {operation}"
            self._seats, self._seated = answer.seats, answer.seated
        else:
            self._node = ""
        is_away = is_leaving or (not self._client.is_stopped and self._random.random() < SILENCE)
        self._client.later(self._random.randint(1, AWAY_MS) if is_away else PAUSE_MS, self._report)

    # -- claims ----------------------------------------------------------------------------------

    def _claim_on(self) -> None:
        """Claim for a seat, now and again; often, once all is calm."""
        mean_ms = CALM_MS if self._client.is_stopped else self._options.workload.claim_ms / 2
        self._client.later(1 + int(self._random.expovariate(1.0) * mean_ms), self._claim_on)
        seats = [seat for seat in self._seats if seat.kind != INPUT]
        if not seats:
            return
        seat, lease_ms = self._random.choice(seats), self._random.randint(*self._options.workload.lease_ms)
        wait_ms = self._random.choice((0, 0, 500, 1_500))
        if seat.kind == OUTPUT and self._random.random() < 0.4:
            self._sealer.claim(queue_of(seat.workflow, SEAL), 1, max(lease_ms, SEAL_MS), 0, fence=seat.fence)
            return
        worker = self._finisher if self._client.is_stopped else self._worker
        fence = 0 if self._random.random() < SEATLESS else seat.fence
        count = seat.count * (BATCH if self._client.is_stopped else 1)
        worker.claim(queue_of(seat.workflow, seat.step), count, lease_ms, wait_ms, fence=fence)

    def _seal(self, holds: Sequence[Hold], lease_ms: int) -> None:
        """Say in the log that an output is sealed, then complete; now and then die in between."""
        for hold in holds:
            workflow, step = self._submitter.seals[hold.task]

            def then(operation: Operation, hold: Hold = hold) -> None:
                is_dying = not self._client.is_stopped and self._random.random() < 0.2
                answer = operation.answer
                if isinstance(answer, m.Decreed) and answer.outcome != "refused" and not is_dying:
                    self._sealer.complete([hold], 1)
            self._client.ask(lambda request, workflow=workflow, step=step: m.Advance(  # type: ignore[misc]
                request, workflow, step, True), then)


def tags_of(number: int) -> tuple[str, ...]:
    """What the slots of the worker with this number can do: every other one has what some steps need."""
    return (ABLE,) if number % 2 else ()


