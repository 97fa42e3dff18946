"""Data on its way: nodes that take partitions over, fill them again, or hand them off.

Each partition of this node has a role, and the role a job, derived anew at every look from what is
known, never from what changed:

* a *learner* (placed here, no vote yet) compares with voters until a majority of them is through. Then it
  holds all that was acknowledged before it began, and says so in gossip; its leader may seat it. What comes
  later reaches it directly, as to all keepers;
* a *suspect* (its memory is not to be trusted) asks others for the newest epoch they have promised, and compares
  with them, until they include a node of every majority that it may have belonged to. Then it adopts the highest
  promise, as one made to no candidate, and is trusted again. Without a document these are majorities of the
  owners, or all of them whose memory is not in doubt, as long as nobody knows of a leader: else somebody has
  deleted it, and it must be there again first;
* a *zombie* (neither placed here nor voting) takes no writes any more. It compares with voters until it has
  nothing left to give to a majority of them, reads in the document that it has no vote, and then drops its
  records, some at each look;
* a candidate may ask a new member to *sync*: to compare with the voters that it has read, after they voted.

Nothing is remembered over a restart: the job begins anew and finds little left to do.

Source: Skuld's zombies, which its authors designed and never built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs

from skuld_py.model import messages as m
from skuld_py.model.events import DocumentRead, ReadDocument
from skuld_py.model.remarks import Kind
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.operations.agenda import Agenda
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.leadership.quorum import has_majority, majority
from skuld_py.partition.vnode import Role, Vnode

ASK_PAUSE_MS = 500
DROP_ROWS = 2_000
STAYING = (Role.MEMBER, Role.LEARNER)
"""What a node must tell the leader that it is no more, once it is about to stop."""
NO_JOB = (Role.MEMBER, Role.STRANGER)
FILLS = {Role.LEARNER: "to become a voter", Role.SUSPECT: "its memory could not be trusted"}
"""Why a role fills from other copies."""


@attrs.define
class Job:
    """What a partition's role asks for. ``first`` numbers the first exchange that counts; ``through`` are the
    peers compared with and their starts, ``promised`` what they told."""

    role: Role
    era: int
    first: int
    through: dict[str, str] = attrs.field(factory=dict)
    promised: dict[str, int] = attrs.field(factory=dict)
    next_ask_ms: int = 0
    rows: int = 0
    is_done: bool = False
    is_led_once: bool = False
    """Somebody knows of a leader."""
    is_unfounded: bool = False
    """There is no document, and nobody asked has known of a leader: the owners would be the first voters."""
    is_confirmed: bool = False
    """The partition document says so too: this node, whose memory may be old, has no vote."""


@attrs.define
class Syncing:
    """A candidate's wish: compare with all ``sources``."""

    candidate: str
    epoch: int
    first: int
    sources: Sequence[str]
    through: dict[str, None] = attrs.field(factory=dict)


