"""How one partition gets its next leader, and why two can never grant at once.

The candidate, in order:

1. reads the partition document with a synced read. A leader that stands again, for a cohort that
   changes, decides by the revision it wrote itself;
2. asks on trial whether a majority would vote. A trial changes nothing anywhere; a voter that hears the
   leader says no. So a node behind a one-way link deposes no leader, and burns no epoch;
3. takes the next epoch above the document's and its own promise, and promises it to itself, durably;
4. asks the old cohort and the new one for votes; a voter promises durably before it answers, and from
   then on records no claim of an older epoch. It needs a majority of the old cohort *and* of the new
   one. Now no older leader can commit a claim;
5. reads all live claims **from the old-cohort replicas that granted this epoch** and joins them in. A
   voter answers only while it remembers its vote, so one that was wiped since does not count. Then every
   new member of the cohort takes over all data of the voters that were read;
6. pushes its live claims to the new cohort until a majority has confirmed every page. Now any later
   candidate meets a replica that knows them (5 and 6 carry the claim history, by induction);
7. swaps the document from the revision read in 1, with its name, boot and a write id of its own; unless new
   members have gone meanwhile, so that the new cohort would have fewer live voters than the old one. An
   uncertain outcome is settled by reading the document back, never by trying again;
8. leads, if it has promised nothing newer meanwhile.

Any message of a newer epoch fences. A restarted leader has another boot and never resumes. A candidate that fails
waits a while, with jitter, and starts at 1. Steps 5 and 6 take the longer the more claims there are: only the wait
for the next page is bounded, and a voter that serves pages welcomes no other candidate meanwhile.

When an operator says that so many voters are lost for good that there will be no majority, those who remain elect
without one: all of them must vote, and hand over. What the others granted or promised is not known then. So
the epoch is above all that anybody may have promised (``wishes`` has written these off as spent), and nothing is
granted before every claim of theirs has ended: none ends after the horizon of the revision that the swap is bound
to, and no leader of theirs can move it any more.

``Election`` decides and emits; the vnode owns the data and serves the voters' side.

Source: Skuld's README, "Leaders", repaired: durable votes, claims read from voters only, confirmed
pushes, a document that names the leader; the trial is Raft's pre-vote. Rejected: a lease on ZooKeeper
alone, which a paused leader outlives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

import attrs

from skuld_py.config.timing import Timing
from skuld_py.model.document import NOBODY, Document, Floor, Loss, Member, Previous, seats_of
from skuld_py.model.events import DocumentSwapped, Effect, Outcome, ReadDocument, Send, SwapDocument
from skuld_py.model.messages import (
    ClaimPage,
    ClaimsKept,
    PullClaims,
    PushClaims,
    RequestVote,
    Sync,
    Vote,
)
from skuld_py.partition.leadership import quorum

Names = tuple[str, ...]


class Phase(Enum):
    """Where a candidacy stands."""

    IDLE = "idle"
    READING = "reading"
    TRYING = "trying"
    VOTING = "voting"
    PULLING = "pulling"
    SYNCING = "syncing"
    PUSHING = "pushing"
    SWAPPING = "swapping"
    CONFIRMING = "confirming"
    LEADING = "leading"


TRANSITIONS = {
    Phase.IDLE: (Phase.READING,),
    Phase.READING: (Phase.TRYING, Phase.VOTING, Phase.IDLE),
    Phase.TRYING: (Phase.VOTING, Phase.IDLE),
    Phase.VOTING: (Phase.PULLING, Phase.IDLE),
    Phase.PULLING: (Phase.SYNCING, Phase.IDLE),
    Phase.SYNCING: (Phase.PUSHING, Phase.IDLE),
    Phase.PUSHING: (Phase.SWAPPING, Phase.IDLE),
    Phase.SWAPPING: (Phase.LEADING, Phase.CONFIRMING, Phase.IDLE),
    Phase.CONFIRMING: (Phase.LEADING, Phase.IDLE),
    Phase.LEADING: (Phase.VOTING, Phase.IDLE),
}
"""The life of a candidacy. Every phase may fall back to idle; the rest goes one way."""


@attrs.frozen
class Transfer:
    """The epoch and name of a leader that asked this node to stand, and the cohort to stand for."""

    epoch: int
    cohort: Names
    leader: str


@attrs.define
class Election:
    """One partition's candidacy on one node. ``document`` and ``version`` are the revision it acts by."""

    partition: int
    me: Member
    timing: Timing
    jitter_ms: Callable[[int], int]
    phase: Phase = Phase.IDLE
    epoch: int = 0
    cohort: Names = ()
    """The cohort that it leads, or stands for."""
    document: Document = NOBODY
    version: int = -1
    before: Document = NOBODY
    """The document whose place the one of this leadership took."""
    cause: str = ""
    transfer: Transfer | None = None
    is_forced: bool = False
    """Whether the cohort is all that is left of the one before."""
    next_attempt_ms: int = 0
    expires_ms: int = 0
    changed: Callable[[int], None] = attrs.field(default=lambda partition: None, kw_only=True, eq=False)
    """Told the partition when the phase or the document changes."""
    _seen_epoch: int = 0
    """The newest epoch that voters said they had promised."""
    _write_id: str = ""
    _writes: int = 0
    _votes: dict[str, bool] = attrs.field(factory=dict)
    _cursors: dict[str, bytes | None] = attrs.field(factory=dict)
    """Page awaited from (pulling) or by (pushing) each voter; None when that voter is done."""
    _unsynced: dict[str, None] = attrs.field(factory=dict)
    """New members of the cohort that have not taken over the data yet."""

    def _enter(self, phase: Phase) -> None:
        if phase is not Phase.IDLE and phase not in TRANSITIONS[self.phase]:
            raise AssertionError(f"election of {self.partition}: {self.phase} -> {phase}")
        self.phase = phase
        self.changed(self.partition)

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
        self.transfer = None
        self.next_attempt_ms = now_ms + self.timing.retry_ms + self.jitter_ms(self.timing.retry_ms)

    @property
    def has_stood(self) -> bool:
        """Whether a candidacy is in its quick steps: not the moment to try another one. New members that take
        over, or a swap in doubt, may take long; then another candidate is welcome."""
        return self.phase in (Phase.VOTING, Phase.PULLING, Phase.PUSHING, Phase.SWAPPING)

    def make_way(self, until_ms: int) -> None:
        """Another candidate is on its way: do not stand against it at once."""
        self.next_attempt_ms = max(self.next_attempt_ms, until_ms)

    def on_deadline(self, now_ms: int) -> list[Effect]:
        """A candidacy that takes too long starts over; but a swap in doubt is read until it is settled, since it
        may have made this node the leader, and no other node would tell."""
        if self.phase in (Phase.IDLE, Phase.LEADING) or now_ms < self.expires_ms:
            return []
        if self.phase is Phase.CONFIRMING:
            self.expires_ms = now_ms + self.timing.request_ms
            return [ReadDocument(self.partition)]
        self.give_up(now_ms)
        return []

    def note_written(self, document: Document, version: int) -> None:
        """The leader wrote, or read back, a newer revision of its own document."""
        self.document, self.version = document, version
        self.changed(self.partition)

    # -- steps 1 to 4 ------------------------------------------------------------------------------

    def stand(self, now_ms: int, transfer: Transfer | None = None) -> list[Effect]:
        """Begin a candidacy: read the document."""
        self._enter(Phase.READING)
        self.transfer = transfer
        self.expires_ms = now_ms + self.timing.vote_ms
        return [ReadDocument(self.partition)]

    def open(self, now_ms: int, document: Document, version: int, cohort: Names, *, is_trial: bool,
             cause: str, is_forced: bool = False) -> list[Effect]:
        """Steps 2 to 4 for this revision; without a trial, the caller promises the epoch first."""
        self._enter(Phase.TRYING if is_trial else Phase.VOTING)
        self.document, self.version, self.cohort, self.cause = document, version, cohort, cause
        self.is_forced = is_forced
        self.expires_ms = now_ms + self.timing.vote_ms
        self._votes = {self.me.name: True}
        return self._ask_votes()

    def choose_epoch(self, document: Document, promised_epoch: int) -> int:
        """The epoch to stand for: above all that is known to be promised, here or to others."""
        self.epoch = max(document.told_epoch, promised_epoch, self._seen_epoch) + 1
        return self.epoch

    def _ask_votes(self) -> list[Effect]:
        request = RequestVote(self.partition, self.epoch, self.cohort, self.phase is Phase.TRYING,
                              self.document.epoch)
        return [Send(name, request) for name in sorted({*self._base, *self.cohort}) if name != self.me.name]

    @property
    def _base(self) -> Names:
        """The voters that decide whether there is another leader: the document's, or who remains of them."""
        return self.cohort if self.is_forced else self.document.cohort

    def _is_allowed_by(self, voters: Collection[str]) -> bool:
        """Whether these voters of the leadership before are enough."""
        if self.is_forced:
            return all(name in voters for name in self.cohort)
        return quorum.has_majority(self.document.cohort, voters)

    def on_vote(self, now_ms: int, voter: str, vote: Vote) -> None:
        """Count an answer; a refusal of a real vote, or memory where there is no document, ends it."""
        if self.phase is not (Phase.TRYING if vote.is_trial else Phase.VOTING) or vote.epoch != self.epoch:
            return
        self._seen_epoch = max(self._seen_epoch, vote.promised)
        is_refounding = vote.settled > 0 and not self.document.epoch
        if is_refounding or (not vote.is_granted and not vote.is_trial):
            self.give_up(now_ms)
            return
        self._votes[voter] = vote.is_granted
        hopeful = self._hopeful()
        if not (self._is_allowed_by(hopeful) and quorum.has_majority(self.cohort, hopeful)):
            self.give_up(now_ms)

    def _hopeful(self) -> list[str]:
        everybody = dict.fromkeys([*self._base, *self.cohort])
        return [name for name in everybody if self._votes.get(name, True)]

    def has_votes(self) -> bool:
        """Whether majorities of both cohorts have said yes."""
        granted = [name for name, is_granted in self._votes.items() if is_granted]
        return (self.phase in (Phase.TRYING, Phase.VOTING)
                and self._is_allowed_by(granted) and quorum.has_majority(self.cohort, granted))

    def ask_for_votes(self, now_ms: int) -> list[Effect]:
        """Step 4 after a won trial; the caller has chosen the epoch anew and promised it."""
        self._enter(Phase.VOTING)
        self.expires_ms = now_ms + self.timing.vote_ms
        self._votes = {self.me.name: True}
        return self._ask_votes()

    # -- step 5 --------------------------------------------------------------------------------------

    def start_pull(self, now_ms: int) -> list[Effect]:
        """Read the voters' claims."""
        self._enter(Phase.PULLING)
        self.expires_ms = now_ms + self.timing.page_ms
        others = [name for name in self._base if name in self._votes and name != self.me.name]
        self._cursors = dict.fromkeys(others, b"")
        return [Send(name, PullClaims(self.partition, self.epoch, b"")) for name in others]

    def on_page(self, now_ms: int, voter: str, page: ClaimPage) -> list[Effect]:
        """One page, already joined into the local data."""
        if self.phase is not Phase.PULLING or page.epoch != self.epoch:
            return []
        if self._cursors.get(voter) != page.after:
            return []
        self.expires_ms = now_ms + self.timing.page_ms
        self._cursors[voter] = page.next or None
        return [Send(voter, PullClaims(self.partition, self.epoch, page.next))] if page.next else []

    def _done(self) -> list[str]:
        return [name for name, cursor in self._cursors.items() if cursor is None]

    def has_pulled(self) -> bool:
        """Whether a majority of the old cohort has handed over all its claims."""
        return self.phase is Phase.PULLING and self._is_allowed_by([*self._done(), self.me.name])

    def start_sync(self, now_ms: int) -> list[Effect]:
        """Have new members take over the data of the voters that were read; the first cohort has none."""
        self._enter(Phase.SYNCING)
        old = self.document.cohort
        sources = tuple(name for name in old if name in {*self._done(), self.me.name})
        added = [name for name in self.cohort if name not in old] if old else []
        self._unsynced = dict.fromkeys(added)
        if added:
            self.expires_ms = now_ms + self.timing.sync_ms
        request = Sync(self.partition, self.epoch, self.cohort, sources, self.document.epoch)
        return [Send(name, request) for name in added]

    def on_synced(self, member: str, epoch: int) -> None:
        """A new member holds the data."""
        if self.phase is Phase.SYNCING and epoch == self.epoch:
            self._unsynced.pop(member, None)

    def has_synced(self) -> bool:
        """Whether all new members hold it."""
        return self.phase is Phase.SYNCING and not self._unsynced

    # -- step 6 --------------------------------------------------------------------------------------

    def start_push(self, now_ms: int, first_page: PushClaims) -> list[Effect]:
        """Offer the joined claims to every voter of the new cohort."""
        self._enter(Phase.PUSHING)
        self.expires_ms = now_ms + self.timing.page_ms
        voters = [name for name in self.cohort if name in self._votes and name != self.me.name]
        if not first_page.ids:
            self._cursors = dict.fromkeys(voters, None)
            return []
        self._cursors = dict.fromkeys(voters, b"")
        return [Send(name, first_page) for name in voters]

    def on_kept(self, now_ms: int, voter: str, kept: ClaimsKept, next_page: PushClaims | None) -> list[Effect]:
        """One page confirmed; ``next_page`` is None after the last."""
        if self.phase is not Phase.PUSHING or kept.epoch != self.epoch:
            return []
        if self._cursors.get(voter) != kept.after:
            return []
        self.expires_ms = now_ms + self.timing.page_ms
        self._cursors[voter] = next_page.after if next_page else None
        return [Send(voter, next_page)] if next_page else []

    def has_pushed(self) -> bool:
        """Whether a majority of the new cohort has confirmed all claims."""
        return self.phase is Phase.PUSHING and quorum.has_majority(self.cohort, [*self._done(), self.me.name])

    def would_lose_votes(self, live: Collection[str]) -> bool:
        """Whether a cohort that changes would have fewer live voters than the present one, by more than it is
        smaller, or no majority of them: new members may have gone since they were chosen."""
        old, new = self.document.cohort, self.cohort
        if not old or self.is_forced or sorted(old) == sorted(new):
            return False
        lost = sum(name in live for name in old) - sum(name in live for name in new)
        return lost > max(0, len(old) - len(new)) or not quorum.has_majority(new, live)

    # -- steps 7 and 8 -------------------------------------------------------------------------------

    def write_id(self) -> str:
        """A fresh write id; unique over all nodes and starts."""
        self._writes += 1
        return f"{self.me.boot}-{self.partition}-{self._writes}"

    def swap(self, now_ms: int, live: Mapping[str, Member], floor: Floor, skew_ms: int = 0) -> list[Effect]:
        """Step 7."""
        self._enter(Phase.SWAPPING)
        self.expires_ms = now_ms + self.timing.request_ms
        self._write_id = self.write_id()
        old = self.before = self.document
        known = {seat.node: seat.incarnation for seat in old.seats}
        known.update((name, member.incarnation) for name, member in live.items())
        is_changed = sorted(self.cohort) != sorted(old.cohort)
        voters = {*old.cohort, *self.cohort}
        promises = {name: epoch for name, epoch in old.promises.items() if name in voters}
        promises.update((name, self.epoch) for name, is_granted in self._votes.items() if is_granted)
        self.document = attrs.evolve(
            old, epoch=self.epoch, leader=self.me.name, boot=self.me.boot, seats=seats_of(self.cohort, known),
            era=self.epoch if is_changed else old.era, floor=floor, promote=None, force=None, malformed={},
            horizon_ms=max(old.horizon_ms, now_ms + self.timing.horizon_ms),
            learners=tuple(name for name in old.learners if name not in self.cohort),
            previous=Previous(old.epoch, old.leader, old.cohort), promises=promises,
            write_id=self._write_id, cause=self.cause)
        if self.is_forced:
            self.document = self._with_loss(old, skew_ms)
        return [SwapDocument(self.partition, self.version, self.document, is_founding=self.version < 0)]

    def _with_loss(self, old: Document, skew_ms: int) -> Document:
        """What is written says who was given up; behind a barrier, all that these may have granted is over."""
        force, until_ms = old.force, max(old.no_grant_before_ms, old.horizon_ms + skew_ms)
        by, reason, at_ms = (force.by, force.reason, force.at_ms) if force is not None else ("", "", 0)
        before = old.loss.lost if old.loss is not None else ()
        lost = dict.fromkeys((*before, *(name for name in old.cohort if name not in self.cohort)))
        return attrs.evolve(self.document, no_grant_before_ms=until_ms, loss=Loss(
            self.epoch, tuple(lost), self.cohort, by, reason, at_ms, until_ms))

    def on_swapped(self, now_ms: int, event: DocumentSwapped) -> list[Effect]:
        """Step 7's verdict."""
        if self.phase is not Phase.SWAPPING or event.write_id != self._write_id:
            return []
        if event.outcome is Outcome.WON:
            self.version = event.version
            self._lead()
        elif event.outcome is Outcome.LOST:
            self.give_up(now_ms)
        else:
            self._enter(Phase.CONFIRMING)
            self.expires_ms = now_ms + self.timing.request_ms
            return [ReadDocument(self.partition)]
        return []

    def confirm(self, now_ms: int, document: Document, version: int) -> None:
        """Settle an uncertain swap by what the document says."""
        if document.write_id == self._write_id:
            self.document, self.version = document, version
            self._lead()
        else:
            self.give_up(now_ms)

    def _lead(self) -> None:
        self._enter(Phase.LEADING)
        self.transfer = None
