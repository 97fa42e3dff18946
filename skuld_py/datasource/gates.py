"""Nothing of a write can be claimed before all of it is stored, and nothing of attempts that lost, ever.

Spark runs a part of a write more than once: after a failure, or beside a slow one. Each *attempt* stores tasks of
its own, whose ids nobody else makes, so an attempt whose rows come in another order takes nothing away. All wait
for one task, the attempt's *gate*, which does not exist while the write goes on. When the write commits, the gates
of the attempts that count are made, claimed, and completed by one request. They are of one partition, so each of
its copies stores all these completions at once, or none: that is the moment at which the write happens.

    task --waits for--> gate of its attempt (in ``skuld.gates``, made and completed by the commit)
    attempt's record (in ``skuld.attempts``): so that a commit finds those that lost, and an abort all of them

Invariants.

* A gate is completed only by the commit of its own write: what a claim brings of others is given back.
* Nothing stays for ever. A task whose gate never comes to be dies when the write's ``ttl_s`` is over, whatever
  became of driver and executors. A gate that was made and not completed dies after ``GATE_S``, and its tasks with
  it. What an attempt that is still running adds to a gate that is shut dies at once.
* Nothing is let go that Spark was told is not: a commit too late for its tasks, or whose gates may have died
  before they were completed, is refused or uncertain, never said to have happened.

A gate that is cancelled is *shut*. A dead task that comes back by ``retry`` meets the same gate, and dies again.

Rejected: one more gate for the whole write, behind which any number of parts fit; two dependencies cost four times
as much to store and ten times as much to meet as one (3,200 against 14,000 tasks a second). A ``not_before`` far
away, which no verb moves nearer. A queue for each write, which would stay in every count of queues.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence

import attrs

from skuld_py.client.claims import Claim
from skuld_py.client.client import Client
from skuld_py.client.steady import sleep, wall_s
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model.ids import ID_BYTES, TaskId

GATES, ATTEMPTS = "skuld.gates", "skuld.attempts"
PARTS_MAX = DEFAULT_LIMITS.batch_tasks
"""Parts of a write: as many gates as one request completes."""
GATE_S = 600.0
"""How long a gate may stay open."""
COMMIT_S = 240.0
"""How long a commit tries."""
LEASE_S = 30.0
ENDED = ("completed", "cancelled", "dead")
_HASTE_S = 5.0
_SLACK_S = 60.0
"""By which a commit must be earlier than the deaths of its tasks, clocks of others included."""
_AHEAD_S = 600.0
"""How far executors' clocks may be behind the driver's, for records of attempts to be found."""
_EPOCH_S = 1_600_000_000
_log = logging.getLogger(__name__)


@attrs.frozen
class Write:
    """One run of a write: a name, the route that its gates share, when it began by the driver's clock, and for how
    long its tasks wait for it."""

    name: str
    route: int
    start_s: float
    ttl_s: float

    @classmethod
    def begin(cls, ttl_s: float) -> Write:
        """A new one."""
        return cls(secrets.token_hex(16), secrets.randbits(32), wall_s(), ttl_s)


def open_attempt(client: Client, write: Write, wall_s: float) -> TaskId:
    """The gate of a new attempt, whose tasks are to wait for it; it is on record from now on."""
    made, = client.new_ids(1)
    gate = TaskId(made[:16] + write.route.to_bytes(4, "big"))
    client.enqueue(ATTEMPTS, gate + write.name.encode(), expires=wall_s + write.ttl_s)
    return gate


def check_part(number: int) -> None:
    """A write has so many parts at most."""
    if number >= PARTS_MAX:
        raise Refused("too_many_parts", f"this write has more than {PARTS_MAX} partitions, which cannot become"
                      f" claimable at one moment; write frame.coalesce({PARTS_MAX}), or say option('atomic',"
                      " 'false') if a repeated part has the same rows in the same order")


class Commit:
    """The end of a write, on the driver. ``gates`` are those of the attempts that count."""

    def __init__(self, client: Client, write: Write, gates: Sequence[bytes],
                 wall: Callable[[], float] = wall_s, pause: Callable[[float], object] = sleep) -> None:
        self._client = client
        self._write = write
        self._gates = [TaskId(gate) for gate in gates]
        self._wall = wall
        self._pause = pause
        self._held_s = 0.0
        """Since when all gates are held."""

    def commit(self) -> None:
        """Let the tasks go. ``Refused``: they are not, and never will be. ``Uncertain``: ask again; the same gates
        may be completed any number of times."""
        if self._gates and not self.has_happened():
            expires_s = make(self._client, self._write, self._gates, self._wall())
            if self._wall() > self._write.start_s + self._write.ttl_s - _SLACK_S:
                raise Refused("too_late", f"ttl: the write took longer than {self._write.ttl_s:g} s, after which"
                              " its tasks die; name a longer one by option('ttl', ...)")
            self._complete(self._hold())
            if self._wall() > expires_s - _SLACK_S:
                raise Uncertain("uncertain", f"the commit took longer than {GATE_S:g} s; its tasks may have died:"
                                " see how many of the queue are dead")
        self._sweep()

    def has_happened(self) -> bool:
        """Whether it is committed; an attempt's gate that is completed says so for all."""
        return any(task.is_completed for task in self._client.get_many(self._gates))

    def abort(self) -> None:
        """Shut the gates of all attempts, so that their tasks die. What has been committed stays."""
        if self.has_happened() or not self.shut():
            raise Refused("committed", "the write is committed: its tasks are let go, and none is taken back")
        records, gates = self._attempts()
        shut(self._client, self._write, {*gates} - {*self._gates}, self._wall())
        self._client.cancel(*records)

    def shut(self) -> bool:
        """Shut the gates that were given, for good: waits for the lease of whoever holds them. False when they
        were completed instead."""
        shut(self._client, self._write, self._gates, self._wall())
        until = self._wall() + 2 * LEASE_S
        while True:
            states = {task.state for task in self._client.get_many(self._gates)}
            if "completed" in states or "claimed" not in states:
                return "completed" not in states
            if self._wall() > until:
                raise Uncertain("uncertain", "another driver commits this write; gates of it are held")
            self._pause(0.2)

    def _hold(self) -> list[Claim]:
        wanted, held = {*self._gates}, dict[bytes, Claim]()
        self._held_s, until = self._wall(), self._wall() + COMMIT_S
        while len(held) < len(wanted):
            if self._wall() > until:
                raise Uncertain("uncertain", f"{len(wanted) - len(held)} of {len(wanted)} gates could not be"
                                f" claimed in {COMMIT_S:g} s")
            found = self._client.claim(GATES, n=PARTS_MAX, lease_s=LEASE_S, wait_s=1.0)
            held |= {claim.id: claim for claim in found if claim.id in wanted}
            others = [claim for claim in found if claim.id not in wanted]
            if others:
                self._client.release(*others)
            if self._wall() > self._held_s + LEASE_S / 3:
                held = self._renewed([*held.values()])
        return [*held.values()]

    def _renewed(self, claims: list[Claim]) -> dict[bytes, Claim]:
        """Those that are held still."""
        self._held_s = self._wall()
        verdicts = self._client.renew_many(claims)
        return {claim.id: claim for claim, is_held in zip(claims, verdicts, strict=True) if is_held}

    def _complete(self, claims: Sequence[Claim]) -> None:
        """By one request: this is the moment. Not after the leases, when somebody else may have shut the gates."""
        while True:
            if self._wall() > self._held_s + LEASE_S - _HASTE_S:
                raise Uncertain("uncertain", "the leases of the write's gates ended before they were completed")
            try:
                self._client.complete_many(claims)
                return
            except Uncertain as doubt:
                _log.warning("the commit is asked for again: %s", doubt)

    def _attempts(self) -> tuple[list[bytes], list[TaskId]]:
        """The ids of the records of this write's attempts, and their gates."""
        records, gates = list[bytes](), list[TaskId]()
        for task in self._client.list(ATTEMPTS, states=("waiting",), since=self._write.start_s - _AHEAD_S):
            if task.payload[ID_BYTES:] == self._write.name.encode():
                records.append(task.id)
                gates.append(TaskId(task.payload[:ID_BYTES]))
        return records, gates

    def _sweep(self) -> None:
        """Shut the gates of attempts that lost. If it cannot be done now, time does it."""
        try:
            records, gates = self._attempts()
            shut(self._client, self._write, {*gates} - {*self._gates}, self._wall())
            self._client.cancel(*records)
        except SkuldError as error:
            _log.warning("tasks of attempts that lost stay blocked for %g s: %s", self._write.ttl_s, error)


