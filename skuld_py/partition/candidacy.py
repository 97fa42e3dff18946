"""What makes a vnode a leader and keeps it one: its candidacies, and the upkeep of its document.

It joins three parts that know nothing of each other: the ``Election`` (which step comes next), the
evaluator (whether to stand at all, and for whom), and the vnode (promises, claims).

Within its epoch a leader alone writes its document, but for candidates that note in it which epochs are spent. It
makes one write at a time, derived from the revision it knows, and reads the outcome back when in doubt.
"""

from __future__ import annotations

import attrs

from skuld_py.model import messages as m
from skuld_py.model.document import Document, Floor, Seat
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Effect,
    Outcome,
    ReadDocument,
    Send,
    SwapDocument,
)
from skuld_py.model.remarks import Kind
from skuld_py.model.state import State
from skuld_py.partition.leadership.barrier import load_barrier, save_barrier
from skuld_py.partition.leadership.election import Election, Phase, Transfer
from skuld_py.partition.leadership.evaluator import Facts, Resign, Rest, Stand, Write, Yield, evaluate, is_frozen
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD
from skuld_py.partition.leadership.putting_back import PuttingBack
from skuld_py.partition.leadership.standing import Names
from skuld_py.partition.vnode import Vnode

MOVE_PAUSE = 4
"""A leader that could not change its cohort tries again after this many times the pause of a candidate..."""
HURRIED = 2
"""...or after this many, if its node is about to stop..."""
MOVE_DOUBLINGS = 4
"""...and the pause doubles with each further failure, at most this often: each try costs grants."""


KEPT_UP = ("horizon_ms", "learners", "quarantine", "promote", "barred", "force", "loss", "malformed")
"""What a leader writes within its epoch; named in the history."""
SPENT = "the epoch's tokens were spent"
PUT_BACK = "it was gone, and is put back by its leader"
GIVEN_UP = "an operator gave the other voters up"