class Moves:
    """The jobs of one node."""

    def __init__(self, operations: Operations, exchanges: Exchanges) -> None:
        self.suspects: Callable[[int], Collection[str]] = lambda partition: ()
        """The nodes whose memory of a partition is in doubt, as they say."""
        self._view = operations.view
        self._outbox = operations.outbox
        self._exchanges = exchanges
        exchanges.on_pass.append(self.on_pass)
        self._jobs: dict[int, Job] = {}
        self.agenda = Agenda()
        """When a job that is under way goes on."""
        self._syncs: dict[int, Syncing] = {}

    def look(self, now_ms: int, partitions: Sequence[int]) -> None:
        """Derive the jobs of these partitions, and go on with them and with those under way."""
        under_way = self.agenda.take(now_ms, self._view.timing.look_jobs)
        for partition in sorted({*partitions, *under_way}):
            self._look_at(now_ms, self._view.vnodes[partition])
        for partition, sync in list(self._syncs.items()):
            if self._view.vnodes[partition].standing.epoch >= sync.epoch:
                del self._syncs[partition]  # that candidate has won without it, or never will
                continue
            for name in sync.sources:
                if name not in sync.through:
                    self._exchanges.pursue(partition, name, is_awaited=True)
            self.agenda.note(partition, now_ms)

    def _look_at(self, now_ms: int, vnode: Vnode) -> None:
        partition, role = vnode.partition, vnode.role
        if role in NO_JOB:
            if self._jobs.pop(partition, None) is not None:
                self._view.bulletin.change(partition)
            return
        job = self._jobs.get(partition)
        if job is None or (job.role, job.era) != (role, vnode.standing.era):
            if role in FILLS and (job is None or job.role is not role):
                vnode.remark(Kind.FILL_BEGUN, FILLS[role])
            job = self._jobs[partition] = Job(role, vnode.standing.era, self._exchanges.begun + 1)
            self._view.bulletin.change(partition)
        if role is Role.ZOMBIE:
            self._forget_restarted(vnode, job)
            self._ask_document(now_ms, vnode, job)
            self.drop(partition)
        if not job.is_done:
            self._go_on(now_ms, vnode, job)
        if role is Role.ZOMBIE or not job.is_done:
            self.agenda.note(partition, now_ms)

    def _forget_restarted(self, vnode: Vnode, job: Job) -> None:
        """A peer that started anew may have been wiped: what it was given counts only once it is seen again."""
        job.through = {name: boot for name, boot in job.through.items() if self._boot(name) == boot}
        job.is_done = bool(vnode.standing.cohort) and has_majority(vnode.standing.cohort, job.through)

    def _ask_document(self, now_ms: int, vnode: Vnode, job: Job) -> None:
        if job.is_done and not job.is_confirmed and now_ms >= job.next_ask_ms:
            job.next_ask_ms = now_ms + ASK_PAUSE_MS
            self._outbox.carry_out([ReadDocument(vnode.partition)])

    def _boot(self, name: str) -> str:
        member = self._view.live.get(name)
        return member.boot if member is not None else ""

    def _voters(self, vnode: Vnode, job: Job) -> Sequence[str]:
        return vnode.owners if job.is_unfounded else vnode.standing.cohort

    def _go_on(self, now_ms: int, vnode: Vnode, job: Job) -> None:
        others = [name for name in self._voters(vnode, job)
                  if name != self._view.me.name and name in self._view.live]
        if job.role is Role.SUSPECT and now_ms >= job.next_ask_ms:
            job.next_ask_ms = now_ms + ASK_PAUSE_MS
            for name in others:
                if name not in job.promised:
                    self._outbox.send(name, m.RequestVote(vnode.partition, max(1, vnode.standing.epoch),
                                                        tuple(self._voters(vnode, job)), True))
        if job.is_unfounded and self._is_known_to_nobody(vnode, job):
            self._trust(now_ms, vnode, job, [*job.promised])
            return
        for name in others:
            if name not in job.through and (job.role is not Role.SUSPECT or name in job.promised):
                self._exchanges.pursue(vnode.partition, name)

    def _is_known_to_nobody(self, vnode: Vnode, job: Job) -> bool:
        """Whether each other owner has said that it knows of no leader, or that its own memory is in doubt: then
        nobody is left to learn from."""
        in_doubt = self.suspects(vnode.partition)
        return all(name in job.through or name in in_doubt for name in vnode.owners if name != self._view.me.name)

    def _trust(self, now_ms: int, vnode: Vnode, job: Job, told: Sequence[str]) -> None:
        vnode.trust(now_ms, max((job.promised[name] for name in told), default=0))
        job.is_done = True

    def on_pass(self, now_ms: int, ended: Pass) -> None:
        """An exchange is through: perhaps it was the last that a job needed."""
        partition = ended.partition
        job = self._jobs.get(partition)
        if job is not None and ended.serial >= job.first and not job.is_done:
            job.rows += ended.progress.fetched_rows + ended.progress.given_rows
            if job.role is not Role.ZOMBIE or not ended.progress.given_rows:
                job.through[ended.peer] = self._boot(ended.peer)
            self._finish(now_ms, self._view.vnodes[partition], job)
            self._view.bulletin.change(partition)
        sync = self._syncs.get(partition)
        if sync is not None and ended.serial >= sync.first:
            sync.through[ended.peer] = None
            if all(name in sync.through for name in sync.sources):
                del self._syncs[partition]
                self._outbox.send(sync.candidate, m.Synced(partition, sync.epoch))

    def _finish(self, now_ms: int, vnode: Vnode, job: Job) -> None:
        cohort = self._voters(vnode, job)
        if job.role is Role.LEARNER:
            job.is_done = has_majority(cohort, job.through)
        elif job.role is Role.SUSPECT:
            told = [name for name in job.through if name in job.promised and name in cohort]
            if cohort and len(told) > len(cohort) - majority(len(cohort)):
                self._trust(now_ms, vnode, job, told)
        elif has_majority(cohort, job.through):
            job.is_done = True
        if job.is_done and job.role in FILLS:
            vnode.remark(Kind.FILL_DONE, FILLS[job.role])

    def drop(self, partition: int, limit: int = DROP_ROWS) -> None:
        """Delete some of what has been handed off."""
        vnode, job = self._view.vnodes[partition], self._jobs[partition]
        is_zombie = vnode.role is Role.ZOMBIE
        if is_zombie and job.is_done and job.is_confirmed and job.era == vnode.standing.era:
            vnode.replica.drop(limit)
            if vnode.replica.is_empty():
                self._view.bulletin.change(partition)

    def on_vote(self, peer: str, vote: m.Vote) -> None:
        """The answer to a suspect's question."""
        job = self._jobs.get(vote.partition)
        is_asked = vote.is_trial and job is not None and job.role is Role.SUSPECT
        if job is not None and is_asked and self._view.vnodes[vote.partition].believes(vote.promised):
            job.promised[peer] = max(vote.promised, job.promised.get(peer, 0))
            job.is_led_once = job.is_led_once or vote.settled > 0
            job.is_unfounded = job.is_unfounded and not job.is_led_once

    def on_read(self, now_ms: int, event: DocumentRead) -> None:
        """A document was read. Without one, and without a history of one, there has been no leader, as far as
        ZooKeeper knows; others tell a suspect whether that is so. A node that has no vote in it may drop its
        records."""
        partition, document = event.partition, event.document
        vnode, job = self._view.vnodes[partition], self._jobs.get(partition)
        if job is not None and document.era == job.era and self._view.me.name not in document.cohort:
            job.is_confirmed = job.role is Role.ZOMBIE and job.is_done and document.epoch > 0
        if vnode.suspicion and not document.epoch and not vnode.standing.epoch and not event.was_there:
            if len(vnode.owners) < 2:
                vnode.trust(now_ms, 0)
            elif job is not None and not job.is_led_once:
                job.is_unfounded = True
                self.agenda.note(partition, now_ms)

    def on_sync(self, now_ms: int, candidate: str, message: m.Sync) -> None:
        """A candidate that would lead this node asks it to take over what the voters hold."""
        vnode = self._view.vnodes[message.partition]
        if not vnode.is_trusted or self._view.me.name not in message.cohort:
            return
        if not vnode.believes(message.epoch, (*message.cohort, *message.sources), message.base):
            return
        vnode.expect(message.epoch, message.cohort, message.base)
        sources = [name for name in message.sources if name != self._view.me.name]
        self._syncs[message.partition] = Syncing(candidate, message.epoch, self._exchanges.begun + 1, sources)
        for name in sources:
            self._exchanges.pursue(message.partition, name, is_awaited=True)

    def rows(self) -> tuple[m.MoveRow, ...]:
        """The moves that are under way here, for status."""
        return tuple(row for partition in sorted(self._jobs) if (row := self.row(partition)) is not None)

    def row(self, partition: int) -> m.MoveRow | None:
        """The move of a partition that is under way, for gossip too."""
        job = self._jobs.get(partition)
        if self._view.is_leaving and self._view.vnodes[partition].role in STAYING:
            return m.MoveRow(partition, self._view.me.name, Role.LEAVER.value, 0, False, "it is about to stop")
        if job is None:
            return None
        return m.MoveRow(partition, self._view.me.name, job.role.value, job.rows + self._rows_under_way(partition),
                         job.is_done, self._view.vnodes[partition].suspicion[:200])

    def _rows_under_way(self, partition: int) -> int:
        running = (self._exchanges.progress(partition, name) for name in self._view.vnodes[partition].keepers)
        return sum(progress.fetched_rows + progress.given_rows for progress in running if progress is not None)
