"""How one partition gets its next leader, and why two can never grant at once.

The candidate, in order:

1. reads the partition document (epoch, old cohort) with a synced read;
2. takes the next epoch above the document's and its own promise, and promises it to itself, durably;
3. asks the old cohort and the new one (the owners) for votes; a voter promises durably before it
   answers, and from then on records no claim of an older epoch;
4. needs a majority of the old cohort *and* of the new one. Now no older leader can commit a claim;
5. reads all live claims **from the old-cohort replicas that granted this epoch** and joins them in;
6. pushes its live claims to the new cohort until a majority has confirmed every page. Now any later
   candidate meets a replica that knows them (5 and 6 carry the claim history, by induction);
7. swaps the document from the revision read in 1, with its name, boot and a write id of its own. An
   uncertain outcome is settled by reading the document back, never by trying again;
8. leads, if it has promised nothing newer meanwhile.

Any message of a newer epoch fences. A restarted leader has another boot and never resumes. Whoever
fails waits a while, with jitter, and starts at 1.

``Election`` decides and emits; the vnode owns the data and serves the voters' side.

Source: Skuld's README, "Leaders", repaired: durable votes, claims read from voters only, confirmed
pushes, a document that names the leader. Rejected: a lease on ZooKeeper alone, which a paused
leader outlives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import attrs

from skuld_py.config import Timing
from skuld_py.model.document import NOBODY, Document, Member, seats_of
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Effect,
    Outcome,
    ReadDocument,
    Send,
    SwapDocument,
)
from skuld_py.model.messages import ClaimPage, ClaimsKept, PullClaims, PushClaims, RequestVote, Vote
from skuld_py.partition import quorum


class Phase(Enum):
    """Where a candidacy stands."""

    IDLE = "idle"
    READING = "reading"
    VOTING = "voting"
    PULLING = "pulling"
    PUSHING = "pushing"
    SWAPPING = "swapping"
    CONFIRMING = "confirming"
    LEADING = "leading"


TRANSITIONS = {
    Phase.IDLE: (Phase.READING,),
    Phase.READING: (Phase.VOTING, Phase.IDLE),
    Phase.VOTING: (Phase.PULLING, Phase.IDLE),
    Phase.PULLING: (Phase.PUSHING, Phase.IDLE),
    Phase.PUSHING: (Phase.SWAPPING, Phase.IDLE),
    Phase.SWAPPING: (Phase.LEADING, Phase.CONFIRMING, Phase.IDLE),
    Phase.CONFIRMING: (Phase.LEADING, Phase.IDLE),
    Phase.LEADING: (Phase.READING, Phase.IDLE),
}
"""The life of a candidacy. Every phase may fall back to idle; the rest goes one way."""

AWAITING_READ = (Phase.READING, Phase.CONFIRMING)


@attrs.define
class Election:
    """One partition's candidacy on one node."""

    partition: int
    me: Member
    timing: Timing
    jitter_ms: Callable[[int], int]
    phase: Phase = Phase.IDLE
    epoch: int = 0
    cohort: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    document: Document = NOBODY
    next_attempt_ms: int = 0
    expires_ms: int = 0
    _version: int = -1
    _write_id: str = ""
    _writes: int = 0
    _votes: dict[str, bool] = attrs.field(factory=dict)
    _cursors: dict[str, bytes | None] = attrs.field(factory=dict)
    """Page awaited from (pulling) or by (pushing) each voter; None when that voter is done."""

    def _enter(self, phase: Phase) -> None:
        if phase is not Phase.IDLE and phase not in TRANSITIONS[self.phase]:
            raise AssertionError(f"election of {self.partition}: {self.phase} -> {phase}")
        self.phase = phase

    @property
    def is_leading(self) -> bool:
        """Whether this node leads, as far as it knows; grants prove it anew each time."""
        return self.phase is Phase.LEADING

    @property
    def is_idle(self) -> bool:
        """Whether no candidacy runs and none is led."""
        return self.phase is Phase.IDLE

    def give_up(self, now_ms: int) -> None:
        """Back to idle; the next attempt waits, with jitter."""
        self._enter(Phase.IDLE)
        self.next_attempt_ms = now_ms + self.timing.retry_ms + self.jitter_ms(self.timing.retry_ms)

    def stand(self, now_ms: int, owners: tuple[str, ...]) -> list[Effect]:
        """Step 1: begin a candidacy for these owners."""
        self._enter(Phase.READING)
        self.owners = owners
        self.expires_ms = now_ms + self.timing.vote_ms
        return [ReadDocument(self.partition)]

    def on_read(self, now_ms: int, event: DocumentRead, promised_epoch: int,
                live: Mapping[str, Member], is_overdue: bool) -> list[Effect]:
        """Steps 2 and 3, or the end of a confirmation, or the discovery that a leader lives."""
        self.document = event.document
        if self.phase is Phase.CONFIRMING:
            return self._confirm(now_ms, event.document)
        if self.phase is not Phase.READING:
            return []
        leader = live.get(event.document.leader)
        is_led = (leader is not None and leader.boot == event.document.boot and leader.name != self.me.name
                  and not is_overdue and leader.name in self.owners)
        if is_led:
            self.give_up(now_ms)
            return []
        self._enter(Phase.VOTING)
        self._version = event.version
        self.epoch = max(event.document.epoch, promised_epoch) + 1
        self._votes = {self.me.name: True}
        request = RequestVote(self.partition, self.epoch, self.owners, False, False)
        return [Send(name, request) for name in self._electorate() if name != self.me.name]

    def _electorate(self) -> list[str]:
        return sorted({*self.document.cohort, *self.owners})

    def on_vote(self, now_ms: int, voter: str, vote: Vote) -> list[Effect]:
        """Step 4, for one answer."""
        if self.phase is not Phase.VOTING or vote.epoch != self.epoch:
            return []
        if not vote.is_granted:
            self.give_up(now_ms)
            return []
        self._votes[voter] = True
        return self.check_votes(now_ms)

    def check_votes(self, now_ms: int) -> list[Effect]:
        """Go on to step 5 once both majorities are in."""
        if not quorum.has_joint_majority(self.document.cohort, self.owners, self._votes):
            return []
        self._enter(Phase.PULLING)
        self.expires_ms = now_ms + self.timing.request_ms
        voters = [name for name in self.document.cohort if name in self._votes and name != self.me.name]
        self._cursors = dict.fromkeys(voters, b"")
        return [Send(name, PullClaims(self.partition, self.epoch, b"")) for name in voters]

    def on_page(self, voter: str, page: ClaimPage) -> list[Effect]:
        """Step 5, for one page already joined into the local data."""
        if self.phase is not Phase.PULLING or page.epoch != self.epoch:
            return []
        if self._cursors.get(voter) != page.after:
            return []
        self._cursors[voter] = page.next or None
        return [Send(voter, PullClaims(self.partition, self.epoch, page.next))] if page.next else []

    def has_pulled(self) -> bool:
        """Whether a majority of the old cohort has handed over all its claims."""
        if self.phase is not Phase.PULLING:
            return False
        done = [name for name, cursor in self._cursors.items() if cursor is None]
        return quorum.has_majority(self.document.cohort, [*done, self.me.name])

    def start_push(self, first_page: PushClaims) -> list[Effect]:
        """Step 6: offer the joined claims to every voter of the new cohort."""
        self._enter(Phase.PUSHING)
        voters = [name for name in self.owners if name in self._votes and name != self.me.name]
        if not first_page.ids:
            voters = []
            self._cursors = dict.fromkeys((name for name in self.owners if name in self._votes), None)
        else:
            self._cursors = dict.fromkeys(voters, b"")
        return [Send(name, first_page) for name in voters]

    def on_kept(self, voter: str, kept: ClaimsKept, next_page: PushClaims | None) -> list[Effect]:
        """Step 6, for one page confirmed; ``next_page`` is None after the last."""
        if self.phase is not Phase.PUSHING or kept.epoch != self.epoch:
            return []
        if self._cursors.get(voter) != kept.after:
            return []
        self._cursors[voter] = next_page.after if next_page else None
        return [Send(voter, next_page)] if next_page else []

    def has_pushed(self) -> bool:
        """Whether a majority of the new cohort has confirmed all claims."""
        if self.phase is not Phase.PUSHING:
            return False
        done = [name for name, cursor in self._cursors.items() if cursor is None]
        return quorum.has_majority(self.owners, [*done, self.me.name])

    def swap(self, now_ms: int) -> list[Effect]:
        """Step 7."""
        self._enter(Phase.SWAPPING)
        self.expires_ms = now_ms + self.timing.request_ms
        self._writes += 1
        self._write_id = f"{self.me.boot}-{self.partition}-{self._writes}"
        seats = seats_of(self.owners)
        document = attrs.evolve(self.document, epoch=self.epoch, leader=self.me.name, boot=self.me.boot,
                                seats=seats, write_id=self._write_id, cause="election")
        return [SwapDocument(self.partition, self._version, document)]

    def on_swapped(self, now_ms: int, event: DocumentSwapped) -> list[Effect]:
        """Step 7's verdict."""
        if self.phase is not Phase.SWAPPING or event.write_id != self._write_id:
            return []
        if event.outcome is Outcome.WON:
            self._lead()
        elif event.outcome is Outcome.LOST:
            self.give_up(now_ms)
        else:
            self._enter(Phase.CONFIRMING)
            self.expires_ms = now_ms + self.timing.request_ms
            return [ReadDocument(self.partition)]
        return []

    def _confirm(self, now_ms: int, document: Document) -> list[Effect]:
        if document.write_id == self._write_id:
            self._lead()
        else:
            self.give_up(now_ms)
        return []

    def _lead(self) -> None:
        self._enter(Phase.LEADING)
        self.cohort = self.owners

    def on_deadline(self, now_ms: int) -> None:
        """A candidacy that takes too long starts over."""
        if self.phase not in (Phase.IDLE, Phase.LEADING) and now_ms >= self.expires_ms:
            self.give_up(now_ms)