def make(client: Client, write: Write, gates: Sequence[TaskId], wall_s: float) -> float:
    """Make those that are not made yet; gives when the first of all dies. The newest of the queue are claimed
    first: what others left there stands behind."""
    known = {task.id: task for task in client.get_many(gates)}
    ended = [task for task in known.values() if task.state in ("cancelled", "dead")]
    if ended:
        raise Refused("shut", f"{len(ended)} gates of this write are shut: it was aborted, or its batch run again")
    missing = [gate for gate in gates if gate not in known]
    client.enqueue_many(GATES, [write.name.encode()] * len(missing), ids=missing, expires=wall_s + GATE_S,
                        priority=max(0, int(wall_s) - _EPOCH_S))
    return min([wall_s + GATE_S, *((task.expires_ms or 0) / 1000 for task in known.values())])


def shut(client: Client, write: Write, gates: Iterable[TaskId], wall_s: float) -> None:
    """Make them, if they are not made, and cancel them."""
    every = sorted(gates)
    for start in range(0, len(every), PARTS_MAX):
        part = every[start : start + PARTS_MAX]
        ended = [task.id for task in client.get_many(part) if task.state in ENDED]
        part = [gate for gate in part if gate not in ended]
        make(client, write, part, wall_s)
        client.cancel(*part)


def shut_own(client: Client, write: Write, gate: bytes) -> None:
    """Shut the gate of an attempt that failed, if it can be done."""
    try:
        shut(client, write, [TaskId(gate)], wall_s())
    except SkuldError as error:
        _log.warning("tasks of an attempt that failed stay blocked for %g s: %s", write.ttl_s, error)
