"""One node's instance of one partition: its data, its promise, its standing, its candidacy, joined.

The vnode serves the voters' and followers' side of the protocol (vote, hand over claims, keep
claims, record grants) and, leading, grants; ``Candidacy`` makes it a leader. One rule holds it
together: **whatever rests on an epoch is checked against the promise, in the same step that records
it.** Votes and grants are therefore serialised, which is what lets a candidate trust what a voter
hands over.

A vnode whose memory is not to be trusted (``suspicion``) neither votes nor acknowledges claims, until
it has filled again from so many others that any majority it belonged to is met among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from skuld_py.config import Limits, Parameters, Timing
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import header_of
from skuld_py.model.document import Member
from skuld_py.model.history import token_of
from skuld_py.model.outcomes import ERROR_SEQ
from skuld_py.model.store import Store
from skuld_py.partition.change import Change
from skuld_py.partition.election import Election, Phase
from skuld_py.partition.facts import Grant
from skuld_py.partition.promise import Promise, load_promise, save_promise
from skuld_py.partition.replica import Replica
from skuld_py.partition.standing import Names, Standing, load_standing, save_standing
from skuld_py.partition.suspicion import clear_suspect, mark_suspect
from skuld_py.partition.tables import place_of
from skuld_py.partition.tally import Touched


class Role(Enum):
    """What a vnode is to its partition: it votes; it is to vote and fills; it votes once it has filled
    again; it was here and hands off; it is nothing here."""

    MEMBER = "member"
    LEARNER = "learner"
    SUSPECT = "suspect"
    ZOMBIE = "zombie"
    STRANGER = "stranger"


class Vnode:
    """A partition on this node. ``leader`` is who is known to lead, since ``leader_epoch``."""

    def __init__(self, partition: int, me: Member, parameters: Parameters, store: Store, timing: Timing,
                 limits: Limits, jitter_ms: Callable[[int], int], touched: Touched | None = None) -> None:
        self.partition = partition
        self.me = me
        self.parameters = parameters
        self.store = store
        self.limits = limits
        self.timing = timing
        self.replica = Replica(partition, store, parameters.skew_ms, touched)
        self.promise = load_promise(store, partition)
        self.standing = load_standing(store, partition)
        self._suspicion = ""
        self.election = Election(partition, me, timing, jitter_ms)
        self.live: Mapping[str, Member] = {}
        self.leader = ""
        self.leader_epoch = 0
        self.leaderless_since_ms: int | None = None
        self.granted = 0
        """Claims granted in this leadership; numbers the tokens."""
        self.open_grants = 0
        """Grants whose cohort has not decided yet."""
        self.is_draining = False
        """No new grants: the leadership is about to change hands, and what is open shall end first."""
        self.wanted_horizon_ms = 0
        """Where leases asked for would end; the document's horizon must be moved beyond it first."""

    @property
    def suspicion(self) -> str:
        """Why its memory is not to be trusted; nothing when it is."""
        return self._suspicion

    @suspicion.setter
    def suspicion(self, reason: str) -> None:
        self._suspicion = reason
        self.replica.watermark.is_trusted = not reason

    # -- epochs --------------------------------------------------------------------------------

    @property
    def is_leading(self) -> bool:
        """Whether this vnode leads and has promised nothing newer."""
        election, promise = self.election, self.promise
        return (election.phase is Phase.LEADING and promise.epoch == election.epoch
                and promise.candidate == self.me.name)

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

    def settle(self, now_ms: int, epoch: int, era: int, cohort: Names) -> None:
        """Learn that an epoch has a leader, over a cohort seated in ``era``. Who led an older one resigns: what
        it granted now, nobody would keep."""
        if self.election.is_leading and epoch > self.election.epoch:
            self.resign(now_ms)
        self._change_standing(self.standing.settled(epoch, era, cohort))

    def expect(self, epoch: int, cohort: Names, base: int) -> None:
        """Learn that a candidate would lead this cohort, from the document of ``base`` on (0: not told)."""
        self._change_standing(self.standing.proposed(base + 1 if base else epoch, cohort))

    def _change_standing(self, standing: Standing) -> None:
        if standing != self.standing:
            self.standing = standing
            save_standing(self.store, self.partition, standing)

    def promise_to(self, now_ms: int, epoch: int, candidate: str, cohort: Names = (), base: int = 0) -> bool:
        """Promise an epoch, or confirm that it is the one promised; a newer one ends our own candidacy.

        ``cohort``: whom the candidate would lead; until its end is known, that cohort counts too.
        """
        if not self.promise.allows_vote(epoch, candidate):
            return False
        if cohort:
            self.expect(epoch, cohort, base)
        if epoch > self.promise.epoch:
            self.promise = Promise(epoch, candidate)
            save_promise(self.store, self.partition, self.promise)
            if candidate != self.me.name and not self.election.is_idle:
                self.resign(now_ms)
        return True

    def resign(self, now_ms: int) -> None:
        """End a candidacy or a leadership."""
        self.is_draining = False
        self.forget_leader(self.me.name)
        self.election.give_up(now_ms)

    # -- place -----------------------------------------------------------------------------------

    def role(self, owners: Names) -> Role:
        """What it is to a partition that is placed on ``owners``."""
        me = self.me.name
        if self.takes_writes(owners):
            if self.suspicion:
                return Role.SUSPECT
            return Role.MEMBER if me in (self.standing.cohort or owners) else Role.LEARNER
        return Role.STRANGER if self.replica.is_empty() else Role.ZOMBIE

    def takes_writes(self, owners: Names) -> bool:
        """Whether tasks may still be added here: a zombie's data must not grow."""
        return self.me.name in owners or self.standing.includes(self.me.name)

    @property
    def is_counted(self) -> bool:
        """Whether what is kept here counts as a copy.

        Not while its memory is in doubt; nor, after that, until a leader is known as new as all it may have
        voted for: it cannot say any more which cohorts are pending.
        """
        return not self.suspicion and (bool(self.promise.candidate) or self.standing.epoch >= self.promise.epoch)

    def cohorts_for(self, era: int) -> list[m.CohortRow]:
        """What the sender of a question, who counts by ``era``, must know besides."""
        standing = self.standing
        rows = [m.CohortRow(self.partition, 0, cohort) for epoch, cohort in standing.pending if epoch > era]
        if standing.era > era:
            rows.append(m.CohortRow(self.partition, standing.era, standing.cohort))
        return rows

    def doubt(self, now_ms: int, reason: str) -> None:
        """Begin a suspicion, durably."""
        self.suspicion = reason
        mark_suspect(self.store, [self.partition], reason)
        if not self.election.is_idle:
            self.resign(now_ms)

    def trust(self, now_ms: int, promised: int) -> None:
        """End a suspicion: enough others have told their promises, ``promised`` the highest, and their data.

        Nobody is promised that epoch here: claims of leaders older than this filling are not acknowledged.
        """
        if promised > self.promise.epoch:
            self.promise = Promise(promised, "")
            save_promise(self.store, self.partition, self.promise)
            if not self.election.is_idle:
                self.resign(now_ms)
        self.suspicion = ""
        clear_suspect(self.store, self.partition)

    # -- the voters' and followers' side ----------------------------------------------------------

    def on_request_vote(self, now_ms: int, candidate: str, request: m.RequestVote,
                        is_led: bool) -> m.Vote | None:
        """Vote, unless something as new was promised to somebody else; on trial, unless a leader is heard or this
        node asks for votes itself. Who has voted leaves the candidate some time before it stands itself; not who
        was asked on trial, or a candidate that hears no answer could hold off all others by asking."""
        if self.suspicion:
            return None
        if request.is_trial:
            is_granted = self.leader == candidate or not (is_led or self.election.has_stood)
        else:
            is_granted = self.promise_to(now_ms, request.epoch, candidate, request.cohort, request.base)
            if is_granted and candidate != self.me.name:
                self.election.make_way(now_ms + 2 * self.timing.retry_ms)
        return m.Vote(self.partition, request.epoch, is_granted, request.is_trial, self.promise.epoch,
                      self.standing.epoch)

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
        rows = self.replica.filing.leases(after, limit)
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
        self.join_claims(now_ms, request)
        return m.ClaimsKept(self.partition, request.epoch, request.after, request.next)

    def join_claims(self, now_ms: int, page: m.PushClaims | m.ClaimPage | m.Amend) -> None:
        """Join claims of another copy into this one."""
        task_ids = ids.split(page.ids)
        histories, places = page.histories.unpack("histories"), page.places.unpack("places")
        try:
            for task_id, history, place in zip(task_ids, histories, places, strict=True):
                self.replica.merge_history(now_ms, task_id, history, place or None)
        except ValueError as problem:
            raise Malformed("histories", str(problem)) from None

    def on_grant(self, now_ms: int, leader: str, request: m.Grant) -> m.Granted:
        """Record the leader's claims, except those this copy knows better about."""
        blockers: list[bytes] = []
        vetoed: list[int] = []
        is_accepted = not self.suspicion and self.promise_to(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            grant = _grant_of(request)
            known = self.replica.histories(grant.ids)
            vetoed = self.replica.objections(grant, known)
            blockers = self.replica.blockers(grant, vetoed)
            self.replica.apply_grant(now_ms, grant, vetoed, known)
        return m.Granted(request.request, self.partition, self.promise.epoch, is_accepted,
                         columns.pack_u64(vetoed), b"".join(blockers))

    def on_amend(self, now_ms: int, leader: str, request: m.Amend) -> m.Amended:
        """Record what the leader changed."""
        is_accepted = not self.suspicion and self.promise_to(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            self.join_claims(now_ms, request)
            if len(request.errors):
                self.replica.note_outcomes(ERROR_SEQ, ids.split(request.ids), columns.unpack_u64(request.tokens),
                                           request.errors.unpack("errors"))
        return m.Amended(request.request, self.partition, self.promise.epoch, is_accepted)

    # -- the leader's side ------------------------------------------------------------------------

    def may_grant_until(self, now_ms: int, end_ms: int) -> bool:
        """Whether claims may end then; if the horizon is too near, note where it must go."""
        document = self.election.document
        if self.is_draining or now_ms < document.no_grant_before_ms:
            return False
        if end_ms > document.horizon_ms:
            self.wanted_horizon_ms = max(self.wanted_horizon_ms, end_ms)
            return False
        return True

    def propose(self, now_ms: int, request: int, queue: str, heads: Sequence[bytes], lease_ms: int,
                holder: str) -> tuple[m.Grant, Grant]:
        """Claim waiting tasks, given as (place + id), on this copy; the grant must go to the cohort."""
        task_ids = [head[-ids.ID_BYTES :] for head in heads]
        known = self.replica.histories(task_ids)
        if known:
            heads = self.replica.still_waiting(now_ms, heads, known)
            task_ids = [head[-ids.ID_BYTES :] for head in heads]
        first_token = token_of(self.epoch, self.granted + 1)
        self.granted += len(heads)
        grant = Grant(task_ids, [head[: -ids.ID_BYTES] for head in heads], first_token, now_ms,
                      now_ms + lease_ms, holder)
        self.replica.apply_grant(now_ms, grant, known=known)
        priorities = b"".join([head[-ids.ID_BYTES - 4 : -ids.ID_BYTES] for head in heads])
        message = m.Grant(request, self.partition, self.epoch, first_token, now_ms, grant.end_ms, holder,
                          queue, b"".join(task_ids), priorities)
        return message, grant

    def amend(self, now_ms: int, request: int, change: Change) -> m.Amend:
        """Record a change on this copy; the message must go to the cohort."""
        change.apply(now_ms, self.replica)
        task_ids = change.ids
        histories = self.replica.histories(task_ids)
        records = [histories[self.replica.prefix + task_id] for task_id in task_ids]
        places = [b"" if body is None else place_of(header_of(body))
                  for body in self.replica.bodies(task_ids)]
        tokens, errors = change.errors_of(task_ids)
        return m.Amend(request, self.partition, self.epoch, b"".join(task_ids), columns.pack(records),
                       columns.pack(places), columns.pack_u64(tokens), columns.pack(errors))


def _grant_of(request: m.Grant) -> Grant:
    task_ids = ids.split(request.ids)
    base = request.queue.encode() + b"\0"
    places = columns.wrap(columns.split(request.priorities, 4), base)
    return Grant(task_ids, places, request.first_token, request.start_ms, request.end_ms, request.holder)
