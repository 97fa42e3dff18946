"""Clients that claim, and then do one of many things with what they hold: the fates.

A worker believes in its lease as long as the client library would, by the same arithmetic. It repeats a completion
whose outcome it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.bounds import PROOF_BYTES
from skuld_py.model.columns import Column, pack, pack_u64, unpack_u64
from skuld_py.model.history import FAILED, SNOOZED
from skuld_py.model.ids import split
from skuld_py.model.leases import holder_deadline
from skuld_py.simulation.clients.client import REPEATS_MAX, Client, Then
from skuld_py.simulation.history import Hold, Operation, Status
from skuld_py.simulation.options import Options

LATE_SEQ = 9
"""Of a holder's word that comes when its lease is over; rounds of renewals are fewer."""
Fate = Callable[[Sequence[Hold], int], None]


class Worker:
    """Claims tasks and does one of many things with them."""

    def __init__(self, client: Client, options: Options, fates: Sequence[str],
                 more: Mapping[str, Fate] | None = None) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._history = client.history
        self._fates: dict[str, Fate] = {
            "complete": self._complete_in_time,
            "finish": lambda holds, lease_ms: self.complete(holds, REPEATS_MAX),
            "renew": self._renew_on, "release": self._release, "late": self._complete_late,
            "abandon": lambda holds, lease_ms: None,
            "fail": partial(self._conclude, FAILED), "snooze": partial(self._conclude, SNOOZED),
            **(more or {})}
        self._likes = tuple(fates)
        self._claims = 0

    def begin(self) -> None:
        """Work."""
        self._client.repeat(self._options.workload.claim_ms, self._claim_some)

    def _claim_some(self) -> None:
        random, workload = self._random, self._options.workload
        self.claim(random.choice(workload.queues), random.randint(1, 1 + workload.batch_max),
                   random.randint(*workload.lease_ms), random.choice((0, 0, 100, 1_000)))

    def claim(self, queue: str, count: int, lease_ms: int, wait_ms: int,
              after: Callable[[], None] = lambda: None, fence: int = 0) -> None:
        """Ask for tasks; for a seat by its fence, and under a name that says it and is this claim's alone."""
        self._claims += 1
        holder = f"{self._client.name}.{self._claims}.{fence}" if fence else self._client.name

        def then(operation: Operation) -> None:
            self._on_claimed(operation, lease_ms)
            after()
        self._client.ask(lambda request: m.Claim(request, queue, count, lease_ms, wait_ms, holder,
                                                 takes_proofs=True, fence=fence), then)

    def _stop_of(self, sent_ms: int, lease_ms: int, parked_ms: int = 0) -> int:
        clock = self._client.clock
        return clock.when(int(holder_deadline(clock.read(sent_ms) / 1000, lease_ms / 1000, parked_ms) * 1000))

    def _on_claimed(self, operation: Operation, lease_ms: int) -> None:
        if not isinstance(operation.answer, m.Claimed):
            return
        now_ms = self._client.scheduler.now_ms
        stop_ms = self._stop_of(operation.invoked_ms, lease_ms, operation.answer.waited_ms)
        holds = [Hold(task_id, batch.first_token + index, f"{self._client.name}#{operation.request}",
                      operation.invoked_ms, now_ms, max(now_ms, stop_ms), proof)
                 for batch in operation.answer.batches for index, (task_id, proof) in enumerate(
                     zip(split(batch.ids), columns.split(batch.proofs, PROOF_BYTES), strict=True))]
        self._history.holds += holds
        if now_ms >= stop_ms or not holds:
            return
        at = self._random.randint(0, len(holds)) if self._random.random() < 0.3 else 0
        for group in (holds[:at], holds[at:]):
            if group:
                self._fates[self._random.choice(self._likes)](group, lease_ms)

    # -- fates ---------------------------------------------------------------------------------

    def _left_ms(self, holds: Sequence[Hold]) -> int:
        return min(hold.stop_ms for hold in holds) - self._client.scheduler.now_ms

    def _log(self, holds: Sequence[Hold], seq: int) -> None:
        if not self._options.workload.is_logging:
            return
        for hold in holds[:2]:
            entry = pack([f"{hold.token} {seq}".encode(), b"more"][: 1 + seq % 2])
            marks = [f"{hold.token} at {seq}".encode()] if hold.token % 4 else []
            self._client.ask(lambda request, hold=hold, entry=entry, marks=marks: m.Append(  # type: ignore[misc]
                request, self._w(hold), hold.task, hold.token, 2 * seq, entry, proofs=hold.proof,
                number=seq if marks else 0, at_ms=self._client.wall_ms() if marks else 0, checkpoint=pack(marks)),
                lambda operation: None)

    def _w(self, hold: Hold) -> int:
        """Now and then fewer copies are asked for than a checkpoint is given."""
        return self._options.w_min if hold.token % 4 == 1 else 0

    def _complete_in_time(self, holds: Sequence[Hold], lease_ms: int) -> None:
        self._log(holds, 0)
        delay_ms = self._random.randint(0, max(0, self._left_ms(holds) - 1))
        self._client.later(delay_ms // 2, self.complete, holds, REPEATS_MAX)

    def _complete_late(self, holds: Sequence[Hold], lease_ms: int) -> None:
        delay_ms = self._left_ms(holds) + self._random.randint(0, 2 * lease_ms)
        if self._random.random() < 0.5:
            self._client.later(delay_ms, self._send_renewal, holds, lease_ms, lambda operation: None)
        self._client.later(delay_ms, self._log, holds, LATE_SEQ)
        self._client.later(delay_ms, self.complete, holds, REPEATS_MAX)

    def complete(self, holds: Sequence[Hold], repeats: int) -> None:
        """Complete claims; again when the outcome is unknown."""
        for hold in holds:
            hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
        ids, tokens, proofs = _named(holds)

        def then(operation: Operation) -> None:
            if operation.status is Status.INFO and repeats:
                self._client.later(self._random.randint(1, 300), self.complete, holds, repeats - 1)
        w = self._random.choice((0, 0, self._options.w_min))
        results = self._entries("result", holds)
        self._client.ask(lambda request: m.Complete(request, w, 0, ids, tokens, b"", results, proofs), then)

    def _entries(self, what: str, holds: Sequence[Hold]) -> Column:
        """A result or an error of each claim, the same whenever it is said again; some are empty."""
        if not self._options.workload.has_results:
            return Column()
        return pack([f"{what} {hold.token}".encode() if hold.token % 4 else b"" for hold in holds])

    def _release(self, holds: Sequence[Hold], lease_ms: int) -> None:
        def release() -> None:
            for hold in holds:
                hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            self._send_renewal(holds, 0, lambda operation: None)
        self._client.later(self._random.randint(0, lease_ms), release)

    def _conclude(self, kind: int, holds: Sequence[Hold], lease_ms: int) -> None:
        """Fail or snooze, now and then too late."""
        is_by_policy = bool(self._options.workload.max_attempts) and self._random.random() < 0.7
        delay_ms = -1 if is_by_policy else self._random.randint(0, 500)
        ids, tokens, proofs = _named(holds)

        def conclude() -> None:
            for hold in holds:
                hold.stop_ms = min(hold.stop_ms, self._client.scheduler.now_ms)
            errors = self._entries("error", holds) if kind == FAILED else Column()
            self._client.ask(lambda request: m.Conclude(request, kind, delay_ms, ids, tokens, errors, proofs),
                             lambda operation: None)
        self._client.later(self._random.randint(0, lease_ms), conclude)

    def _renew_on(self, holds: Sequence[Hold], lease_ms: int) -> None:
        rounds = self._random.randint(1, 4)

        def then(operation: Operation) -> None:
            self._on_renewed(operation, holds, lease_ms)

        def once(left: int) -> None:
            held = [hold for hold in holds if hold.stop_ms > self._client.scheduler.now_ms]
            if held and left:
                self._log(held, rounds - left)
                self._send_renewal(holds, lease_ms, then)
                self._client.later(max(1, lease_ms // 3), once, left - 1)
            elif held:
                self._fates[self._random.choice(("complete", "abandon"))](held, lease_ms)
        self._client.later(lease_ms // 3, once, rounds)

    def _send_renewal(self, holds: Sequence[Hold], lease_ms: int, then: Then) -> None:
        ids, tokens, proofs = _named(holds)
        self._client.ask(lambda request: m.Renew(request, lease_ms, ids, tokens, proofs), then)

    def _on_renewed(self, operation: Operation, holds: Sequence[Hold], lease_ms: int) -> None:
        if not isinstance(operation.answer, m.Renewed):
            return
        now_ms, stop_ms = self._client.scheduler.now_ms, self._stop_of(operation.invoked_ms, lease_ms)
        unknown = unpack_u64(operation.answer.unknown)
        for index, (hold, end_ms) in enumerate(zip(holds, unpack_u64(operation.answer.ends), strict=True)):
            if index in unknown:
                continue
            if not end_ms:
                hold.stop_ms = min(hold.stop_ms, now_ms)
            elif hold.stop_ms > now_ms:
                hold.stop_ms = max(hold.stop_ms, stop_ms)


def _named(holds: Sequence[Hold]) -> tuple[bytes, bytes, bytes]:
    return (b"".join(hold.task for hold in holds), pack_u64([hold.token for hold in holds]),
            b"".join(hold.proof for hold in holds))