class Candidacy:
    """One vnode's way to leadership."""

    def __init__(self, vnode: Vnode) -> None:
        self._vnode = vnode
        self._election: Election = vnode.election
        self._barrier_ms = load_barrier(vnode.store, vnode.partition)
        self._written: Document | None = None
        """The document that is being written, whose outcome is awaited."""
        self._gone: PuttingBack | None = None
        self._is_in_doubt = False
        """Whether the known revision may not be the newest: then read before anything else."""
        self._is_reading = False
        self._inquired = 0
        """The epoch of a leader that a peer told of, while the document is read to see whether it is true."""
        self.next_inquiry_ms = 0
        self._next_move_ms = 0
        self._drained_until_ms = 0
        self._moves_tried = 0
        self._is_hurried = False
        self._is_barred = False
        """Whether this leader waited, at the last look, for the end of what lost leaders may have granted."""
        self.is_moving = False
        """Whether this leader would change its cohort or yield, now or after a pause."""

    # -- steps of an election ----------------------------------------------------------------------

    def stand(self, now_ms: int) -> list[Effect]:
        """Begin a candidacy."""
        return self._election.stand(now_ms)

    def on_abdicate(self, now_ms: int, leader: str, request: m.Abdicate) -> list[Effect]:
        """The leader asks this node to succeed it; whether it is the leader shows in the document."""
        vnode = self._vnode
        if not self._election.is_idle or vnode.suspicion or vnode.me.name not in request.cohort:
            return []
        if not vnode.believes(request.epoch, request.cohort):
            return []
        return self._election.stand(now_ms, Transfer(request.epoch, request.cohort, leader))

    def inquire(self, now_ms: int) -> list[Effect]:
        """A peer said that there is a newer leader: the document says whether that is true. A leader reads it
        before its next upkeep; a candidate has read it, or will."""
        vnode = self._vnode
        if not vnode.heard_epoch or now_ms < self.next_inquiry_ms:
            return []
        self.next_inquiry_ms = now_ms + vnode.timing.retry_ms
        self._inquired, vnode.heard_epoch = vnode.heard_epoch, 0
        if self._election.is_idle:
            return [ReadDocument(vnode.partition)]
        if self._election.is_leading:
            self._is_in_doubt = True
            self._election.changed(vnode.partition)
        return []

    def on_read(self, now_ms: int, event: DocumentRead, facts: Facts) -> list[Effect]:
        """A document came: decide on a candidacy, settle a swap, or mend what the leader knows."""
        document, election = event.document, self._election
        self._vnode.has_read = True
        self._vnode.note_document(document, self._inquired)
        self._inquired = 0
        if document.epoch:
            self._check_memory(now_ms, document)
            self._keep_barrier(document)
            self._vnode.settle(now_ms, document.epoch, document.era, document.cohort)
        if election.phase is Phase.CONFIRMING:
            election.confirm(now_ms, document, event.version)
            self._rise(now_ms)
            return []
        if election.phase is Phase.READING:
            return self._decide(now_ms, event, facts)
        if election.is_leading:
            return self._heed(now_ms, event)
        return []

    def _heed(self, now_ms: int, event: DocumentRead) -> list[Effect]:
        """A leader sees its document: as it is, or as another one, an operator mostly, has changed it. With a
        write under way it is not clear which of the two is newer; then it is read once more. One that is gone is
        put back, if that may be; how often that was before, who reads may know better."""
        election = self._election
        if event.version < 0 and self._written is None:
            self._is_reading = self._is_in_doubt = False
            self._gone = self._gone or PuttingBack(election.document, self._vnode.me.name)
            self._gone.note(event.document.put_back)
            return self._put_back(now_ms)
        self._gone = None
        if self._is_reading:
            self._is_reading = self._is_in_doubt = False
            election.note_written(event.document, event.version)
        elif self._written is None and event.version > election.version:
            election.note_written(event.document, event.version)
        elif (event.version, event.document.write_id) != (election.version, election.document.write_id):
            self._is_in_doubt = True
            election.changed(self._vnode.partition)
        return []

    def _put_back(self, now_ms: int) -> list[Effect]:
        """Ask the voters, those that were silent again; once enough have answered, write."""
        gone, vnode = self._gone, self._vnode
        if gone is None:
            return []
        if gone.is_allowed:
            self._gone = None
            self._written = attrs.evolve(gone.document, write_id=self._election.write_id(), cause=PUT_BACK,
                                         put_back=gone.document.put_back + 1)
            vnode.remark(Kind.PUT_BACK)
            return [SwapDocument(vnode.partition, -1, self._written)]
        if now_ms < gone.next_ask_ms:
            return []
        gone.next_ask_ms = now_ms + vnode.timing.vote_ms
        question = m.RequestVote(vnode.partition, gone.document.epoch, gone.document.cohort, True,
                                 gone.document.previous.epoch)
        return [Send(name, question) for name in gone.unasked]

    @property
    def is_bereft(self) -> bool:
        """Whether this leader's document is gone and not put back yet."""
        return self._gone is not None

    def _keep_barrier(self, document: Document) -> None:
        """Remember how long nothing may be granted, should the document be lost meanwhile."""
        if document.no_grant_before_ms > self._barrier_ms:
            self._barrier_ms = document.no_grant_before_ms
            save_barrier(self._vnode.store, self._vnode.partition, self._barrier_ms)

    def _check_memory(self, now_ms: int, document: Document) -> None:
        """A node that led an epoch, or whose vote was counted for it, has durably promised it before. If this node
        did and its store does not know, the store is an old copy put back."""
        vnode, me = self._vnode, self._vnode.me
        led = [epoch for leader, epoch in ((document.leader, document.epoch),
                                           (document.previous.leader, document.previous.epoch))
               if leader == me.name]
        promised = max([document.promises.get(me.name, 0), *led])
        is_same_store = me.incarnation != "" and Seat(me.name, me.incarnation) in document.seats
        if promised > vnode.promise.epoch and is_same_store and not vnode.suspicion:
            vnode.doubt(now_ms, f"it promised epoch {promised} and does not know: its data is an old copy")

    def _decide(self, now_ms: int, event: DocumentRead, facts: Facts) -> list[Effect]:
        document, transfer = event.document, self._election.transfer
        if transfer is not None:
            is_of_leader = (document.epoch, document.leader) == (transfer.epoch, transfer.leader)
            is_barred = self._vnode.me.name in document.outlaws
            if is_of_leader and not is_frozen(document, now_ms) and not is_barred:
                return self._open(now_ms, document, event.version, transfer.cohort, f"{document.leader} yielded")
        else:
            action = evaluate(attrs.evolve(facts, epoch=0, was_there=event.was_there), document, now_ms)
            if isinstance(action, Stand):
                self._vnode.why_unled = ""
                return self._try(now_ms, document, event.version, action)
            self._vnode.why_unled = action.reason if isinstance(action, Rest) else ""
        if document.epoch > self._vnode.leader_epoch:  # else the leader says itself that it does not lead
            self._vnode.note_leader(document.leader, document.epoch)
        self._election.give_up(now_ms)
        return []

    def _try(self, now_ms: int, document: Document, version: int, action: Stand) -> list[Effect]:
        epoch = self._election.choose_epoch(document, self._vnode.promise.epoch)
        if epoch > document.told_epoch + EPOCHS_AHEAD:
            return self._spend(now_ms, document, version, epoch)
        cause = ("the first leader" if not document.epoch else
                 f"{document.leader} was not heard" if document.leader else "there was no leader")
        if action.is_forced:
            cause = GIVEN_UP
        effects = self._election.open(now_ms, document, version, action.cohort, is_trial=True, cause=cause,
                                      is_forced=action.is_forced)
        return effects + self._advance(now_ms)

    def _open(self, now_ms: int, document: Document, version: int, cohort: Names, cause: str, *,
              is_forced: bool = False) -> list[Effect]:
        """Stand without a trial: the leader itself wishes it."""
        epoch = self._election.choose_epoch(document, self._vnode.promise.epoch)
        if epoch > document.told_epoch + EPOCHS_AHEAD:
            return self._spend(now_ms, document, version, epoch)
        self._vnode.promise_to(now_ms, epoch, self._vnode.me.name, cohort, document.epoch)
        effects = self._election.open(now_ms, document, version, cohort, is_trial=False, cause=cause,
                                      is_forced=is_forced)
        return effects + self._advance(now_ms)

    def _spend(self, now_ms: int, document: Document, version: int, epoch: int) -> list[Effect]:
        """No voter would promise this epoch: write into the document which epochs are spent, and begin anew by it.
        Whether the write succeeds shows when it is read."""
        self._vnode.resign(now_ms)
        return [SwapDocument(self._vnode.partition, version, attrs.evolve(
            document, spent=epoch - 1, write_id=self._election.write_id(), cause="epochs were spent"),
            is_founding=version < 0)]

    def on_read_failed(self, now_ms: int) -> None:
        """The registry is out of reach: start over later. A swap in doubt stays in doubt, and is read again."""
        self._is_reading = False
        if self._election.phase is Phase.READING:
            self._election.give_up(now_ms)

    def on_vote(self, now_ms: int, voter: str, vote: m.Vote) -> list[Effect]:
        """An answer to ``RequestVote``. A voter whose promise is beyond belief counts as silent."""
        if self._gone is not None and vote.is_trial and self._election.is_leading:
            self._gone.promised[voter] = vote.promised
            return self._put_back(now_ms)
        if self._vnode.believes(vote.promised):
            self._election.on_vote(now_ms, voter, vote)
        return self._advance(now_ms)

    def on_page(self, now_ms: int, voter: str, page: m.ClaimPage) -> list[Effect]:
        """Claims of a voter."""
        if self._election.phase is not Phase.PULLING or page.epoch != self._election.epoch:
            return []
        self._vnode.join_claims(now_ms, page)
        effects = self._election.on_page(now_ms, voter, page)
        return effects + self._advance(now_ms)

    def on_synced(self, now_ms: int, member: str, synced: m.Synced) -> list[Effect]:
        """A new member of the cohort holds what the voters held."""
        self._election.on_synced(member, synced.epoch)
        return self._advance(now_ms)

    def on_kept(self, now_ms: int, voter: str, kept: m.ClaimsKept) -> list[Effect]:
        """A pushed page is safe at a voter."""
        following = self._vnode.claim_page(kept.next) if kept.next else None
        effects = self._election.on_kept(now_ms, voter, kept, following)
        return effects + self._advance(now_ms)

    def on_swapped(self, now_ms: int, event: DocumentSwapped) -> list[Effect]:
        """The registry's verdict, on an election or on upkeep."""
        if self._written is not None and event.write_id == self._written.write_id:
            self._on_written(event)
            return []
        was = self._election.phase
        effects = self._election.on_swapped(now_ms, event)
        if was is Phase.SWAPPING:
            self._rise(now_ms)
        return effects

    def _advance(self, now_ms: int) -> list[Effect]:
        """Take the steps that need no further answer."""
        election, vnode = self._election, self._vnode
        effects: list[Effect] = []
        if election.phase is Phase.TRYING and election.has_votes():
            epoch = election.choose_epoch(election.document, vnode.promise.epoch)
            if epoch > election.document.told_epoch + EPOCHS_AHEAD:
                return self._spend(now_ms, election.document, election.version, epoch)
            vnode.promise_to(now_ms, epoch, vnode.me.name, election.cohort, election.document.epoch)
            effects += election.ask_for_votes(now_ms)
        if election.phase is Phase.VOTING and election.has_votes():
            effects += election.start_pull(now_ms)
        if election.has_pulled():
            effects += election.start_sync(now_ms)
        if election.has_synced():
            effects += election.start_push(now_ms, vnode.claim_page(b""))
        if election.has_pushed() and election.would_lose_votes(vnode.live):
            vnode.resign(now_ms)
        if election.has_pushed():
            effects += election.swap(now_ms, vnode.live, self._floor(), vnode.parameters.skew_ms)
        return effects

    def _floor(self) -> Floor:
        claims = sum(counts[State.CLAIMED] for _, counts in self._vnode.replica.filing.tally.rows())
        tree = self._vnode.replica.tree
        return Floor(max(0, claims), tree.root if tree.is_built else 0, self._election.document.horizon_ms)

    def _rise(self, now_ms: int) -> None:
        election, vnode = self._election, self._vnode
        if election.is_leading:
            vnode.note_elected(election.cause)
            vnode.granted = 0
            vnode.is_draining = False
            if election.cause == SPENT:
                self._moves_tried, self._next_move_ms = 0, now_ms  # it had what it wanted: no pause, however often
            self._written, self._gone, self._is_in_doubt, self._is_reading = None, None, False, False
            vnode.note_leader(vnode.me.name, election.epoch)
            self._keep_barrier(election.document)
            vnode.settle(now_ms, election.epoch, election.document.era, election.cohort)

    # -- while leading -----------------------------------------------------------------------------

    def needed_horizon(self, now_ms: int) -> int:
        """How far the document's horizon must reach; 0 when it is far enough."""
        vnode, timing = self._vnode, self._vnode.timing
        left_ms = self._election.document.horizon_ms - now_ms
        if left_ms >= timing.horizon_ms // 2 and vnode.wanted_horizon_ms <= self._election.document.horizon_ms:
            return 0
        return max(now_ms + timing.horizon_ms, vnode.wanted_horizon_ms + timing.horizon_ms // 2)

    def tend(self, now_ms: int, facts: Facts) -> list[Effect]:
        """See to the document, the cohort, and whether another node should lead."""
        if self._written is not None or self._is_reading:
            return []
        if self._gone is not None:
            return self._put_back(now_ms)
        if self._is_in_doubt:
            self._is_reading = True
            return [ReadDocument(self._vnode.partition)]
        was_barred, self._is_barred = self._is_barred, now_ms < self._election.document.no_grant_before_ms
        if was_barred and not self._is_barred:
            self._is_reading = True
            return [ReadDocument(self._vnode.partition)]  # with it, what waits for the document is tried again
        action = evaluate(facts, self._election.document, now_ms)
        self.is_moving = isinstance(action, Stand | Yield)
        if isinstance(action, Resign):
            self._vnode.resign(now_ms, "its document names another leader")
        elif isinstance(action, Write):
            return self._write(action.document)
        elif isinstance(action, Stand | Yield):
            return self._move(now_ms, action)
        else:
            self._vnode.is_draining = False
            self._moves_tried = 0
        return []

    def hand_over(self, now_ms: int) -> None:
        """This node is about to stop: yield without a pause, however often a move failed before."""
        self.is_moving, self._is_hurried, self._moves_tried, self._next_move_ms = True, True, 0, now_ms

    def _move(self, now_ms: int, action: Stand | Yield) -> list[Effect]:
        """Once no grant is open, stand or yield; the outcome must show before the next attempt. A grant cut short
        would leave claims that have no holder and that no leader may release."""
        election, vnode = self._election, self._vnode
        if now_ms < self._next_move_ms:
            vnode.is_draining = vnode.is_draining and now_ms < self._drained_until_ms
            return []
        vnode.is_draining = True
        if vnode.open_grants:
            return []
        pause = HURRIED if self._is_hurried else MOVE_PAUSE << min(self._moves_tried, MOVE_DOUBLINGS)
        self._next_move_ms = now_ms + pause * vnode.timing.retry_ms
        self._drained_until_ms = now_ms + vnode.timing.vote_ms
        self._moves_tried += 1
        if isinstance(action, Yield):
            target = action.targets[(self._moves_tried - 1) % len(action.targets)]
            return [Send(target, m.Abdicate(vnode.partition, election.epoch, action.cohort))]
        cause = SPENT if vnode.is_spent else "the placement moved"
        if action.is_forced:
            cause = GIVEN_UP
        return self._open(now_ms, election.document, election.version, action.cohort, cause,
                          is_forced=action.is_forced)

    def _write(self, document: Document) -> list[Effect]:
        known = self._election.document
        changed = [field for field in KEPT_UP if getattr(document, field) != getattr(known, field)]
        self._written = attrs.evolve(document, write_id=self._election.write_id(),
                                     cause=f"upkeep: {', '.join(changed)}")
        return [SwapDocument(self._vnode.partition, self._election.version, self._written)]

    def _on_written(self, event: DocumentSwapped) -> None:
        written, self._written = self._written, None
        if not self._election.is_leading or written is None:
            return
        if event.outcome is Outcome.WON:
            self._election.note_written(written, event.version)
        else:
            self._is_in_doubt = True
