"""One node's instance of one partition: its data, its promise, its candidacy, joined.

The vnode serves the voters' and followers' side of the protocol (vote, hand over claims, keep
claims, record grants) and drives its own ``Election``. One rule holds it together: **whatever rests
on an epoch is checked against the promise, in the same step that records it.** Votes and grants
are therefore serialised, which is what lets a candidate trust what a voter hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from skuld_py.config import Limits, Parameters, Timing
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import DocumentRead, DocumentSwapped, Effect
from skuld_py.model.store import Store
from skuld_py.model.task import decode_body, token_of
from skuld_py.partition.election import AWAITING_READ, Election, Phase
from skuld_py.partition.promise import Promise, load_promise, save_promise
from skuld_py.partition.replica import Amendment, Grant, Replica
from skuld_py.partition.tables import place_of


class Vnode:
    """A partition on this node. ``leader`` is who is known to lead, since ``leader_epoch``."""

    def __init__(self, partition: int, me: Member, parameters: Parameters, store: Store, timing: Timing,
                 limits: Limits, jitter_ms: Callable[[int], int]) -> None:
        self.partition = partition
        self.me = me
        self.parameters = parameters
        self.store = store
        self.limits = limits
        self.replica = Replica(partition, store, parameters.skew_ms)
        self.promise = load_promise(store, partition)
        self.election = Election(partition, me, timing, jitter_ms)
        self.leader = ""
        self.leader_epoch = 0
        self.leaderless_since_ms: int | None = None
        self._granted = 0

    # -- epochs --------------------------------------------------------------------------------

    @property
    def is_leading(self) -> bool:
        """Whether this vnode leads and has promised nothing newer."""
        return self.election.is_leading and self.promise == Promise(self.election.epoch, self.me.name)

    @property
    def epoch(self) -> int:
        """The epoch it leads."""
        return self.election.epoch

    def note_leader(self, leader: str, epoch: int) -> None:
        """Learn who leads; older news is ignored."""
        if epoch >= self.leader_epoch:
            self.leader, self.leader_epoch = leader, epoch

    def forget_leader(self, leader: str) -> None:
        """The node named says it does not lead, or is gone."""
        if self.leader == leader:
            self.leader = ""

    def _keep_promise(self, now_ms: int, epoch: int, candidate: str) -> bool:
        """Promise an epoch, or confirm that it is the one promised; a newer one ends our own candidacy."""
        if not self.promise.allows_vote(epoch, candidate):
            return False
        if epoch > self.promise.epoch:
            self.promise = Promise(epoch, candidate)
            save_promise(self.store, self.partition, self.promise)
            if candidate != self.me.name and not self.election.is_idle:
                self.resign(now_ms)
        return True

    def resign(self, now_ms: int) -> None:
        """End a candidacy or a leadership."""
        self.forget_leader(self.me.name)
        self.election.give_up(now_ms)

    # -- the voters' and followers' side ----------------------------------------------------------

    def on_request_vote(self, now_ms: int, candidate: str, request: m.RequestVote) -> m.Vote:
        """Grant the vote if nothing as new was promised to somebody else."""
        is_granted = self._keep_promise(now_ms, request.epoch, candidate)
        return m.Vote(self.partition, request.epoch, is_granted, False, self.promise.epoch, 0)

    def on_pull(self, candidate: str, request: m.PullClaims) -> m.ClaimPage | None:
        """Hand live claims to the candidate that holds our vote; nobody else gets an answer."""
        if self.promise != Promise(request.epoch, candidate):
            return None
        page = self.claim_page(request.after)
        return m.ClaimPage(self.partition, request.epoch, page.after, page.next, page.ids, page.histories,
                           page.places)

    def claim_page(self, after: bytes) -> m.PushClaims:
        """Live claims behind a cursor, with the place each task would wait in."""
        limit = self.limits.page_rows
        rows = self.replica.leases(after, limit)
        task_ids = [task_id for _, task_id, _ in rows]
        histories = self.replica.histories(task_ids)
        records = [histories[self.replica.prefix + task_id] for task_id in task_ids]
        cursor = rows[-1][0] if len(rows) == limit else b""
        return m.PushClaims(self.partition, self.election.epoch, after, cursor, b"".join(task_ids),
                            columns.pack(records), columns.pack([place for _, _, place in rows]))

    def on_push(self, now_ms: int, candidate: str, request: m.PushClaims) -> m.ClaimsKept | None:
        """Keep the claims of the candidate that holds our vote."""
        if self.promise != Promise(request.epoch, candidate):
            return None
        self._join_claims(now_ms, request)
        return m.ClaimsKept(self.partition, request.epoch, request.after, request.next)

    def _join_claims(self, now_ms: int, page: m.PushClaims | m.ClaimPage | m.Amend) -> None:
        task_ids = ids.split(page.ids)
        histories, places = page.histories.unpack("histories"), page.places.unpack("places")
        try:
            for task_id, history, place in zip(task_ids, histories, places, strict=True):
                self.replica.merge_history(now_ms, task_id, history, place or None)
        except ValueError as problem:
            raise Malformed("histories", str(problem)) from None

    def on_grant(self, now_ms: int, leader: str, request: m.Grant) -> m.Granted:
        """Record the leader's claims, except those this copy knows better about."""
        vetoed: list[int] = []
        is_accepted = self._keep_promise(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            grant = _grant_of(request)
            vetoed = self.replica.objections(grant)
            self.replica.apply_grant(now_ms, grant, vetoed)
        return m.Granted(request.request, self.partition, self.promise.epoch, is_accepted,
                         columns.pack_u64(vetoed))

    def on_amend(self, now_ms: int, leader: str, request: m.Amend) -> m.Amended:
        """Record the leader's renewals or releases."""
        is_accepted = self._keep_promise(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            self._join_claims(now_ms, request)
        return m.Amended(request.request, self.partition, self.promise.epoch, is_accepted)

    # -- the candidate's side ---------------------------------------------------------------------

    def stand(self, now_ms: int, owners: tuple[str, ...]) -> list[Effect]:
        """Begin a candidacy."""
        return self.election.stand(now_ms, owners)

    def on_read(self, now_ms: int, event: DocumentRead, live: Mapping[str, Member],
                is_overdue: bool) -> list[Effect]:
        """The document: promise oneself the next epoch and ask for votes, or stand back."""
        was = self.election.phase
        effects = self.election.on_read(now_ms, event, self.promise.epoch, live, is_overdue)
        if self.election.phase is Phase.VOTING and was is Phase.READING:
            self._keep_promise(now_ms, self.election.epoch, self.me.name)
            effects += self.election.check_votes(now_ms)
            effects += self._advance(now_ms)
        elif was is Phase.READING and event.document.epoch > self.leader_epoch:
            self.note_leader(event.document.leader, event.document.epoch)  # else: it says itself it does not lead
        self._rise(was)
        return effects

    def on_read_failed(self, now_ms: int) -> None:
        """The registry is out of reach: start over later. A swap in doubt stays in doubt."""
        if self.election.phase in AWAITING_READ:
            self.election.give_up(now_ms)

    def on_vote(self, now_ms: int, voter: str, vote: m.Vote) -> list[Effect]:
        """An answer to ``RequestVote``."""
        effects = self.election.on_vote(now_ms, voter, vote)
        return effects + self._advance(now_ms)

    def on_page(self, now_ms: int, voter: str, page: m.ClaimPage) -> list[Effect]:
        """Claims of a voter."""
        if self.election.phase is not Phase.PULLING or page.epoch != self.election.epoch:
            return []
        self._join_claims(now_ms, page)
        effects = self.election.on_page(voter, page)
        return effects + self._advance(now_ms)

    def on_kept(self, now_ms: int, voter: str, kept: m.ClaimsKept) -> list[Effect]:
        """A pushed page is safe at a voter."""
        following = self.claim_page(kept.next) if kept.next else None
        effects = self.election.on_kept(voter, kept, following)
        return effects + self._advance(now_ms)

    def on_swapped(self, now_ms: int, event: DocumentSwapped) -> list[Effect]:
        """The registry's verdict."""
        was = self.election.phase
        effects = self.election.on_swapped(now_ms, event)
        self._rise(was)
        return effects

    def _advance(self, now_ms: int) -> list[Effect]:
        """Take the steps that need no further answer."""
        effects: list[Effect] = []
        if self.election.has_pulled():
            effects += self.election.start_push(self.claim_page(b""))
        if self.election.has_pushed():
            effects += self.election.swap(now_ms)
        return effects

    def _rise(self, was: Phase) -> None:
        if self.election.is_leading and was is not Phase.LEADING:
            self._granted = 0
            self.note_leader(self.me.name, self.election.epoch)

    # -- the leader's side ------------------------------------------------------------------------

    def propose(self, now_ms: int, request: int, queue: str, heads: Sequence[bytes], lease_ms: int,
                holder: str) -> tuple[m.Grant, Grant]:
        """Claim waiting tasks, given as (place + id), on this copy; the grant must go to the cohort."""
        heads = self.replica.still_waiting(now_ms, heads)
        task_ids = [head[-ids.ID_BYTES :] for head in heads]
        first_token = token_of(self.epoch, self._granted + 1)
        self._granted += len(heads)
        grant = Grant(task_ids, [head[: -ids.ID_BYTES] for head in heads], first_token, now_ms,
                      now_ms + lease_ms, holder)
        self.replica.apply_grant(now_ms, grant)
        priorities = b"".join([head[-ids.ID_BYTES - 4 : -ids.ID_BYTES] for head in heads])
        message = m.Grant(request, self.partition, self.epoch, first_token, now_ms, grant.end_ms, holder,
                          queue, b"".join(task_ids), priorities)
        return message, grant

    def amend(self, now_ms: int, request: int, amendments: Sequence[Amendment]) -> m.Amend:
        """Renew or release claims on this copy; the message must go to the cohort."""
        self.replica.amend(now_ms, amendments)
        task_ids = [amendment.id for amendment in amendments]
        histories = self.replica.histories(task_ids)
        records = [histories[self.replica.prefix + task_id] for task_id in task_ids]
        places = [b"" if body is None else place_of(decode_body(body)[0])
                  for body in self.replica.bodies(task_ids)]
        return m.Amend(request, self.partition, self.epoch, b"".join(task_ids), columns.pack(records),
                       columns.pack(places))


def _grant_of(request: m.Grant) -> Grant:
    task_ids = ids.split(request.ids)
    base = request.queue.encode() + b"\0"
    places = [base + request.priorities[at : at + 4] for at in range(0, 4 * len(task_ids), 4)]
    return Grant(task_ids, places, request.first_token, request.start_ms, request.end_ms, request.holder)
