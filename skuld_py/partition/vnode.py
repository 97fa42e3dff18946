"""One node's instance of one partition: its data, its promise, its standing, its candidacy, joined.

The vnode serves the voters' and followers' side of the protocol (vote, hand over claims, keep
claims, record grants) and, leading, grants; ``Candidacy`` makes it a leader. One rule holds it
together: **whatever rests on an epoch is checked against the promise, in the same step that records
it.** Votes and grants are therefore serialised, which is what lets a candidate trust what a voter
hands over.

A vnode whose memory is not to be trusted (``suspicion``) neither votes, nor acknowledges claims, nor hands any
over, until it has filled again, from others that include a node of every majority that it belonged to. Nor does a
vnode that has not read its partition's document in this life: that may show that its data is an old copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import chain, repeat

from skuld_py.config import Limits, Parameters
from skuld_py.config.timing import Timing
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import header_of
from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.history import token_of
from skuld_py.model.outcomes import ERROR_SEQ
from skuld_py.model.remarks import Kind, Remark, partition_said
from skuld_py.model.store import Store
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import PRIORITY_BYTES, id_of_head, place_of
from skuld_py.partition.leadership.election import Election, Phase
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD, Promise, load_promise, save_promise
from skuld_py.partition.leadership.standing import Names, Standing, load_standing, save_standing
from skuld_py.partition.leadership.suspicion import clear_suspect, mark_suspect

READ_ROWS = 100
"""Histories read together for a page: some may be long."""


class Role(Enum):
    """What a vnode is to its partition. It votes (member); it fills and is to vote (learner); it fills again and
    votes after that (suspect); it is not placed here any more and hands off (zombie); or none of these. A member
    or learner whose node is about to stop tells the others that it is a leaver."""

    MEMBER = "member"
    LEARNER = "learner"
    SUSPECT = "suspect"
    ZOMBIE = "zombie"
    STRANGER = "stranger"
    LEAVER = "leaver"


class Vnode:
    """A partition on this node. ``leader`` is the node known to lead, since ``leader_epoch``."""

    why_unled = ""
    """Why this node did not stand when it last wanted to, for people."""

    def __init__(self, partition: int, me: Member, parameters: Parameters, store: Store, timing: Timing,
                 limits: Limits, jitter_ms: Callable[[int], int], bulletin: Bulletin | None = None) -> None:
        self.partition = partition
        self.me = me
        self.parameters = parameters
        self.store = store
        self.limits = limits
        self.timing = timing
        self._bulletin = bulletin or Bulletin()
        self.replica = Replica(partition, store, parameters.skew_ms, self._bulletin)
        self.promise = load_promise(store, partition)
        self.standing = load_standing(store, partition)
        self._suspicion = ""
        self.has_read = False
        """Whether the partition's document was read in this life, and held against what is remembered here."""
        self.known = NOBODY
        """The document as it was last read."""
        self.spent = 0
        self._bound_tokens()
        self.election = Election(partition, me, timing, jitter_ms, changed=self._bulletin.change)
        self.live: Mapping[str, Member] = {}
        self.owners: Names = ()
        """The nodes that it is placed on; none while too few are registered."""
        self.keepers: list[str] = []
        """The nodes that store it: its voters, those that may become voters, and its owners."""
        self.takes_writes = False
        """Whether tasks may still be added here: a zombie's data must not grow."""
        self._note_keepers()
        self.nodes: Collection[str] = ()
        """The registered nodes, and those that are taken out: no other node votes."""
        self.heard_epoch = 0
        """The newest epoch that peers said has a leader and the document has not shown yet; 0 for none."""
        self.leader = ""
        self.leader_epoch = 0
        self.leaderless_since_ms: int | None = None
        self.granted = 0
        """Claims granted in this leadership; numbers the tokens."""
        self.open_grants = 0
        """Grants whose cohort has not decided yet."""
        self._serves_until_ms = 0
        """Until when the candidate that it voted for has time for the next page of claims."""
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
        self._bulletin.change(self.partition)

    @property
    def is_trusted(self) -> bool:
        """Whether it may speak for what it remembers."""
        return self.has_read and not self._suspicion

    # -- epochs --------------------------------------------------------------------------------

    @property
    def is_leading(self) -> bool:
        """Whether this vnode leads and has promised nothing newer."""
        election, promise = self.election, self.promise
        return (election.phase is Phase.LEADING and promise.epoch == election.epoch
                and promise.candidate == self.me.name)

    def leads(self, epoch: int) -> bool:
        """Whether it leads in this epoch, and has promised nothing newer."""
        return self.election.epoch == epoch and self.is_leading

    @property
    def epoch(self) -> int:
        """The epoch it leads."""
        return self.election.epoch

    def note_leader(self, leader: str, epoch: int) -> None:
        """Learn which node leads; older news is ignored."""
        if epoch >= self.leader_epoch and (leader, epoch) != (self.leader, self.leader_epoch):
            self.leader, self.leader_epoch = leader, epoch
            self._bulletin.change(self.partition)

    def forget_leader(self, leader: str) -> None:
        """The node named says it does not lead, or is gone."""
        if self.leader == leader:
            self.leader = ""
            self._bulletin.change(self.partition)

    @property
    def reach(self) -> int:
        """The highest epoch that any peer is believed to have: see ``EPOCHS_AHEAD``."""
        return max(self.standing.epoch, self.spent) + EPOCHS_AHEAD

    def believes(self, epoch: int, cohort: Names = (), led: int = 0) -> bool:
        """Whether what a peer says may be true: an epoch within reach, voters that are nodes. ``led``: an epoch
        that it takes to have a leader. Where the document may know more, it is to be read."""
        if led > self.standing.epoch or epoch > self.reach:
            self.heard_epoch = max(self.heard_epoch, led or epoch)
            self._bulletin.curious[self.partition] = None
        known = (*self.nodes, *self.standing.cohort)
        return epoch <= self.reach and all(name in known for name in cohort)

    def note_document(self, document: Document, heard_epoch: int) -> None:
        """Take the document as it was read, perhaps to see whether ``heard_epoch`` has a leader. A peer that said
        it leads an epoch which the document does not know of is not believed any more."""
        self.known = document
        self.spent = max(self.spent, document.spent)
        self._bound_tokens()
        if heard_epoch > document.epoch and self.leader_epoch > document.epoch and not self.election.is_leading:
            self.leader, self.leader_epoch = "", document.epoch
            self._bulletin.change(self.partition)
        if self.heard_epoch <= max(heard_epoch, document.epoch):
            self.heard_epoch = 0

    def settle(self, now_ms: int, epoch: int, era: int, cohort: Names) -> None:
        """Learn from the document that an epoch has a leader, over a cohort seated in ``era``. A leader of an
        older epoch resigns: no follower would record what it grants."""
        if self.election.is_leading and epoch > self.election.epoch:
            self.resign(now_ms, "a newer epoch has a leader")
        self._change_standing(self.standing.settled(epoch, era, cohort))

    def expect(self, epoch: int, cohort: Names, base: int) -> None:
        """Learn that a candidate would lead this cohort, from the document of ``base`` on (0: not told)."""
        self._change_standing(self.standing.proposed(base + 1 if base else epoch, cohort))

    def _change_standing(self, standing: Standing) -> None:
        if standing != self.standing:
            self.standing = standing
            self._note_keepers()
            save_standing(self.store, self.partition, standing)
            self._bulletin.change(self.partition)
            self._bound_tokens()

    def _bound_tokens(self) -> None:
        self.replica.token_max = token_of(self.reach + 1, 0) - 1

    def promise_to(self, now_ms: int, epoch: int, candidate: str, cohort: Names = (), base: int = 0) -> bool:
        """Promise an epoch, or confirm that it is the one promised; a newer one ends our own candidacy.

        ``cohort``: the nodes that the candidate would lead; until its end is known, they count too.
        """
        if not self.promise.allows_vote(epoch, candidate):
            return False
        if cohort:
            self.expect(epoch, cohort, base)
        if epoch > self.promise.epoch:
            self.promise = Promise(epoch, candidate)
            save_promise(self.store, self.partition, self.promise)
            self._bulletin.change(self.partition)
            if candidate != self.me.name and not self.election.is_idle:
                self.resign(now_ms, f"it voted for {candidate}")
        return True

    def resign(self, now_ms: int, why: str = "") -> None:
        """End a candidacy or a leadership, which it ends for a reason."""
        if self.election.is_leading:
            self._bulletin.counts.deposed += 1
            self.remark(Kind.DEPOSED, why, self.election.epoch)
        self.is_draining = False
        self.forget_leader(self.me.name)
        self.election.give_up(now_ms)

    def remark(self, kind: Kind, why: str = "", epoch: int = 0) -> None:
        """Tell people something of this partition."""
        self._bulletin.remark(Remark(kind, partition_said(self.partition, epoch), why))

    def note_elected(self, why: str) -> None:
        """It leads, in a new epoch."""
        self._bulletin.counts.elected += 1
        self.remark(Kind.ELECTED, why, self.election.epoch)

    # -- place -----------------------------------------------------------------------------------

    def place(self, owners: Names) -> None:
        """It belongs on these nodes from now on."""
        if owners != self.owners:
            self._bulletin.change(self.partition)
        self.owners = owners
        self._note_keepers()

    def _note_keepers(self) -> None:
        self.keepers = list(dict.fromkeys(chain(*self.standing.groups, self.owners)))
        self.takes_writes = self.me.name in self.keepers

    @property
    def role(self) -> Role:
        """What it is to the partition."""
        if self.takes_writes:
            if self.suspicion:
                return Role.SUSPECT
            is_member = self.me.name in (self.standing.cohort or self.owners)
            return Role.MEMBER if is_member else Role.LEARNER
        return Role.STRANGER if self.replica.is_empty() else Role.ZOMBIE

    @property
    def is_counted(self) -> bool:
        """Whether what is kept here counts as a copy.

        Not while its memory is in doubt; nor, after that, until a leader is known as new as all it may have
        voted for: it cannot say any more which cohorts are pending.
        """
        return self.is_trusted and (bool(self.promise.candidate) or self.standing.epoch >= self.promise.epoch)

    def cohorts_for(self, era: int) -> list[m.CohortRow]:
        """The cohorts that the sender of a question must count in besides, since it counts by ``era``."""
        standing = self.standing
        rows = [m.CohortRow(self.partition, 0, cohort) for epoch, cohort in standing.pending if epoch > era]
        if standing.era > era:
            rows.append(m.CohortRow(self.partition, standing.era, standing.cohort))
        return rows

    def doubt(self, now_ms: int, reason: str) -> None:
        """Begin a suspicion, durably."""
        self.suspicion = reason
        mark_suspect(self.store, [self.partition], reason)
        self.remark(Kind.DOUBT, reason)
        if not self.election.is_idle:
            self.resign(now_ms, "its memory is not to be trusted")

    def trust(self, now_ms: int, promised: int) -> None:
        """End a suspicion: enough others have told their promises, ``promised`` the highest, and their data.

        That epoch is promised to no candidate: claims of leaders older than this filling are not acknowledged.
        What was told may be older than the newest leader known here, whose voters may be others.
        """
        promised = max(promised, self.standing.epoch)
        if promised > self.promise.epoch:
            self.promise = Promise(promised, "")
            save_promise(self.store, self.partition, self.promise)
            self._bulletin.change(self.partition)
            if not self.election.is_idle:
                self.resign(now_ms, "its memory is not to be trusted")
        self.suspicion = ""
        clear_suspect(self.store, self.partition)

    # -- the voters' and followers' side ----------------------------------------------------------

    def on_request_vote(self, now_ms: int, candidate: str, request: m.RequestVote,
                        is_led: bool) -> m.Vote | None:
        """Vote, unless an epoch as new was promised to another candidate. On trial, say yes unless a leader is
        heard, or this node asks for votes itself, or serves another candidate. After a vote the node leaves the
        candidate some time before it stands itself; not after a trial, or a candidate that hears no answers could
        hold off all others by asking."""
        if not self.believes(request.epoch, request.cohort, request.base):
            return None
        if not self.is_trusted:
            return None
        if request.is_trial:
            is_taken = is_led or self.election.has_stood or self._serves_another(now_ms, candidate)
            is_granted = self.leader == candidate or not is_taken
        else:
            is_granted = self.promise_to(now_ms, request.epoch, candidate, request.cohort, request.base)
            if is_granted and candidate != self.me.name:
                self.election.make_way(now_ms + 2 * self.timing.retry_ms)
        return m.Vote(self.partition, request.epoch, is_granted, request.is_trial, self.promise.epoch,
                      self.standing.epoch)

    def _serves_another(self, now_ms: int, candidate: str) -> bool:
        return now_ms < self._serves_until_ms and candidate != self.promise.candidate

    def _serve(self, now_ms: int) -> None:
        """The candidate gets on: leave it the time for another page."""
        self._serves_until_ms = now_ms + self.timing.vote_ms
        self.election.make_way(self._serves_until_ms)

    def on_pull(self, now_ms: int, candidate: str, request: m.PullClaims) -> m.ClaimPage | None:
        """Hand live claims to the candidate that holds our vote; no other gets an answer."""
        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):
            return None
        self._serve(now_ms)
        page = self.claim_page(request.after)
        return m.ClaimPage(self.partition, request.epoch, page.after, page.next, page.ids, page.histories,
                           page.places)

    def claim_page(self, after: bytes) -> m.PushClaims:
        """Live claims behind a cursor, as many as a message holds, with the place each task would wait in."""
        limits, prefix = self.limits, self.replica.prefix
        rows = self.replica.filing.leases(after, limits.page_rows)
        records: list[bytes] = []
        while len(records) < len(rows) and sum(map(len, records)) < limits.page_bytes:
            task_ids = [task_id for _, task_id, _ in rows[len(records) : len(records) + READ_ROWS]]
            histories = self.replica.histories(task_ids)
            records += [histories[prefix + task_id] for task_id in task_ids]
        sizes = [len(record) + sum(map(len, row)) for record, row in zip(records, rows, strict=False)]
        count = columns.fitting(sizes, limits.page_bytes)
        cursor = rows[count - 1][0] if count < len(rows) or count == limits.page_rows else b""
        return m.PushClaims(self.partition, self.election.epoch, after, cursor,
                            b"".join([task_id for _, task_id, _ in rows[:count]]), columns.pack(records[:count]),
                            columns.pack([place for _, _, place in rows[:count]]))

    def on_push(self, now_ms: int, candidate: str, request: m.PushClaims) -> m.ClaimsKept | None:
        """Keep the claims of the candidate that holds our vote."""
        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):
            return None
        self._serve(now_ms)
        self.join_claims(now_ms, request)
        return m.ClaimsKept(self.partition, request.epoch, request.after, request.next)

    def join_claims(self, now_ms: int, page: m.PushClaims | m.ClaimPage | m.Amend) -> None:
        """Join claims of another copy into this one."""
        task_ids = self._own(page.ids)
        histories, places = page.histories.unpack("histories"), page.places.unpack("places")
        try:
            read = list(map(self.replica.read_history, histories))
        except ValueError as problem:
            raise Malformed("histories", str(problem)) from None
        for task_id, history, place in zip(task_ids, read, places, strict=True):
            self.replica.join_history(now_ms, task_id, history, place or None)

    def _own(self, blob: bytes) -> list[bytes]:
        """Ids that a peer names, which must all be of this partition, and each once: keys and trees rest on it."""
        task_ids = ids.split(blob)
        if task_ids and ids.group(blob, self.parameters.partitions).keys() != {self.partition}:
            raise Malformed("ids", "are not of the partition named")
        if len(dict.fromkeys(task_ids)) != len(task_ids):
            raise Malformed("ids", "name a task twice")
        return task_ids

    def on_grant(self, now_ms: int, leader: str, request: m.Grant) -> m.Granted | None:
        """Record the leader's claims, except those this copy knows better about. Before it has read the document
        it says nothing, and is asked again; a refusal would cost the leader its epoch. Nor does it answer where
        the epoch is beyond belief."""
        if not self.has_read or not self.believes(request.epoch, led=request.epoch):
            return None
        task_ids = self._own(request.ids)
        blockers: list[bytes] = []
        vetoed: list[int] = []
        is_accepted = not self.suspicion and self.promise_to(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            grant = _grant_of(request, task_ids)
            known = self.replica.histories(grant.ids)
            vetoed = self.replica.objections(grant, known, now_ms)
            blockers = self.replica.blockers(grant, vetoed)
            self.replica.apply_grant(now_ms, grant, vetoed, known)
        return m.Granted(request.request, self.partition, self.promise.epoch, is_accepted,
                         columns.pack_u64(vetoed), b"".join(blockers))

    def on_amend(self, now_ms: int, leader: str, request: m.Amend) -> m.Amended | None:
        """Record what the leader changed; silent when ``on_grant`` is."""
        if not self.has_read or not self.believes(request.epoch, led=request.epoch):
            return None
        is_accepted = not self.suspicion and self.promise_to(now_ms, request.epoch, leader)
        if is_accepted:
            self.note_leader(leader, request.epoch)
            self.join_claims(now_ms, request)
            if len(request.errors):
                self.replica.note_outcomes(ERROR_SEQ, ids.split(request.ids), columns.unpack_u64(request.tokens),
                                           request.errors.unpack("errors"))
        return m.Amended(request.request, self.partition, self.promise.epoch, is_accepted)

    # -- the leader's side ------------------------------------------------------------------------

    @property
    def is_spent(self) -> bool:
        """Whether this leadership has granted as many claims as it may: only a new epoch has tokens."""
        return self.granted >= self.limits.tokens

    def may_grant_until(self, now_ms: int, end_ms: int) -> bool:
        """Whether claims may be granted that end then."""
        if self.is_draining or self.is_spent or now_ms < self.election.document.no_grant_before_ms:
            return False
        return self.reaches(end_ms)

    def reaches(self, end_ms: int) -> bool:
        """Whether claims may end then; if the horizon is too near, note where it must go."""
        if end_ms > self.election.document.horizon_ms:
            self.wanted_horizon_ms = max(self.wanted_horizon_ms, end_ms)
            return False
        return True

    def propose(self, now_ms: int, request: int, queue: str, heads: Sequence[bytes], lease_ms: int,
                holder: str) -> tuple[m.Grant, Grant]:
        """Claim waiting tasks, given as their ready rows begin, on this copy; the grant must go to the cohort."""
        task_ids = list(map(id_of_head, heads))
        known = self.replica.histories(task_ids)
        if known:
            heads = self.replica.still_waiting(now_ms, heads, known)
            task_ids = list(map(id_of_head, heads))
        places = _places_of(queue, heads)
        first_token = token_of(self.epoch, self.granted + 1)
        self.granted += len(heads)
        if self.is_spent:
            self._bulletin.change(self.partition)
        past = columns.wrap(task_ids, self.replica.prefix) if known else ()
        grant = Grant(task_ids, places, first_token, now_ms, now_ms + lease_ms, holder,
                      [index for index, key in enumerate(past) if key in known])
        self.replica.apply_grant(now_ms, grant, known=known)
        priorities = b"".join([place[-PRIORITY_BYTES:] for place in places])
        message = m.Grant(request, self.partition, self.epoch, first_token, now_ms, grant.end_ms, holder,
                          queue, b"".join(task_ids), priorities)
        return message, grant

    def amend(self, now_ms: int, change: Change) -> list[m.Amend]:
        """Record a change on this copy; the messages must go to the cohort, each with the number of a request."""
        change.apply(now_ms, self.replica)
        task_ids = change.ids
        histories = self.replica.histories(task_ids)
        records = change.records([histories[self.replica.prefix + task_id] for task_id in task_ids])
        places = [b"" if body is None else place_of(header_of(body))
                  for body in self.replica.bodies(task_ids)]
        tokens, errors = change.errors_of(task_ids)
        sizes = [len(record) + len(place) for record, place in zip(records, places, strict=True)]
        if errors:
            sizes = [size + len(error) for size, error in zip(sizes, errors, strict=True)]
        pages, start = list[m.Amend](), 0
        while start < len(task_ids):
            stop = start + columns.fitting(sizes[start : start + self.limits.page_rows], self.limits.page_bytes)
            pages.append(m.Amend(0, self.partition, self.epoch, b"".join(task_ids[start:stop]),
                                 columns.pack(records[start:stop]), columns.pack(places[start:stop]),
                                 columns.pack_u64(tokens[start:stop]), columns.pack(errors[start:stop])))
            start = stop
        return pages


def _places_of(queue: str, heads: Sequence[bytes]) -> list[bytes]:
    """Where waiting tasks of a queue are, by their ready rows. Those of one grant mostly have one priority."""
    end = len(queue) + 1 + PRIORITY_BYTES
    first = heads[0][:end] if heads else b""
    if all(map(bytes.startswith, heads, repeat(first))):
        return [first] * len(heads)
    return [head[:end] for head in heads]


def _grant_of(request: m.Grant, task_ids: Sequence[bytes]) -> Grant:
    base, first = request.queue.encode() + b"\0", request.priorities[:PRIORITY_BYTES]
    if request.priorities == first * len(task_ids):
        places = [base + first] * len(task_ids)
    else:
        places = columns.wrap(columns.split(request.priorities, PRIORITY_BYTES), base)
    return Grant(task_ids, places, request.first_token, request.start_ms, request.end_ms, request.holder)
